"""What tells two states of a file apart without reading it, and when that can be trusted."""

from __future__ import annotations

import os
from dataclasses import dataclass

COARSEST_TIMESTAMP_NS = 2_000_000_000
"""Two seconds: the time stamp granularity of FAT, the coarsest among file systems in use."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What distinguishes two states of a file without reading it.

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
        """Return the fingerprint of a file with a status."""
        return cls(path, status.st_mtime_ns, status.st_size, status.st_ctime_ns)


def is_settled(mtime_ns: int, now_ns: int) -> bool:
    """Return whether a file's time stamp is old enough that any later change will have another one.

    :param mtime_ns: time of the file's last change.
    """
    # A change right after the read could carry the same time stamp as long as the clock of the file system
    # has not moved on; a time stamp in the future proves nothing either.
    return now_ns - mtime_ns > COARSEST_TIMESTAMP_NS
