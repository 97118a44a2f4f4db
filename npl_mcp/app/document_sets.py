"""Sets of documents that are searched together, updated by each call.

All sets share one index, also among processes. A call compares the files' states with the indexed ones, and
reads only changed files again. Large updates run in the background.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar
from weakref import WeakSet

from cachetools import LRUCache, cached

from npl_index.errors import NPLError
from npl_index.index.building import MAX_WORKERS, WORKER, worked
from npl_index.index.collection import IndexedCollection, KeptDocuments
from npl_index.index.database import IndexDatabase, reading_errors
from npl_index.index.entries import IndexEntry, Indexer, batches
from npl_index.index.members import Members, OvertakenError, States, Update
from npl_index.index.upkeep import note_use, problems, shrink
from npl_index.library.documents import Read
from npl_index.library.files import Folder
from npl_index.priority import give_way
from npl_mcp.app.progress import PROGRESS
from npl_mcp.config.memory import free_memory
from npl_mcp.config.programs import python

logger = logging.getLogger(__name__)

BACKGROUND_BYTES = 2 << 20
"""Total bytes of files from which several background processes index them; each process takes
half a second to start.
"""

MAX_SETS = 64
"""Sets whose states are cached."""

COUNT_DELAY = 5.0
"""Seconds after the indexing of a set before its tokens are counted, so that its first answers come first."""

CLOSE_SECONDS = 1.0
"""Time that shutdown waits for an update; the unsaved part is indexed again later."""

LOCK_SECONDS = 0.5
"""Time between two checks of another process's progress."""

MAX_STALLED = 4
"""Checks without progress, after which this process indexes as well: the other one may be stopped, or index
other files."""

PAUSE_SECONDS = 0.05
"""Time between two checks of an update that no call waits for whether it may go on."""

MAX_LEARNT, LEARN_SECONDS = 50, 0.05
"""Files that are analysed again after an update by workers, and the pause before each."""

OVERTAKEN_SECONDS = 0.05
"""Pause after another process replaced documents of the same set."""

REPORT_SECONDS = 0.2
"""Time between two progress reports of a call that waits."""

_MAX_TRIES = 8

T = TypeVar("T")


class NotIndexedError(NPLError):
    """No document of a set is indexed yet.

    :param files: number of its files.
    """

    def __init__(self, files: int) -> None:
        self.files = files
        super().__init__(f"{files:,} files are being indexed", hint="ask again")


class SetFiles(NamedTuple):
    """The files of a set, and how they are read.

    :param states: the files with their current states.
    :param read: function that reads a document.
    :param process_reader: equivalent of ``read`` that can be sent to another process, if available.
    :param whole: whether these are all files of their roots.
    """

    states: States
    read: Read
    process_reader: Read | None
    whole: bool


@dataclass(eq=False)
class Build:
    """A background update of a set.

    :param update: the update with its partial result.
    :param total: number of the files to index.
    :param done: number of the indexed ones.
    :param began: start, in seconds of the monotonic clock.
    :param ended: set on success or failure.
    """

    update: Update
    total: int
    done: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: Future[None] = field(default_factory=Future)


class IndexingError(Exception):
    """A set is being indexed, and the call that needs it may wait.

    :param build: the update.
    :param left: function that returns the seconds that the call may still wait.
    """

    def __init__(self, build: Build, left: Callable[[Build], float]) -> None:
        super().__init__(build.total)
        self.build, self._left = build, left

    def left(self) -> float:
        """Report the progress; return the seconds until the next report, none once the wait is over."""
        PROGRESS.get()(self.build.done, self.build.total)
        return min(REPORT_SECONDS, self._left(self.build))


