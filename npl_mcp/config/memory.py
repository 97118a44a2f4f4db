"""Memory of this process."""

from __future__ import annotations

import ctypes
from contextlib import suppress


def free_memory() -> None:
    """Return unused memory to the system, where the C library does not do so itself."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
