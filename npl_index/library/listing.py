"""Listings of the files below folders, with fingerprints. Each call compares them with the file system."""

# A path object for each file costs more than the system call.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter, is_, itemgetter

from cachetools import LRUCache, cached

from npl_index.cached import cached_property
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.roots import Found, Known

MAX_LISTINGS = 64
"""Maximum folders and patterns with cached listings."""

_ROOT, _PLACE = attrgetter("root.path"), attrgetter("root.path", "path")


class Listed(tuple[Found, ...]):
    """Found files with their fingerprints; the object stays the same while nothing changes."""

    states: tuple[Fingerprint | None, ...]

    @classmethod
    def of(cls, founds: Iterable[Found], states: Iterable[Fingerprint | None]) -> Listed:
        """Return files with a fingerprint each; ``None`` for a deleted file."""
        listed = cls(founds)
        listed.states = tuple(states)
        return listed

    @classmethod
    def joined(cls, parts: Iterable[Listed]) -> Listed:
        """Return the files of several folders, each once."""
        states: dict[Found, Fingerprint | None] = {}
        for part in parts:
            states.update(zip(part, part.states, strict=True))
        return cls.of(states, states.values())

    @cached_property
    def there(self) -> tuple[tuple[Found, Fingerprint], ...]:
        """The existing files with their fingerprints."""
        return tuple((found, state) for found, state in zip(self, self.states, strict=True) if state)

    @cached_property
    def roots(self) -> frozenset[str]:
        """Paths of the roots of the files."""
        return frozenset(map(_ROOT, self))

    @cached_property
    def gone(self) -> tuple[Found, ...]:
        """The deleted files."""
        return tuple(found for found, state in zip(self, self.states, strict=True) if state is None)


Walk = Callable[..., Iterable[tuple[str, Found]]]
"""A walk with ``known`` folders, see :meth:`~npl_index.library.roots.Roots.walk`."""


class _CachedListing:
    """The files below a folder at the last call; unchanged files keep their objects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._walked: list[Found] = []
        self._known: Known = {}
        self._listed = Listed.of((), ())

    def now(self, walk: Walk) -> Listed:
        with self._lock:
            last, walked = self._listed, [found for _, found in walk(known=self._known)]
            founds: Sequence[Found] = last
            states: Sequence[Fingerprint | None] = last.states
            if walked != self._walked:
                fresh = {_PLACE(file): (file, None) for file in walked}
                known = {_PLACE(file): (file, state) for file, state in zip(last, states, strict=True)}
                pairs = [known.get(place, new) for place, new in sorted(fresh.items(), key=itemgetter(0))]
                founds, states = [found for found, _ in pairs], [state for _, state in pairs]
            states = states_of(founds, states)
            if founds is not last or not all(map(is_, states, last.states)):
                self._walked, self._listed = walked, Listed.of(founds, states)
            return self._listed


def states_of(founds: Iterable[Found], known: Iterable[Fingerprint | None]) -> list[Fingerprint | None]:
    """Return the present fingerprint of each file; ``None`` for a deleted file."""
    states: list[Fingerprint | None] = []
    for found, state in zip(founds, known, strict=True):
        path = found.absolute if state is None else state.path
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError:
            states.append(None)
            continue
        times = (status.st_mtime_ns, status.st_size, status.st_ctime_ns)
        if state is None or (state.mtime_ns, state.size, state.ctime_ns) != times:
            state = Fingerprint.of(path, status) if stat.S_ISREG(status.st_mode) else None
        states.append(state)
    return states


class FileListings:
    """Cached listings of folders; safe to use from several threads."""

    def __init__(self) -> None:
        cache = cached(LRUCache(MAX_LISTINGS), lock=threading.Lock())
        self._listing_of: Callable[[Hashable], _CachedListing] = cache(lambda _: _CachedListing())

    def now(self, key: Hashable, walk: Walk) -> Listed:
        """Return the present files; the same object if no file changed.

        :param key: identifies the result for equal files.
        """
        return self._listing_of(key).now(walk)
