"""The database of all stores: opened when first needed, one writer, a few readers, one transaction a call.

Statements are SQL text with ``:name`` parameters, in the SQL that SQLite and PostgreSQL share; they go to the
driver as they are. What only SQLite knows is in :mod:`npl_mcp.stores.base.sqlite`, so another database needs
another such module. Migrations need more, which is loaded when there is one to run.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from npl_mcp.stores.base import sqlite
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.folder import private_folder

HEAD = "0005"
"""The newest migration, by its number; a database that has it needs no Alembic to open."""

RELEASED = ("0001", "0002", "0004", "0005")
"""Numbers of all migrations that were ever released."""

PAGE_CHARACTERS = 4 * 1024 * 1024
"""Characters of a page; what is left is on the next. A thousand of the longest messages have 64 MiB."""

Row = dict[str, Any]


class Transaction:
    """A transaction: all of it happens, or nothing.

    Parameters are given by keyword; a list or tuple fills ``IN :name``.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        """Return all rows, by column name."""
        statement, given = _expanded(sql, values)
        try:
            cursor = self._raw.execute(statement, given)
            names = tuple(column[0] for column in cursor.description)
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        except sqlite.driver().OperationalError as error:
            raise self._damage(statement, given, error) or error from None

    def some(self, sql: str, /, **values: Any) -> list[Row]:
        """Return the first rows, by column name: texts of :data:`PAGE_CHARACTERS`, but at least one row.

        Rows that are not returned are not read either.
        """
        statement, given = _expanded(sql, values)
        cursor = self._raw.cursor()
        found: list[Row] = []
        room = PAGE_CHARACTERS
        try:
            cursor.execute(statement, given)
            names = tuple(column[0] for column in cursor.description)
            for row in cursor:
                room -= sum(len(value) for value in row if value.__class__ is str)
                if room < 0 and found:
                    break
                found.append(dict(zip(names, row, strict=True)))
        except sqlite.driver().OperationalError as error:
            raise self._damage(statement, given, error) or error from None
        finally:
            cursor.close()
        return found

    def one(self, sql: str, /, **values: Any) -> Row | None:
        """Return the first row, or ``None``."""
        rows = self._first(sql, values)
        return None if rows is None else dict(zip(*rows, strict=True))

    def value(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row, or ``None``; also for ``INSERT … RETURNING id``."""
        rows = self._first(sql, values)
        return None if rows is None else rows[1][0]

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute a statement and return the number of rows it changed."""
        changed: int = self._raw.execute(*_expanded(sql, values)).rowcount
        return changed

    def run_many(self, sql: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        """Execute a statement once for each row of parameters."""
        if rows:
            self._raw.executemany(sql, rows)

    def _first(self, sql: str, values: Mapping[str, Any]) -> tuple[tuple[str, ...], Sequence[Any]] | None:
        statement, given = _expanded(sql, values)
        cursor = self._raw.cursor()
        try:
            row = cursor.execute(statement, given).fetchone()
            return None if row is None else (tuple(column[0] for column in cursor.description), row)
        except sqlite.driver().OperationalError as error:
            raise self._damage(statement, given, error) or error from None
        finally:
            # A statement that is not at its end would keep the transaction from being committed.
            cursor.close()

    def _damage(self, sql: str, values: Mapping[str, Any], error: BaseException) -> DatabaseError | None:
        place = sqlite.undecodable(self._raw, sql, values, error)
        return None if place is None else damaged(f"{place} holds no text")


def damaged(what: str) -> DatabaseError:
    """Return the error for a row that cannot be read.

    :param what: which, and what is wrong with it.
    """
    return DatabaseError(f"the database is damaged: {what}", hint=_RESTORE)


_RESTORE = "restore a backup of the data folder"


def json_of(text: Any, where: str) -> Any:
    """Return the value of a column that holds JSON.

    :param where: the row and the column, for the message.
    :raises DatabaseError: it holds none.
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise damaged(f"{where} holds no JSON") from None


def _expanded(sql: str, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return a statement whose lists of values are parameters of their own."""
    lists = [name for name, value in values.items() if value.__class__ in (list, tuple)]
    if not lists:
        return sql, values
    given = dict(values)
    for name in lists:
        parts = {f"{name}_{at}": value for at, value in enumerate(given.pop(name))}
        sql = sql.replace(f"IN :{name}", f"IN ({', '.join(f':{part}' for part in parts)})")
        given |= parts
    return sql, given


class Database:
    """The database below a data folder; safe for several threads and several processes.

    :param path: its file; the folder is made when it is first needed.
    :param beside: a folder that means nothing without this database: no new one is made while it holds
        anything.
    :param check: check the structure of the whole file when it is opened. A command that runs once leaves
        that to servers: it takes the longer the larger the file is, and SQLite reports damage it meets.
    """

    def __init__(self, path: Path, beside: Path | None = None, *, check: bool = True) -> None:
        self.path = path
        self._beside = beside
        self._checks = check
        self._lock = threading.Lock()
        self._kinds: tuple[sqlite.Connections, sqlite.Connections] | None = None
        self._file: tuple[int, int, bool] | None = None

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
        self._opened(sqlite.Deadline())

    def is_lost(self) -> bool:
        """Return whether the file is missing though there are files that only it describes."""
        return self._is_needed() and not self.path.exists()

    def is_made(self) -> bool:
        """Return whether there is a database to be opened, or there was one."""
        return self.path.exists() or self.is_lost()

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
        self._opened(sqlite.Deadline())
        with sqlite.translated():
            sqlite.copy(self.path, target)

    def commits(self) -> sqlite.Commits:
        """Return what tells that somebody committed; to be used by one thread, and closed."""
        return sqlite.Commits(self.path)

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        with self._lock:
            self._dispose()

    @contextmanager
    def _transaction(self, which: int) -> Iterator[Transaction]:
        deadline = sqlite.Deadline()
        kind = self._opened(deadline)[which]
        try:
            with sqlite.translated(), kind.transaction(deadline) as raw:
                yield Transaction(raw)
        except (sqlite.BusyError, sqlite.RefusedError):
            raise
        except DatabaseError:
            # Some causes, such as a removed log, stay with a connection; the next call opens new ones.
            self.close()
            raise

    def _opened(self, deadline: sqlite.Deadline) -> tuple[sqlite.Connections, sqlite.Connections]:
        kinds = self._kinds
        if kinds is None or self._file != self._present_file():
            # Opening may wait for other programs. Whoever waits for that meanwhile waits no longer in all.
            if not self._lock.acquire(timeout=deadline.seconds):
                raise sqlite.BusyError("the database cannot be used: it is being opened; try again")
            try:
                kinds = self._kinds
                if kinds is None or self._file != self._present_file():
                    self._dispose()
                    with sqlite.translated():
                        kinds = self._open(deadline)
                    self._file = self._present_file()
                    self._kinds = kinds
            finally:
                self._lock.release()
        return kinds

    def _dispose(self) -> None:
        for kind in self._kinds or ():
            kind.close()
        self._kinds = None

    def _present_file(self) -> tuple[int, int, bool] | None:
        """Return device and inode of the file, and whether it holds anything; ``None`` if there is none.

        A connection goes on reading and writing a file that was removed, replaced or emptied, and what it
        writes is lost. So each transaction first makes sure that its connections belong to the file of this
        name.
        """
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size > 0

    def _open(self, deadline: sqlite.Deadline) -> tuple[sqlite.Connections, sqlite.Connections]:
        try:
            private_folder(self.path.parent)
            needed = self._is_needed()
        except OSError as error:
            problem = f"the data folder cannot be used: {error.strerror}"
            raise DatabaseError(problem, hint="choose another with --data-dir") from None
        if needed and not self.path.exists():
            raise self._lost("missing")
        writer = sqlite.Connections(self.path, 1, read_only=False)
        readers = sqlite.Connections(self.path, sqlite.READERS, read_only=True)
        try:
            with readers.transaction(deadline) as raw:
                found = _version(raw)
                if found is not None and self._checks:
                    sqlite.check_content(raw)
            if found is None and needed:
                raise self._lost("empty")
            if found != HEAD:
                self._migrate(found, deadline)
                private_folder(self.path.parent)  # SQLite gives its files the rights of any other
        except BaseException:
            writer.close()
            readers.close()
            raise
        return writer, readers

    def _is_needed(self) -> bool:
        """Return whether there are files that only the database describes.

        Ask before looking at the database: whoever makes both makes the database first.
        """
        return self._beside is not None and _holds_something(self._beside)

    def _migrate(self, found: str | None, deadline: sqlite.Deadline) -> None:
        """Bring the database from a version, or from nothing, to the newest.

        :raises DatabaseError: this program does not know the version.
        """
        if found is not None and found not in RELEASED:
            # Numbers of one length: their order is that of the texts.
            newer = len(found) == len(HEAD) and found.isdecimal() and found > HEAD
            whose = "a newer version of npl" if newer else "a version of npl that this one does not know"
            raise DatabaseError(
                f"the database was made by {whose} (schema {found[:20]!r})",
                hint="install that version or a later one" if newer else _RESTORE,
            )
        if found is not None:
            sqlite.copy(self.path, self.path.with_suffix(f".{found}.bak"))
        # Alembic and SQLAlchemy take longer to load than most commands run.
        from npl_mcp.stores.base.migrating import to_newest

        to_newest(self.path, deadline)

    def _lost(self, state: str) -> DatabaseError:
        beside = "" if self._beside is None else self._beside.name
        return DatabaseError(
            f"the database {self.path.name} is {state}, but there are files in {beside!r} beside it",
            hint=f"put {self.path.name} back from a backup, or move {beside!r} away to begin with nothing",
        )


def _holds_something(folder: Path) -> bool:
    """Return whether a folder holds anything visible."""
    try:
        return any(not inside.name.startswith(".") for inside in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return False


def _version(raw: Any) -> str | None:
    """Return the newest migration a database has, ``None`` for an empty one."""
    if not raw.execute("SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'").fetchone()[0]:
        return None
    row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
    return "" if row is None else str(row[0])
