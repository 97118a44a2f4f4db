"""The small list: two tools for loading, one that finds all others, and one that calls what was found.

An agent pays for the tools it looks up instead of for all there are. Every tool can still be called by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool, ToolResult
from mcp_types import CallToolRequestParams

from npl_index.errors import InvalidRequestError
from npl_mcp.core.app import App
from npl_mcp.server.registry import BoundTool
from npl_mcp.tools.spec import ToolSpec

SEARCH, CALL = "search_tools", "call_tool"

ALWAYS = ("npl_load_tailored", "npl_section_index")
"""Tools that are listed beside the two."""


@dataclass(frozen=True, slots=True)
class FoundTools:
    """Tools that fit a query.

    :param tools: each as a list of tools would show it, best first.
    :param names: of all tools, where none fits.
    """

    tools: tuple[dict[str, Any], ...]
    names: tuple[str, ...] | None


class SmallList(BM25SearchTransform):
    """Lists few tools and finds the others by words in their names, descriptions and parameters.

    :param app: handed to tools; here they only look at its settings.
    :param domains: names of what there are tools for.
    """

    def __init__(self, app: App, domains: Sequence[str]) -> None:
        super().__init__(always_visible=list(ALWAYS), search_tool_name=SEARCH, call_tool_name=CALL)

        async def search_tools(_: App, query: str) -> FoundTools:
            """Find tools."""
            context = get_context()
            found = await self._search(await self._get_visible_tools(context), query)
            every = () if found else await self.get_tool_catalog(context)
            return FoundTools(tuple(map(_listed, found)), tuple(tool.name for tool in every) or None)

        finder = BoundTool.bind(ToolSpec(search_tools, {"query": "create artifact"}), app)
        about = f"Find more tools by what they do; domains: {', '.join(domains)}."
        self._finder = finder.model_copy(update={"description": about})
        example = {"name": "session_get", "arguments": {"session_id": "importer"}}
        self._caller = BoundTool.bind(
            ToolSpec(call_tool, example, read_only=False, idempotent=False, destructive=True), app
        )

    def _make_search_tool(self) -> Tool:
        return self._finder

    def _make_call_tool(self) -> Tool:
        return self._caller


def _listed(tool: Tool) -> dict[str, Any]:
    kept: dict[str, Any] = tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True)
    return kept


def call_tool(
    app: App,  # noqa: ARG001 - every tool takes it
    name: str,
    arguments: Annotated[dict[str, Any] | None, "As its inputSchema says"] = None,  # noqa: ARG001
) -> None:
    """Call any tool, e.g. one that search_tools found.

    Only calls that :class:`CallsByName` does not hand on come here.

    :raises InvalidRequestError: it was to call itself.
    """
    raise InvalidRequestError(f"{name} cannot call itself", parameter="name", hint=f"{SEARCH} finds tools")


class CallsByName(Middleware):
    """Makes a call of ``call_tool`` the call it stands for; everything after sees only that one."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Hand the call on; one that cannot be read is left to ``call_tool``, which says what is wrong."""
        message = context.message
        given = message.arguments or {}
        name, arguments = given.get("name"), given.get("arguments")
        readable = isinstance(name, str) and name != CALL and isinstance(arguments, dict | None)
        if message.name != CALL or not readable or given.keys() - {"name", "arguments"}:
            return await call_next(context)
        inner = message.model_copy(update={"name": name, "arguments": arguments})
        return await call_next(context.copy(message=inner))
