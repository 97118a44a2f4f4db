"""The start of a server's process: fast imports, settings of its memory, and its log.

A separate thread writes the log to standard error, so that a slow reader delays no call.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import logging.handlers
import os
import queue
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from npl_index.priority import PrioritySelector

GRACE_SECONDS = 1
"""Maximum seconds of calls in flight after the signal to end."""

MAX_BYTES = 4 * 1024 * 1024
"""Bytes above which a background server's log begins again."""

_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES_IN_LINES = {code: text for code, text in _ESCAPES.items() if code != ord("\n")}

_M_MMAP_THRESHOLD = -3  # of malloc.h
_LARGE_BYTES = 4 * 1024 * 1024
_M_TRIM_THRESHOLD = -1
_KEPT_BYTES = 16 * 1024 * 1024
_M_ARENA_MAX = -8
_SWITCH_SECONDS = 0.0005
_COLLECTIONS = (20_000, 20, 20)


@contextmanager
def lasting() -> Iterator[None]:
    """Import modules for the life of the process, without garbage collection.

    Their objects never become garbage. Collections during the imports take a sixth of the start-up, and later
    collections that walk these objects would hold up calls.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def prepare_process() -> None:
    """Set process-wide options of a server, before its first thread: that has memory of its own for good."""
    # The switch interval of threads. The event loop needs several turns for each answer; by default, a
    # computing thread would delay each turn by five milliseconds.
    sys.setswitchinterval(_SWITCH_SECONDS)
    # A full collection walks all indexes and holds up every call meanwhile. Indexes hold no cycles, and the
    # garbage of a call is found among the young objects.
    gc.set_threshold(*_COLLECTIONS)
    if sys.platform == "linux":
        import ctypes  # no other command needs it

        # After the first freed large block, glibc keeps later ones: with artifacts of 8 MiB, the process grew
        # to twice its used memory. Other C libraries do not have this function.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
            # The next question uses what one has freed: else the system clears a thousand pages for each.
            ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
            # Otherwise each thread takes memory from its own arena, and other threads cannot reuse it: that
            # was a tenth of a server's memory. Computing threads take turns anyway.
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def allow_files(most: int) -> None:
    """Raise the limit on open files and connections of this process, as far as the system allows.

    A common default is 1,024, and each call over HTTP that waits for new entries has a connection.

    :param most: the wanted limit.
    """
    with suppress(ImportError, ValueError, OSError):  # no such limits on Windows
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of a server; computing threads pause for it."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(PrioritySelector())


class PlainFormatter(logging.Formatter):
    """Writes each message on one line; control characters and line ends are escaped.

    A record with the attribute ``bare`` is written without time and level.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name logging gives it
        """Return the line of a record."""
        record.message = record.message.translate(_ESCAPES)
        return record.message if hasattr(record, "bare") else super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802
        """Return the lines of a traceback."""
        return super().formatException(ei).translate(_ESCAPES_IN_LINES)  # type: ignore[arg-type]


class _PlainQueueHandler(logging.handlers.QueueHandler):
    """Queues records unchanged; the base class formats them, which only other processes need."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record unchanged."""
        return record


def _begin_again(log: Path) -> bool:
    """Empty a log that is too long, if standard error is that file; return ``True`` for the next record."""
    with suppress(OSError):  # there is no such file
        if os.fstat(2).st_size > MAX_BYTES and os.path.samestat(os.fstat(2), log.stat()):
            os.ftruncate(2, 0)
    return True


def set_up_log(level: str, log: Path | None = None) -> None:
    """Log to standard error from now on; the queue is flushed at exit.

    :param level: the lowest written level.
    :param log: path of a background server's log, which is bounded if it is standard error.
    """
    lines: queue.SimpleQueue[object] = queue.SimpleQueue()
    writer = logging.StreamHandler(sys.stderr)
    if log is not None:
        writer.addFilter(lambda _: _begin_again(log))
    writer.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    listener = logging.handlers.QueueListener(lines, writer)
    listener.start()
    atexit.register(listener.stop)
    logging.basicConfig(level=level, handlers=[_PlainQueueHandler(lines)])
    # This library logs each rule that it tries on each line.
    logging.getLogger("markdown_it").setLevel(logging.INFO)
