"""The server's worker threads: lanes of a few threads each, in which callers take turns."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from npl_index.priority import priority
from npl_mcp.app.call_reports import CALLER

P = ParamSpec("P")
T = TypeVar("T")

# More concurrent short calls would not finish earlier: all threads share one interpreter lock.
WORKERS = 4

# Concurrent memory-intensive calls, at most two of one caller: reading an artifact needs several times its
# size.
HEAVY_WORKERS = 3

# The threads of each lane. One message may wake a thousand waiting calls, which must not delay all later
# ones.
LANES: Mapping[str, int] = {"light": WORKERS, "heavy": HEAVY_WORKERS, "search": 2, "woken": 2, "bodies": 1}


class WorkerLane:
    """A few threads. The caller with the fewest running calls is next; equal callers take turns.

    A caller may use all threads but one, or both of two, because a call may be waiting for the database.

    :param size: number of threads.
    :param short: whether the calls of this lane are short and have priority.
    """

    def __init__(self, size: int, *, short: bool = False) -> None:
        self._short, self._threads = short, anyio.CapacityLimiter(size)
        self._free, self._each = size, max(2, size - 1)
        self._running: Counter[Hashable] = Counter()
        # Callers in the order of their turns.
        self._waiting: dict[Hashable, deque[anyio.Event]] = {}
        self._moved = 0.0

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run a function in a thread at the caller's turn; return its result."""
        key = CALLER.get().key
        if self._short:
            work = priority()(work)
        await self._begin(key)
        try:
            return await anyio.to_thread.run_sync(partial(work, *given, **named), limiter=self._threads)
        finally:
            self._end(key)

    async def _begin(self, caller: Hashable) -> None:
        """Wait for a turn of the caller, which lasts until :meth:`_end`."""
        turn = anyio.Event()
        turns = self._waiting.setdefault(caller, deque())
        turns.append(turn)
        self._admit()
        try:
            await turn.wait()
        except BaseException:  # cancellation is not an Exception, and the turn must not be lost
            if turn.is_set():
                self._end(caller)
            else:
                turns.remove(turn)
                if not turns:
                    del self._waiting[caller]
            raise

    def _end(self, caller: Hashable) -> None:
        """End a turn; the next call begins."""
        self._free += 1
        self._running[caller] -= 1
        self._running += Counter()  # drops callers without running calls
        self._admit()

    @property
    def blocked(self) -> float:
        """Seconds for which no waiting call has got a turn."""
        return time.monotonic() - self._moved if self._waiting else 0.0

    def _admit(self) -> None:
        while self._free and self._waiting:
            key = min(self._waiting, key=self._running.__getitem__)
            if self._running[key] >= self._each:
                return
            self._free -= 1
            self._running[key] += 1
            self._moved = time.monotonic()
            turns = self._waiting.pop(key)
            turns.popleft().set()
            if turns:
                self._waiting[key] = turns  # behind the others


def blocked(seconds: float) -> list[str]:
    """Return the lanes of the running event loop in which no waiting call has got a turn for a time."""
    return [name for name, one in (_OPEN.get(None) or {}).items() if one.blocked > seconds]


_OPEN: RunVar[dict[str, WorkerLane]] = RunVar("npl-lanes")


def lane(name: str) -> WorkerLane:
    """Return a lane of the running event loop.

    :param name: one of :data:`LANES`.
    """
    lanes = _OPEN.get(None)
    if lanes is None:
        lanes = {key: WorkerLane(size, short=key == "light") for key, size in LANES.items()}
        _OPEN.set(lanes)
    return lanes[name]
