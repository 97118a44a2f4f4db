"""The MCP primitives besides tools: resources, prompts, completions, skills, pages for chat windows."""
