"""The MCP server of npl_index: settings, tools, server."""

import os

__version__ = "0.2.0"

# FastMCP would take settings from a file ".env" in the working directory, which may be a stranger's.
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)
