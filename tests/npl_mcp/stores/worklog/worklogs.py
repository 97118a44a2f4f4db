"""The tools of worklogs, called for any project of a data folder."""

import inspect
from types import SimpleNamespace
from typing import Any

from npl_mcp.app.waiting import OwnThread
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.worklog import transfer as files
from npl_mcp.tools.domains import tool_named


class Worklogs:
    """A method for each tool, without its prefix, whose first parameter is a project.

    :param database: of the worklogs.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    def __getattr__(self, name: str) -> Any:
        spec = tool_named(f"worklog_{name}")
        names = list(inspect.signature(spec.function).parameters)[1:]

        def call(project: object, *given: object, **named: object) -> Any:
            app = SimpleNamespace(database=self.database, project=str(project), agent="", threads=OwnThread())
            return spec(app, **dict(zip(names, given, strict=False)), **named)

        return call

    def import_folder(self, project: object) -> files.Imported:
        return files.import_folder(self.database, str(project))
