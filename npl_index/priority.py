"""Priority of threads that answer over threads that compute, which Python's interpreter lock does not offer.

A short answer acquires the lock about ten times, and each time it waits for every computing thread. So a
computing thread pauses at each check of its deadline while a thread with priority is busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from selectors import DefaultSelector
from threading import get_ident
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PAUSE_SECONDS = 0.002
_MAX_PAUSE_SECONDS = 0.05
_TURN_SECONDS = 0.002

_answering: set[int] = set()
_turn_ends = 0.0


def give_way() -> None:
    """Pause while a thread with priority is busy: at most 50 ms, after which 2 ms pass without a pause."""
    global _turn_ends
    if not _answering or get_ident() in _answering or (began := time.monotonic()) < _turn_ends:
        return
    while _answering and time.monotonic() < began + _MAX_PAUSE_SECONDS:
        time.sleep(_PAUSE_SECONDS)
    _turn_ends = time.monotonic() + _TURN_SECONDS


def with_priority(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Return the result of a function, which runs with priority."""
    _answering.add(me := get_ident())
    try:
        return work(*given, **named)
    finally:
        _answering.discard(me)


class PrioritySelector(DefaultSelector):
    """The selector of an event loop: its thread has priority except while it waits."""

    def select(self, timeout: float | None = None) -> Any:
        """Wait for events without priority."""
        _answering.discard(me := get_ident())
        try:
            return super().select(timeout)
        finally:
            _answering.add(me)

    def close(self) -> None:
        """Close the selector and give up the priority."""
        _answering.discard(get_ident())
        super().close()
