"""Sets of documents that are searched together, brought up to date call by call.

All are kept in one index, which processes share. A call compares the files' states with those that were
indexed, and reads again only what changed. Much is indexed in the background.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from cachetools import LRUCache

from npl_index.errors import NPLError
from npl_index.index.building import WORKER, Reader, indexed
from npl_index.index.collection import IndexedCollection, KeptDocuments, Read
from npl_index.index.database import DamagedIndexError, Database
from npl_index.index.driver import driver
from npl_index.index.entries import Asked, Indexer, batches
from npl_index.index.members import Members, OvertakenError, States, Update
from npl_index.index.upkeep import note_use, shrink
from npl_index.library.documents import Found
from npl_index.library.locks import locked
from npl_index.ranking.indexing import Collection
from npl_mcp.config.programs import python
from npl_mcp.core.waiting import Indexing

logger = logging.getLogger(__name__)

APART = 2 << 20
"""Bytes of files from which on they are indexed in the background and by several processes, each of which
takes half a second to start."""

SETS = 64
"""Sets whose states are remembered."""

KEPT = 64
"""Files of a change at most whose texts are kept: they are probably asked for next."""

LOG_SECONDS = 2.0
"""Seconds between two lines in the log that say how far an index is."""

CLOSE_SECONDS = 1.0
"""Seconds that the end of a server waits for what it was indexing; what is not kept is indexed again."""

LOCK_SECONDS = 0.5
"""Seconds between two looks at what another process has indexed meanwhile."""

_TRIES = 8


class NotIndexedError(NPLError):
    """Nothing of a set is indexed yet.

    :param files: how many it has.
    """

    def __init__(self, files: int) -> None:
        self.files = files
        super().__init__(f"{files:,} files are being indexed", hint="ask again")


@dataclass(frozen=True)
class IndexedSet:
    """A set as it was indexed.

    :param founds: the documents that could be read, in order.
    :param unreadable: the files that were left out, and why.
    :param missing: how many files are not indexed yet.
    """

    founds: tuple[Found, ...]
    collection: Collection
    unreadable: tuple[str, ...]
    missing: int


@dataclass
class _Live:
    """A set in this process; the lock is held by the thread that brings it up to date.

    :param set: what was made of ``members``.
    :param build: the work in the background, and what it has so far.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    members: Members | None = None
    set: IndexedSet | None = None
    build: tuple[Indexing, Update] | None = None


