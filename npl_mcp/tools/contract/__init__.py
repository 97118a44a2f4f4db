"""The contract of tools with their callers: parameters, names, replies and error codes."""
