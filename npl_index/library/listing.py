"""Listings of the files below folders, with fingerprints; each call compares them with the file system."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain, compress
from operator import attrgetter, ne

from cachetools import LRUCache, cached

from npl_index.cached import cached_property
from npl_index.errors import DocumentError, DocumentNotFoundError
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.roots import DocumentFile
from npl_index.library.walking import Known, Waiting, Walk, Walked

MAX_LISTINGS = 64
"""Maximum folders and patterns with cached listings."""

_ROOT, _PLACE = attrgetter("root.path"), attrgetter("root.path", "path")
_TIMES = attrgetter("mtime_ns", "size", "ctime_ns")
_TIMES_OF_FILE = attrgetter("st_mtime_ns", "st_size", "st_ctime_ns")


class Listed(tuple[DocumentFile, ...]):
    """Files with their fingerprints; the object stays the same while nothing changes."""

    states: tuple[Fingerprint | None, ...]

    @classmethod
    def of(cls, files: Iterable[DocumentFile], states: Iterable[Fingerprint | None]) -> Listed:
        """Return files with a fingerprint each; ``None`` for a deleted file."""
        listed = cls(files)
        listed.states = tuple(states)
        return listed

    def now(self) -> Listed:
        """Return the same files with their present fingerprints; the same object if none changed."""
        seen, unseen = self._places
        try:
            times = map(_TIMES_OF_FILE, map(os.lstat, self._paths))
            changed = list(compress(seen, map(ne, times, self._times)))
        except OSError:  # one is deleted
            changed = seen
        fresh = {place: state_of(self[place], self.states[place]) for place in chain(changed, unseen)}
        if all(state is self.states[place] for place, state in fresh.items()):
            return self
        states = list(self.states)
        for place, state in fresh.items():
            states[place] = state
        listed = Listed.of(self, states)
        if not unseen and all(fresh.values()):  # no file came or went, so the positions are the same
            there, listed._times = list(self.there), self._times.copy()
            for place, state in fresh.items():
                if state:
                    there[place], listed._times[place] = (self[place], state), _TIMES(state)
            listed.there, listed._places, listed._paths = tuple(there), self._places, self._paths
            listed.roots, listed.gone = self.roots, self.gone
        return listed

    @cached_property
    def _places(self) -> tuple[list[int], list[int]]:
        """Positions of the files with a fingerprint, and of the others."""
        places = range(len(self))
        return list(compress(places, self.states)), [place for place in places if self.states[place] is None]

    @cached_property
    def _paths(self) -> list[str]:
        return [state.path for _, state in self.there]

    @cached_property
    def _times(self) -> list[tuple[int, ...]]:
        return [_TIMES(state) for _, state in self.there]

    @cached_property
    def there(self) -> tuple[tuple[DocumentFile, Fingerprint], ...]:
        """The existing files with their fingerprints."""
        return tuple((file, state) for file, state in zip(self, self.states, strict=True) if state)

    @cached_property
    def roots(self) -> frozenset[str]:
        """Paths of the roots of the files."""
        return frozenset(map(_ROOT, self))

    @cached_property
    def gone(self) -> tuple[DocumentFile, ...]:
        """The deleted files."""
        return tuple(file for file, state in zip(self, self.states, strict=True) if state is None)


class CachedListing:
    """The files below folders at the last call; unchanged files keep their objects."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: list[Walked] = []
        self._known: Known = {}
        self._listed = Listed.of((), ())
        self._walk: Walk | None = None
        self._counted: tuple[Waiting, Counter[str]] = ([], Counter())

    def now(self, walk: Walk, starts: Sequence[str]) -> Listed:
        """Return the present files, sorted by root and path; the same object if no file changed.

        :param walk: a new walk.
        :param starts: real folders, the same at each call.
        """
        with self._lock:
            last, walk.known, self._walk = self._listed, self._known, walk
            # Each folder is entered once, with the fewest levels above it.
            ordered = sorted(starts, key=len, reverse=True)
            folders = list(chain.from_iterable(map(walk.folders, ordered)))
            for folder in self._known.keys() - walk.entered:
                del self._known[folder]
            if folders != self._folders:
                roots = [root.path for root in walk.roots]
                fresh = {_PLACE(file): (file, None) for _, file in chain.from_iterable(folders)}
                former = {_PLACE(file): (file, state) for file, state in zip(last, last.states, strict=True)}
                order = sorted(fresh, key=lambda place: (roots.index(place[0]), place[1]))
                pairs = [former.get(place, fresh[place]) for place in order]
                last = Listed.of([file for file, _ in pairs], [state for _, state in pairs])
            self._folders, self._listed = folders, last.now()
            return self._listed

    def left_out(self) -> Counter[str]:
        """Return the numbers of skipped files at the last call, and of the files in skipped folders."""
        with self._lock:
            if self._walk is None:
                return Counter()
            if self._counted[0] != self._walk.aside:
                self._counted = self._walk.aside, self._walk.count_aside()
            return self._walk.skipped + self._counted[1]


def state_of(file: DocumentFile, known: Fingerprint | None = None) -> Fingerprint | None:
    """Return the fingerprint of a document, the known one if it is equal; ``None`` for a deleted file."""
    try:
        state = file.stat()
    except (DocumentError, DocumentNotFoundError):
        return None
    return known if state == known else state


FileListings = Callable[[Hashable], CachedListing]
"""Listings of folders by a key; safe to use from several threads."""


def cached_listings() -> FileListings:
    """Return listings, of which the last ones are cached."""
    return cached(LRUCache(MAX_LISTINGS), lock=threading.Lock())(lambda _: CachedListing())