class DocumentSets:
    """The sets of a server; safe for several threads.

    :param indexer: says how files are indexed.
    :param folder: where the index is kept; ``None`` for memory.
    :param maxsize: bytes of memory that texts of sets may take.
    :param most: bytes that the file of the index may have; roots that were not used for longest go first.

    ``built`` counts the documents that were indexed.
    """

    def __init__(self, indexer: Indexer, folder: Path | None, maxsize: int, most: int) -> None:
        self._indexer, self.database = indexer, Database(folder)
        self._most = most
        self._lock = threading.Lock()
        self._live: LRUCache[Hashable, _Live] = LRUCache(SETS)
        self._documents = KeptDocuments(max(1, maxsize // 16))
        self._threads: set[threading.Thread] = set()
        self._closed = False
        self.built = 0

    def close(self) -> None:
        """End the work in the background; close the index."""
        self._closed = True
        for thread in tuple(self._threads):
            thread.join(CLOSE_SECONDS)
        self.database.close()

    async def gather(
        self, name: Hashable, states: States, read: Read, apart: Reader | None = None, *, whole: bool = False
    ) -> IndexedSet:
        """Return a set as its files are now.

        Where much has to be indexed, that is done in the background. The call waits for it, and gets a part
        of the set if it has waited enough before.

        :param name: of the set: the same for the same question.
        :param states: its files, and their present states.
        :param apart: reads the same as ``read`` in another process; ``None`` where that cannot be.
        :param whole: these are all files of their roots.
        :raises DocumentNotFoundError: none of the files can be read.
        :raises NotIndexedError: nothing is ready, and the call does not wait for that.
        """
        with self._lock:
            live = self._live.setdefault(name, _Live())
        while True:
            found = self._looked_at(live, states, read, apart, whole)
            if isinstance(found, IndexedSet):
                return found
            if not await found:
                build = live.build
                if build is not None and build[0].done:
                    with suppress(OvertakenError):
                        return self._set_of(build[1].result(), live, read)
                if not found.ended.done():
                    raise NotIndexedError(found.total)

    def _looked_at(
        self, live: _Live, states: States, read: Read, apart: Reader | None, whole: bool
    ) -> IndexedSet | Indexing:
        """Return a set as its files are now, or what to wait for."""
        members, kept = live.members, live.set
        if kept is not None and members is not None and members.is_current(states):
            return kept
        with live.lock:
            if live.build is not None:
                return live.build[0]
            for attempt in range(_TRIES):
                with self._sound(live, last=attempt == _TRIES - 1):
                    update = Update(self.database, states, live.members, whole=whole)
                    if update.size >= APART:
                        return self._begin(live, update, read, apart, whole)
                    changed = bool(update.asked)
                    self._index(update, read, apart)
                    live.members = update.result()
                    self._keep(live.members, changed=changed)
                    live.set = self._set_of(live.members, live, read)
                    return live.set
            raise AssertionError

    def _keep(self, members: Members, *, changed: bool) -> None:
        """Note that roots are used; make room if they grew."""
        note_use(self.database, members.roots)
        if changed:
            shrink(self.database, self._most, members.roots)

    @contextmanager
    def _sound(self, live: _Live, *, last: bool) -> Iterator[None]:
        """Make the index again if it is damaged, and keep it in memory if it cannot be written."""
        try:
            yield
        except OvertakenError:
            if last:
                raise NPLError("another process indexes the same", hint="ask again") from None
            self._changed(live, damaged=False)
        except (DamagedIndexError, driver().DatabaseError) as error:
            unwritable = isinstance(error, driver().OperationalError)
            if unwritable and "locked" in str(error):
                raise NPLError("another process writes the index", hint="ask again") from None
            if last:
                raise
            self._changed(live, damaged=not unwritable)
            if unwritable:
                self.database.leave_file(str(error))

    def _changed(self, live: _Live, *, damaged: bool) -> None:
        """Look again at the files of a set at the next call."""
        live.members = live.set = None
        if damaged:
            self.database.discard()

    def _set_of(self, members: Members, live: _Live, read: Read) -> IndexedSet:
        scope, documents = members.scope(), members.documents()
        founds = tuple(found for found, _ in documents)
        states = [state for _, state in documents]

        def changed(damaged: bool) -> None:
            self._changed(live, damaged=damaged)

        collection = IndexedCollection(self.database, scope, founds, states, read, self._documents, changed)
        missing = len(members.states) - len(founds) - len(members.failures)
        return IndexedSet(founds, collection, members.unreadable, missing)

    def _index(self, update: Update, read: Read, apart: Reader | None, done: Indexing | None = None) -> None:
        """Index in this process what an update asks for."""
        asked = update.asked
        for batch in batches(asked):
            self._write(
                batch,
                update,
                read if apart is None else apart.sent([one.found for one in batch]).read,
                keep=len(asked) <= KEPT,
            )
            if done is not None:
                done.done += len(batch)

    def _write(self, batch: list[Asked], update: Update, read: Read, *, keep: bool) -> None:
        if self._closed:
            raise NPLError("the server ends")
        entries, texts = [], {}
        for one in batch:
            # After an edit the caller waits; what it asks for next is counted then.
            entry, parsed = self._indexer.entry(one, read, counted=one.digest is None or not keep)
            entries.append(entry)
            texts[entry.state.path] = parsed
        self.built += sum(one.content is not None for one in entries)
        for path, number in update.put(entries).items():
            if keep and (document := texts[path]) is not None:
                self._documents.put(number, document)

    def _begin(self, live: _Live, update: Update, read: Read, apart: Reader | None, whole: bool) -> Indexing:
        """Bring a set up to date in the background."""
        indexing = Indexing(len(update.asked))
        indexing.ended.set_running_or_notify_cancel()  # no call that waits can cancel it
        live.build = indexing, update

        def work() -> None:
            failure: Exception = RuntimeError("a set could not be indexed")
            try:
                members = self._built(live, indexing, read, apart, whole)
                with live.lock:
                    live.members, live.set, live.build = members, self._set_of(members, live, read), None
                indexing.ended.set_result(None)
                return
            except (NPLError, DamagedIndexError, driver().DatabaseError) as error:
                failure = (
                    error if isinstance(error, NPLError) else NPLError(f"index: {error}", hint="ask again")
                )
            finally:
                self._threads.discard(threading.current_thread())
                if not indexing.ended.done():
                    with live.lock:
                        live.build = None
                    indexing.ended.set_exception(failure)

        thread = threading.Thread(target=work, name="npl-index", daemon=True)
        self._threads.add(thread)
        thread.start()
        return indexing

    def _built(
        self, live: _Live, indexing: Indexing, read: Read, apart: Reader | None, whole: bool
    ) -> Members:
        """Index a set; of several processes one does, and the others take over what it wrote."""
        assert live.build is not None
        states = live.build[1].states
        while True:
            with suppress(TimeoutError), self._alone():
                update = Update(self.database, states, live.members, whole=whole)
                live.build = indexing, update
                self._build(update, indexing, read, apart)
                try:
                    members = update.result()
                except OvertakenError:
                    live.members = None
                    continue
                self._keep(members, changed=True)
                return members
            update = Update(self.database, states, live.members, whole=whole)
            live.build = indexing, update
            indexing.done = max(indexing.done, indexing.total - len(update.asked))
            if self._closed:
                raise NPLError("the server ends")

    def _build(self, update: Update, indexing: Indexing, read: Read, apart: Reader | None) -> None:
        todo = list(batches(update.asked))
        logged = time.monotonic()
        if apart is not None:
            todo.reverse()  # the first ones come first
            for entries in indexed(todo, apart, self._indexer, python(WORKER)):
                if self._closed:
                    raise NPLError("the server ends")
                self.built += sum(one.content is not None for one in entries)
                update.put(entries)
                indexing.done += len(entries)
                if time.monotonic() - logged > LOG_SECONDS:
                    logged = time.monotonic()
                    logger.info("index: %d of %d files are indexed", indexing.done, indexing.total)
        self._index(update, read, apart, indexing)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from indexing the same.

        :raises TimeoutError: another process does.
        """
        path = self.database.path
        if path is None:
            yield
            return
        try:
            handle = os.open(path.parent, os.O_RDONLY)
        except OSError:  # no folder can be opened here, or it is gone
            yield
            return
        try:
            with locked(handle, f"index {path}", LOCK_SECONDS):
                yield
        finally:
            os.close(handle)
