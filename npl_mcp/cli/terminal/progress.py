"""A line on the terminal during a long call, with a bar where it is known how far it is."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from npl_mcp.core.progress import PROGRESS

PATIENCE = 0.5
"""Seconds before anything is shown."""

STEP = 0.2

_WIDTH = 24
"""Characters of the bar."""


class Progress:
    """Shows what is running and for how long, and clears the line afterwards.

    Nothing is shown unless standard error is a terminal.

    :param what: a few words.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        self._reached: tuple[int, int] | None = None

    def __enter__(self) -> Progress:
        self._token = PROGRESS.set(self._reach)
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        PROGRESS.reset(self._token)
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        started = time.monotonic()
        line = ""
        wait = PATIENCE
        while not self._done.wait(wait):
            before = len(line)
            line = f"{self._what} … {time.monotonic() - started:.0f} s{self._bar()}"
            sys.stderr.write(f"\r{line.ljust(before)}")
            sys.stderr.flush()
            wait = STEP
        if line:
            sys.stderr.write("\r" + " " * len(line) + "\r")
            sys.stderr.flush()

    def _reach(self, done: int, total: int) -> None:
        self._reached = (done, total)

    def _bar(self) -> str:
        if self._reached is None:
            return ""
        done, total = self._reached
        filled = _WIDTH * done // max(1, total)
        return f" [{'#' * filled}{'.' * (_WIDTH - filled)}] {done:,} of {total:,} files"
