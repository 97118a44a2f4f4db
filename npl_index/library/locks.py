"""Locks on files: ``flock`` keeps other processes out, a lock of :mod:`threading` other threads.

The system releases a lock when its process ends for any reason, so no stale lock remains. Without ``flock``
(Windows) only threads exclude each other.
"""

from __future__ import annotations

import errno
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform != "win32":
    import fcntl

_FIRST_PAUSE = 0.001
_MAX_PAUSE = 0.02

# Errors of network file systems without locks.
_CANNOT_LOCK = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)

_THREAD_LOCKS: dict[str, threading.Lock] = {}


def lock(file: int, seconds: float, *, shared: bool = False) -> bool:
    """Lock an open file or folder until it is closed or the process ends.

    :param seconds: maximum time to wait for another process to release the lock.
    :param shared: take a shared lock, which excludes only exclusive locks.
    :returns: whether other processes are excluded: ``False`` if the system has no such locks.
    :raises TimeoutError: another process still holds the lock.
    """
    if sys.platform == "win32":
        return False
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        # Polling: a blocking flock has no time limit, and a program that is suspended while it holds the
        # lock must not block all others.
        try:
            fcntl.flock(file, how)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                raise TimeoutError(errno.ETIMEDOUT, "another program held the lock for too long") from None
        except OSError as error:
            if error.errno not in _CANNOT_LOCK:
                raise
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, _MAX_PAUSE)


@contextmanager
def locked(file: int | None, key: str, seconds: float) -> Iterator[None]:
    """Exclude other threads and other processes.

    :param file: an open file or folder to lock; ``None`` to exclude only threads.
    :param key: identifies the lock for the threads of this process.
    :param seconds: maximum time to wait for each of the two locks.
    :raises TimeoutError: another thread or process still holds a lock.
    """
    # Threads first: they wait without polling, and without locks on files this lock is the only one.
    threads = _THREAD_LOCKS.setdefault(key, threading.Lock())
    if not threads.acquire(timeout=seconds):
        raise TimeoutError(errno.ETIMEDOUT, "another thread held the lock for too long")
    try:
        alone = file is not None and lock(file, seconds)
        try:
            yield
        finally:
            if alone and file is not None and sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        threads.release()


def is_being_written(file: int) -> bool:
    """Return whether a program has a file open for writing; ``False`` if the system cannot tell.

    Linux grants a read lease on a file only while no program has it open for writing. Source: fcntl(2).

    :param file: a read-only descriptor.
    """
    if sys.platform != "linux":
        return False
    try:
        # Opening the file for writing during the lease sends a signal; the default one ends the process.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False
