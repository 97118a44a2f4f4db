"""Progress of a long call.

A separate module because command lines import it at startup.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

PROGRESS: ContextVar[Callable[[int, int], object]] = ContextVar("progress", default=lambda *_: None)
"""Called in this context with the number of finished files and their total; from any thread."""
