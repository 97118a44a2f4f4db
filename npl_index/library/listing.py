"""Files that were found, with their states."""

# A path object costs more than the system call it is made for, once per file.
# ruff: noqa: PTH116

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from functools import cached_property
from operator import attrgetter

from npl_index.library.fingerprints import Fingerprint
from npl_index.library.roots import Found

_ROOT, _HOME = attrgetter("root.path"), attrgetter("home")


class Listed(tuple[Found, ...]):
    """Files that were found, with their states; as long as nothing changes, it is the same object."""

    states: tuple[Fingerprint | None, ...]

    @classmethod
    def of(cls, founds: Iterable[Found], states: Iterable[Fingerprint | None]) -> Listed:
        """Return files with a state each; ``None`` if one is gone by now."""
        listed = cls(founds)
        listed.states = tuple(states)
        return listed

    @classmethod
    def joined(cls, parts: Iterable[Listed]) -> Listed:
        """Return files of several folders, each once."""
        states: dict[Found, Fingerprint | None] = {}
        for part in parts:
            states.update(zip(part, part.states, strict=True))
        return cls.of(states, states.values())

    @cached_property
    def there(self) -> tuple[tuple[Found, Fingerprint], ...]:
        """The files that are there, with their states."""
        pairs = zip(self, self.states, strict=True)
        if all(self.states):
            return tuple(pairs)  # type: ignore[arg-type]
        return tuple((found, state) for found, state in pairs if state is not None)

    @cached_property
    def roots(self) -> frozenset[str]:
        """The paths of the roots that they lie under."""
        return frozenset(map(_ROOT, self))

    @cached_property
    def homes(self) -> frozenset[str]:
        """Where those lie whose root does not say it."""
        return frozenset(filter(None, map(_HOME, self)))

    @cached_property
    def gone(self) -> tuple[Found, ...]:
        """The files that are gone."""
        if all(self.states):
            return ()
        return tuple(found for found, state in zip(self, self.states, strict=True) if state is None)


def status_of(path: str) -> os.stat_result | None:
    """Return the status of what a path names, a link itself; ``None`` where nothing is."""
    try:
        return os.stat(path, follow_symlinks=False)
    except OSError:
        return None


def is_file(status: os.stat_result | None) -> bool:
    """Return whether a status is that of a regular file."""
    return status is not None and stat.S_ISREG(status.st_mode)


def fingerprint_of(found: Found, status: os.stat_result | None) -> Fingerprint | None:
    """Return the state of a file with a status; ``None`` if it is no file any longer."""
    return Fingerprint.of(found.absolute, status) if status is not None and is_file(status) else None


def state_of(found: Found) -> Fingerprint | None:
    """Return the present state of a file; ``None`` if it is gone."""
    return fingerprint_of(found, status_of(found.absolute))
