"""Command lines: thin clients of the tools."""
