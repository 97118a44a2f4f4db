"""Memory of the process."""

from __future__ import annotations

import sys
from contextlib import suppress


def give_back() -> None:
    """Return what the C library keeps of freed memory: after a large index that is a fifth of all."""
    if sys.platform == "linux":
        import ctypes  # few processes need it

        with suppress(AttributeError, OSError):  # other C libraries do not have this function
            ctypes.CDLL(None).malloc_trim(0)
