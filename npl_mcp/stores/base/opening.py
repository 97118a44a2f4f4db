"""Choice of the engine: PostgreSQL if an address is given, else SQLite in the data folder."""

from __future__ import annotations

from pathlib import Path

from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, DATABASE_FILE
from npl_mcp.stores.base.sqlite import SqliteEngine


def database_of(folder: Path, address: str | None = None, *, check: bool = True) -> Database:
    """Return a database; it is opened on first use.

    :param folder: the data folder.
    :param address: the address of a PostgreSQL database; ``None`` for the database in the folder.
    :param check: whether to check the structure of a file when it is opened.
    :raises DatabaseError: the address is not valid, or the driver for it is not installed.
    """
    if address is None:
        return Database(SqliteEngine(folder / DATABASE_FILE, folder / ARTIFACT_FOLDER, check=check))
    try:
        # Imported late: PostgreSQL is rare, and its driver is optional.
        from npl_mcp.stores.base.postgres import PostgresEngine
    except ModuleNotFoundError:
        problem = "NPL_DATABASE_URL needs a driver that is not installed"
        raise DatabaseError(problem, hint="install npl-mcp[postgres]") from None
    return Database(PostgresEngine(address))
