"""The context of tools: the documents, stores and settings that one caller sees."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from cachetools import LRUCache, cachedmethod

from npl_index.answer.document_set import DocumentSet
from npl_index.deadline import Deadline, limited
from npl_index.errors import DocumentNotFoundError, NPLError
from npl_index.index.database import reading_errors
from npl_index.index.reading import DocumentChangedError
from npl_index.library.documents import DocumentFile, DocumentRef, Fingerprint
from npl_index.library.references import document_name, page_and_part
from npl_index.library.roots import real_path
from npl_index.ranking.collection import Collection, IndexedDocument
from npl_index.selectors.grammar import Selector
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.cr_documents import CrDocuments
from npl_mcp.app.document_sets import Build, IndexingError, SetFiles
from npl_mcp.app.file_view import Files, lies_in, may_write, real_paths
from npl_mcp.app.reading import ReadSections
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.app.sources import ArtifactDocuments, DocumentSource, Sources
from npl_mcp.app.state import SharedState
from npl_mcp.app.waiting import OwnThread, result_of
from npl_mcp.config.domains import PRESETS, READING, domains_named
from npl_mcp.config.settings import Settings
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.projects import Projects
from npl_mcp.stores.access import ALL, Permissions

logger = logging.getLogger(__name__)

VIEWS = 32
"""Cached views, by working directory and permissions."""

VOCABULARY_DELAY = 0.5
"""Seconds between the start of the warm-up and the loading of the vocabulary, for the first calls."""

CHECK_DELAY = 60.0
"""Seconds until the index is compared with its documents. This takes seconds of a processor for a large one,
and most questions come soon after a start.
"""

PATIENCE = 20.0
"""Seconds that a model's call waits for an index by default; clients end calls after a minute."""

ONLY_REFERENCE = "the roots: no Markdown; npl.md is the bundled reference of NPL"
"""The remark on an answer without ``file`` where no root has Markdown."""

_MAX_TRIES = 3

SMALL_BYTES = 64 * 1024
"""Size up to which a single file is indexed and ranked in the lane of short calls."""

FOR_PROGRAM: ContextVar[bool] = ContextVar("for_program", default=False)
"""Whether the answer is for a program of ours or a plain HTTP call, and not for a model."""

ALL_ROOTS = DocumentRef()

T = TypeVar("T")


