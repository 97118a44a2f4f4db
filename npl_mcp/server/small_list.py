"""The small list: the tools for reading, one that finds all others, and one that calls what was found.

An agent pays for the tools it looks up instead of for all there are. Every tool can still be called by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import anyio.from_thread
import anyio.to_thread
from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.server.transforms import GetToolNext
from fastmcp.server.transforms.catalog import CatalogTransform
from fastmcp.tools.base import Tool, ToolResult
from fastmcp.utilities.versions import VersionSpec
from mcp_types import CallToolRequestParams

from npl_index.errors import InvalidRequestError
from npl_index.ranking.analysis import terms
from npl_mcp.core.app import App
from npl_mcp.core.calls import sight
from npl_mcp.server.arguments import from_text
from npl_mcp.server.lanes import lane
from npl_mcp.server.registry import BoundTool
from npl_mcp.tools.access import sees_domain
from npl_mcp.tools.search import LONGEST_QUERY
from npl_mcp.tools.spec import ToolSpec

SEARCH, CALL = "search_tools", "call_tool"

MOST_FOUND = 5


@dataclass(frozen=True, slots=True)
class FoundTools:
    """Tools that fit a query.

    :param tools: each as a list of tools would show it, best first.
    :param names: of all tools, where none fits.
    """

    tools: tuple[dict[str, Any], ...]
    names: tuple[str, ...] | None


class SmallList(CatalogTransform):
    """Lists few tools and finds the others by words in their names, descriptions and parameters.

    :param app: passed to the two tools, which use only its settings.
    :param domains: names of what there are tools for.
    """

    def __init__(self, app: App, domains: Sequence[str]) -> None:
        super().__init__()

        def search_tools(_: App, query: str) -> FoundTools:
            """Find tools."""
            every = anyio.from_thread.run(self.get_tool_catalog, get_context())
            found = _best([tool for tool in every if not _always(tool)], query[:LONGEST_QUERY])
            names = None if found else tuple(tool.name for tool in every)
            return FoundTools(tuple(map(_listed, found)), names)

        self._domains = domains
        call = ToolSpec(call_tool, title="Call Tool", read_only=False, idempotent=False, destructive=True)
        self._own = {
            SEARCH: BoundTool.bind(ToolSpec(search_tools, title="Find Tools"), app),
            CALL: BoundTool.bind(call, app),
        }

    async def transform_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools that are listed."""
        domains = ", ".join(name for name in self._domains if sees_domain(name, sight()))
        about = f"Find more tools by what they do; domains: {domains}."
        search = self._own[SEARCH].model_copy(update={"description": about})
        # A client finds a tool whose answer a page shows in the list alone.
        shown = (tool for tool in tools if _always(tool) or (isinstance(tool, BoundTool) and tool.has_page))
        return [*shown, search, self._own[CALL]]

    async def get_tool(
        self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None
    ) -> Tool | None:
        """Return a tool by its name, listed or not."""
        return self._own.get(name) or await call_next(name, version=version)


def _always(tool: Tool) -> bool:
    return isinstance(tool, BoundTool) and tool.spec.always


def _best(tools: Sequence[Tool], query: str) -> list[Tool]:
    """Return the tools that fit a query by BM25, best first."""
    from rank_bm25 import BM25Okapi  # brings numpy, which a server without searches need not wait for

    words = terms(query)
    if not tools or not words:
        return []
    scores = BM25Okapi([terms(" ".join(_words(tool))) for tool in tools]).get_scores(words)
    order = sorted(range(len(tools)), key=lambda number: -scores[number])[:MOST_FOUND]
    return [tools[number] for number in order if scores[number] > 0]


def _words(tool: Tool) -> Iterator[str]:
    yield tool.name
    yield tool.description or ""
    for name, schema in tool.parameters.get("properties", {}).items():
        yield name
        yield schema.get("description", "")


def _listed(tool: Tool) -> dict[str, Any]:
    kept: dict[str, Any] = tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True)
    return kept


def call_tool(
    app: App,  # noqa: ARG001 - every tool takes it
    name: str,
    arguments: Annotated[dict[str, Any] | None, "As its inputSchema says"] = None,  # noqa: ARG001
) -> None:
    """Call any tool, also one that search_tools found.

    Only calls that :class:`CallsByName` leaves alone come here.

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
        """Pass the call on; one that cannot be read is left to ``call_tool``, which says what is wrong."""
        message = context.message
        given = message.arguments or {}
        name, arguments = given.get("name"), given.get("arguments")
        if isinstance(arguments, str):
            arguments = await lane("light").run(from_text, arguments, dict)
        readable = isinstance(name, str) and name != CALL and isinstance(arguments, dict | None)
        if message.name != CALL or not readable or given.keys() - {"name", "arguments"}:
            return await call_next(context)
        inner = message.model_copy(update={"name": name, "arguments": arguments})
        return await call_next(context.copy(message=inner))
