"""Values made from files, cached until the file changes.

A cached value is valid while the file's fingerprint is unchanged. If a file changed so shortly before it was
read that a later change could have the same time stamp, it is read again and compared by digest, until its
time stamp is old enough to show changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Generic, NoReturn, TypeVar

from cachetools import LRUCache

from npl_index.errors import DocumentError
from npl_index.library.documents import Document
from npl_index.library.fingerprints import Fingerprint, is_settled

V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    fingerprint: Fingerprint
    digest: str
    settled: bool
    size: int
    result: Callable[[], V]


class BuildingCache(Generic[V]):
    """Values in memory, and a builder of missing ones. Safe for several threads.

    Over ``maxsize`` bytes, the least recently used values are removed; a larger value is not cached.
    Concurrent requests for one state of a file share one build, or its failure. After a failure, the file is
    not tried again until it changes.

    :param build: makes a value from a document; may raise :class:`DocumentError`.
    :param maxsize: maximum size of all values, in the units of ``size_of``.
    :param size_of: bytes of memory of a value.
    :param clock: nanoseconds since the epoch.
    :ivar hits: number of calls served from memory.
    :ivar built: number of calls that built a value.
    """

    def __init__(
        self,
        build: Callable[[Document], V],
        maxsize: int,
        size_of: Callable[[V], int],
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.hits = self.built = 0
        self._build, self._size_of, self._clock = build, size_of, clock
        self._lock = threading.Lock()
        self._entries: LRUCache[str, _Entry[V]] = LRUCache(maxsize, getsizeof=lambda entry: entry.size)
        self._running: dict[Fingerprint, Future[V]] = {}

    def get(self, fingerprint: Fingerprint, read: Callable[[], Document]) -> V:
        """Return the value for the file's present state.

        :param fingerprint: the present state.
        :param read: reads the file; called at most once.
        :raises DocumentError: see ``read`` and the builder.
        """
        with self._lock:
            entry = self._entries.get(fingerprint.path)
            if entry is not None and entry.settled and entry.fingerprint == fingerprint:
                self.hits += 1
                return entry.result()
            running = self._running.get(fingerprint)
            if running is None:
                mine: Future[V] = Future()
                self._running[fingerprint] = mine
        if running is not None:
            return running.result()
        try:
            now = self._clock()
            value = self._current(read(), now)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(value)
            return value
        finally:
            with self._lock:
                del self._running[fingerprint]
            del mine  # with an error it refers to this frame: a cycle, which the collector finds late

    def _current(self, document: Document, now: int) -> V:
        """Return the cached value if it was made from exactly this content, else a new one.

        :param now: time before the document was read, in nanoseconds.
        """
        fingerprint, digest = document.fingerprint, document.digest
        settled = is_settled(fingerprint.mtime_ns, now)
        with self._lock:
            entry = self._entries.get(fingerprint.path)
        if entry is not None and entry.digest == digest:
            entry.fingerprint, entry.settled = fingerprint, settled
            self.hits += 1
            return entry.result()
        size = len(fingerprint.path)
        try:
            value = self._build(document)
            self.built += 1
            entry = _Entry(fingerprint, digest, settled, size + self._size_of(value), lambda: value)
        except DocumentError as error:
            fail = partial(_fail, type(error), error.message, error.hint)
            entry = _Entry(fingerprint, digest, settled, size, fail)
            raise
        finally:
            with self._lock:
                self._entries.pop(fingerprint.path, None)
                if entry is not None and entry.digest == digest and entry.size <= self._entries.maxsize:
                    self._entries[fingerprint.path] = entry
        return value


def _fail(kind: type[DocumentError], message: str, hint: str | None) -> NoReturn:
    """Raise an error again as a new one, because a raised error keeps its frames alive."""
    raise kind(message, hint=hint)
