"""The command lines, thin clients of the tools."""
