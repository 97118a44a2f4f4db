"""Settings, the environment, and the configurations of MCP clients."""
