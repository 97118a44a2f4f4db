"""Which engine a database has: PostgreSQL where an address is given, else SQLite in the data folder."""

from __future__ import annotations

from pathlib import Path

from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, DATABASE_FILE
from npl_mcp.stores.base.sqlite import SqliteEngine


def database_of(folder: Path, address: str | None = None, *, check: bool = True) -> Database:
    """Return a database; nothing is opened before it is used.

    :param folder: the data folder.
    :param address: of a database of PostgreSQL; ``None``: the database lies in the folder.
    :param check: check the structure of a file when it is opened.
    """
    if address is None:
        return Database(SqliteEngine(folder / DATABASE_FILE, folder / ARTIFACT_FOLDER, check=check))
    # Most have no such address, and what it takes need not be installed.
    from npl_mcp.stores.base.postgres import PostgresEngine

    return Database(PostgresEngine(address))
