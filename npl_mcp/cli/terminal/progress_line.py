"""A line on the terminal during a long call, with a bar if the call reports its progress."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

from npl_mcp.app.progress import PROGRESS

DELAY_SECONDS = 0.5
"""Time until the line appears."""

_STEP_SECONDS = 0.2

_WIDTH = 24
"""Characters of the bar."""


class Progress:
    """Context manager that shows a line with the elapsed time, and clears it at the end.

    The line is shown only if standard error is a terminal.

    :param what: first words of the line.
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
        wait = DELAY_SECONDS
        while not self._done.wait(wait):
            before = len(line)
            line = f"{self._what} … {time.monotonic() - started:.0f} s{self._bar()}"
            sys.stderr.write(f"\r{line.ljust(before)}")
            sys.stderr.flush()
            wait = _STEP_SECONDS
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
