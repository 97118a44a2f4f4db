"""The MCP primitives besides tools: resources, prompts, completions."""
