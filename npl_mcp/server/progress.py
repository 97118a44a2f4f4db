"""Tells clients that a request is being worked on, and how far it is where that is known.

Whatever takes longer than a second is told, to whoever sent a token: no tool has code for it. What knows its
parts, as indexing does, says so by ``PROGRESS``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from fastmcp import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext

from npl_mcp.core.progress import PROGRESS

FIRST = 1.0
"""Seconds after which a client is told for the first time that a request is being worked on, and the fewest
between two messages."""

LONGEST = 10.0
"""The most seconds between two messages where the parts are unknown, after 1, 2, 4, 8 and 16: clients and
proxies give up after half a minute, and thousands that wait must not keep a server busy."""


class TellProgress(Middleware):
    """Tells the client of each request that has a progress token."""

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Pass the request on, and tell of it until its answer."""
        client = context.fastmcp_context
        request = client and client.request_context
        if client is None or not request or "progressToken" not in (request.meta or {}):
            return await call_next(context)
        async with _told(client):
            return await call_next(context)


@asynccontextmanager
async def _told(client: Context) -> AsyncIterator[None]:
    """Tell a client of what runs meanwhile; nothing is sent after it."""
    teller = _Teller(client)
    token = PROGRESS.set(teller.reach)
    task = asyncio.create_task(teller.run())
    try:
        yield
        await teller.tell_parts()
    finally:
        PROGRESS.reset(token)
        teller.ends.cancel()
        await task


class _Teller:
    """What one client is told of one request; the protocol wants numbers that grow."""

    def __init__(self, client: Context) -> None:
        self.ends = anyio.CancelScope()
        """Ends :meth:`run`. A task's own ``cancel`` can be lost while something arrives that it waits for."""
        self._client = client
        self._began = time.monotonic()
        self._parts: tuple[int, int] | None = None
        self._last = -1.0

    def reach(self, done: int, total: int) -> None:
        """Note how many parts are ready, and of how many; from any thread."""
        self._parts = (done, total)

    async def run(self) -> None:
        """Tell until it is ended."""
        with self.ends:
            while True:
                seconds = time.monotonic() - self._began
                await anyio.sleep(FIRST if self._parts else min(max(seconds, FIRST), LONGEST))
                if self._parts:
                    await self.tell_parts()
                else:
                    seconds = time.monotonic() - self._began
                    await self._tell(
                        max(self._last + 1, float(int(seconds))), None, f"working, {seconds:.0f} s"
                    )

    async def tell_parts(self) -> None:
        """Tell how many parts are ready, if these are more than was said."""
        if self._parts is not None and self._parts[0] > self._last:
            done, total = self._parts
            await self._tell(done, total, "files indexed")

    async def _tell(self, value: float, total: float | None, message: str) -> None:
        self._last = value
        # Whoever is gone needs no answer either, but what was asked for is done all the same.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._client.report_progress(value, total, message)
