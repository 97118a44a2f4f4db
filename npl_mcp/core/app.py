"""What tools are given: the documents, stores and settings one caller sees."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from cachetools import LRUCache

from npl_index.errors import DocumentNotFoundError, NPLError
from npl_index.index.collection import DocumentChangedError
from npl_index.library.documents import DocumentRef, Fingerprint, Found
from npl_index.library.references import document_name
from npl_index.library.roots import real_path
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.ranking.indexing import Collection, IndexedDocument
from npl_index.selectors.grammar import Selector
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.sections import TokenCounts
from npl_mcp.config.settings import Settings
from npl_mcp.core.files import Files, lies_in, real_paths
from npl_mcp.core.library_documents import LibraryDocuments
from npl_mcp.core.sources import ArtifactDocuments, Source, Sources
from npl_mcp.core.state import SharedState
from npl_mcp.core.waiting import Long, Waiting, waited
from npl_mcp.documents.change_requests import ChangeRequests
from npl_mcp.documents.cr_documents import CrDocuments
from npl_mcp.documents.projects import Projects
from npl_mcp.stores.access import EVERYTHING, Sight
from npl_mcp.stores.changes import Changes

logger = logging.getLogger(__name__)

VIEWS = 32
"""Working directories, and sights of callers, whose views are kept."""

VOCABULARY_DELAY = 0.5
"""Seconds the warm-up leaves to first calls before it loads the vocabulary."""

_DOMAINS = {ArtifactDocuments.SCHEME: "artifact", CrDocuments.SCHEME: "cr"}
"""The domains that documents of other sources than files belong to."""

_TRIES = 3

SMALL_BYTES = 64 * 1024
"""The largest single file that is indexed and ranked among the short calls."""

FOR_PROGRAM: ContextVar[bool] = ContextVar("for_program", default=False)
"""Whether a program of ours or a plain HTTP call gets the answer, and not a model."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gathered:
    """The documents a request is about.

    :param collection: their indices, together.
    :param several: whether the request names a set (a folder or a pattern), so that answers name files.
    :param files: what answers call each document; without anything else it leads to this one alone.
    :param aliases: by what else selectors may call each document.
    :param unreadable: files of the set that were left out, and why.
    :param exclude: what the caller has of these documents.
    :param missing: files of the set that are not indexed yet, since the call did not wait for them.
    :param founds: where the documents are.
    """

    collection: Collection
    several: bool
    files: Sequence[str]
    aliases: Sequence[tuple[str, ...]]
    unreadable: tuple[str, ...]
    exclude: tuple[Selector, ...] = ()
    missing: int = 0
    founds: tuple[Found, ...] = ()


