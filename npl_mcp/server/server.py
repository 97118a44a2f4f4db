"""The composition root: from settings to a FastMCP server."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import fastmcp
from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError as UnknownToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool, ToolResult
from mcp import MCPError
from mcp_types import Icon, ListToolsRequest, TextContent

from npl_index.errors import NotFoundError, NPLError
from npl_index.index.driver import FTS5_REMEDY, missing_search
from npl_index.library.references import near_names
from npl_mcp import __version__
from npl_mcp.app import call_log
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, CURRENT, FOLDER_KEY, Call, FolderRefusedError, Reports
from npl_mcp.config.domains import domains_named
from npl_mcp.config.settings import Settings
from npl_mcp.server.callers import KnowCaller, VisibleParts
from npl_mcp.server.directive_methods import DirectiveMethods
from npl_mcp.server.fastmcp_private import adapt
from npl_mcp.server.introduction import introduction
from npl_mcp.server.primitives.document_resources import add_documents
from npl_mcp.server.primitives.prompts import Prompts
from npl_mcp.server.progress import TellProgress
from npl_mcp.server.registry import BoundTool, Further, ToolCall, register_all
from npl_mcp.server.small_list import CallsByName, SmallList
from npl_mcp.server.startup import new_loop
from npl_mcp.server.stdio import connect, serve
from npl_mcp.stores.base.sqlite import REMEDY, weakness
from npl_mcp.tools.access import is_listed, may_see
from npl_mcp.tools.contract.aliases import REMOVED_TOOLS, Alias, usable_aliases
from npl_mcp.tools.contract.error_codes import translate
from npl_mcp.tools.contract.responses import as_dict, encode, size
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import shown_tools, unlisted_tools

logger = logging.getLogger(__name__)

_ICON = Path(__file__).parents[1] / "web" / "static" / "npl.svg"

WARM_UP_DELAY = 0.05
"""Seconds between the start and the warm-up, so that the client's first messages are answered first."""


class ToolCalls(Middleware):
    """Makes and reports calls of tools, also by former names; turns failures into envelopes.

    FastMCP validates arguments and looks up names before a tool runs, so only a middleware sees every
    failure.

    :param settings: the server's settings; one lists the former names of tools instead of the new ones.
    :param tools: the tool of every accepted name.
    :param aliases: the former names.
    :param reports: the receiver of finished calls.
    """

    def __init__(
        self,
        settings: Settings,
        tools: Mapping[str, ToolSpec],
        aliases: Mapping[str, Alias],
        reports: Reports,
    ) -> None:
        self._settings, self._tools, self._aliases, self._reports = settings, tools, aliases, reports
        self._told: set[str] = set()

    async def on_call_tool(self, context: ToolCall, call_next: Further) -> ToolResult:
        """Return the answer, or the envelope of the failure, marked as an error for the protocol."""
        message = context.message
        call = Call(message.name, CALLER.get(), message.arguments or {})
        token = CURRENT.set(call)
        self._reports.in_flight += 1
        try:
            result = await self._answer(context, call_next, call)
        finally:
            self._reports.in_flight -= 1
            CURRENT.reset(token)
            call.seconds = time.perf_counter() - call.started
        self._reports.add(call)
        return result

    async def _answer(self, context: ToolCall, call_next: Further, call: Call) -> ToolResult:
        try:
            return await call_next(self._renamed(context))
        except MCPError:
            # A protocol error, with a code of its own.
            raise
        except UnknownToolError:
            error: Exception = self._unknown(context.message.name[:64])
        except Exception as raised:
            # FastMCP wraps a tool's exception in an error of its own.
            error = raised.__cause__ if isinstance(raised.__cause__, Exception) else raised
        body = as_dict(translate(error, context.message.name))
        if call.caller.take is not None:
            call.caller.take(body)
        text = encode(body)
        call.code, call.message, call.size = body["error_code"], body["error"], size(text)
        return ToolResult(
            content=[TextContent(type="text", text=text)],
            structured_content=body if self._settings.structured else None,
            meta={FOLDER_KEY: "refused"} if isinstance(error, FolderRefusedError) else None,
            is_error=True,
        )

    def _renamed(self, context: ToolCall) -> ToolCall:
        """Return a call by a former name as one by the new name; other calls unchanged."""
        old = context.message.name
        alias = self._aliases.get(old)
        if alias is None or not may_see(self._tools[old], CALLER.get().permissions):
            return context
        if not (self._settings.exact_names and alias.listed) and old not in self._told:
            self._told.add(old)
            logger.warning("the tool name %r is deprecated; call %r", old, alias.new)
        arguments = {**(context.message.arguments or {}), **alias.fixed}
        return context.copy(
            message=context.message.model_copy(update={"name": alias.new, "arguments": arguments})
        )

    async def on_list_tools(
        self, context: MiddlewareContext[ListToolsRequest], call_next: CallNext[Any, Sequence[Tool]]
    ) -> Sequence[Tool]:
        """Return the listed tools, in the same order under either name."""
        tools = [
            tool for tool in await call_next(context) if not isinstance(tool, BoundTool) or tool.spec.listed
        ]
        return [*self._former(tools)] if self._settings.exact_names else tools

    def _former(self, tools: Sequence[Tool]) -> Iterator[Tool]:
        for tool in tools:
            aliases = self._aliases.items()
            names = [old for old, alias in aliases if alias.listed and alias.new == tool.name]
            yield from (tool.model_copy(update={"name": name}) for name in names or [tool.name])

    def _unknown(self, name: str) -> NotFoundError:
        """Return the error for an unknown tool, with its replacement or similar names for the caller."""
        if name in REMOVED_TOOLS:
            return NotFoundError(f"the tool {name} was removed", hint=REMOVED_TOOLS[name])
        who, words = CALLER.get().identity, set(re.split(r"\W|_", name.lower()))
        names = {known: spec.name for known, spec in self._tools.items() if is_listed(spec, who)}
        alike = near_names(name, names, limit=3) or [
            known for known in names if words.intersection(known.split("_"))
        ]
        near = tuple(dict.fromkeys(names[known] for known in alike))
        hint = None if near else "there are " + ", ".join(dict.fromkeys(names.values()))
        return NotFoundError(f"there is no tool {name!r}", near=near, hint=hint)


