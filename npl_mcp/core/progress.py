"""Who is shown how far a long call is; a module of its own because command lines import it at their start."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Parts = tuple[int, int]
"""How many files are ready, and of how many."""

PROGRESS: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)
"""Called in this context with how many files are ready, and of how many; from any thread."""


def tell_progress(parts: Parts | None) -> None:
    """Tell who watches this call how far it is; nothing where it has no parts."""
    tell = PROGRESS.get()
    if tell is not None and parts is not None:
        tell(*parts)
