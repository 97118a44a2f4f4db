"""Values made from files, cached until the file changes.

A cached value is valid while the file's fingerprint is unchanged. If a file changed so shortly before it was
read that a later change could have the same time stamp, it is read again and compared by digest, until its
time stamp is old enough to show changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NoReturn, TypeVar

from cachetools import LRUCache

from npl_index.errors import DocumentError
from npl_index.library.documents import Document
from npl_index.library.fingerprints import Fingerprint, is_settled

V = TypeVar("V")

_LOCKS = 64
"""Locks that share the paths among them; one value of a path is built at a time."""


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
    Concurrent requests for a file wait for one build, or its failure. After a failure, the file is
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
        self._building = [threading.Lock() for _ in range(_LOCKS)]

    def get(self, fingerprint: Fingerprint, read: Callable[[], Document]) -> V:
        """Return the value for the file's present state.

        :param fingerprint: the present state.
        :param read: reads the file; called at most once.
        :raises DocumentError: see ``read`` and the builder.
        """
        if (entry := self._known(fingerprint)) is None:
            with self._building[hash(fingerprint.path) % _LOCKS]:
                entry = self._known(fingerprint) or self._read(read)
        return entry.result()

    def _known(self, fingerprint: Fingerprint) -> _Entry[V] | None:
        """Return the entry that certainly belongs to a state of its file."""
        with self._lock:
            entry = self._entries.get(fingerprint.path)
            if entry is None or not entry.settled or entry.fingerprint != fingerprint:
                return None
            self.hits += 1
            return entry

    def _read(self, read: Callable[[], Document]) -> _Entry[V]:
        """Return the entry of a file as it is now; it is the cached one if that has exactly this content."""
        now, document = self._clock(), read()
        fingerprint, digest, path = document.fingerprint, document.digest, document.fingerprint.path
        settled, size = is_settled(fingerprint.mtime_ns, now), len(path)
        with self._lock:
            entry = self._entries.get(path)
        if entry is not None and entry.digest == digest:
            entry.fingerprint, entry.settled = fingerprint, settled
            self.hits += 1
            return entry
        try:
            value = self._build(document)
            self.built += 1
            entry = _Entry(fingerprint, digest, settled, size + self._size_of(value), lambda: value)
        except DocumentError as error:
            fail = partial(_fail, type(error), error.message, error.hint)
            entry = _Entry(fingerprint, digest, settled, size, fail)
        with self._lock:
            self._entries.pop(path, None)
            if entry.size <= self._entries.maxsize:
                self._entries[path] = entry
        return entry


def _fail(kind: type[DocumentError], message: str, hint: str | None) -> NoReturn:
    """Raise an error again as a new one, because a raised error keeps its frames alive."""
    raise kind(message, hint=hint)
