"""The context of the worklog tools: the database and the caller's project.

The application is such a context; the command line uses another one, with a tenth of the startup time.
"""

from __future__ import annotations

from pathlib import Path

from npl_mcp.app.waiting import OwnThread
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.commits import CommitNotifier


class Worklogs:
    """The worklogs of a data folder for one command; construction opens nothing.

    :param data_folder: path of the data folder.
    :param project: real path of the current project's folder.
    :param address: address of a database that replaces the one in the data folder.
    """

    def __init__(self, data_folder: Path, project: Path, address: str | None = None) -> None:
        self.project = str(project)
        self.threads = OwnThread()
        self.database = database_of(data_folder, address, check=False)
        self.news = CommitNotifier(self.database)

    def close(self) -> None:
        """End all waits; close the database."""
        self.news.close()
        self.database.close()
