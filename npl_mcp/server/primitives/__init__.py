"""The MCP primitives besides tools: resources, prompts, completions, pages for chat windows."""
