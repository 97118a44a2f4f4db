"""How a command reaches the tools: in this process, or through a server."""
