"""The server with one more tool that does nothing; the floor for what a call costs on this transport."""

from __future__ import annotations

import sys
from pathlib import Path

from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.server.registry import register_all
from npl_mcp.server.server import create_server
from npl_mcp.tools.spec import ToolSpec


def noop(app: App) -> dict[str, str]:  # noqa: ARG001
    """Do nothing."""
    return {}


if __name__ == "__main__":
    chosen = Settings.from_env(roots=(Path(sys.argv[1]),))
    server = create_server(chosen)
    register_all(server, App(chosen), (ToolSpec(noop, {}, in_memory=lambda _: True),))
    server.run(transport="stdio", show_banner=False)
