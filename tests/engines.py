"""The engine that the tests run on: SQLite, or PostgreSQL under ``make postgres``.

A test that opens a store asks here for the database of its data folder. Tests of what one engine has alone
are marked with its name: ``@pytest.mark.engine("sqlite")``.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from npl_mcp.stores.access import Permissions, add_token
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.base.sqlite import driver
from npl_mcp.stores.data_folder import Stores
from tests.postgres_server import OURS

SERVER = os.environ.get(OURS)
ENGINE = "sqlite" if SERVER is None else "postgres"

BLOB = "BLOB" if SERVER is None else "BYTEA"
"""The type of bytes."""

_TEMPLATE = "npl_template"
_MAKING_TEMPLATE = 1

made: set[str] = set()
"""Names of the databases that this process made."""


def address(folder: Path) -> str | None:
    """Return the address of a data folder's database, which has the tables and no rows at first.

    :returns: ``None`` on SQLite: the database lies in the folder.
    """
    if SERVER is not None:
        return _made(name_of(folder), _template())
    if not (folder / "npl.db").exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as name:
            complete = Path(name) / "npl.db"
            complete.write_bytes(_file_with_tables())
            # A link never replaces a file: another process may have made the database and have it open.
            with suppress(FileExistsError):
                os.link(complete, folder / "npl.db")
    return None


def empty_address(folder: Path) -> str | None:
    """Return the address of a data folder's database, which has no tables at first."""
    return None if SERVER is None else _made(name_of(folder), "template0")


def unused(folder: Path) -> None:
    """Make a data folder as good as new; a database on a server stays."""
    rmtree(folder, ignore_errors=True)


def environment(folder: Path) -> dict[str, str]:
    """Return the variables by which a program finds the database of a data folder."""
    return {} if SERVER is None else {"NPL_DATABASE_URL": address(folder) or ""}


def database(folder: Path) -> Database:
    """Return the database of a data folder."""
    return database_of(folder, address(folder))


def stores(folder: Path) -> Stores:
    """Return the stores of a data folder."""
    return Stores(folder, address(folder))


def tokens(folder: Path, callers: Iterable[str], *, readers: Collection[str] = ()) -> dict[str, str]:
    """Make tokens in a data folder's database; return them by the names of their callers.

    :param callers: names, or permissions by name.
    :param readers: callers that may only read.
    """
    sights = callers if isinstance(callers, Mapping) else dict.fromkeys(callers, Permissions())
    with closing(stores(folder)) as opened:
        return {
            name: opened.database.writing(add_token, name, sight, read_only=name in readers)
            for name, sight in sights.items()
        }


def files(folder: Path) -> Path:
    """Return the folder of artifacts in a data folder; a server has no such files."""
    return folder / ARTIFACT_FOLDER


def execute(folder: Path, statement: str) -> None:
    """Change a database as no store does, with foreign keys off."""
    if SERVER is None:
        with closing(driver().connect(str(folder / "npl.db"))) as connection, connection:
            connection.execute(statement)
        return
    with psycopg.connect(address(folder) or "") as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement)


def query(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """Look into a database without the stores."""
    if SERVER is None:
        with closing(driver().connect(str(folder / "npl.db"))) as connection, connection:
            return connection.execute(statement).fetchall()
    with psycopg.connect(address(folder) or "") as connection:
        return connection.execute(statement).fetchall()


def watched(folder: Path) -> tuple[Any, str]:
    """Return a connection to a database, and a query whose result differs after any commit of others."""
    if SERVER is None:
        # The driver of the stores: two SQLite libraries in one process take each other's locks away.
        return driver().connect(str(folder / "npl.db")), "PRAGMA data_version"
    parts = (f"SELECT count(*) AS n, sum(xmin::text::bigint) AS s FROM {name}" for name in tables(folder))
    seen = f"SELECT array_agg(n || ' ' || coalesce(s, 0)) FROM ({' UNION ALL '.join(parts)}) AS each"
    return psycopg.connect(address(folder) or "", autocommit=True), seen


def close_gaps(folder: Path) -> None:
    """Let ids go on after the highest: PostgreSQL leaves out those of refused calls, SQLite none."""
    if SERVER is not None:
        with psycopg.connect(address(folder) or "") as connection:
            columns = "SELECT relname, attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid"
            numbered = "relkind = 'r' AND pg_get_serial_sequence(relname, attname) IS NOT NULL"
            for table, column in connection.execute(
                f"{columns} WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND {numbered}"
            ).fetchall():
                sequence = f"pg_get_serial_sequence('{table}', '{column}')"
                last = f"(SELECT coalesce(max({column}), 0) + 1 FROM {table})"
                connection.execute(f"SELECT setval({sequence}, {last}, false)")


def tables(folder: Path) -> list[str]:
    """Name the tables of a database, without those of its indexes of words."""
    sqlite = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    sqlite += r" AND name NOT LIKE '%\_words%' ESCAPE '\'"
    postgres = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    return sorted(name for (name,) in query(folder, sqlite if SERVER is None else postgres))


@contextmanager
def refusing(folder: Path) -> Iterator[None]:
    """Break all connections to a database and refuse new ones."""
    address(folder)
    name, allow = name_of(folder), "ALTER DATABASE {} ALLOW_CONNECTIONS {}"
    _administrator().execute(allow.format(name, "false"))
    _administrator().execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
    )
    yield
    _administrator().execute(allow.format(name, "true"))


def drop(names: set[str]) -> None:
    """Remove databases, despite open connections."""
    for name in names:
        _administrator().execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        made.discard(name)


def name_of(folder: Path) -> str:
    """Return the name of the database of a data folder on a server."""
    return "t" + blake2b(str(folder.resolve()).encode(), digest_size=10).hexdigest()


@cache
def _administrator() -> Any:
    return psycopg.connect(SERVER or "", autocommit=True)


def _at(name: str) -> str:
    return (SERVER or "").replace("/postgres?", f"/{name}?")


def _exists(name: str) -> bool:
    row = _administrator().execute("SELECT 1 FROM pg_database WHERE datname = %s", [name])
    return row.fetchone() is not None


def _made(name: str, template: str) -> str:
    if name not in made and not _exists(name):
        # Another process was faster, or as fast.
        with suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            _administrator().execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        made.add(name)
    return _at(name)


@cache
def _file_with_tables() -> bytes:
    """Make a database with tables, which others are copies of: in next to no time."""
    with TemporaryDirectory() as name:
        database = database_of(Path(name), None)
        database.open()
        database.close()
        return (Path(name) / "npl.db").read_bytes()


@cache
def _template() -> str:
    """Make a database with tables, which others are copies of: in a third of the time of making tables."""
    administrator = _administrator()
    administrator.execute("SELECT pg_advisory_lock(%s)", [_MAKING_TEMPLATE])
    try:
        if not _exists(_TEMPLATE):
            administrator.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
            database = database_of(Path(), _at(_TEMPLATE))
            database.open()
            database.close()
    finally:
        administrator.execute("SELECT pg_advisory_unlock(%s)", [_MAKING_TEMPLATE])
    return _TEMPLATE
