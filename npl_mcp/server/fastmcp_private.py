"""What FastMCP and the SDK keep to themselves and this server needs; no other module reaches for it.

``tests/npl_mcp/server/test_fastmcp_private.py`` fails when one of these changes.
"""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from mcp.server.lowlevel import Server


def sdk_server(server: FastMCP[Any]) -> Server[Any]:
    """Return the SDK's server inside of FastMCP's.

    The SDK's session manager needs it. FastMCP's own HTTP application makes that manager without a way to set
    the longest body (the SDK's 4 MiB are less than an artifact) or the number of sessions.
    """
    inside: Server[Any] = server._mcp_server
    return inside


def skip_header_parameters(server: FastMCP[Any]) -> None:
    """Tell the SDK that no tool has parameters that are sent as HTTP headers too.

    Otherwise it lists all tools before each call over HTTP to look for such parameters.
    """
    server._mcp_server.get_tool_input_schema = lambda _: None
