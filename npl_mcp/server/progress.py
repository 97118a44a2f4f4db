"""Progress notifications for running requests.

A client that sent a token gets notifications for every request longer than a second; tools need no code for
that. Work with known parts, such as indexing, reports them through ``PROGRESS``.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

import anyio
from fastmcp import Context

from npl_mcp.app.progress import PROGRESS

FIRST = 1.0
"""Seconds until the first notification of a request, and minimum seconds between two notifications."""

MAX_SECONDS = 10.0
"""Maximum seconds between two notifications of a request with unknown parts, after 1, 2, 4, 8 and 16: clients
and proxies time out after half a minute, and thousands of waiting calls must not keep a server busy.
"""


class Teller:
    """The notifications for one request; the protocol requires increasing numbers.

    :param client: the request's context.

    ``parts`` has the number of finished parts and their total, of work that reports them.
    """

    def __init__(self, client: Context) -> None:
        self.parts: tuple[int, int] | None = None
        # A task's own ``cancel`` can be lost if the awaited event arrives at the same time.
        self._ends = anyio.CancelScope()
        self._task: asyncio.Task[None] | None = None
        self._client = client
        self._began = time.monotonic()
        self._last = -1.0
        self._token = PROGRESS.set(self.reach)
        # Most requests end before the timer, and need no task.
        self._timer = asyncio.get_running_loop().call_later(FIRST, self._start)

    def end(self) -> asyncio.Task[None] | None:
        """Send no more notifications; return the task to wait for, if any."""
        PROGRESS.reset(self._token)
        self._timer.cancel()
        self._ends.cancel()
        return self._task

    def reach(self, done: int, total: int) -> None:
        """Record the number of finished parts and their total; from any thread."""
        self.parts = (done, total)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        with self._ends:
            while True:
                seconds = time.monotonic() - self._began
                if self.parts:
                    await self.tell_parts()
                else:
                    value = max(self._last + 1, float(int(seconds)))
                    await self._tell(value, None, f"working, {seconds:.0f} s")
                await anyio.sleep(FIRST if self.parts else min(max(seconds, FIRST), MAX_SECONDS))

    async def tell_parts(self) -> None:
        """Send the number of finished parts, if it has grown."""
        if self.parts is not None and self.parts[0] > self._last:
            done, total = self.parts
            await self._tell(done, total, "files indexed")

    async def _tell(self, value: float, total: float | None, message: str) -> None:
        self._last = value
        # A disconnected client needs no answer either, but its request still runs to its end.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._client.report_progress(value, total, message)
