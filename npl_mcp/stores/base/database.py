"""The database of all stores: opened when first needed, one writer, a few readers, one transaction a call.

Statements are SQL text with ``:name`` parameters, in the SQL that SQLite and PostgreSQL share; what only
SQLite knows is in :mod:`npl_mcp.stores.base.sqlite`. SQLAlchemy provides connections, pools, parameters and
transactions, Alembic the migrations; both are loaded when the database is first used.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from npl_mcp.stores.base import sqlite
from npl_mcp.stores.base.errors import DatabaseError

if TYPE_CHECKING:
    from sqlalchemy import Connection, CursorResult, Engine, TextClause

HEAD = "0001"
"""The newest migration, by its number; a database that has it needs no Alembic to open."""

Row = dict[str, Any]


class Transaction:
    """A transaction: all of it happens, or nothing.

    Parameters are given by keyword; a list or tuple fills ``IN :name``.
    """

    def __init__(self, connection: Connection, statements: _Statements) -> None:
        self._connection = connection
        self._statements = statements

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        """Return all rows, by column name."""
        result = self._execute(sql, values)
        names = tuple(result.keys())
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def one(self, sql: str, /, **values: Any) -> Row | None:
        """Return the first row, or ``None``."""
        result = self._execute(sql, values)
        row = result.fetchone()
        found = None if row is None else dict(zip(result.keys(), row, strict=True))
        result.close()
        return found

    def value(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row, or ``None``; also for ``INSERT … RETURNING id``."""
        return self._execute(sql, values).scalar()

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute a statement and return the number of rows it changed."""
        return self._execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        """Execute a statement once for each row of parameters."""
        if rows:
            self._connection.execute(self._statements.get(sql, rows[0]), list(rows))

    def _execute(self, sql: str, values: Mapping[str, Any]) -> CursorResult[Any]:
        return self._connection.execute(self._statements.get(sql, values), values)


class _Statements:
    """Compiles each SQL text once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, tuple[str, ...]], TextClause] = {}

    def get(self, sql: str, values: Mapping[str, Any]) -> TextClause:
        lists = tuple(name for name, value in values.items() if value.__class__ in (list, tuple))
        statement = self._kept.get((sql, lists))
        if statement is None:
            from sqlalchemy import bindparam, text  # loaded with the database

            statement = text(sql).bindparams(*(bindparam(name, expanding=True) for name in lists))
            self._kept[sql, lists] = statement
        return statement


class Database:
    """The database below a data folder; safe for several threads and several processes.

    :param path: its file; the folder is made when it is first needed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._statements = _Statements()
        self._lock = threading.Lock()
        self._engines: tuple[Engine, Engine] | None = None
        self._file: tuple[int, int] | None = None

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """Begin a transaction that may write; it is committed at the end, or rolled back on any error.

        :raises DatabaseError: the database cannot be used; nothing was changed.
        """
        with self._transaction(0) as transaction:
            yield transaction

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """Begin a transaction that sees one state of the database and cannot change it.

        :raises DatabaseError: the database cannot be used.
        """
        with self._transaction(1) as transaction:
            yield transaction

    def open(self) -> None:
        """Open the database if it is not: make or migrate it, check it.

        :raises DatabaseError: it cannot be used; the next call tries again.
        """
        self._opened()

    def check(self) -> list[str]:
        """Check every row and reference.

        :returns: what is wrong; empty if nothing is.
        :raises DatabaseError: the database cannot be read at all.
        """
        with self.read() as transaction:
            found = [row["integrity_check"] for row in transaction.all("PRAGMA integrity_check")]
            broken = transaction.all("PRAGMA foreign_key_check")
        return [text for text in found if text != "ok"] + [
            f"a row of {row['table']} refers to a missing row of {row['parent']}" for row in broken
        ]

    def copy(self, target: Path) -> None:
        """Copy the database while it is used.

        :param target: the copy; must not exist.
        :raises DatabaseError: it cannot be copied.
        """
        self._opened()
        with _translated():
            sqlite.copy(self.path, target)

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        with self._lock:
            self._dispose()

    @contextmanager
    def _transaction(self, which: int) -> Iterator[Transaction]:
        engine = self._opened()[which]
        try:
            with _translated(), engine.connect() as connection, connection.begin():
                yield Transaction(connection, self._statements)
        except DatabaseError:
            # Some causes, such as a removed log, stay with a connection; the next call opens new ones.
            self.close()
            raise

    def _opened(self) -> tuple[Engine, Engine]:
        engines = self._engines
        if engines is None or self._file != self._present_file():
            with self._lock, _translated():
                engines = self._engines
                if engines is None or self._file != self._present_file():
                    self._dispose()
                    engines = self._open()
                    self._file = self._present_file()
                    self._engines = engines
        return engines

    def _dispose(self) -> None:
        for engine in self._engines or ():
            engine.dispose()
        self._engines = None

    def _present_file(self) -> tuple[int, int] | None:
        """Return device and inode of the file; ``None`` if there is none.

        A connection goes on reading and writing a file that was removed or replaced, and what it writes is
        lost. So each transaction first makes sure that its connections belong to the file of this name.
        """
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _open(self) -> tuple[Engine, Engine]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"the data folder cannot be used: {error.strerror}"
            raise DatabaseError(problem, hint="choose another with --data-dir") from None
        writer, readers = sqlite.engines(self.path)
        try:
            with readers.connect() as connection:
                found = _version(connection)
                if found is not None:
                    sqlite.check_content(connection)
            if found is not None and found > HEAD:
                raise DatabaseError(
                    "the database was made by a newer version of npl",
                    hint="install that version or a later one",
                )
            if found is not None and found < HEAD:
                sqlite.copy(self.path, self.path.with_suffix(f".{found}.bak"))
            if found != HEAD:
                sqlite.migrating(writer, _upgrade)
        except BaseException:
            writer.dispose()
            readers.dispose()
            raise
        return writer, readers


def _version(connection: Connection) -> str | None:
    """Return the newest migration a database has, ``None`` for an empty one."""
    tables = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'")
    if not tables.scalar():
        return None
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar())


def _upgrade(connection: Connection) -> None:
    # Alembic takes as long to load as SQLAlchemy and is needed once per version.
    from alembic.command import upgrade
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["connection"] = connection
    upgrade(config, "head")


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors of the driver and of SQLAlchemy into :class:`DatabaseError`."""
    from sqlalchemy.exc import SQLAlchemyError  # loaded with the database

    try:
        yield
    except (SQLAlchemyError, sqlite.driver().Error) as error:
        cause = getattr(error, "orig", None) or error
        raise DatabaseError(f"the database cannot be used: {sqlite.reason(cause)}") from error
