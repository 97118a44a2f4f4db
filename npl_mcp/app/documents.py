"""The documents that a caller sees: the sources of a working directory, and their sets in the index."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from npl_index.answer.document_set import DocumentSet
from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentFile, DocumentRef, Fingerprint
from npl_index.library.listing import Listed, state_of
from npl_index.library.references import document_name, page_and_part
from npl_index.library.roots import real_path
from npl_index.ranking.collection import IndexedDocument
from npl_index.selectors.grammar import Selector
from npl_mcp.app.cr_documents import CrDocuments
from npl_mcp.app.document_sets import SetFiles
from npl_mcp.app.file_view import Files, may_write, real_paths
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.app.sources import ArtifactDocuments, DocumentSource, Sources
from npl_mcp.app.state import SharedState
from npl_mcp.config.settings import Settings
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.projects import Projects
from npl_mcp.stores.access import Permissions


class Documents(Files, Sources):
    """The documents below the search roots and in the project of a working directory, artifacts and change
    requests.

    Construction opens nothing; safe for several threads.

    :param settings: settings with the roots.
    :param state: shared state, with the index.
    :param permissions: permissions of the caller; their roots restrict those of the settings.
    """

    def __init__(self, settings: Settings, state: SharedState, permissions: Permissions) -> None:
        only = None if permissions.roots is None else real_paths(settings.roots)
        Files.__init__(self, settings, state.files, only)
        self.permissions, self._state = permissions, state
        projects = Projects(self.cwd, (*settings.roots, *settings.cr_projects))
        self.change_requests = ChangeRequests(projects)
        limit = settings.limits.max_files
        sources: dict[str, DocumentSource] = {
            ArtifactDocuments.SCHEME: ArtifactDocuments(state.stores, limit),
            CrDocuments.SCHEME: CrDocuments(self.change_requests, limit),
        }
        visible = {name: sources[name] for name in SCHEMES if permissions.has_domain(SCHEMES[name].domain)}
        Sources.__init__(self, self.library, visible)

    def resolve(
        self, ref: DocumentRef, selectors: Sequence[Selector], exclude: Sequence[Selector]
    ) -> tuple[dict[DocumentFile, list[str]], tuple[DocumentFile, ...]]:
        """Return the documents that selectors name, with those names, and the documents of a reference.

        Selectors without a document are resolved in all documents, both included and excluded ones.
        """
        named, all_named = self._documents_named(selectors) if ref == DocumentRef() else ({}, False)
        if all_named and all(map(self._document_of, exclude)):
            return named, ()
        try:
            return named, self.find(ref)
        except DocumentNotFoundError:
            if not named:
                raise
            return named, ()

    def _documents_named(self, selectors: Sequence[Selector]) -> tuple[dict[DocumentFile, list[str]], bool]:
        """Return the documents that selectors name, with those names, and whether each selector names one."""
        named: dict[DocumentFile, list[str]] = {}
        complete = bool(selectors)
        for selector in selectors:
            documents = self._document_of(selector)
            for document in documents:
                named.setdefault(document, []).append(page_and_part(selector.document or "")[0])
            complete = complete and bool(documents)
        return named, complete

    def _document_of(self, selector: Selector) -> tuple[DocumentFile, ...]:
        """Return the documents with the name in a selector."""
        return () if selector.document is None else self.find_called(selector.document)

    def set_of(
        self, ref: DocumentRef | None, locations: Sequence[DocumentFile]
    ) -> tuple[Hashable, SetFiles, tuple[str, ...]]:
        """Return the name of a set and its files, and the removed files.

        :param ref: cache key of the set; ``None`` if it is not cached.
        """
        # The same object as long as the files are known to be unchanged.
        listed = (
            locations if isinstance(locations, Listed) else Listed.of(locations, map(state_of, locations))
        )
        gone = tuple(f"{missing.path}: the file was removed" for missing in listed.gone)
        # The name of the only root denotes the same set as no name.
        asked = None if ref is None or self.searches_all(ref, ()) else ref
        # The states of a list of names are not cached: each list is requested only once or a few times.
        # Sessions with equal roots may leave out other files.
        name = (asked, tuple(locations) if ref is None else listed.roots, self.settings.ignoring)
        whole = asked is not None and self.is_whole(asked)
        reader = self.process_reader(listed)
        return name, SetFiles(listed.there, self.read, reader, whole), gone

    def searches_all(self, ref: DocumentRef, selectors: Sequence[Selector]) -> bool:
        """Return whether a request covers all documents that a request without a file covers."""
        if ref == DocumentRef():
            return not any(selector.document for selector in selectors)
        roots = self.settings.roots
        if len(roots) != 1 or ref.file is None or ref.kind is not None:
            return False
        return real_path(str(roots[0] / ref.file)) == real_path(str(roots[0]))

    def name_of(self, ref: DocumentRef, files: Sequence[str]) -> str:
        """Return the name of several documents in an answer: the requested one, else their roots."""
        named = ref.file or ref.item
        return named or ", ".join(root.label for root in self.library.searched) or ", ".join(files)

    def possible(self, selectors: Sequence[Selector], documents: DocumentSet) -> tuple[Selector, ...]:
        """Return the selectors that may select a section of some documents: they name no other document."""
        if not selectors:
            return ()
        names = {name for file in documents.files for name in (document_name(file), file)}
        names.update(*documents.aliases)

        def is_possible(selector: Selector) -> bool:
            if selector.document is None or selector.document in names:
                return True
            named = self.find_called(selector.document)
            return not named or not set(named).isdisjoint(documents.locations)

        return tuple(filter(is_possible, selectors))

    def may_edit(self, ref: DocumentRef, locations: Sequence[DocumentFile]) -> bool:
        """Return whether the settings allow edits of a file, or of some of several."""
        if not self.settings.write or self.settings.unwritable or not self.is_file(ref):
            return False
        return len(locations) > 1 or may_write(self._state.settings, locations[0].absolute)

    def indexed_document(self, document: DocumentFile, fingerprint: Fingerprint) -> IndexedDocument:
        """Return the index of a document, from memory if the file is unchanged.

        :param fingerprint: current state of the file.
        """
        return self._state.indices.get(fingerprint, lambda: self.read(document))
