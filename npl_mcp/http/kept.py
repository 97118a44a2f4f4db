"""A cached answer of the database for many requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio.to_thread

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is refreshed in a thread when it is requested and the last one is old.

    Concurrent callers share one refresh, and its failure: otherwise a database that is slow to fail would be
    queried by one caller after the other.

    :param ask: the function that returns a new value; it may wait, and fail.
    :param seconds: the maximum age of the value.
    """

    def __init__(self, ask: Callable[[], T], seconds: float) -> None:
        self._ask, self._seconds = ask, seconds
        self._last: asyncio.Task[T] | None = None
        self._asked_at = 0.0

    async def get(self) -> T:
        """Return the value, at most ``seconds`` old.

        :raises Exception: the reason of a failed refresh.
        """
        if self._last is None or (self._last.done() and self._is_old(self._last)):
            self._asked_at = time.monotonic()
            self._last = asyncio.create_task(anyio.to_thread.run_sync(self._ask))
            self._last.add_done_callback(_failed)
        # A disconnecting caller does not cancel the refresh for the others.
        return await asyncio.shield(self._last)

    def _is_old(self, last: asyncio.Task[T]) -> bool:
        return _failed(last) or time.monotonic() - self._asked_at >= self._seconds


def _failed(ended: asyncio.Task[T]) -> bool:
    return ended.cancelled() or ended.exception() is not None
