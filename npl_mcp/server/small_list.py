"""The small list: the tools for reading, a search for all other tools, and a tool that calls them.

An agent pays only for the tools that it looks up. Every tool can still be called by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import from_thread
from fastmcp import Context, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform, serialize_tools_for_output_json
from fastmcp.tools.base import Tool

from npl_index.errors import InvalidRequestError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, Caller
from npl_mcp.app.lanes import lane
from npl_mcp.calls.arguments import from_text
from npl_mcp.calls.invoking import Outcome, ToolCalls
from npl_mcp.server.registry import ListedTool
from npl_mcp.stores.requests import PARAMETER
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

    :param server: the server that lists the tools.
    :param calls: all tools. Tools that clients always load stay listed.
    """

    def __init__(self, server: FastMCP[Any], calls: CallsByName) -> None:
        super().__init__(always_visible=[spec.name for spec in calls.specs if spec.always])
        self._server, self._domains = server, calls.domains
        calls.small_list = self
        calls.add(_FIND, _CALL)
        answers = calls.app.settings.token_budget, calls.app.settings.structured
        self._find, self._call = (ListedTool.of(spec, *answers) for spec in (_FIND, _CALL))

    async def matching(self, query: str) -> MatchingTools:
        """Return the tools that match a query."""
        async with Context(self._server) as context:  # calls over plain HTTP have none
            every = await self.get_tool_catalog(context)
        others = [tool for tool in every if tool.name not in self._always_visible]
        tools = await self._search(others, query)
        names = None if tools else tuple(tool.name for tool in every)
        return MatchingTools(tuple(serialize_tools_for_output_json(tools)), names)

    def _make_search_tool(self) -> Tool:
        domains = ", ".join(name for name in self._domains if CALLER.get().permissions.has_domain(name))
        about = f"Find more tools by what they do; domains: {domains}."
        return self._find.model_copy(update={"description": about})

    def _make_call_tool(self) -> Tool:
        return self._call


def search_tools(_: App, query: str) -> MatchingTools:
    """Find tools."""
    return from_thread.run(_LIST.get().matching, query[:MAX_QUERY])


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


# These stand in the module because caches keep each tool's function, and a method would keep its session.
_FIND = ToolSpec(search_tools, title="Find Tools")
_CALL = ToolSpec(call_tool, title="Call Tool", read_only=False, idempotent=False, destructive=True)
_LIST: ContextVar[SmallList] = ContextVar("_LIST")


class CallsByName(ToolCalls):
    """Replaces a call of ``call_tool`` with the call in its arguments."""

    small_list: SmallList

    async def invoke(self, name: str, caller: Caller, arguments: Mapping[str, Any]) -> Outcome:
        """Call a tool; an unreadable call goes to ``call_tool``, which reports the mistake."""
        _LIST.set(self.small_list)
        if name == CALL and not arguments.keys() - {"name", "arguments", PARAMETER}:
            inner, given = arguments.get("name"), arguments.get("arguments")
            if isinstance(given, str):
                given = await lane("light").run(from_text, given, dict)
            if isinstance(inner, str) and inner != CALL and isinstance(given, dict | None):
                repeatable = {PARAMETER: arguments[PARAMETER]} if PARAMETER in arguments else {}
                name, arguments = inner, {**(given or {}), **repeatable}
        return await super().invoke(name, caller, arguments)
