"""The file of the index: opened, made again where it cannot be used, read and written in transactions.

It is made from the user's files, so that whatever is wrong with it costs time and nothing else. Where nothing
can be written, it lives in memory.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from npl_index.index.driver import driver
from npl_index.index.schema import APPLICATION_ID, SCHEMA, VERSION
from npl_index.library.files import Folder, make_folder

logger = logging.getLogger(__name__)

NAME = f"index-{VERSION}.db"
FORMER = (*(f"index-{number}.db" for number in range(1, VERSION)), "index-cache.db", "index")
"""Where earlier versions kept an index: files, and the folder of 0.2.0."""

SUFFIXES = ("", "-wal", "-shm")
BUSY_SECONDS = 30
CACHE_KIBIBYTES = 2 * 1024
IDLE = 4
"""Connections that are kept while nothing asks."""

_SETTINGS = (
    f"PRAGMA cache_size = -{CACHE_KIBIBYTES}",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA journal_size_limit = 16777216",
)


class DamagedIndexError(Exception):
    """The index holds what nobody wrote."""


class Database:
    """The connections to one index; safe for several threads.

    :param folder: where the file lies; it is made when it is first needed. ``None`` for memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self.path = None if folder is None else folder / NAME
        self._lock = threading.RLock()
        self._idle: list[Any] = []
        self._mine = threading.local()
        self._mark: tuple[int, int] | None = None
        self._memory: Any = None
        self._closed = False

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield a connection in a transaction: all it reads is of one state. A thread's transactions nest."""
        own = getattr(self._mine, "connection", None)
        if own is not None:
            yield own
            return
        with self._connection() as connection:
            connection.execute("BEGIN")
            self._mine.connection = connection
            try:
                yield connection
            finally:
                self._mine.connection = None
                connection.execute("COMMIT")

    def rows(self, statement: str, *given: object) -> list[Any]:
        """Return the rows that a statement reads, in the transaction of the thread if there is one."""
        with self.reading() as connection:
            found: list[Any] = connection.execute(statement, given).fetchall()
        return found

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Yield a connection in a transaction that is taken back if an error is raised."""
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(driver().Error):
                    connection.execute("ROLLBACK")
                raise

    def discard(self) -> None:
        """Remove the file, if it is still the one that is open, so that it is made again."""
        with self._lock:
            mark, path = self._mark, self.path
            self._drop()
            if path is not None and mark is not None and _mark_of(path) == mark:
                _remove(path)

    def leave_file(self, why: str) -> None:
        """Keep the index in memory from now on: the file cannot be written."""
        with self._lock:
            self._drop()
            if self.path is not None:
                logger.warning("index: it is kept in memory only: %s", why)
                self.path = None

    def close(self) -> None:
        """Close the connections that are idle."""
        with self._lock:
            self._closed = True
            self._drop()
            if self._memory is not None:
                self._memory.close()
                self._memory = None

    def _drop(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        connection, mark = self._taken()
        with self._lock if connection is self._memory else nullcontext():
            broken = True
            try:
                yield connection
                broken = False
            except driver().OperationalError:
                broken = False
                raise
            finally:
                if connection is not self._memory:
                    self._give_back(connection, mark, broken=broken)

    def _taken(self) -> tuple[Any, tuple[int, int] | None]:
        with self._lock:
            if self.path is not None:
                mark = _mark_of(self.path)
                if mark != self._mark:
                    self._drop()
                if self._idle:
                    return self._idle.pop(), mark
                try:
                    return self._opened(self.path)
                except (driver().Error, OSError) as error:
                    self.leave_file(str(getattr(error, "strerror", None) or error))
            if self._memory is None:
                self._memory = _connect(":memory:")
                _prepare(self._memory)
            return self._memory, None

    def _give_back(self, connection: Any, mark: tuple[int, int] | None, *, broken: bool) -> None:
        with self._lock:
            if broken or self._closed or mark != self._mark or len(self._idle) >= IDLE:
                connection.close()
            else:
                self._idle.append(connection)

    def _opened(self, path: Path) -> tuple[Any, tuple[int, int] | None]:
        make_folder(path.parent, 0o700)
        for again in (True, False):
            connection = None
            try:
                connection = _connect(path)
                connection.execute("PRAGMA journal_mode = WAL")
                _prepare(connection)
                path.chmod(0o600)
                if self._mark is None:
                    _remove_former(path.parent)
                self._mark = _mark_of(path)
                return connection, self._mark
            except driver().Error as error:
                if connection is not None:
                    connection.close()
                if isinstance(error, driver().OperationalError) or not (again and _is_ours(path)):
                    raise
                logger.warning("index: the file is damaged and is made again")
                self._mark = _mark_of(path)
                self.discard()
        raise AssertionError


def _remove(path: Path) -> None:
    """Remove a file with what SQLite keeps next to it."""
    for suffix in SUFFIXES:
        with suppress(OSError):
            path.with_name(path.name + suffix).unlink()


def _remove_former(folder: Path) -> None:
    """Remove what earlier versions kept in a data folder; nothing but their own files goes."""
    for name in FORMER:
        path = folder / name
        if path.suffix:
            _remove(path)
        elif not path.is_symlink():
            for pattern in ("*.segment", "manifest.db*", "*.lock"):
                for file in path.glob(pattern):
                    with suppress(OSError):
                        file.unlink()
            with suppress(OSError):
                path.rmdir()


def _connect(path: Path | str) -> Any:
    connection = driver().connect(
        str(path), isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False, cached_statements=256
    )
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


def _prepare(connection: Any) -> None:
    """Make the tables, unless they are there."""
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    if not _version(connection):
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _version(connection: Any) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found not in (0, VERSION):
        raise driver().DatabaseError(f"its version is {found}")
    return found


def _mark_of(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_ours(path: Path) -> bool:
    """Return whether a file is no other program's: it is empty, or begins as SQLite's do."""
    with Folder.opened(path.parent) as folder:
        return folder.read_start(path.name, 16) in (b"", b"SQLite format 3\x00")
