"""The documents that a caller sees: the sources of a working directory, and their sets in the index."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from npl_index.answer.document_set import DocumentSet
from npl_index.errors import DocumentNotFoundError, NPLError
from npl_index.library.documents import Document, DocumentFile, DocumentRef, Fingerprint, Library
from npl_index.library.lazy import LazySequence
from npl_index.library.listing import Listed, state_of
from npl_index.library.references import document_name, page_and_part
from npl_index.library.roots import real_path
from npl_index.ranking.collection import IndexedDocument
from npl_index.selectors.grammar import Selector
from npl_mcp.app.document_sets import SetFiles
from npl_mcp.app.file_view import Files, may_write, real_paths
from npl_mcp.app.schemes import SCHEMES, refuse_removed
from npl_mcp.app.sources import ArtifactDocuments, CrDocuments, DocumentSource
from npl_mcp.app.state import SharedState
from npl_mcp.config.settings import Settings
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.projects import Projects
from npl_mcp.stores.access import Permissions
from npl_mcp.stores.base.errors import DatabaseError

_NAME_IN_LIST = re.compile(r"(?:[^{},]|\{(?:[^{}]|\{[^{}]*\})*\}|[{}])+")  # commas in braces do not separate


class Documents(Files):
    """The documents below the search roots and in the project of a working directory, artifacts and change
    requests. The scheme of a name selects its source; names without a known scheme are those of files.

    Construction opens nothing; safe for several threads.

    :param settings: settings with the roots.
    :param state: shared state, with the index.
    :param permissions: permissions of the caller; their roots restrict those of the settings.
    """

    def __init__(self, settings: Settings, state: SharedState, permissions: Permissions) -> None:
        only = None if permissions.roots is None else real_paths(settings.roots)
        super().__init__(settings, state.files, only)
        self.permissions, self._state = permissions, state
        projects = Projects(self.cwd, (*settings.roots, *settings.cr_projects))
        self.change_requests, limit = ChangeRequests(projects), settings.limits.max_files
        sources: Mapping[str, DocumentSource] = {
            "artifact": ArtifactDocuments(state.stores, limit),
            "cr": CrDocuments(self.change_requests, limit),
        }
        # Their documents lie under the root ``<scheme>:``.
        is_seen = permissions.has_domain
        self._schemes = {name: sources[name] for name, scheme in SCHEMES.items() if is_seen(scheme.domain)}

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find the documents of a reference, or of each name of a list, in the order of the list.

        See :meth:`~npl_index.library.documents.Library.find`.
        """
        found = [self._source_of(part.file).find(part) for part in self._each(ref)]
        return found[0] if len(found) == 1 else tuple(dict.fromkeys(chain.from_iterable(found)))

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the documents of a name in a selector.

        A name without a scheme denotes a file, else a change request, else an artifact's file.
        """
        source = self._source_of(name)
        if source is not self.library:
            with suppress(NPLError):
                return source.find(DocumentRef(file=name))
            return ()
        sources: tuple[Library | DocumentSource, ...] = (source, *self._schemes.values())
        for candidate in sources:
            with suppress(DatabaseError):  # a file may be meant
                if found := candidate.find_called(name):
                    return found
        return ()

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a set; its number of documents does not count."""
        return len(self._each(ref)) > 1 or self._source_of(ref.file).is_set(ref)

    def names(self, documents: Sequence[DocumentFile]) -> Sequence[str]:
        """Return the unique name of each document in answers."""
        return self.library.roots.names(documents)

    def _each(self, ref: DocumentRef) -> list[DocumentRef]:
        """Return a reference for each name of a list; a file's name may have a comma."""
        text = ref.file or ""
        if "," not in text or (self.is_file(ref) and self.library.holds(text)):
            return [ref]
        names = map(str.strip, _NAME_IN_LIST.findall(text))
        return [DocumentRef(file=name) for name in names if name] or [ref]

    def is_file(self, ref: DocumentRef) -> bool:
        """Return whether the files are the source of a reference."""
        return self._source_of(ref.file) is self.library

    def aliases(self, ref: DocumentRef, documents: Sequence[DocumentFile]) -> Sequence[tuple[str, ...]]:
        """Return the other names of each document in selectors: the requested name, if there is only one
        document.
        """
        if len(documents) == 1 and ref.file is not None:
            return [(page_and_part(ref.file)[0], *documents[0].aliases)]
        return LazySequence(len(documents), lambda at: documents[at].aliases)

    def read(self, document: DocumentFile) -> Document:
        """Read a whole document."""
        return self._source_of(document.root.path).read(document)

    def _source_of(self, name: str | None) -> Library | DocumentSource:
        """Return the source of a name.

        :raises DocumentNotFoundError: its scheme was removed.
        """
        refuse_removed(name)
        scheme, colon, _ = (name or "").partition(":")
        return self._schemes.get(scheme, self.library) if colon else self.library

    def resolve(
        self, ref: DocumentRef, selectors: Sequence[Selector], exclude: Sequence[Selector]
    ) -> tuple[dict[DocumentFile, list[str]], tuple[DocumentFile, ...]]:
        """Return the documents that selectors name, with those names, and the documents of a reference.

        Selectors without a document are resolved in all documents, both included and excluded ones.
        """
        named: dict[DocumentFile, list[str]] = {}
        all_named = bool(selectors) and ref == DocumentRef()
        for selector in selectors if all_named else ():
            documents = self._document_of(selector)
            for document in documents:
                named.setdefault(document, []).append(page_and_part(selector.document or "")[0])
            all_named = all_named and bool(documents)
        if all_named and all(map(self._document_of, exclude)):
            return named, ()
        try:
            return named, self.find(ref)
        except DocumentNotFoundError:
            if not named:
                raise
            return named, ()

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
        states = map(state_of, locations)
        listed = locations if isinstance(locations, Listed) else Listed.of(locations, states)
        gone = tuple(f"{missing.path}: the file was removed" for missing in listed.gone)
        # The name of the only root denotes the same set as no name.
        asked = None if ref is None or self.searches_all(ref, ()) else ref
        # The states of a list of names are not cached: each list is requested only once or a few times.
        # Sessions with equal roots may leave out other files.
        name = (asked, tuple(locations) if ref is None else listed.roots, self.settings.ignoring)
        # Whether it names everything below some roots of a single source.
        scheme, _, rest = ("" if asked is None else asked.file or "").partition(":")
        whole = scheme in self._schemes and "/" not in rest and "," not in rest
        are_files = all(self._source_of(root) is self.library for root in listed.roots)
        reader = self.library.read if are_files else None
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