@dataclass
class _CachedSet:
    """A set in this process; the thread that updates it holds the lock.

    :param documents: its documents at the last call.
    :param build: background update.
    :param counting: whether a thread counts its tokens, now or soon.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    documents: IndexedCollection | None = None
    build: Build | None = None
    counting: bool = False


class DocumentSets:
    """The sets of a server; safe for several threads.

    :param indexer: indexer of files.
    :param folder: folder of the index; ``None`` for memory.
    :param maxsize: maximum bytes of memory for texts of sets.
    :param max_bytes: maximum bytes of the index file; the least recently used roots are removed first.

    ``built`` counts the documents that were indexed.
    """

    def __init__(self, indexer: Indexer, folder: Path | None, maxsize: int, max_bytes: int) -> None:
        self._indexer, self.database = indexer, IndexDatabase(folder)
        self._max_bytes = max_bytes
        cache = cached(LRUCache(MAX_SETS), lock=threading.Lock())
        self._cached: Callable[[Hashable], _CachedSet] = cache(lambda _: _CachedSet())
        self._documents = KeptDocuments(maxsize)
        self._threads: WeakSet[threading.Thread] = WeakSet()
        # Calls that gather, and ends of updates that calls need: meanwhile other updates pause.
        self._urgent: set[object] = set()
        self._closed = threading.Event()
        self.built, self._verified = 0, False

    def close(self) -> None:
        """End the background work; close the index."""
        self._closed.set()
        for thread in tuple(self._threads):
            thread.join(CLOSE_SECONDS)
        self.database.close()

    def verify(self, ended: Callable[[], bool]) -> None:
        """Compare the index with its documents once, and remove it if they differ.

        :param ended: whether to give up.
        """
        if self.database.path is None or self._verified:
            return
        self._verified = True
        try:
            damages = problems(self.database, ended)
        except reading_errors() as error:
            damages = [str(error)] if self.database.is_damaged(error) else []
        if damages:
            logger.warning("index: %s; creating a new one", damages[0])
            self.database.discard()

    def gather(self, name: Hashable, files: SetFiles, left: Callable[[Build], float]) -> IndexedCollection:
        """Return a set in its current state.

        A large update runs in the background. A call that does not wait for it gets a part of the set.

        :param name: cache key of the set, the same for the same request.
        :param left: function that returns the seconds that the call may still wait for an update.
        :raises DocumentNotFoundError: none of the files can be read.
        :raises IndexingError: the call may wait; gather again afterwards.
        :raises NotIndexedError: no document is ready, and the call does not wait.
        """
        live = self._cached(name)
        self._urgent.add(call := object())
        try:
            while not isinstance(current := self._current_set(live, files), IndexedCollection):
                self._urgent.add(current.ended)
                current.ended.add_done_callback(self._urgent.discard)
                if left(current) > 0:
                    raise IndexingError(current, left)
                if live.build is current and current.done:
                    with suppress(OvertakenError, *reading_errors()):  # the update repairs damage
                        return self._set_of(current.update.result(), live, files.read)
                if not current.ended.done():
                    raise NotIndexedError(current.total)
            return current
        finally:
            self._urgent.discard(call)

    def begin(self, name: Hashable, files: SetFiles) -> None:
        """Update a set before its first call, in the background and at low priority.

        :param name: see :meth:`gather`.
        :raises DocumentTooLargeError: the files are too large together.
        """
        self._current_set(self._cached(name), files, wanted=False)

    def _current_set(
        self, live: _CachedSet, files: SetFiles, *, wanted: bool = True
    ) -> IndexedCollection | Build:
        """Return a set in its current state, or the update to wait for.

        :param wanted: whether a call waits for it; otherwise any update runs in the background.
        """
        known = live.documents
        if known is not None and known.members.is_current(files.states):
            return known
        with live.lock:
            if live.build is not None:
                return live.build
            for attempt in range(_MAX_TRIES):
                with self._repaired(live, last=attempt == _MAX_TRIES - 1):
                    update = self._update(live, files)
                    if update.size >= BACKGROUND_BYTES or (update.asked and not wanted):
                        return self._begin(live, files, update)
                    # The tokens of an edit are counted after the answer.
                    members = self._indexed(update, files, counted=known is None)
                    # An answer that finds other contents forgets them at any time.
                    live.documents = current = self._set_of(members, live, files.read)
                    self._count_later(live, files)
                    return current
            raise AssertionError

    def _update(self, live: _CachedSet, files: SetFiles) -> Update:
        former = None if live.documents is None else live.documents.members
        return Update(self.database, files.states, former, whole=files.whole)

    @contextmanager
    def _repaired(self, live: _CachedSet, *, last: bool) -> Iterator[None]:
        """Rebuild a damaged index, and continue in memory if it cannot be written."""
        try:
            yield
        except OvertakenError:
            if last:
                raise NPLError("another process indexes the same files", hint="ask again") from None
            time.sleep(OVERTAKEN_SECONDS)  # the other process finishes
            self._forget(live, False)
        except reading_errors() as error:
            if last:
                raise
            damaged = self.database.is_damaged(error)
            self._forget(live, damaged)
            if not damaged:
                self.database.leave_file(str(error))

    def _forget(self, live: _CachedSet, damaged: bool) -> None:
        """Forget a set, so that the next call compares its files again.

        :param damaged: whether to remove the index as well.
        """
        live.documents = None
        if damaged:
            self.database.discard()

    def _set_of(self, members: Members, live: _CachedSet, read: Read) -> IndexedCollection:
        forget = partial(self._forget, live)
        documents = IndexedCollection(self.database, members, read, self._documents, forget)
        if live.documents is not None:
            documents.resume(live.documents)
        return documents

    def _indexed(
        self, update: Update, files: SetFiles, build: Build | None = None, *, counted: bool = False
    ) -> Members:
        """Index the files of an update, record the use of their roots, and free space if they grew.

        :param counted: also estimate the tokens; otherwise :meth:`_count` does later.
        """

        def put(entries: list[IndexEntry]) -> None:
            give_way()
            while build is not None and self._urgent and build.ended not in self._urgent:
                time.sleep(PAUSE_SECONDS)
                self._check_open()
            self.built += sum(entry.content is not None for entry in entries)
            update.put(entries)
            if build is not None:
                build.done += len(entries)

        grows, entry = bool(update.asked), partial(self._indexer.entry, counted=counted)
        self._work(lambda: update.asked, files, entry, put)
        members = update.result()
        note_use(self.database, members.roots)
        if grows:
            shrink(self.database, self._max_bytes, members.roots)
        if build is not None:
            free_memory()
        return members

    def _work(
        self,
        left: Callable[[], Sequence[IndexEntry]],
        files: SetFiles,
        make: Callable[[IndexEntry, Read], T],
        put: Callable[[list[T]], None],
        most: int = MAX_WORKERS,
    ) -> None:
        """Work on files batch by batch, many of them in other processes first.

        :param left: function that returns the remaining files.
        :param make: method of the indexer.
        :param put: function that stores the results of a batch.
        :param most: maximum processes.
        """
        todo, read = left(), files.process_reader
        if read is not None and sum(entry.state.size for entry in todo) >= BACKGROUND_BYTES:
            for made in worked(list(batches(todo))[::-1], read, make, python(WORKER), most):
                self._check_open()
                put(made)
            todo = left()
        for part in batches(todo):
            made = [make(file, files.read) for file in part]
            self._check_open()
            put(made)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise NPLError("the server is shutting down")

    def _begin(self, live: _CachedSet, files: SetFiles, update: Update) -> Build:
        """Update a set in the background."""
        build = live.build = Build(update, len(update.asked))
        build.ended.set_running_or_notify_cancel()  # no waiting call can cancel it

        def work() -> None:
            failure: Exception = RuntimeError("a set could not be indexed")
            try:
                members = self._index_or_await(live, files, build)
                with live.lock:
                    live.documents = self._set_of(members, live, files.read)
                    live.build = None
                build.done = build.total  # also what other processes have indexed
                build.ended.set_result(None)
                self._learn(files)
                self._count_later(live, files)
                return
            except NPLError as error:
                failure = error
            except reading_errors() as error:
                failure = NPLError(f"index: {error}", hint="ask again")
            finally:
                if not build.ended.done():
                    with live.lock:
                        live.build = None
                    build.ended.set_exception(failure)

        self._start(work)
        return build

    def _start(self, work: Callable[[], None]) -> None:
        """Run background work in a thread."""
        thread = threading.Thread(target=work, name="npl-index", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _count_later(self, live: _CachedSet, files: SetFiles) -> None:
        if not live.counting:
            live.counting = True
            self._start(partial(self._count, live, files))

    def _count(self, live: _CachedSet, files: SetFiles) -> None:
        """Count the tokens of a set for later answers, many in a process of low priority."""
        try:
            with suppress(NPLError, *reading_errors()):  # answers count what is missing
                if not self._closed.wait(COUNT_DELAY) and (documents := live.documents) is not None:
                    put = documents.put_tokens
                    self._work(documents.uncounted, files, self._indexer.count, put, 1)
        finally:
            live.counting = False

    def _learn(self, files: SetFiles) -> None:
        """Analyse some files again after workers, so that the words of an edit are known in this process."""
        few = files.states[:: len(files.states) // MAX_LEARNT + 1] if files.process_reader else ()
        for file, state in few:
            time.sleep(LEARN_SECONDS)
            self._check_open()
            self._indexer.entry(IndexEntry(file, state, 0), files.read, counted=False)

    def _index_or_await(self, live: _CachedSet, files: SetFiles, build: Build) -> Members:
        """Index a set, or wait while another process does, and load its result."""
        stalled = tries = 0
        while True:
            with suppress(TimeoutError), self._alone(wait=stalled < MAX_STALLED):
                tries += 1
                with self._repaired(live, last=tries == _MAX_TRIES):
                    build.update = self._update(live, files)
                    return self._indexed(build.update, files, build)
            build.update = self._update(live, files)
            done = build.total - len(build.update.asked)
            # The other process may have only other files left.
            stalled = MAX_STALLED if done == build.total else 0 if done > build.done else stalled + 1
            build.done = max(build.done, done)
            self._check_open()

    @contextmanager
    def _alone(self, *, wait: bool) -> Iterator[None]:
        """Hold the lock that prevents other processes from indexing the same files.

        :param wait: whether to wait for it; otherwise continue without it, which costs only time.
        :raises TimeoutError: another process holds it.
        """
        path = self.database.path
        with ExitStack() as stack:
            if wait and path is not None:
                try:
                    folder = stack.enter_context(Folder.opened(path.parent))
                except OSError:  # the folder cannot be opened here, or does not exist
                    pass
                else:
                    stack.enter_context(folder.locked(LOCK_SECONDS))
            yield
