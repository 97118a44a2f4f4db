"""Worklogs."""

from __future__ import annotations

from npl_mcp.stores.database import Database


class WorklogStore:
    """Worklogs."""

    def __init__(self, database: Database) -> None:
        self._database = database
