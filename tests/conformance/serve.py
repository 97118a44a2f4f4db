"""``npl-mcp-server`` with the suite's fixture added to its tools: takes the same command line."""

import sys
from typing import Any

from fastmcp import FastMCP
from fixture import mount

from npl_mcp.cli.commands import serving
from npl_mcp.http import app

plain = app.create_server


def with_fixture(*given: Any) -> FastMCP[Any]:
    """Build the server as the package does, with the fixture."""
    server = plain(*given)
    mount(server)
    return server


if __name__ == "__main__":
    app.create_server = with_fixture
    sys.exit(serving.main())
