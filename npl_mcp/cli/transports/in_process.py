"""Calls of tools in this process."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from npl_index.errors import NPLError
from npl_mcp.app.file_view import Files
from npl_mcp.cli.transports.base import WORKLOG_TOOLS
from npl_mcp.config.settings import Settings
from npl_mcp.tools.contract.error_codes import translate
from npl_mcp.tools.contract.responses import Reply, as_dict
from npl_mcp.tools.domains import tool_named

if TYPE_CHECKING:
    from npl_mcp.app.app import App
    from npl_mcp.app.worklog_context import Worklogs

FILE_TOOLS = ("items_", "survey_")
"""Prefixes of the tools that need files and nothing else."""


class InProcess:
    """A transport that calls tools in this process.

    :param settings: settings of the tools.
    """

    name, local = "this process", True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._app: App | Worklogs | None = None
        # The user sees errors in the replies; the log is for servers.
        logging.getLogger("npl_mcp").addHandler(logging.NullHandler())

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Transport.call <npl_mcp.cli.transports.base.Transport.call>`."""
        try:
            result = tool_named(tool)(self._first_argument(tool), **arguments)
            if arguments.get("format") == "markdown":
                return {"success": True, "data": getattr(result, "text", "")}
            body = as_dict(Reply(data=result))
        except (NPLError, OSError) as error:
            body = as_dict(translate(error, tool))
        assert isinstance(body, dict)
        return body

    def close(self) -> None:
        """Close the stores and caches of the tools."""
        if self._app is not None:
            self._app.close()
            self._app = None

    def _first_argument(self, tool: str) -> Files | App | Worklogs:
        """Return the first argument of a tool. Importing the application takes a quarter of a second."""
        settings = self._settings
        if tool.startswith(FILE_TOOLS):
            return Files(settings)
        if self._app is None and tool.startswith(WORKLOG_TOOLS):
            from npl_mcp.app.worklog_context import Worklogs

            self._app = Worklogs(settings.data_folder, settings.worklog_project, settings.database_url)
        elif self._app is None:
            from npl_mcp.app.app import App

            self._app = App(replace(settings, warm_up=False))
        return self._app
