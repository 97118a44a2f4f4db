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


class MemoryIndexCache(Generic[V]):
    """Least recently used values go first when ``maxsize`` bytes are exceeded.

    :param maxsize: bound in bytes of what is kept, as ``size_of`` counts them.
    :param size_of: bytes of memory a value takes.
    :param clock: nanoseconds since the epoch.
    """

    def __init__(
        self, maxsize: int, size_of: Callable[[V], int], clock: Callable[[], int] = time.time_ns
    ) -> None:
        self._size_of = size_of
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: LRUCache[str, _Entry[V]] = LRUCache(maxsize, getsizeof=lambda entry: entry.size)

    @property
    def currsize(self) -> int:
        """Bytes kept now."""
        return int(self._entries.currsize)

    def peek(self, fingerprint: Fingerprint) -> V | None:
        """Return the value if the fingerprint alone proves that the file is unchanged."""
        with self._lock:
            entry = self._entries.get(fingerprint.path)
        if entry is None or not entry.settled or entry.fingerprint != fingerprint:
            return None
        return entry.value

    def get(self, document: Document) -> V | None:
        """Return the value made from exactly this content, or ``None``."""
        with self._lock:
            entry = self._entries.get(document.fingerprint.path)
        if entry is None or entry.digest != document.digest:
            return None
        entry.fingerprint = document.fingerprint
        entry.settled = self._is_settled(document.fingerprint)
        return entry.value

    def put(self, document: Document, value: V) -> None:
        """Keep a value; it replaces what was kept for the path. One larger than the bound is not kept."""
        path = document.fingerprint.path
        entry = _Entry(
            document.fingerprint,
            document.digest,
            self._is_settled(document.fingerprint),
            self._size_of(value) + len(path),
            value,
        )
        with self._lock:
            self._entries.pop(path, None)
            if entry.size <= self._entries.maxsize:
                self._entries[path] = entry

    def discard(self, path: str) -> None:
        """Forget what is kept for a path, if anything."""
        with self._lock:
            self._entries.pop(path, None)

    def _is_settled(self, fingerprint: Fingerprint) -> bool:
        return is_settled(fingerprint.mtime_ns, self._clock())


@dataclass(slots=True)
class CacheStatistics:
    """How calls were served.

    :param hits: from memory.
    :param built: made from the file.
    """

    hits: int = 0
    built: int = 0


class BuildingCache(Generic[V]):
    """Memory in front, and a builder for what it has not.

    Concurrent requests for one state of a file share one build, or its failure. After a failure the file
    is not tried again until it changes.

    :param memory: the first cache.
    :param build: makes a value from a document; may raise :class:`DocumentError`.
    """

    def __init__(
        self,
        memory: MemoryIndexCache[V],
        build: Callable[[Document], V],
    ) -> None:
        self.memory = memory
        self.statistics = CacheStatistics()
        self._build = build
        self._lock = threading.Lock()
        self._running: dict[Fingerprint, Future[V]] = {}
        self._failures: LRUCache[Fingerprint, tuple[str, DocumentError]] = LRUCache(_FAILURES_KEPT)

    def peek(self, fingerprint: Fingerprint) -> V | None:
        """Return the value if it is in memory and certainly current; never blocks, never reads the file."""
        value = self.memory.peek(fingerprint)
        if value is not None:
            self.statistics.hits += 1
        return value

    def get(self, fingerprint: Fingerprint, read: Callable[[], Document]) -> V:
        """Return the value for the file as it is now.

        :param fingerprint: the file's state as just seen.
        :param read: reads the file; called at most once.
        :raises DocumentError: what ``read`` or the builder raised.
        """
        value = self.peek(fingerprint)
        if value is not None:
            return value
        with self._lock:
            running = self._running.get(fingerprint)
            if running is None:
                mine: Future[V] = Future()
                self._running[fingerprint] = mine
        if running is not None:
            return running.result()
        try:
            value = self._make(read())
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(value)
            return value
        finally:
            with self._lock:
                del self._running[fingerprint]

    def _make(self, document: Document) -> V:
        value = self.memory.get(document)
        if value is not None:
            self.statistics.hits += 1
            return value
        with self._lock:
            failure = self._failures.get(document.fingerprint)
        if failure is not None and failure[0] == document.digest:
            raise failure[1].with_traceback(None)
        try:
            value = self._build(document)
        except DocumentError as error:
            with self._lock:
                self._failures[document.fingerprint] = (document.digest, error)
            raise
        self.statistics.built += 1
        self.memory.put(document, value)
        return value
