"""Locks on files: ``flock`` keeps other processes out, a lock of :mod:`threading` other threads.

The system frees a lock when the process that holds it ends, however it ends, so no lock is ever left over.
Without ``flock`` (Windows) only threads exclude each other.
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
_LONGEST_PAUSE = 0.02

# What network file systems answer that cannot lock.
_CANNOT_LOCK = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)

_THREAD_LOCKS: dict[str, threading.Lock] = {}


def lock(file: int, seconds: float, *, shared: bool = False) -> bool:
    """Lock an open file or folder; the lock ends when it is closed, however the process ends.

    :param seconds: how long to wait for another process that holds the lock.
    :param shared: wait for exclusive locks only, and keep only those out.
    :returns: whether other processes are kept out: ``False`` where the system has no such locks.
    :raises TimeoutError: another process holds it for longer.
    """
    if sys.platform == "win32":
        return False
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    end, pause = time.monotonic() + seconds, _FIRST_PAUSE
    while True:
        # Asked for again and again: a lock that is waited for cannot be given up after some seconds, and a
        # program that was stopped while it held the lock must not stop all others.
        try:
            fcntl.flock(file, how)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                raise TimeoutError(errno.ETIMEDOUT, "another program holds the lock for too long") from None
        except OSError as error:
            if error.errno not in _CANNOT_LOCK:
                raise
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


@contextmanager
def locked(file: int | None, key: str, seconds: float) -> Iterator[bool]:
    """Keep other threads and other processes out.

    :param file: an open file or folder to lock; ``None`` where only threads can be kept out.
    :param key: names the lock among the threads of this process.
    :param seconds: how long to wait for each of the two.
    :returns: whether other processes are kept out, too.
    :raises TimeoutError: somebody holds it for longer.
    """
    # Threads first: they wait without asking again and again, and where files cannot be locked this is all.
    threads = _THREAD_LOCKS.setdefault(key, threading.Lock())
    if not threads.acquire(timeout=seconds):
        raise TimeoutError(errno.ETIMEDOUT, "another thread holds the lock for too long")
    try:
        alone = file is not None and lock(file, seconds)
        try:
            yield alone
        finally:
            if alone and file is not None and sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        threads.release()


def is_being_written(file: int) -> bool:
    """Return whether a program has a file open for writing; ``False`` where the system cannot tell.

    Linux gives a read lease on a file only while no program has it open for writing. Source: fcntl(2).

    :param file: a descriptor that can only read.
    """
    if sys.platform != "linux":
        return False
    try:
        # Opening the file for writing during the lease sends a signal, by default one that ends the process.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False
