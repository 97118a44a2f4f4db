"""The MCP server: the only package that knows FastMCP."""
