"""The small list: the tools for reading, a search for all other tools, and a tool that calls them.

An agent pays only for the tools that it looks up. Every tool can still be called by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import from_thread
from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import Middleware
from fastmcp.server.transforms.search import BM25SearchTransform, serialize_tools_for_output_json
from fastmcp.tools.base import Tool, ToolResult

from npl_index.errors import InvalidRequestError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.lanes import lane
from npl_mcp.server.arguments import from_text
from npl_mcp.server.registry import BoundTool, Further, ToolCall
from npl_mcp.stores.requests import PARAMETER
from npl_mcp.tools.access import may_see_domain
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.search import MAX_QUERY

CALL = "call_tool"


@dataclass(frozen=True, slots=True)
class MatchingTools:
    """The tools that match a query.

    :param tools: their entries in a list of tools, best first.
    :param names: the names of all tools, if the query has no match.
    """

    tools: tuple[dict[str, Any], ...]
    names: tuple[str, ...] | None


class SmallList(BM25SearchTransform):
    """Lists few tools and finds the others by words in their names, descriptions and parameters.

    FastMCP's transform ranks. Its two tools are replaced by ours, which answer in the envelope.

    :param app: the two tools' view; they use only its settings.
    :param domains: the names of the domains with tools.
    :param specs: all tools. Tools that clients always load stay listed.
    """

    def __init__(self, app: App, domains: Sequence[str], specs: Sequence[ToolSpec]) -> None:
        super().__init__(always_visible=[spec.name for spec in specs if spec.always])

        def search_tools(_: App, query: str) -> MatchingTools:
            """Find tools."""
            return from_thread.run(self._matching, query[:MAX_QUERY])

        self._domains = domains
        self._find = BoundTool.bind(ToolSpec(search_tools, title="Find Tools"), app)
        call = ToolSpec(call_tool, title="Call Tool", read_only=False, idempotent=False, destructive=True)
        self._call = BoundTool.bind(call, app)

    async def _matching(self, query: str) -> MatchingTools:
        every = await self.get_tool_catalog(get_context())
        others = [tool for tool in every if tool.name not in self._always_visible]
        tools = await self._search(others, query)
        names = None if tools else tuple(tool.name for tool in every)
        return MatchingTools(tuple(serialize_tools_for_output_json(tools)), names)

    def _make_search_tool(self) -> Tool:
        domains = ", ".join(name for name in self._domains if may_see_domain(name, CALLER.get().permissions))
        about = f"Find more tools by what they do; domains: {domains}."
        return self._find.model_copy(update={"description": about})

    def _make_call_tool(self) -> Tool:
        return self._call


def call_tool(
    app: App,  # noqa: ARG001 - every tool takes it
    name: str,
    arguments: Annotated[dict[str, Any] | None, "As its inputSchema says"] = None,  # noqa: ARG001
) -> None:
    """Call any tool, also one that search_tools found.

    Only calls that :class:`CallsByName` leaves alone come here.

    :raises InvalidRequestError: the named tool is this one.
    """
    raise InvalidRequestError(f"{name} cannot call itself", parameter="name", hint="search_tools finds tools")


class CallsByName(Middleware):
    """Replaces a call of ``call_tool`` with the call in its arguments; later middleware sees only that."""

    async def on_call_tool(self, context: ToolCall, call_next: Further) -> ToolResult:
        """Pass the call on; an unreadable one goes to ``call_tool``, which reports the mistake."""
        message = context.message
        given = message.arguments or {}
        name, arguments = given.get("name"), given.get("arguments")
        if isinstance(arguments, str):
            arguments = await lane("light").run(from_text, arguments, dict)
        readable = isinstance(name, str) and name != CALL and isinstance(arguments, dict | None)
        if message.name != CALL or not readable or given.keys() - {"name", "arguments", PARAMETER}:
            return await call_next(context)
        if PARAMETER in given:
            arguments = {**(arguments or {}), PARAMETER: given[PARAMETER]}
        inner = message.model_copy(update={"name": name, "arguments": arguments})
        return await call_next(context.copy(message=inner))
