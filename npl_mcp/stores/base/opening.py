"""Choice of the engine: PostgreSQL if an address is given, else SQLite in the data folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, DATABASE_FILE
from npl_mcp.stores.base.sqlite import SqliteEngine


class NoDriver:
    """The engine of a database without its driver: every use of it fails, and documents need none."""

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse every use.

        :raises DatabaseError: always.
        """
        problem = "NPL_DATABASE_URL needs a driver that is not installed"
        raise DatabaseError(problem, hint="install npl-mcp[postgres]")


def database_of(folder: Path, address: str | None = None, *, check: bool = True) -> Database:
    """Return a database; it is opened on first use.

    :param folder: the data folder.
    :param address: the address of a PostgreSQL database; ``None`` for the database in the folder.
    :param check: whether to check the structure of a file when it is opened.
    :raises DatabaseError: the address is not valid.
    """
    if address is None:
        return Database(SqliteEngine(folder / DATABASE_FILE, folder / ARTIFACT_FOLDER, check=check))
    try:
        # Imported late: PostgreSQL is rare, and its driver is optional.
        from npl_mcp.stores.base.postgres import PostgresEngine
    except ImportError:  # also if its library is missing
        missing: Any = NoDriver()
        return Database(missing)
    return Database(PostgresEngine(address))
