"""What the worklog tools are given: the database, and the project that the caller works on.

The application is one; the command line has another that sets up in a tenth of the time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from npl_mcp.core.waiting import NewsUser, T, Waiting, waited
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.changes import Changes


class WorklogUser(NewsUser, Protocol):
    """Whoever calls a worklog tool."""

    @property
    def project(self) -> str:
        """The real path of its folder."""
        ...

    @property
    def seen_roots(self) -> tuple[str, ...] | None:
        """Real paths of the folders outside of which the caller sees nothing; ``None``: it sees all."""
        ...


class Worklogs:
    """The worklogs of a data folder for one command; opens nothing when made.

    :param data_folder: where they are kept.
    :param project: real path of the folder of the project that is worked on.
    :param address: of a database that replaces the one in the folder.
    """

    def __init__(self, data_folder: Path, project: Path, address: str | None = None) -> None:
        self.project = str(project)
        self.seen_roots: tuple[str, ...] | None = None
        self.database = database_of(data_folder, address, check=False)
        self.news = Changes(self.database)

    def finished(self, call: Waiting[T]) -> T:
        """Return the result of a call, for which this thread waits."""
        return waited(call)

    def close(self) -> None:
        """End all waits; close the database."""
        self.news.close()
        self.database.close()
