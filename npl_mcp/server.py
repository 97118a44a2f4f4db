"""The composition root: settings in, a FastMCP server out."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import fastmcp
from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError as UnknownToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import Tool, ToolResult
from mcp_types import CallToolRequestParams, ListToolsRequest, TextContent

from npl_index.errors import NotFoundError
from npl_mcp import __version__
from npl_mcp.app import App
from npl_mcp.settings import Settings
from npl_mcp.tools import SPECS
from npl_mcp.tools.aliases import Alias, offered
from npl_mcp.tools.errors import translate
from npl_mcp.tools.registry import register_all
from npl_mcp.tools.responses import as_dict, encode

logger = logging.getLogger(__name__)

INSTRUCTIONS = (
    "Serves Markdown prompts by section. npl_load_tailored answers a task description with the sections it "
    "needs inside a token budget; npl_section_index shows what there is."
)

WARM_UP_DELAY = 0.05
"""Seconds between the start and the warm-up, so that the client's first messages are answered first."""


class ErrorReplies(Middleware):
    """Turns every failure of a tool call into the envelope, marked as an error for the protocol.

    Arguments are checked and names are looked up before a tool runs, so only here does every failure pass.

    :param names: by every name that is accepted, the one to propose.
    :param structured: add structured content.
    """

    def __init__(self, names: Mapping[str, str], structured: bool) -> None:
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
            alike = difflib.get_close_matches(name, self._names, n=3, cutoff=0.5)
            near = tuple(dict.fromkeys(self._names[one] for one in alike))
            hint = None if near else "there are " + ", ".join(dict.fromkeys(self._names.values()))
            error: Exception = NotFoundError(f"there is no tool {name!r}", near=near, hint=hint)
        except Exception as raised:
            # FastMCP wraps what a tool raised in an error of its own.
            error = raised.__cause__ if isinstance(raised.__cause__, Exception) else raised
        body = as_dict(translate(error, context.message.name))
        return ToolResult(
            content=[TextContent(type="text", text=encode(body))],
            structured_content=body if self._structured else None,
            is_error=True,
        )


class OldNames(Middleware):
    """Accepts the names tools had before, and lists them in place of the new ones if it is told to.

    :param aliases: by old name.
    :param listed: list old names.
    """

    def __init__(self, aliases: Mapping[str, Alias], listed: bool) -> None:
        self._aliases = aliases
        self._listed = listed
        self._told: set[str] = set()

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Hand a call by an old name on under the new one."""
        old = context.message.name
        alias = self._aliases.get(old)
        if alias is None:
            return await call_next(context)
        name, arguments = alias.rewrite(context.message.arguments or {})
        level = logging.DEBUG if old in self._told else logging.WARNING
        self._told.add(old)
        logger.log(level, "the tool name %r is deprecated; call %r", old, name)
        message = context.message.model_copy(update={"name": name, "arguments": arguments})
        return await call_next(context.copy(message=message))

    async def on_list_tools(
        self,
        context: MiddlewareContext[ListToolsRequest],
        call_next: CallNext[ListToolsRequest, Sequence[Tool]],
    ) -> Sequence[Tool]:
        """List the tools, in the same order by either name."""
        tools = await call_next(context)
        return list(self._renamed(tools)) if self._listed else tools

    def _renamed(self, tools: Sequence[Tool]) -> Iterator[Tool]:
        for tool in tools:
            old_names = [old for old, alias in self._aliases.items() if tool.name in alias.tools]
            if not old_names:
                yield tool
            for old in old_names:
                if self._aliases[old].new == tool.name:
                    yield _under(tool, old, self._aliases[old])


def _under(tool: Tool, old: str, alias: Alias) -> Tool:
    """Give a tool as its old name is listed."""
    changes: dict[str, Any] = {"name": old, "description": alias.description or tool.description}
    if alias.chosen_by is not None:
        choice = {alias.chosen_by: {"type": "string", "description": ", ".join(alias.choices)}}
        changes["parameters"] = {
            **tool.parameters,
            "properties": {**choice, **tool.parameters["properties"]},
            "required": [alias.chosen_by, *tool.parameters.get("required", ())],
        }
    return tool.model_copy(update=changes)


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

    aliases = offered([spec.name for spec in SPECS])
    server: FastMCP[Any] = FastMCP(
        "npl",
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        middleware=[
            ErrorReplies(_proposals(aliases, settings.exact_names), settings.structured),
            OldNames(aliases, settings.exact_names),
        ],
    )
    register_all(server, app, SPECS)
    return server


def _proposals(aliases: Mapping[str, Alias], old: bool) -> dict[str, str]:
    """Give for every name that is accepted the name that is listed.

    :param old: old names are listed.
    """
    names = {spec.name: spec.name for spec in SPECS}
    for name, alias in aliases.items():
        names[name] = name if old else alias.new
        if old:
            names.update(dict.fromkeys(alias.tools, name))
    return names


def serve_stdio(settings: Settings) -> None:
    """Serve one client over standard input and output until the input ends."""
    # FastMCP's own handler draws boxes and wraps lines; its messages go the way of all others instead.
    fastmcp.settings.log_enabled = False
    theirs = logging.getLogger("fastmcp")
    theirs.handlers.clear()
    theirs.propagate = True
    create_server(settings).run(transport="stdio", show_banner=False)
