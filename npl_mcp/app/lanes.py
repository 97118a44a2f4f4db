"""The server's worker threads: lanes of a few threads each, in which callers take turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from anyio.from_thread import check_cancelled
from anyio.lowlevel import RunVar

from npl_index.deadline import CALL, Deadline
from npl_index.priority import with_priority
from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.waiting import OwnThread

if TYPE_CHECKING:
    from concurrent.futures import Future

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


class _Turns:
    """The calls of one caller in a lane: some run, one of the others waits for a thread.

    :param most: number of calls that may run.
    """

    def __init__(self, most: int) -> None:
        self.running = anyio.Semaphore(most, fast_acquire=True)
        self.next = anyio.Lock(fast_acquire=True)


class WorkerLane:
    """A few threads, for which callers take turns.

    A caller may use all threads but one, or both of two, because a call may be waiting for the database.

    :param size: number of threads.
    :param short: whether the calls of this lane are short and have priority.
    """

    def __init__(self, size: int, *, short: bool = False) -> None:
        self._short, self._size, self._most = short, size, max(2, size - 1)
        self._turns = anyio.Semaphore(size, fast_acquire=True)
        self._callers: WeakValueDictionary[Hashable, _Turns] = WeakValueDictionary()
        self._calls, self._moved = 0, 0.0

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run a function in a thread at the caller's turn; return its result."""
        timed = partial(with_priority, work) if self._short else work
        key = CALLER.get().key
        own = self._callers.get(key) or self._callers.setdefault(key, _Turns(self._most))
        self._calls += 1
        try:
            async with own.running:
                async with own.next:
                    await self._turns.acquire()
                self._moved = time.monotonic()
                try:
                    free: Any = nullcontext()  # the turns limit the threads
                    return await anyio.to_thread.run_sync(partial(timed, *given, **named), limiter=free)
                finally:
                    self._turns.release()
        finally:
            self._calls -= 1

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a turn."""
        return self._calls - (self._size - self._turns.value)

    @property
    def blocked(self) -> float:
        """Seconds for which no waiting call has got a turn."""
        return time.monotonic() - self._moved if self.waiting else 0.0


def blocked(seconds: float) -> list[str]:
    """Return the lanes of the running event loop in which no waiting call has got a turn for a time."""
    return [name for name, open_lane in (_OPEN.get(None) or {}).items() if open_lane.blocked > seconds]


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


def end_if_abandoned() -> None:
    """End this thread's call if its caller disconnected; to be called between two steps."""
    with suppress(anyio.NoEventLoopError):  # in a command
        check_cancelled()


@dataclass
class LaneThreads(OwnThread):
    """Runs the parts of a call of the server in threads of its lane; a wait holds none.

    :param seconds: time limit of a part.
    :param lane: one of :data:`LANES`.
    :param around: function that runs each part.
    """

    seconds: float
    lane: str = "light"
    around: Callable[[Callable[[], Any]], Any] | None = None

    def run(self, part: Callable[P, T], *given: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
        """Run a part of the call; see :class:`~npl_mcp.app.waiting.OwnThread`."""
        return lane(self.lane).run(self._limited, partial(part, *given, **named))

    def _limited(self, work: Callable[[], T]) -> T:
        CALL.set(Deadline("the documents", time.monotonic() + self.seconds))  # in the thread's own context
        result: T = work() if self.around is None else self.around(work)
        return result

    async def wait(self, ended: Future[None], left: Callable[[], float]) -> bool:
        """Wait for an event; see :class:`~npl_mcp.app.waiting.OwnThread`."""
        CALLER.get().slot.close()
        own = asyncio.wrap_future(ended)
        try:
            while not own.done() and (seconds := left()) > 0:
                await asyncio.wait([own], timeout=seconds)
        finally:
            if not own.cancel():
                own.exception()  # else it is logged if this call has been cancelled
        self.lane = self.lane if self.lane == "search" else "woken"
        return not own.cancelled() and own.result() is None
