"""The MCP primitives besides tools: resources and prompts."""
