"""The MCP server of npl_index: settings, stores, tools, servers, command lines."""

import os

__version__ = "0.2.0"

# FastMCP would read settings from a file ".env" in the working directory, which may be foreign.
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)
