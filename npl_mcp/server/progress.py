"""Progress notifications for running requests.

A client that sent a token gets notifications for every request longer than a second; tools need no code for
that. Work with known parts, such as indexing, reports them through ``PROGRESS``.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import anyio
from fastmcp import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from npl_mcp.app.progress import PROGRESS

FIRST = 1.0
"""Seconds until the first notification of a request, and minimum seconds between two notifications."""

MAX_SECONDS = 10.0
"""Maximum seconds between two notifications of a request with unknown parts, after 1, 2, 4, 8 and 16: clients
and proxies time out after half a minute, and thousands of waiting calls must not keep a server busy.
"""


class TellProgress(Middleware):
    """Sends progress notifications for each request that has a progress token."""

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Pass the request on, and send notifications until its answer."""
        client = context.fastmcp_context
        request = client and client.request_context
        if client is None or not request or "progressToken" not in (request.meta or {}):
            return await call_next(context)
        teller = _Teller(client)
        token = PROGRESS.set(teller.reach)
        # Most requests end before the timer, and need no task.
        timer = asyncio.get_running_loop().call_later(FIRST, teller.start)
        try:
            answer = await call_next(context)
            if teller.parts is not None:
                await teller.tell_parts()
            return answer
        finally:
            PROGRESS.reset(token)
            timer.cancel()
            if teller.task is not None:
                teller.ends.cancel()
                await teller.task


class _Teller:
    """The notifications for one request; the protocol requires increasing numbers."""

    def __init__(self, client: Context) -> None:
        self.ends = anyio.CancelScope()
        """Ends the task, whose own ``cancel`` can be lost if the awaited event arrives at the same time."""
        self.task: asyncio.Task[None] | None = None
        self.parts: tuple[int, int] | None = None
        self._client = client
        self._began = time.monotonic()
        self._last = -1.0

    def reach(self, done: int, total: int) -> None:
        """Record the number of finished parts and their total; from any thread."""
        self.parts = (done, total)

    def start(self) -> None:
        """Send notifications from now on."""
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        with self.ends:
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