class App(Files):
    """The view of one caller: search roots and a project of a working directory, on top of the shared state.

    Construction opens nothing; safe for several threads.

    :param settings: settings of the caller.
    :param state: shared state; by default a new one.
    :param permissions: permissions of the caller; their roots restrict those of the settings.
    """

    def __init__(
        self, settings: Settings, state: SharedState | None = None, permissions: Permissions = ALL
    ) -> None:
        self.state = state = state or SharedState(settings)
        self.permissions = permissions
        only = None if permissions.roots is None else real_paths(settings.roots)
        super().__init__(settings, state.files, only)
        self.stores, self.database, self.news = state.stores, state.stores.database, state.stores.news
        projects = Projects(self.cwd, (*settings.roots, *settings.cr_projects))
        self.change_requests = ChangeRequests(projects)
        limit = settings.limits.max_files
        sources: dict[str, DocumentSource] = {
            ArtifactDocuments.SCHEME: ArtifactDocuments(state.stores, limit),
            CrDocuments.SCHEME: CrDocuments(self.change_requests, limit),
        }
        visible = {name: sources[name] for name in SCHEMES if permissions.has_domain(SCHEMES[name].domain)}
        self.documents = Sources(self.library, visible)
        self._in_call = False
        self.threads = OwnThread()
        self._until: float | None = None
        self._when_delivered: list[Callable[[], object]] = []
        self.agent = ""
        self._call_counter: TokenCounter | None = None
        self._views: LRUCache[Path | Permissions, App] = LRUCache(VIEWS)
        self._warm_up: threading.Thread | None = None
        self._closing = threading.Event()

    def in_folder(self, cwd: Path) -> App:
        """Return the same application for the working directory of a caller: another root, another project.

        Without explicit roots, that directory is searched by default.

        :param cwd: absolute path of the directory.
        """
        project = self.settings.project if cwd == self.settings.cwd else None
        settings = replace(self.settings, cwd=cwd, own_cwd=True, project=project)
        if settings == self.settings:
            return self
        return self._view(cwd, settings, self.permissions)

    def with_permissions(self, permissions: Permissions) -> App:
        """Return the same application with restricted permissions."""
        if permissions == self.permissions:
            return self
        settings = self.settings
        if permissions.roots is not None:
            wanted = real_paths(permissions.roots)
            settings = replace(
                settings,
                roots=tuple(map(Path, dict.fromkeys(self._visible_folders(wanted)))),
                cr_projects=tuple(place for place in settings.cr_projects if lies_in(str(place), wanted)),
            )
        return self._view(permissions, settings, permissions)

    def _visible_folders(self, wanted: Sequence[str]) -> Iterator[str]:
        """Yield the requested folders that this application may show, and its own folders below others."""
        for folder in wanted:
            if self.library.roots.locate(folder) is not None:
                yield folder
            else:
                yield from (
                    root.path for root in self.library.roots if not root.npl and lies_in(root.path, [folder])
                )

    @cachedmethod(attrgetter("_views"), key=lambda _, key, *__: key, lock=attrgetter("state.lock"))
    def _view(self, _: Path | Permissions, settings: Settings, permissions: Permissions) -> App:
        return App(settings, self.state, permissions)

    @property
    def project(self) -> str:
        """The project of the worklogs: the real path of a folder."""
        return str(self.settings.worklog_project)

    def form(self, asked: str | None) -> str:
        """Return the form of an answer: the requested one, else the server's default; programs get JSON."""
        return asked or ("json" if FOR_PROGRAM.get() else self.settings.format)

    @property
    def counter(self) -> TokenCounter:
        """The token counter of :attr:`SharedState.counter`; a call keeps its counter until it ends."""
        if not self._in_call:
            return self.state.counter
        self._call_counter = self._call_counter or self.state.counter
        return self._call_counter

    def in_call(self, agent: str | None = "", threads: OwnThread | None = None) -> App:
        """Return the same application for one call, which begins now.

        :param agent: name of the caller; ``None`` if it is the only one of this process.
        :param threads: threads of the call; by default the present one.
        """
        view = copy(self)
        view._in_call = True
        view.threads = threads or self.threads
        patience = self.settings.patience if threads is None else self.patience
        view._until = None if patience is None else time.monotonic() + patience
        view._when_delivered = []
        view.agent = self.state.process if agent is None else agent
        return view

    def when_delivered(self, then: Callable[[], object]) -> None:
        """Call a function once the answer of this call is complete, if it does not fail."""
        self._when_delivered.append(then)

    def delivered(self) -> None:
        """Call the functions for a complete answer."""
        for then in self._when_delivered:
            then()

    @property
    def patience(self) -> float | None:
        """Seconds that a call of the server waits for an index; ``None`` for no limit."""
        given = self.settings.patience
        return PATIENCE if given is None and not FOR_PROGRAM.get() else given

    async def read(
        self, part: Callable[[], T], ref: DocumentRef = ALL_ROOTS, threads: OwnThread | None = None
    ) -> T:
        """Return the result of a function that gathers documents; it reads one state of each file.

        The function is called again after a wait for an index. Texts of a set are read on demand; if one of
        them has changed since the listing of its set, the function is called again as well.

        :param ref: documents that the function gathers.
        :raises UnreadableDocumentError: a file changes each time.
        """
        threads, tries = threads or self.threads, 0
        if threads.lane == "light" and (ref.file is None or await threads.run(self._is_long, ref)):
            threads.lane = "heavy"
        while True:
            try:
                return await threads.run(part)
            except IndexingError as indexing:
                await threads.wait(indexing.build.ended, indexing.left)
                indexing.left()
            except DocumentChangedError:
                tries += 1
                if tries > _MAX_TRIES:
                    raise
                self._when_delivered.clear()

    def read_here(self, part: Callable[[], T]) -> T:
        """Return the result of :meth:`read`; this thread waits for it."""
        return result_of(self.read(part, threads=OwnThread()))

    def gather(self, ref: DocumentRef, seconds: float | None = None) -> DocumentSet:
        """Return the result of :meth:`gathered`; this thread waits for it."""
        return self.read_here(partial(self.gathered, ref, seconds=seconds))

    def _is_long(self, ref: DocumentRef) -> bool:
        """Return whether documents take too long for the lane of short calls."""
        with suppress(NPLError):  # the call reports it
            return self.documents.is_set(ref) or self.documents.find(ref)[0].stat().size > SMALL_BYTES
        return False

    def _left(self, build: Build, seconds: float | None) -> float:
        """Return the seconds that this call still waits for an index.

        :param seconds: maximum wait from the start of the index; ``None`` leaves it to the call's patience,
            which lasts until some documents are ready.
        """
        left = math.inf
        if self._until is not None:
            left = max(self._until - time.monotonic(), 0.0 if build.done else math.inf)
        return left if seconds is None else min(left, build.began + seconds - time.monotonic())

    def gathered(
        self,
        ref: DocumentRef,
        selectors: Sequence[Selector] = (),
        exclude: Sequence[Selector] = (),
        *,
        seconds: float | None = None,
    ) -> DocumentSet:
        """Return the documents of a request, indexed in their current state.

        Without a file or an item these are the documents that the selectors name. If a selector names none,
        they are those of the explicit roots, or else the core reference.

        :param selectors: selectors of the request.
        :param exclude: sections that the caller already has, of these documents or of others.
        :param seconds: maximum wait for the index, from its start; afterwards the other documents are enough.
        :raises DocumentNotFoundError: no document matches.
        :raises DocumentError: the only document cannot be read.
        :raises IndexingError: the call may wait for the index, in :meth:`read`.
        :raises NotIndexedError: no document of a set is indexed, and the wait is over.
        """
        named, others = self._located(ref, selectors, exclude)
        locations = tuple(dict.fromkeys((*named, *others))) if named else others
        several = len(locations) > 1 or (bool(others) and self.documents.is_set(ref))
        missing = 0
        if several:
            name, listed, gone = self._set_of(None if named else ref, locations)
            indexed = self.state.sets.gather(name, listed, partial(self._left, seconds=seconds))
            unreadable = (*indexed.members.unreadable, *gone)
            collection: Collection = indexed
            locations, missing = indexed.files, indexed.members.missing
            until = time.monotonic() + self.settings.time_limit
        else:
            until = time.monotonic() + self.settings.time_limit
            unreadable = () if named or ref != DocumentRef() else (ONLY_REFERENCE,)
            collection = self.indexed_document(locations[0], locations[0].stat()).collection
        files = self.documents.names(locations)
        file, is_all = self._name_of(ref, files) if several else files[0], self._searches_all(ref, selectors)
        clock = Deadline(file, until)
        aliases = self.documents.aliases(ref, locations)
        if named:
            pairs = zip(locations, aliases, strict=True)
            aliases = [(*own, *named.get(document, ())) for document, own in pairs]
        return DocumentSet(
            collection=collection,
            locations=locations,
            unreadable=unreadable,
            missing=missing,
            several=several,
            file=file,
            counts=self.counting(collection, clock),
            count_with=lambda: self.counter,
            files=files,
            aliases=aliases,
            complete=several and not missing and is_all,
            not_served=self.library.not_served if is_all else str,
            digests=self.may_edit(ref, locations),
            clock=clock,
        )

    def _name_of(self, ref: DocumentRef, files: Sequence[str]) -> str:
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
            named = self.documents.find_called(selector.document)
            return not named or not set(named).isdisjoint(documents.locations)

        return tuple(filter(is_possible, selectors))

    def may_edit(self, ref: DocumentRef, locations: Sequence[DocumentFile]) -> bool:
        """Return whether the settings allow edits of a file, or of some of several."""
        if not self.settings.write or self.settings.unwritable or not self.documents.is_file(ref):
            return False
        return len(locations) > 1 or may_write(self.state.settings, locations[0].absolute)

    def _document_of(self, selector: Selector) -> tuple[DocumentFile, ...]:
        """Return the documents with the name in a selector."""
        return () if selector.document is None else self.documents.find_called(selector.document)

    def _located(
        self, ref: DocumentRef, selectors: Sequence[Selector], exclude: Sequence[Selector]
    ) -> tuple[dict[DocumentFile, list[str]], tuple[DocumentFile, ...]]:
        """Return the documents that selectors name, with those names, and the documents of a reference.

        Selectors without a document are resolved in all documents, both included and excluded ones.
        """
        named, all_named = self._documents_named(selectors) if ref == DocumentRef() else ({}, False)
        if all_named and all(map(self._document_of, exclude)):
            return named, ()
        try:
            return named, self.documents.find(ref)
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

    def _set_of(
        self, ref: DocumentRef | None, locations: Sequence[DocumentFile]
    ) -> tuple[Hashable, SetFiles, tuple[str, ...]]:
        """Return the name of a set and its files, and the removed files.

        :param ref: cache key of the set; ``None`` if it is not cached.
        """
        listed = self.documents.listed(locations)
        gone = tuple(f"{missing.path}: the file was removed" for missing in listed.gone)
        # The name of the only root denotes the same set as no name.
        asked = None if ref is None or self._searches_all(ref, ()) else ref
        # The states of a list of names are not cached: each list is requested only once or a few times.
        name = (asked, tuple(locations) if ref is None else listed.roots)
        whole = asked is not None and self.documents.is_whole(asked)
        reader = self.documents.process_reader(listed)
        return name, SetFiles(listed.there, self.documents.read, reader, whole), gone

    def _searches_all(self, ref: DocumentRef, selectors: Sequence[Selector]) -> bool:
        """Return whether a request covers all documents that a request without a file covers."""
        if ref == DocumentRef():
            return not any(selector.document for selector in selectors)
        roots = self.settings.roots
        if len(roots) != 1 or ref.file is None or ref.kind is not None:
            return False
        return real_path(str(roots[0] / ref.file)) == real_path(str(roots[0]))

    @property
    def read_sections(self) -> ReadSections | None:
        """The memory of a known caller; ``None`` for an unknown one."""
        tells = self.agent and self.settings.tell_changes
        return self.state.read_sections(self.agent) if tells else None

    def clock(self, name: str) -> Deadline:
        """Return the deadline of a call that begins now.

        :param name: name of the document or of the set, for messages.
        """
        return Deadline(name, time.monotonic() + self.settings.time_limit)

    def counting(
        self, collection: Collection, clock: Deadline, counter: TokenCounter | None = None
    ) -> Callable[[int], TokenCounts]:
        """Return the token counts of each document of a collection.

        :param counter: token counter, by default that of the call.
        """

        @cache
        def counts(document: int) -> TokenCounts:
            own, by = collection.documents[document], counter or self.counter
            known = self.state.known_counts(own, by, lambda: collection.tokens_of(document))
            return TokenCounts(own.tree, by, clock, known)

        return counts

    def indexed_document(self, document: DocumentFile, fingerprint: Fingerprint) -> IndexedDocument:
        """Return the index of a document, from memory if the file is unchanged.

        :param fingerprint: current state of the file.
        """
        return self.state.indices.get(fingerprint, lambda: self.documents.read(document))

    def start_warm_up(self) -> None:
        """Run :meth:`warm_up` in a separate thread."""
        if self.settings.warm_up and self._warm_up is None:
            self._warm_up = threading.Thread(
                target=self.warm_up, args=(CHECK_DELAY,), name="npl-warm-up", daemon=True
            )
            self._warm_up.start()

    def warm_up(self, delay: float = 0.0) -> None:
        """Check the database, begin to index the roots, load the vocabulary, and check the index.

        :param delay: seconds before the check of the index.
        """
        # Loading a vocabulary blocks the interpreter for a third of a second; the first call has priority.
        self._closing.wait(VOCABULARY_DELAY)
        try:
            self.stores.start()
        except NPLError as error:
            logger.error("data folder: %s", error)
        self.index_ahead()
        self.state.load_counter()
        if not self._closing.wait(delay):
            self.state.sets.verify(self._closing.is_set)

    def index_ahead(self) -> None:
        """Begin to index the roots if a tool reads them and later servers keep the index.

        Many servers end without a question: an index in memory would be lost each time.
        """
        settings = self.settings
        reads = not {*PRESETS[READING]}.isdisjoint(domains_named(settings.domains))
        if not reads or settings.cache_mode == "memory" or self._closing.is_set():
            return
        # The first question reports what is wrong.
        with suppress(NPLError, OSError, *reading_errors()), limited(settings.time_limit):
            locations = self.documents.find(DocumentRef())
            if len(locations) > 1:
                self.state.sets.begin(*self._set_of(DocumentRef(), locations)[:2])

    def close(self) -> None:
        """Stop the warm-up; close the shared state."""
        self._closing.set()
        if self._warm_up is not None:
            self._warm_up.join()
        self.state.close()
