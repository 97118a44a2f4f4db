"""The log on standard error, written by a separate thread, so that a slow reader delays no call."""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import os
import queue
import sys
from contextlib import suppress
from pathlib import Path

MAX_BYTES = 4 * 1024 * 1024
"""Bytes above which a background server's log begins again."""

_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_ESCAPES_IN_LINES = {code: text for code, text in _ESCAPES.items() if code != ord("\n")}


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
