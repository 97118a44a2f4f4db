"""What all tools share: the library of documents, their indices, the token counter.

An :class:`App` opens nothing when made. It can be used from several threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from cachetools import LRUCache

from npl_index.answer.suggestions import Companions
from npl_index.errors import DocumentError, DocumentNotFoundError, NPLError
from npl_index.library.cache import BuildingCache, IndexCache, MemoryIndexCache
from npl_index.library.documents import Document, DocumentRef, Fingerprint, Found
from npl_index.ranking.indexing import Collection, IndexedDocument, index_document
from npl_index.selectors.grammar import Selector
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimator
from npl_index.tokens.exact import load_vocabulary
from npl_index.tokens.sections import TokenCounts, count_sections
from npl_mcp.changes.documents import CrDocuments
from npl_mcp.changes.editing import Outlines
from npl_mcp.changes.index import TicketIndices
from npl_mcp.changes.projects import Projects
from npl_mcp.changes.store import ChangeRequests
from npl_mcp.config.settings import Settings
from npl_mcp.core.files import Shelf
from npl_mcp.core.index_cache import SqliteIndexCache
from npl_mcp.core.sources import ArtifactDocuments, Source, Sources
from npl_mcp.stores.data_folder import Stores

logger = logging.getLogger(__name__)

INLINE_SECTIONS = 5_000
"""Collections with more sections are ranked off the event loop, so that other callers are not held up."""

VIEWS = 32
"""Working directories whose views are kept."""

VOCABULARY_DELAY = 0.5
"""Seconds the warm-up leaves to first calls before it loads the vocabulary."""

_COUNTS_BYTES = 16 * 1024 * 1024

_may_block: ContextVar[bool] = ContextVar("may_block", default=True)


class ColdWork(Exception):  # noqa: N818 - asks for another thread, reports no error
    """Something is not at hand and the current thread must not wait for it."""


@contextmanager
def inline() -> Iterator[None]:
    """Make :class:`App` raise :class:`ColdWork` where it would read or index a file."""
    token = _may_block.set(False)
    try:
        yield
    finally:
        _may_block.reset(token)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The documents a request is about.

    :param collection: their indices, together.
    :param several: whether the request names a set (a folder or a pattern), so that answers name files.
    :param unreadable: files of the set that were left out, and why.
    """

    collection: Collection
    several: bool
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Set:
    """What a folder or a pattern gave last time."""

    fingerprints: list[Fingerprint]
    gathered: Gathered


