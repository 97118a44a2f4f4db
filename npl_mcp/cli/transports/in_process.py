"""Calls tools in this process, and imports no more than the tool that is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from npl_index.errors import NPLError
from npl_mcp.cli.transports.base import WORKLOG_TOOLS
from npl_mcp.tools.domains import tool_named
from npl_mcp.tools.responses import Reply, as_dict

if TYPE_CHECKING:
    from npl_mcp.config.settings import Settings
    from npl_mcp.core.app import App
    from npl_mcp.core.files import Files
    from npl_mcp.core.worklog import Worklogs

FILE_TOOLS = ("items_", "survey_")
"""Prefixes of the tools that need files and nothing else."""


class InProcess:
    """Calls tools in this process.

    :param settings: by default those of the environment, read when a tool is called.
    :param roots: folders to search before those of the environment.
    :param only: and not those at all.
    """

    name, local = "this process", True

    def __init__(
        self, settings: Settings | None = None, *, roots: Sequence[str] = (), only: bool = False
    ) -> None:
        self._settings = settings
        self._roots, self._only = roots, only
        self._app: App | Worklogs | None = None

    def call(self, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
        """Call a tool; see :meth:`Transport.call <npl_mcp.cli.transports.base.Transport.call>`."""
        try:
            result = tool_named(tool)(self._first_argument(tool), **arguments)
            if arguments.get("format") == "markdown":
                return {"success": True, "data": getattr(result, "text", "")}
            body = as_dict(Reply(data=result))
        except (NPLError, OSError) as error:
            return _failure(error, tool)
        assert isinstance(body, dict)
        return body

    def close(self) -> None:
        """Close the stores and caches a tool opened."""
        if self._app is not None:
            self._app.close()
            self._app = None

    def _first_argument(self, tool: str) -> Files | App | Worklogs:
        """Return what the tool works on: no more than it needs, since that takes longer than most tools."""
        if tool.startswith(FILE_TOOLS):
            from npl_mcp.config.settings import Settings
            from npl_mcp.core.files import Files

            return Files(self._settings or Settings.of_files())
        if self._app is None:
            import logging  # which the application does as well

            # What the user should know is in the replies; the log is for those who run servers.
            logging.getLogger("npl_mcp").addHandler(logging.NullHandler())
            self._app = self._worklogs() if tool.startswith(WORKLOG_TOOLS) else self._application()
        return self._app

    def _worklogs(self) -> Worklogs:
        from pathlib import Path

        from npl_mcp.core.worklog import Worklogs

        if self._settings is not None:
            given = self._settings
            return Worklogs(given.data_folder, given.worklog_project, given.database_url)
        from npl_mcp.config.connection import ConnectionSettings

        place = ConnectionSettings.from_env()
        folder, project = Path(place.data_folder), Path(place.project or Path.cwd()).resolve()
        return Worklogs(folder, project, place.database_url)

    def _application(self) -> App:
        from pathlib import Path

        from npl_mcp.config.settings import Settings
        from npl_mcp.core.app import App

        if self._settings is not None:
            return App(replace(self._settings, warm_up=False))
        roots = tuple(map(Path, self._roots))
        # A command that changes files names them, and the others read their digests.
        given = roots if self._only else None
        settings = Settings.from_env(search_cwd=True, write=True, warm_up=False, roots=given)
        return App(settings if self._only else replace(settings, roots=(*roots, *settings.roots)))


def _failure(error: Exception, tool: str) -> dict[str, Any]:
    # Only failures need it, and it imports the errors of all stores.
    from npl_mcp.tools.errors import logger, translate

    # The user gets the message once, and not from the log as well.
    before, logger.disabled = logger.disabled, True
    try:
        body = as_dict(translate(error, tool))
    finally:
        logger.disabled = before
    assert isinstance(body, dict)
    return body
