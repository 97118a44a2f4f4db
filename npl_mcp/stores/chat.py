"""Rooms, their events, notifications and todos."""

from __future__ import annotations

from npl_mcp.stores.database import Database


class ChatStore:
    """Rooms."""

    def __init__(self, database: Database) -> None:
        self._database = database
