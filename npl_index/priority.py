"""Threads that go first, because somebody waits for a short answer; Python's interpreter lock knows no such.

A thread that answers needs the lock some ten times, and each time it would wait for every thread that computes.
So these pause, where they look at the time, while one that goes first has something to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from selectors import DefaultSelector
from threading import get_ident
from typing import Any

_PAUSE_SECONDS = 0.002
_MOST_SECONDS = 0.05
_TURN_SECONDS = 0.002

_first: set[int] = set()
_others_until = 0.0


def give_way() -> None:
    """Let threads that go first do so, for a fiftieth of a second at most."""
    global _others_until  # noqa: PLW0603
    if not _first or get_ident() in _first or (began := time.monotonic()) < _others_until:
        return
    while _first and time.monotonic() < began + _MOST_SECONDS:
        time.sleep(_PAUSE_SECONDS)
    _others_until = time.monotonic() + _TURN_SECONDS


@contextmanager
def going_first() -> Iterator[None]:
    """Go before the threads that compute."""
    _first.add(me := get_ident())
    try:
        yield
    finally:
        _first.discard(me)


class FirstSelector(DefaultSelector):
    """The selector of an event loop that goes first while it has something to do."""

    def select(self, timeout: float | None = None) -> Any:
        """Wait as the event loop does."""
        _first.discard(me := get_ident())
        try:
            return super().select(timeout)
        finally:
            _first.add(me)
