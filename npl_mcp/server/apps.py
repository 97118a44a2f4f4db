"""Pages for chat windows (MCP Apps, SEP-1865), for clients that announce that they show such pages.

For all others neither a page nor its tool is there: hosts that do not know the extension would list the tool
to the model, which pays for it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.apps.config import UI_EXTENSION_ID, UI_MIME_TYPE
from fastmcp.resources import Resource
from fastmcp.server.dependencies import get_context
from fastmcp.server.transforms import GetResourceNext, GetToolNext, Transform
from fastmcp.tools.base import Tool
from fastmcp.utilities.versions import VersionSpec
from mcp_types import Icon

from npl_mcp.server.registry import BoundTool

UI = "ui://"
"""How addresses of pages for chat windows begin."""

ASK = f"{UI}npl/ask"

_ICON = Path(__file__).parents[1] / "web" / "static" / "npl.svg"


def icon() -> Icon:
    """Return the picture that hosts show beside the server's name; as data, since few servers have pages."""
    data = base64.b64encode(_ICON.read_bytes()).decode()
    return Icon(src=f"data:image/svg+xml;base64,{data}", mime_type="image/svg+xml", sizes=["any"])


def add_apps(server: FastMCP[Any]) -> None:
    """Add the pages to a server."""
    page = Resource.from_function(
        _read,
        ASK,
        name="ask",
        title="Ask",
        mime_type=UI_MIME_TYPE,
        meta={"ui": {"prefersBorder": True}},
        tags={"npl"},
    )
    server.add_resource(page)


def _read() -> str:
    from npl_mcp.web.chat_window import document

    return document()


def shows_pages() -> bool:
    """Return whether the client of this call shows pages in its chat window."""
    try:
        return get_context().client_supports_extension(UI_EXTENSION_ID)
    except RuntimeError:  # a call that is no message of the protocol
        return False


class ForHosts(Transform):
    """Shows pages and their tools to clients that show such pages."""

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools the client can show the answers of."""
        return [one for one in tools if not _has_page(one)] if not shows_pages() else tools

    async def get_tool(
        self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None
    ) -> Tool | None:
        """Return a tool the client can show the answers of."""
        tool = await call_next(name, version=version)
        return None if tool is not None and _has_page(tool) and not shows_pages() else tool

    async def list_resources(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        """Return the resources the client can show."""
        if shows_pages():
            return resources
        return [one for one in resources if not str(one.uri).startswith(UI)]

    async def get_resource(
        self, uri: str, call_next: GetResourceNext, *, version: VersionSpec | None = None
    ) -> Resource | None:
        """Return a resource the client can show."""
        return await call_next(uri, version=version) if shows_pages() or not uri.startswith(UI) else None


def _has_page(tool: Tool) -> bool:
    return isinstance(tool, BoundTool) and tool.has_page
