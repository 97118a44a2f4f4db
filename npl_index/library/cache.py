"""Values made from files, kept until the file changes.

A kept value is used as long as the file's fingerprint is the one it was made from. If a file changed so
shortly before it was read that a later change could have the same time stamp, it is read again and compared
by digest, until its time stamp is old enough to show changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from cachetools import LRUCache

from npl_index.errors import DocumentError
from npl_index.library.documents import Document
from npl_index.library.fingerprints import Fingerprint, is_settled

V = TypeVar("V")

_FAILURES_KEPT = 256


@dataclass(slots=True)
class _Entry(Generic[V]):
    fingerprint: Fingerprint
    digest: str
    settled: bool
    size: int
    value: V


@dataclass(slots=True)
class CacheStatistics:
    """How calls were served.

    :param hits: from memory.
    :param built: made from the file.
    """

    hits: int = 0
    built: int = 0


class BuildingCache(Generic[V]):
    """Values in memory, and a builder for those that it lacks. Safe for several threads.

    Least recently used values go first when ``maxsize`` bytes are exceeded; a larger one is not kept.
    Concurrent requests for one state of a file share one build, or its failure. After a failure the file
    is not tried again until it changes.

    :param build: makes a value from a document; may raise :class:`DocumentError`.
    :param maxsize: maximum size of all values, in the units of ``size_of``.
    :param size_of: bytes of memory a value takes.
    :param clock: nanoseconds since the epoch.
    """

    def __init__(
        self,
        build: Callable[[Document], V],
        maxsize: int,
        size_of: Callable[[V], int],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.statistics = CacheStatistics()
        self._build, self._size_of, self._clock = build, size_of, clock
        self._lock = threading.Lock()
        self._entries: LRUCache[str, _Entry[V]] = LRUCache(maxsize, getsizeof=lambda entry: entry.size)
        self._running: dict[Fingerprint, Future[V]] = {}
        # An error holds what its frames held, a parser's state as well; so it is made again.
        self._failures: LRUCache[Fingerprint, tuple[str, Callable[[], DocumentError]]]
        self._failures = LRUCache(_FAILURES_KEPT)

    @property
    def currsize(self) -> int:
        """Bytes kept now."""
        return int(self._entries.currsize)

    def get(self, fingerprint: Fingerprint, read: Callable[[], Document]) -> V:
        """Return the value for the file as it is now.

        :param fingerprint: the file's state as just seen.
        :param read: reads the file; called at most once.
        :raises DocumentError: what ``read`` or the builder raised.
        """
        with self._lock:
            entry = self._entries.get(fingerprint.path)
            if entry is not None and entry.settled and entry.fingerprint == fingerprint:
                self.statistics.hits += 1
                return entry.value
            running = self._running.get(fingerprint)
            if running is None:
                mine: Future[V] = Future()
                self._running[fingerprint] = mine
        if running is not None:
            return running.result()
        try:
            value = self._current(read())
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(value)
            return value
        finally:
            with self._lock:
                del self._running[fingerprint]
            del mine  # with an error it holds this frame: a cycle, which the collector finds late

    def _current(self, document: Document) -> V:
        """Return the kept value if it was made from exactly this content, else a new one."""
        fingerprint, digest = document.fingerprint, document.digest
        settled = is_settled(fingerprint.mtime_ns, self._clock())
        with self._lock:
            entry = self._entries.get(fingerprint.path)
            failure = self._failures.get(fingerprint)
        if entry is not None and entry.digest == digest:
            entry.fingerprint, entry.settled = fingerprint, settled
            self.statistics.hits += 1
            return entry.value
        if failure is not None and failure[0] == digest:
            raise failure[1]()
        try:
            value = self._build(document)
        except DocumentError as error:
            with self._lock:
                self._failures[fingerprint] = digest, partial(type(error), error.message, hint=error.hint)
            raise
        self.statistics.built += 1
        size = self._size_of(value) + len(fingerprint.path)
        with self._lock:
            self._entries.pop(fingerprint.path, None)
            if size <= self._entries.maxsize:
                self._entries[fingerprint.path] = _Entry(fingerprint, digest, settled, size, value)
        return value
