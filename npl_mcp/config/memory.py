"""Memory of this process."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path


def free_memory() -> None:
    """Return unused memory to the system, where the C library does not do so itself."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def used_memory(pid: int | None) -> int | None:
    """Return the bytes of a process's memory, of shared pages its part; ``None`` if the system does not tell.

    Source: proc(5), ``/proc/PID/smaps_rollup``.
    """
    with suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        return int(text.partition("\nPss:")[2].split()[0]) * 1024
    return None
