"""Transports from a command to the tools: in this process, or through a server."""
