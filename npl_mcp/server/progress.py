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
        task = asyncio.create_task(teller.run())
        try:
            answer = await call_next(context)
            await teller.tell_parts()
            return answer
        finally:
            PROGRESS.reset(token)
            teller.ends.cancel()
            await task


class _Teller:
    """The notifications for one request; the protocol requires increasing numbers."""

    def __init__(self, client: Context) -> None:
        self.ends = anyio.CancelScope()
        """Ends :meth:`run`. A task's own ``cancel`` can be lost if the awaited event arrives at the same
        time.
        """
        self._client = client
        self._began = time.monotonic()
        self._parts: tuple[int, int] | None = None
        self._last = -1.0

    def reach(self, done: int, total: int) -> None:
        """Record the number of finished parts and their total; from any thread."""
        self._parts = (done, total)

    async def run(self) -> None:
        """Send notifications until the scope ends."""
        with self.ends:
            while True:
                seconds = time.monotonic() - self._began
                await anyio.sleep(FIRST if self._parts else min(max(seconds, FIRST), MAX_SECONDS))
                if self._parts:
                    await self.tell_parts()
                else:
                    seconds = time.monotonic() - self._began
                    await self._tell(
                        max(self._last + 1, float(int(seconds))), None, f"working, {seconds:.0f} s"
                    )

    async def tell_parts(self) -> None:
        """Send the number of finished parts, if it has grown."""
        if self._parts is not None and self._parts[0] > self._last:
            done, total = self._parts
            await self._tell(done, total, "files indexed")

    async def _tell(self, value: float, total: float | None, message: str) -> None:
        self._last = value
        # A disconnected client needs no answer either, but its request still runs to its end.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._client.report_progress(value, total, message)
