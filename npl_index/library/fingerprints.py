"""Fingerprints, which distinguish states of a file without reading it, and their reliability."""

from __future__ import annotations

import os
from dataclasses import dataclass

COARSEST_TIMESTAMP_NS = 2_000_000_000
"""Two seconds: the time stamp granularity of FAT, the coarsest of the common file systems."""


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
    """
    # A change right after the read could have the same time stamp until the clock of the file system
    # advances; a time stamp in the future proves nothing either.
    return now_ns - mtime_ns > COARSEST_TIMESTAMP_NS
