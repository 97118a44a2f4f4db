"""Sessions: what rooms and artifacts belong together."""

from __future__ import annotations

from npl_mcp.stores.database import Database


class SessionStore:
    """Sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database
