"""Who is shown how far a long call is; a module of its own because command lines import it at their start."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

PROGRESS: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)
"""Called in this context with how many files are ready, and of how many."""
