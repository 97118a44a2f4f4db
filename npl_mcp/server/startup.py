"""How a server's packages are imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """Import what stays as long as the process does.

    None of it ever becomes garbage. Looking for garbage meanwhile takes a sixth of the start, and looking
    through it again and again later holds up calls.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
