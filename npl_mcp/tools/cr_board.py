"""Change requests by their status, as people look at them; agents are not shown the tool."""

from __future__ import annotations

from typing import Annotated, Any

from npl_mcp.changes.answers import Board
from npl_mcp.core.app import App
from npl_mcp.tools.cr import Project, Properties
from npl_mcp.tools.spec import ToolSpec


def board_crs(
    app: App,
    project: Project = None,
    filters: Annotated[Annotated[dict[str, Any], Properties()] | None, "As of list_crs"] = None,
    limit: Annotated[int | None, "Most of each status"] = None,
) -> Board:
    """Show a project's CRs by status.

    :returns: a project's change requests by their status.
    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    """
    return app.changes.board(project, filters, limit)


TOOLS = (ToolSpec(board_crs, listed=False),)
