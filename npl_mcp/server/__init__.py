"""The MCP server: tools, the small list, resources and prompts on FastMCP."""
