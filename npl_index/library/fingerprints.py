"""Fingerprints, which distinguish states of a file without reading it, and their reliability."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

COARSE_GRANULARITY_NS = 2_000_000_000
"""Two seconds: the time stamp granularity of FAT, the coarsest of the common file systems."""

FINE_GRANULARITY_NS = 100_000_000
"""A tenth of a second: ten ticks of the slowest kernel clock that stamps files with nanoseconds."""

_MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Path, size and times of a file, which distinguish two of its states without reading it.

    :param path: absolute path, links resolved.
    :param mtime_ns: time of the last change, in nanoseconds; programs can set it back.
    :param size: bytes.
    :param ctime_ns: time of the last change of the inode, in nanoseconds; programs cannot set it.
    """

    path: str
    mtime_ns: int
    size: int
    ctime_ns: int = 0

    @classmethod
    def of(cls, path: str, status: os.stat_result) -> Fingerprint:
        """Return the fingerprint of a file with this status."""
        return cls(path, status.st_mtime_ns, status.st_size, status.st_ctime_ns)


def is_settled(mtime_ns: int, now_ns: int) -> bool:
    """Return whether a file's time stamp is old enough that any later change gets a different one.

    :param mtime_ns: time of the file's last change.
    :param now_ns: time before the file was read.
    """
    # A change right after the read could have the same time stamp until the clock of the file system
    # advances; a time stamp in the future proves nothing either.
    is_fine = mtime_ns % _MILLISECOND_NS != 0  # coarse file systems store whole units of 10 ms to 2 s
    return now_ns - mtime_ns > (FINE_GRANULARITY_NS if is_fine else COARSE_GRANULARITY_NS)


def entry_state(path: str) -> tuple[int, ...]:
    """Return numbers that differ after a change of a folder's entries or a file; empty without an entry."""
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - a path object costs more
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev


def settled_states(*paths: str) -> tuple[tuple[int, ...], ...] | None:
    """Return the states of paths; ``None`` without the first, or if a later change might not show."""
    now, states = time.time_ns(), tuple(map(entry_state, paths))
    settled = all(is_settled(stamp, now) for state in states for stamp in state[:2])
    return states if states[0] and settled else None
