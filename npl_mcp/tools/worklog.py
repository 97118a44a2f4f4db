"""The worklog domain."""

from npl_mcp.tools.spec import ToolSpec

TOOLS: tuple[ToolSpec, ...] = ()
