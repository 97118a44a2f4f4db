"""What is particular to SQLite: opening, beginning transactions, checking, migrating, copying.

WAL so that readers never wait for the writer; ``synchronous=FULL`` so that what was acknowledged survives a
loss of power; ``BEGIN IMMEDIATE`` for every write, because a transaction that reads first and then writes is
refused at once, whatever the busy timeout, when somebody else wrote in between.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npl_mcp.stores.base.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

APPLICATION_ID = 0x4E504C44  # "NPLD"
BUSY_MILLISECONDS = 10_000
READERS = 4
QUEUE_SECONDS = 30.0
JOURNAL_BYTES = 16 * 1024 * 1024
CACHE_KIBIBYTES = 16 * 1024


def driver() -> Any:
    """Return the SQLite driver: that of the package ``pysqlite3`` if it is installed, else that of Python.

    Versions before 3.51.3 can damage a database in WAL mode when two connections write and checkpoint in
    the same instant (https://sqlite.org/wal.html#walresetbug).
    """
    # Loaded when a store is first used, so that calls without stores need not wait for it.
    name = "pysqlite3" if importlib.util.find_spec("pysqlite3") else "sqlite3"
    return importlib.import_module(f"{name}.dbapi2")


def engines(path: Path) -> tuple[Engine, Engine]:
    """Make the engine of the one writer and that of the readers.

    :param path: the database file.
    """
    # SQLAlchemy takes a fifth of a second to load.
    from sqlalchemy import URL, create_engine, event

    module = driver()
    url = URL.create("sqlite", database=str(path))

    def make(size: int, begin: str, read_only: bool) -> Engine:
        engine = create_engine(
            url,
            module=module,
            pool_size=size,
            max_overflow=0,
            pool_timeout=QUEUE_SECONDS,
            connect_args={"timeout": BUSY_MILLISECONDS / 1000},
        )
        event.listen(engine, "connect", lambda raw, _: _set_up(raw, read_only))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine

    return make(1, "BEGIN IMMEDIATE", False), make(READERS, "BEGIN", True)


def _set_up(raw: Any, read_only: bool) -> None:
    # Transactions begin where the program says so, not where the driver guesses.
    raw.isolation_level = None
    try:
        cursor = raw.cursor()
        _check_owner(cursor)
        _use_log(cursor)
        for pragma in _pragmas(read_only):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()
    except BaseException:
        raw.close()
        raise


def _check_owner(cursor: Any) -> None:
    # Asked through SQLite. If the file were opened and closed here, the system would drop all locks that this
    # process has on it (POSIX), and another process could remove the log that a connection still writes to.
    owner = cursor.execute("PRAGMA application_id").fetchone()[0]
    # 0: a crash before the first commit leaves a database that does not say whose it is.
    if owner not in (0, APPLICATION_ID):
        raise DatabaseError(f"the database cannot be used: {_FOREIGN}")


def _use_log(cursor: Any) -> None:
    # If two processes switch a new database to WAL at once, SQLite refuses one of them without waiting.
    end = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except driver().OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.005)


def _pragmas(read_only: bool) -> tuple[str, ...]:
    return (
        f"busy_timeout = {BUSY_MILLISECONDS}",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"journal_size_limit = {JOURNAL_BYTES}",
        f"cache_size = -{CACHE_KIBIBYTES}",
        "temp_store = MEMORY",
        f"query_only = {'ON' if read_only else 'OFF'}",
    )


def check_content(connection: Connection) -> None:
    """Check the structure of the database.

    :raises DatabaseError: it is damaged.
    """
    found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
    if found != "ok":
        raise DatabaseError(f"the database is damaged: {found}", hint="restore a backup of the data folder")


def mark(connection: Connection) -> None:
    """Write into the file's header whose database it is."""
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def migrating(engine: Engine, work: Callable[[Connection], None]) -> None:
    """Run a migration: one transaction, foreign keys off while it runs and checked before it ends.

    Tables are changed by copying them to new ones; with foreign keys on, dropping the old one would delete
    the rows that refer to it.

    :raises DatabaseError: a row would lose what it refers to.
    """
    with engine.connect() as connection:
        raw: Any = connection.connection.driver_connection
        raw.execute("PRAGMA foreign_keys = OFF")
        try:
            with connection.begin():
                work(connection)
                mark(connection)
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                if broken:
                    raise DatabaseError(f"the migration would break {len(broken)} references")
        finally:
            raw.execute("PRAGMA foreign_keys = ON")


def copy(path: Path, target: Path) -> None:
    """Copy a database while others use it, by SQLite's backup.

    :param target: the copy; must not exist.
    """
    module = driver()
    with closing(module.connect(str(path))) as source, closing(module.connect(str(target))) as copied:
        source.backup(copied)


def reason(error: BaseException) -> str:
    """Return what an error of the driver means, in words that show no path of this machine."""
    text = str(error).lower()
    for part, meaning in _REASONS.items():
        if part in text:
            return meaning
    return type(error).__name__


_FOREIGN = "its file is not a database of npl; move it away, or choose another data folder"

_REASONS = {
    "disk is full": "the disk is full",
    "readonly": "the data folder is read-only",
    "read-only": "the data folder is read-only",
    "unable to open": "its file cannot be opened or made; is the data folder there and writable?",
    "locked": "it was locked by another program for too long; try again",
    "malformed": "it is damaged; restore a backup",
    "not a database": _FOREIGN,
    "disk i/o": "the disk reports an error, or its files were removed",
    "timeout": "too many calls wait for it; try again",
    "constraint failed": "it refused a row that contradicts others",
}
