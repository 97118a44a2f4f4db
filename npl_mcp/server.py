"""The composition root: settings in, a FastMCP server out."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import fastmcp
from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError as UnknownToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import ToolResult
from mcp_types import CallToolRequestParams, TextContent

from npl_index.errors import NotFoundError
from npl_mcp import __version__
from npl_mcp.app import App
from npl_mcp.settings import Settings
from npl_mcp.tools import SPECS
from npl_mcp.tools.errors import translate
from npl_mcp.tools.registry import register_all
from npl_mcp.tools.responses import as_dict, encode

INSTRUCTIONS = (
    "Serves Markdown prompts by section. npl_load_tailored answers a task description with the sections it "
    "needs inside a token budget; npl_section_index shows what there is."
)

WARM_UP_DELAY = 0.05
"""Seconds between the start and the warm-up, so that the client's first messages are answered first."""


class ErrorReplies(Middleware):
    """Turns every failure of a tool call into the envelope, marked as an error for the protocol.

    Arguments are checked and names are looked up before a tool runs, so only here does every failure pass.
    """

    def __init__(self, names: tuple[str, ...], structured: bool) -> None:
        self._names = names
        self._structured = structured

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Answer with the envelope whatever happens."""
        try:
            return await call_next(context)
        except UnknownToolError:
            name = context.message.name[:64]
            near = difflib.get_close_matches(name, self._names, n=3, cutoff=0.5)
            error: Exception = NotFoundError(
                f"there is no tool {name!r}", near=near, hint=None if near else f"there are {self._names}"
            )
        except Exception as raised:
            # FastMCP wraps what a tool raised in an error of its own.
            error = raised.__cause__ if isinstance(raised.__cause__, Exception) else raised
        body = as_dict(translate(error, context.message.name))
        return ToolResult(
            content=[TextContent(type="text", text=encode(body))],
            structured_content=body if self._structured else None,
            is_error=True,
        )


def create_server(settings: Settings) -> FastMCP[Any]:
    """Build the server; it opens nothing before it runs.

    :param settings: see :class:`~npl_mcp.settings.Settings`.
    """
    app = App(settings)

    @asynccontextmanager
    async def lifespan(_: FastMCP[Any]) -> AsyncIterator[dict[str, Any]]:
        timer = asyncio.get_running_loop().call_later(WARM_UP_DELAY, app.start_warm_up)
        try:
            yield {}
        finally:
            timer.cancel()
            app.close()

    names = tuple(spec.name for spec in SPECS)
    server: FastMCP[Any] = FastMCP(
        "npl",
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        middleware=[ErrorReplies(names, settings.structured)],
    )
    register_all(server, app, SPECS)
    return server


def serve_stdio(settings: Settings) -> None:
    """Serve one client over standard input and output until the input ends."""
    # FastMCP's own handler draws boxes and wraps lines; its messages go the way of all others instead.
    fastmcp.settings.log_enabled = False
    logger = logging.getLogger("fastmcp")
    logger.handlers.clear()
    logger.propagate = True
    create_server(settings).run(transport="stdio", show_banner=False)
