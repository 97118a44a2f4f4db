"""An answer of the database that many requests need, asked for at most once in a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is asked for in a thread when it is needed and the last one is old.

    Whoever comes meanwhile waits for the same answer.

    :param ask: returns it; may wait, and fail.
    :param seconds: how long it is kept.
    """

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._last: tuple[float, T] | None = None
        self._lock = anyio.Lock()

    async def get(self) -> T:
        """Return the value as it was at most so many seconds ago."""
        if (found := self._fresh()) is None:
            async with self._lock:
                if (found := self._fresh()) is None:
                    asked_at = time.monotonic()
                    value = await anyio.to_thread.run_sync(self._ask, abandon_on_cancel=True)
                    found = self._last = asked_at, value
        return found[1]

    def _fresh(self) -> tuple[float, T] | None:
        last = self._last
        return last if last is not None and time.monotonic() - last[0] < self._seconds else None
