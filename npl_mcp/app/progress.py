"""Progress and cancellation of a long call.

A separate module because command lines import it at startup.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Parts = tuple[int, int]
"""The number of finished files, and their total."""

PROGRESS: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)
"""Called in this context with the number of finished files and their total; from any thread."""


ENDING: ContextVar[Callable[[], object]] = ContextVar("ending", default=lambda: None)
"""Raises the exception that ends this context's call if its caller disconnected; called in its thread."""


def end_if_abandoned() -> None:
    """End this context's call if its caller disconnected; to be called between two steps."""
    ENDING.get()()


def report_progress(parts: Parts | None) -> None:
    """Report the progress of this call; without parts, report nothing."""
    tell = PROGRESS.get()
    if tell is not None and parts is not None:
        tell(*parts)
