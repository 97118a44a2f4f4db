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
    """The notifications for one request while it runs; the protocol requires increasing numbers.

    :param client: the request's context.
    """

    def __init__(self, client: Context) -> None:
        self._client, self._began, self._last = client, time.monotonic(), -1.0
        self._parts: tuple[int, int] | None = None
        # A task's own ``cancel`` can be lost if the awaited event arrives at the same time.
        self._ends = anyio.CancelScope()

    async def __aenter__(self) -> None:
        self._token = PROGRESS.set(self._reach)
        self._task = asyncio.create_task(self._run())

    async def __aexit__(self, failure: object, *_: object) -> None:
        PROGRESS.reset(self._token)
        self._ends.cancel()
        await self._task
        if failure is None:
            await self._tell_parts()

    def _reach(self, done: int, total: int) -> None:
        """Record the number of finished parts and their total; from any thread."""
        self._parts = (done, total)

    async def _run(self) -> None:
        seconds = 0.0
        with self._ends:
            while True:
                await anyio.sleep(FIRST if self._parts else min(max(seconds, FIRST), MAX_SECONDS))
                seconds = time.monotonic() - self._began
                if self._parts:
                    await self._tell_parts()
                else:
                    await self._tell(max(self._last + 1, seconds // 1), None, f"working, {seconds:.0f} s")

    async def _tell_parts(self) -> None:
        """Send the number of finished parts, if it has grown."""
        if self._parts is not None and self._parts[0] > self._last:
            await self._tell(*self._parts, "files indexed")

    async def _tell(self, value: float, total: float | None, message: str) -> None:
        self._last = value
        # A disconnected client needs no answer either, but its request still runs to its end.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._client.report_progress(value, total, message)
