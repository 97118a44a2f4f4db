"""The composition root: from settings to a FastMCP server."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import fastmcp
from fastmcp import FastMCP
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool, ToolResult
from mcp_types import CallToolRequestParams, ListToolsRequest, TextContent

from npl_index.errors import NPLError
from npl_index.index.driver import FTS5_REMEDY, missing_search
from npl_mcp import __version__
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, FOLDER_KEY, Reports
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.server.callers import KnowCaller, VisibleParts
from npl_mcp.server.directive_methods import DirectiveMethods
from npl_mcp.server.fastmcp_private import adapt
from npl_mcp.server.introduction import introduction
from npl_mcp.server.primitives.document_resources import add_documents
from npl_mcp.server.primitives.prompts import Prompts
from npl_mcp.server.registry import ListedTool
from npl_mcp.server.small_list import CallsByName, SmallList
from npl_mcp.server.startup import new_loop
from npl_mcp.server.stdio import connect, serve
from npl_mcp.stores.base.sqlite import REMEDY, weakness

logger = logging.getLogger(__name__)

ToolCall = MiddlewareContext[CallToolRequestParams]

WARM_UP_DELAY = 0.05
"""Seconds between the start and the warm-up, so that the client's first messages are answered first."""


class AnswerCalls(Middleware):
    """Answers calls of tools, and lists tools by their present or former names.

    :param calls: the tools.
    """

    def __init__(self, calls: ToolCalls) -> None:
        self._calls, self._settings = calls, calls.app.settings

    async def on_call_tool(self, context: ToolCall, call_next: object) -> ToolResult:  # noqa: ARG002 - named so by FastMCP
        """Return the outcome of a call; a failure is marked as an error for the protocol."""
        message = context.message
        outcome = await self._calls.invoke(message.name, CALLER.get(), message.arguments or {})
        return ToolResult(
            content=[TextContent(type="text", text=outcome.text)],
            structured_content=dict(outcome.body) if self._settings.structured else None,
            meta={FOLDER_KEY: "refused"} if outcome.folder_refused else None,
            is_error=outcome.code is not None,
        )

    async def on_list_tools(
        self, context: MiddlewareContext[ListToolsRequest], call_next: CallNext[Any, Sequence[Tool]]
    ) -> Sequence[Tool]:
        """Return the listed tools, in the same order under either name."""
        every = await call_next(context)
        tools = [tool for tool in every if not isinstance(tool, ListedTool) or tool.spec.listed]
        return [*self._former(tools)] if self._settings.exact_names else tools

    def _former(self, tools: Sequence[Tool]) -> Iterator[Tool]:
        for tool in tools:
            aliases = self._calls.aliases.items()
            names = [old for old, alias in aliases if alias.listed and alias.new == tool.name]
            yield from (tool.model_copy(update={"name": name}) for name in names or [tool.name])


def tool_calls(app: App, reports: Reports | None = None) -> ToolCalls:
    """Return the tools of a server that its settings choose."""
    return (CallsByName if app.settings.small_list else ToolCalls)(app, reports)


def create_server(settings: Settings, calls: ToolCalls | None = None) -> FastMCP[Any]:
    """Build the server; it opens nothing before it runs.

    :param calls: its tools; their application is closed when the server stops. By default those of a new one.
    :raises InvalidRequestError: the settings name an unknown domain.
    :raises NPLError: SQLite cannot keep the index.
    """
    if (problem := missing_search()) is not None:
        raise NPLError(problem, hint=FTS5_REMEDY)
    calls = calls or tool_calls(App(settings))
    app, domains = calls.app, calls.domains
    server: FastMCP[Any] = FastMCP(
        "npl",
        version=__version__,
        instructions=introduction(domains),
        website_url=settings.page_url,
        lifespan=partial(_running, app, calls.reports),
        mask_error_details=True,
        middleware=[KnowCaller(domains, app), AnswerCalls(calls)],
    )
    for spec in calls.specs:  # in a stable order, so that clients' prompt caches stay valid
        server.add_tool(ListedTool.of(spec, settings.token_budget, settings.structured))
    if "directive" in domains:
        server.add_extension(DirectiveMethods(calls))
    if "npl" in domains:
        add_documents(server, app)
        server.add_provider(Prompts(app))
    server.add_transform(VisibleParts())
    if isinstance(calls, CallsByName):
        server.add_transform(SmallList(server, calls))
    adapt(server)
    return server


@asynccontextmanager
async def _running(app: App, reports: Reports, _: FastMCP[Any]) -> AsyncIterator[dict[str, Any]]:
    """Warm up after the start; close the application at the end."""
    _warn(app.settings)
    timer = asyncio.get_running_loop().call_later(WARM_UP_DELAY, app.start_warm_up)
    try:
        yield {}
    finally:
        timer.cancel()
        reports.close()
        app.close()


def _warn(settings: Settings) -> None:
    """Warn of settings with effects that the user may not expect."""
    if settings.database_url is None and (problem := weakness()) is not None:
        logger.warning("%s; %s", problem, REMEDY)
    if not settings.roots and not settings.search_cwd:
        logger.warning("%s", settings.serves)
    if settings.write and settings.unwritable:
        logger.warning("--write: %s, so no file may be changed; give one by --root", settings.unwritable)


def quiet_libraries() -> None:
    """Log the libraries' messages like all others, and by default only their errors.

    Their warnings concern clients' mistakes, which the client learns anyway. FastMCP's own handler draws
    boxes and wraps lines.
    """
    fastmcp.settings.log_enabled = False
    level = logging.ERROR if logging.root.level == logging.WARNING else logging.NOTSET
    for name in ("fastmcp", "mcp", "uvicorn"):
        theirs = logging.getLogger(name)
        theirs.handlers.clear()
        theirs.setLevel(level)
        theirs.propagate = True


def serve_stdio(settings: Settings) -> None:
    """Serve one client over standard input and output until the input ends."""
    quiet_libraries()
    # An interrupt ends the process like a request to terminate: acknowledged writes are on disk. Cancelling
    # all tasks instead can leave a busy server waiting forever for one of them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serving = partial(serve, create_server(settings), connect(settings.body_limit))
    anyio.run(serving, backend_options={"loop_factory": new_loop})
