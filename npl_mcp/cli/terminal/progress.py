"""A line on the terminal during a long call."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

PATIENCE = 0.5
"""Seconds before anything is shown."""

STEP = 0.2


class Progress:
    """Shows what is running and for how long, and clears the line afterwards.

    Nothing is shown unless standard error is a terminal.

    :param what: a few words.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        started = time.monotonic()
        line = ""
        wait = PATIENCE
        while not self._done.wait(wait):
            line = f"{self._what} … {time.monotonic() - started:.0f} s"
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
            wait = STEP
        if line:
            sys.stderr.write("\r" + " " * len(line) + "\r")
            sys.stderr.flush()
