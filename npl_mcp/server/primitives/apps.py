"""Pages for chat windows (MCP Apps, SEP-1865), for clients that announce support."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.apps.config import UI_MIME_TYPE
from fastmcp.resources import Resource
from mcp_types import Icon

from npl_mcp.server.callers import PAGE

ASK = "ui://npl/ask"

_ICON = Path(__file__).parents[2] / "web" / "static" / "npl.svg"


def icon() -> Icon:
    """Return the server's icon for hosts, as a data URL: few servers have pages."""
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
        tags={"npl", PAGE},
    )
    server.add_resource(page)


def _read() -> str:
    from npl_mcp.web.chat_window import document

    return document()