def create_server(settings: Settings, app: App | None = None, reports: Reports | None = None) -> FastMCP[Any]:
    """Build the server; it opens nothing before it runs.

    :param app: the view, closed when the server stops; by default a new one.
    :param reports: the receiver of finished calls; by default a log as set in the settings.
    :raises InvalidRequestError: the settings name an unknown domain.
    :raises NPLError: SQLite cannot keep the index.
    """
    if (problem := missing_search()) is not None:
        raise NPLError(problem, hint=FTS5_REMEDY)
    domains = domains_named(settings.domains)
    listed = shown_tools(settings, domains)
    app = app or App(settings)
    reports = reports or call_log.reports(app)
    aliases = usable_aliases([spec.name for spec in listed])
    tools = {spec.name: spec for spec in listed}
    tools |= {old: tools[alias.new] for old, alias in aliases.items()}
    server: FastMCP[Any] = FastMCP(
        "npl",
        version=__version__,
        instructions=introduction(domains),
        website_url=settings.page_url,
        icons=[_icon()],
        lifespan=partial(_running, app, reports),
        mask_error_details=True,
        middleware=[
            KnowCaller(domains, app),
            TellProgress(),
            *([CallsByName()] if settings.small_list else ()),
            ToolCalls(settings, tools, aliases, reports),
        ],
    )
    every = (*listed, *(spec for spec in unlisted_tools(domains) if spec.name not in tools))
    register_all(server, app, every)
    if "directive" in domains:
        server.add_extension(DirectiveMethods())
    if "npl" in domains:
        add_documents(server, app)
        server.add_provider(Prompts(app))
    server.add_transform(VisibleParts())
    if settings.small_list:
        server.add_transform(SmallList(app, domains, every))
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


def _icon() -> Icon:
    """Return the server's icon for hosts, as a data URL: few servers have pages."""
    data = base64.b64encode(_ICON.read_bytes()).decode()
    return Icon(src=f"data:image/svg+xml;base64,{data}", mime_type="image/svg+xml", sizes=["any"])


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
