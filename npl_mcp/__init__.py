"""The MCP server of npl_index: settings, tools, server."""

__version__ = "0.2.0"
