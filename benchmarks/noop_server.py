"""The server with one more tool that does nothing: the floor of a call on this transport.

It is set up as ``npl-mcp`` is, so that both tools run as they do for users.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from npl_mcp.server.startup import lasting

with lasting():
    from npl_mcp.app.app import App
    from npl_mcp.calls.invoking import ToolCalls
    from npl_mcp.config.settings import Settings
    from npl_mcp.server.server import create_server, quiet_libraries
    from npl_mcp.server.startup import prepare_process
    from npl_mcp.server.stdio import connect, serve
    from npl_mcp.tools.contract.spec import ToolSpec


def noop(app: App) -> dict[str, str]:  # noqa: ARG001
    """Do nothing."""
    return {}


if __name__ == "__main__":
    quiet_libraries()
    prepare_process()
    chosen = Settings.from_env(roots=(Path(sys.argv[1]),))
    server = create_server(chosen, ToolCalls(App(chosen), more=[ToolSpec(noop)]))
    anyio.run(serve, server, connect(chosen.body_limit))