class _Counting:
    """The token counter, made when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._counter: TokenCounter | None = None
        self._vocabulary_tried = False

    @property
    def counter(self) -> TokenCounter:
        if self._counter is None:
            self._counter = estimator(self._settings.vocabulary)
        return self._counter

    def load(self) -> TokenCounter:
        with self._lock:
            if not self._vocabulary_tried:
                exact = load_vocabulary(self._settings.vocabulary, self._settings.vocabulary_folders)
                self._counter = exact or self._counter
                self._vocabulary_tried = True
        return self.counter


class App(Shelf):
    """The state behind the tools.

    :param settings: see :class:`~npl_mcp.config.settings.Settings`.
    """

    def __init__(self, settings: Settings) -> None:
        self.companions = Companions()
        self._counting = _Counting(settings)
        self._below: SqliteIndexCache | None = None
        if settings.cache_mode == "sqlite":
            self._below = SqliteIndexCache(settings.data_folder / "index-cache.db")
        below: IndexCache[IndexedDocument] | None = self._below
        memory: MemoryIndexCache[IndexedDocument] = MemoryIndexCache(
            settings.cache_bytes, lambda indexed: indexed.nbytes
        )
        self.indices = BuildingCache(memory, self._build, below)
        self._stores = Stores(settings.data_folder, settings.max_artifact_bytes)
        self._tickets, self._outlines = TicketIndices(), Outlines()
        self._collections: LRUCache[tuple[int, ...], Collection] = LRUCache(settings.cache_bytes, _size)
        self._counts: LRUCache[tuple[str, str, str], TokenCounts] = LRUCache(
            _COUNTS_BYTES, getsizeof=lambda counts: counts.nbytes
        )
        self._lock = threading.Lock()
        self._warm_up: threading.Thread | None = None
        self._closing = threading.Event()
        self._views: LRUCache[Path, App] = LRUCache(VIEWS)
        self._look_from(settings)

    def _look_from(self, settings: Settings) -> None:
        """Set up what depends on the working directory."""
        Shelf.__init__(self, settings)
        artifacts = ArtifactDocuments(lambda: self.stores)
        roots = (*settings.roots, *settings.cr_roots)
        projects = Projects(settings.cwd, roots, settings.cr_folders, self.must_be_allowed)
        self.changes = ChangeRequests(projects, self._tickets, self._outlines)
        changes = CrDocuments(self.changes, settings.limits.max_files)
        schemes: dict[str, Source] = {ArtifactDocuments.SCHEME: artifacts, CrDocuments.SCHEME: changes}
        self.documents: Source = Sources(self.library, schemes)
        self._sets: LRUCache[DocumentRef, _Set] = LRUCache(
            settings.cache_bytes, lambda kept: _size(kept.gathered.collection)
        )

    def at(self, cwd: Path) -> App:
        """Return a view from another working directory: other roots and another project, the same state.

        :param cwd: absolute.
        """
        if cwd == self.settings.cwd:
            return self
        with self._lock:
            view = self._views.get(cwd)
            if view is None:
                view = self._views[cwd] = copy(self)
                view._look_from(replace(self.settings, cwd=cwd))
        return view

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens: exactly once the vocabulary is loaded, by estimate before and without one."""
        return self._counting.counter

    @property
    def stores(self) -> Stores:
        """What is kept: sessions, artifacts, rooms, reviews, worklogs.

        :raises ColdWork: on the event loop, since each use may wait for the disk.
        """
        self.must_be_allowed()
        return self._stores

    def load_counter(self) -> TokenCounter:
        """Load the vocabulary if it lies on this machine; afterwards :attr:`counter` is exact."""
        return self._counting.load()

    def gather(self, ref: DocumentRef, selectors: Sequence[Selector] = ()) -> Gathered:
        """Return the documents a request is about, indexed as they are on disk now.

        Without a file or an item these are the documents that the selectors name, else the core reference.

        :raises DocumentNotFoundError: there is none.
        :raises DocumentError: the only one cannot be used.
        """
        found = self._named_by(selectors) if ref == DocumentRef() else ()
        found = found or self.documents.find(ref)
        several = len(found) > 1 or self.documents.is_set(ref)
        if not several:
            only = self.indexed(found[0], self.documents.stat(found[0]))
            return Gathered(self._collection([only]), False, ())
        states = [(one, state) for one in found if (state := self._state(one)) is not None]
        fingerprints = [state for _, state in states]
        with self._lock:
            kept = self._sets.get(ref)
        if kept is not None and kept.fingerprints == fingerprints:
            return kept.gathered
        gathered = self._gather_all(states)
        if not gathered.unreadable and all(map(self.indices.memory.peek, fingerprints)):
            with self._lock:
                if _size(gathered.collection) <= self._sets.maxsize:
                    self._sets[ref] = _Set(fingerprints, gathered)
        return gathered

    def _state(self, found: Found) -> Fingerprint | None:
        """Return a file's state; ``None`` if it was there when its folder was listed and is gone now."""
        try:
            return self.documents.stat(found)
        except (DocumentNotFoundError, DocumentError):
            return None

    def _gather_all(self, states: Sequence[tuple[Found, Fingerprint]]) -> Gathered:
        documents: list[IndexedDocument] = []
        unreadable: list[str] = []
        for found, state in states:
            try:
                documents.append(self.indexed(found, state))
            except (DocumentError, DocumentNotFoundError) as error:
                unreadable.append(f"{found.path}: {error.message}")
        if not documents:
            raise DocumentNotFoundError(
                f"none of the {len(states)} files can be read",
                hint=unreadable[0] if unreadable else None,
            )
        return Gathered(self._collection(documents), True, tuple(unreadable))

    def counting(self, collection: Collection) -> tuple[TokenCounter, Callable[[int], TokenCounts]]:
        """Return the counter, and the counts it made of each document of a collection."""
        counter = self.counter

        @cache
        def counts(document: int) -> TokenCounts:
            indexed = collection.documents[document]
            key = (indexed.document.digest, indexed.tree.dialect, counter.name)
            with self._lock:
                kept = self._counts.get(key)
            if kept is None:
                self.must_be_allowed()
                kept = count_sections(indexed.tree, counter)
                with self._lock:
                    self._counts[key] = kept
            return kept

        return counter, counts

    def name_of(self, ref: DocumentRef, gathered: Gathered) -> str:
        """Return what an answer calls the documents: the one's path, or what was asked for."""
        documents = gathered.collection.documents
        if not gathered.several:
            return documents[0].document.path
        return ref.file or ref.item or ", ".join(indexed.document.path for indexed in documents)

    def indexed(self, found: Found, fingerprint: Fingerprint) -> IndexedDocument:
        """Return one document's index, from memory if the file is unchanged.

        :param fingerprint: the file's present state.
        :raises NPLError: it is gone, or cannot be used.
        """
        value = self.indices.peek(fingerprint)
        if value is None:
            self.must_be_allowed()
            value = self.indices.get(fingerprint, lambda: self.documents.read(found))
        return value

    def start_warm_up(self) -> None:
        """Index the core files and load the vocabulary in a thread of its own."""
        if self.settings.warm_up and self._warm_up is None:
            self._warm_up = threading.Thread(target=self.warm_up, name="npl-warm-up", daemon=True)
            self._warm_up.start()

    def warm_up(self) -> None:
        """Index the core reference, check the database, load the vocabulary, then index the components."""
        self._index_ahead(DocumentRef())
        # Loading a vocabulary holds the interpreter for a third of a second; a first call is answered first.
        self._closing.wait(VOCABULARY_DELAY)
        self._start_stores()
        self.load_counter()
        self._index_ahead(DocumentRef(kind="component", item="*"))

    def _start_stores(self) -> None:
        try:
            self._stores.start()
        except NPLError as error:
            logger.error("data folder: %s", error)

    def _index_ahead(self, ref: DocumentRef) -> None:
        try:
            for found in self.documents.find(ref):
                if self._closing.is_set():
                    return
                self.indexed(found, self.documents.stat(found))
        except NPLError as error:
            logger.warning("warm-up: %s", error)

    def close(self) -> None:
        """Stop the warm-up; close the persistent cache and the database."""
        self._closing.set()
        if self._warm_up is not None:
            self._warm_up.join()
        if self._below is not None:
            self._below.close()
        self._stores.close()

    def _build(self, document: Document) -> IndexedDocument:
        return index_document(document, deadline=time.monotonic() + self.settings.time_limit)

    def _collection(self, documents: Sequence[IndexedDocument]) -> Collection:
        if len(documents) == 1:
            collection = documents[0].collection
        else:
            # The collection keeps its documents alive, so that no id is used twice.
            key = tuple(map(id, documents))
            with self._lock:
                kept = self._collections.get(key)
            if kept is None:
                self.must_be_allowed()
                kept = Collection.build(documents)
                with self._lock:
                    if _size(kept) <= self._collections.maxsize:
                        self._collections[key] = kept
            collection = kept
        if len(collection) > INLINE_SECTIONS:
            self.must_be_allowed()
        return collection

    def _named_by(self, selectors: Sequence[Selector]) -> tuple[Found, ...]:
        found: dict[Found, None] = {}
        for selector in selectors:
            if selector.document is not None:
                try:
                    found.update(dict.fromkeys(self.documents.find(DocumentRef(file=selector.document))))
                except NPLError:
                    continue
        return tuple(found)

    def must_be_allowed(self) -> None:
        """Raise :class:`ColdWork` where the current thread must not wait."""
        if not _may_block.get():
            raise ColdWork


def _size(collection: Collection) -> int:
    """Count the bytes a collection keeps in memory, those of its documents included."""
    return collection.nbytes + sum(indexed.nbytes for indexed in collection.documents)
