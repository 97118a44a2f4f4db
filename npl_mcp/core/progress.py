"""What a long call has to do with its caller: who is told how far it is, and that a caller is gone ends it.

A module of its own because command lines import it at their start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Parts = tuple[int, int]
"""How many files are ready, and of how many."""

PROGRESS: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)
"""Called in this context with how many files are ready, and of how many; from any thread."""


ENDING: ContextVar[Callable[[], object]] = ContextVar("ending", default=lambda: None)
"""Raises what ends the call that runs in this context if its caller is gone; called in its thread."""


def end_if_abandoned() -> None:
    """End the call that runs in this context if its caller is gone; to be called between two steps."""
    ENDING.get()()


def tell_progress(parts: Parts | None) -> None:
    """Tell who watches this call how far it is; nothing where it has no parts."""
    tell = PROGRESS.get()
    if tell is not None and parts is not None:
        tell(*parts)
