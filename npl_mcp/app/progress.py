"""Progress of a long call.

A separate module because command lines import it at startup.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

PROGRESS: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)
"""Called in this context with the number of finished files and their total; from any thread."""


def report_progress(done: int, total: int) -> None:
    """Report the numbers of finished files and of all files of this call."""
    if (tell := PROGRESS.get()) is not None:
        tell(done, total)