class App(Files):
    """What one caller sees: search roots and a project of a working directory, on top of what all share.

    Opens nothing when made; can be used from several threads.

    :param settings: see :class:`~npl_mcp.config.settings.Settings`.
    :param state: by default a new one.
    :param sight: what of it is seen; if it names roots, those of the settings are what is shown of them.
    """

    def __init__(
        self, settings: Settings, state: SharedState | None = None, sight: Sight = EVERYTHING
    ) -> None:
        self.state = state = state or SharedState(settings)
        self.sight = sight
        self.seen_roots = only = None if sight.roots is None else real_paths(settings.roots)
        super().__init__(settings, state.files, only)
        self.stores, self.database = state.stores, state.stores.database
        cwd = settings.cwd if only is None or lies_in(str(settings.cwd), only) else None
        self.changes = ChangeRequests(
            Projects(cwd, (*settings.roots, *settings.cr_roots), settings.cr_folders),
            state.tickets,
            state.editor,
        )
        most = settings.limits.max_files
        sources: dict[str, Source] = {
            ArtifactDocuments.SCHEME: ArtifactDocuments(state.stores, most, state.revisions),
            CrDocuments.SCHEME: CrDocuments(self.changes, most),
            LibraryDocuments.SCHEME: LibraryDocuments(state.stores, most, sight.has_library, state.listings),
        }
        seen = {scheme: one for scheme, one in sources.items() if sight.has_domain(_DOMAINS.get(scheme))}
        self.documents = Sources(self.library, seen)
        self._in_call = False
        self._held: TokenCounter | None = None
        self._views: LRUCache[Path | Sight, App] = LRUCache(VIEWS)
        self._warm_up: threading.Thread | None = None
        self._closing = threading.Event()

    def at(self, cwd: Path) -> App:
        """Return the same application seen from another working directory: other roots, its own project.

        Without roots that were given, that directory is searched if nothing is named.

        :param cwd: absolute.
        """
        settings = replace(self.settings, cwd=cwd, search_cwd=True, project=None)
        if settings == self.settings or (cwd == self.settings.cwd and settings.roots):
            return self
        return self._view(cwd, settings, self.sight)

    def seen_by(self, sight: Sight) -> App:
        """Return the same application as somebody sees it who may not see everything."""
        if sight == self.sight:
            return self
        settings = self.settings
        if sight.roots is not None:
            wanted = real_paths(sight.roots)
            settings = replace(
                settings,
                roots=tuple(map(Path, dict.fromkeys(self._shown(wanted)))),
                cr_projects=tuple(one for one in settings.cr_projects if lies_in(str(one.folder), wanted)),
            )
        return self._view(sight, settings, sight)

    def _shown(self, wanted: Sequence[str]) -> Iterator[str]:
        """Return the folders of those wanted that this application shows, and what it shows of others."""
        for folder in wanted:
            if self.library.roots.locate(folder) is not None:
                yield folder
            else:
                yield from (
                    root.path for root in self.library.roots if not root.npl and lies_in(root.path, [folder])
                )

    def _view(self, key: Path | Sight, settings: Settings, sight: Sight) -> App:
        with self.state.lock:
            view = self._views.get(key)
            if view is None:
                view = self._views[key] = App(settings, self.state, sight)
        return view

    @property
    def project(self) -> str:
        """The project worklogs belong to: the real path of a folder."""
        return str(self.settings.worklog_project)

    @property
    def news(self) -> Changes:
        """Tells what others committed."""
        return self.stores.changes

    def form(self, asked: str | None) -> str:
        """Return the form of an answer: the one the call asked for, else the server's; programs read JSON."""
        return asked or ("json" if FOR_PROGRAM.get() else self.settings.format)

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens, as :attr:`SharedState.counter`; a call keeps its counter until it ends."""
        if not self._in_call:
            return self.state.counter
        self._held = self._held or self.state.counter
        return self._held

    def in_call(self) -> App:
        """Return the same application as a call of the server sees it, which waits without a thread."""
        view = copy(self)
        view._in_call = True
        return view

    def finished(self, call: Waiting[T]) -> Waiting[T] | T:
        """Return the result of a call, for which this thread waits; of a call of the server the call."""
        return call if self._in_call else waited(call, self.settings.patience)

    async def unchanging(self, answer: Callable[[], Waiting[T]]) -> T:
        """Return an answer that is made from one state of each file.

        Texts of a set are read when they are needed. If one of them has changed since its set was looked at,
        the answer is made again.

        :raises UnreadableDocumentError: a file changes each time.
        """
        for _ in range(_TRIES):
            try:
                return await answer()
            except DocumentChangedError:
                continue
        return await answer()

    def gather(
        self, ref: DocumentRef, selectors: Sequence[Selector] = (), exclude: Sequence[Selector] = ()
    ) -> Gathered:
        """Return what :meth:`gathered` does, for which this thread waits."""
        return waited(self.gathered(ref, selectors, exclude), self.settings.patience)

    async def gathered(
        self, ref: DocumentRef, selectors: Sequence[Selector] = (), exclude: Sequence[Selector] = ()
    ) -> Gathered:
        """Return the documents a request is about, indexed as they are on disk now.

        Without a file or an item these are the documents that the selectors name. Where one names none, they
        are those of the roots that were given, or else the core reference.

        :param exclude: what the caller has, of these documents or of others.
        :raises DocumentNotFoundError: there is none.
        :raises DocumentError: the only one cannot be used.
        :raises NotIndexedError: nothing of a set is indexed, and the call has waited enough.
        """
        if ref.file is None or self.documents.is_set(ref):
            await Long()
        named, all_named = self._named_by(selectors) if ref == DocumentRef() else ({}, False)
        # What names no document is looked up in all of them, whether it is wanted or not.
        all_named = all_named and all(map(self._named_documents, exclude))
        meant = () if all_named else self._meant(ref, optional=bool(named))
        found = tuple(dict.fromkeys((*named, *meant))) if named else meant
        several = len(found) > 1 or (bool(meant) and self.documents.is_set(ref))
        if several:
            founds, collection, unreadable, missing = await self._gather_set(None if named else ref, found)
        else:
            state = self.documents.stat(found[0])
            if state.size > SMALL_BYTES:
                await Long()
            founds, collection, unreadable, missing = found, self._indexed(found[0], state).collection, (), 0
        files, aliases = self.documents.names(founds), self.documents.aliases(ref, founds)
        if named:
            aliases = [(*own, *named.get(one, ())) for one, own in zip(founds, aliases, strict=True)]
        here = tuple(one for one in exclude if self._may_be_in(founds, files, aliases, one))
        return Gathered(collection, several, files, aliases, unreadable, here, missing, founds)

    def _may_be_in(
        self,
        found: Sequence[Found],
        files: Sequence[str],
        aliases: Sequence[Sequence[str]],
        selector: Selector,
    ) -> bool:
        """Return whether a selector may select something in some documents: it names no other."""
        name = selector.document
        if name is None or any(name in (document_name(file), file) for file in files):
            return True
        elsewhere = () if any(name in own for own in aliases) else self.documents.find_called(name)
        return not elsewhere or not set(elsewhere).isdisjoint(found)

    def _named_documents(self, selector: Selector) -> tuple[Found, ...]:
        return () if selector.document is None else self.documents.find_called(selector.document)

    def _meant(self, ref: DocumentRef, *, optional: bool) -> tuple[Found, ...]:
        try:
            return self.documents.find(ref)
        except DocumentNotFoundError:
            if optional:
                return ()
            raise

    def _named_by(self, selectors: Sequence[Selector]) -> tuple[dict[Found, list[str]], bool]:
        """Return the documents that selectors name, by which names, and whether each selector names one."""
        named: dict[Found, list[str]] = {}
        complete = bool(selectors)
        for selector in selectors:
            found = self._named_documents(selector)
            for one in found:
                named.setdefault(one, []).append(selector.document or "")
            complete = complete and bool(found)
        return named, complete

    async def _gather_set(
        self, ref: DocumentRef | None, found: Sequence[Found]
    ) -> tuple[tuple[Found, ...], Collection, tuple[str, ...], int]:
        """Return the documents of a set that can be read, what was left out, and how many are to come.

        :param ref: by which the set is remembered; ``None`` if it is not.
        """
        listed = self.documents.listed(found)
        states, gone = listed.there, tuple(f"{one.path}: it is gone" for one in listed.gone)
        # The only root by its name is the same as no name.
        asked = None if ref is None or self.searches_all(ref, ()) else ref
        # Lists of names are sets as well; each is asked for once or a few times.
        name = (asked, tuple(found) if ref is None else (listed.roots, listed.homes))
        kept = await self.state.sets.gather(
            name,
            states,
            self.documents.read,
            self.documents.apart(listed),
            whole=asked is not None and self.documents.is_whole(asked),
        )
        return kept.founds, kept.collection, (*kept.unreadable, *gone), kept.missing

    def searches_all(self, ref: DocumentRef, selectors: Sequence[Selector]) -> bool:
        """Return whether a request is about all documents that one without a file is about."""
        if ref == DocumentRef():
            return not any(selector.document for selector in selectors)
        roots = self.settings.roots
        if len(roots) != 1 or ref.file is None or ref.kind is not None:
            return False
        return real_path(str(roots[0] / ref.file)) == real_path(str(roots[0]))

    def clock(self, name: str) -> Deadline:
        """Return the moment after which a call that begins now has to give up.

        :param name: of the document, or of all.
        """
        return Deadline(name, time.monotonic() + self.settings.time_limit)

    def counting(
        self, collection: Collection, clock: Deadline = NO_DEADLINE
    ) -> tuple[TokenCounter, Callable[[int], TokenCounts]]:
        """Return the counter, and the counts it made of each document of a collection."""
        counter = self.counter

        @cache
        def counts(document: int) -> TokenCounts:
            own = collection.documents[document]
            return self.state.token_counts(own, counter, clock, lambda: collection.tokens_of(document))

        if len(collection.documents) == 1:
            # Who asks about one file asks again, and no later question should wait for its counts.
            counts(0).count_ahead()
        return counter, counts

    def name_of(self, ref: DocumentRef, gathered: Gathered) -> str:
        """Return what an answer calls the documents: the name of a single one, or what was asked for."""
        if not gathered.several:
            return gathered.files[0]
        searched = ", ".join(root.label for root in self.library.searched)
        return ref.file or ref.item or searched or ", ".join(gathered.files)

    def _indexed(self, found: Found, fingerprint: Fingerprint) -> IndexedDocument:
        """Return one document's index, from memory if the file is unchanged.

        :param fingerprint: the file's present state.
        """
        return self.state.indices.get(fingerprint, lambda: self.documents.read(found))

    def start_warm_up(self) -> None:
        """Index the core files and load the vocabulary in a thread of its own."""
        if self.settings.warm_up and self._warm_up is None:
            self._warm_up = threading.Thread(target=self.warm_up, name="npl-warm-up", daemon=True)
            self._warm_up.start()

    def warm_up(self) -> None:
        """Index the core reference, check the database, load the vocabulary, then index the components."""
        self._index_ahead(DocumentRef(kind="init", item="npl"))
        # Loading a vocabulary holds the interpreter for a third of a second; a first call is answered first.
        self._closing.wait(VOCABULARY_DELAY)
        try:
            self.stores.start()
        except NPLError as error:
            logger.error("data folder: %s", error)
        self.state.load_counter()
        self._index_ahead(DocumentRef(kind="component", item="*"))

    def _index_ahead(self, ref: DocumentRef) -> None:
        try:
            for found in self.documents.find(ref):
                if self._closing.is_set():
                    return
                self._indexed(found, self.documents.stat(found))
        except NPLError as error:
            logger.warning("warm-up: %s", error)

    def close(self) -> None:
        """Stop the warm-up; close what all callers share."""
        self._closing.set()
        if self._warm_up is not None:
            self._warm_up.join()
        self.state.close()
