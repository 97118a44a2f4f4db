"""The file of the index: opened, rebuilt if it is unusable, read and written in transactions.

The index is made from the user's files, so a damaged index costs only time. While its file cannot be written,
an index in memory takes its place; it has no file that could be left behind.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from npl_index.errors import NPLError
from npl_index.index.driver import driver
from npl_index.index.schema import APPLICATION_ID, SCHEMA, VERSION
from npl_index.library.files import Folder, make_folder

logger = logging.getLogger(__name__)

NAME = f"index-{VERSION}.db"
MAX_BUSY_SECONDS = 5
"""Maximum wait for a process that writes: it may be stopped, and a call has ten seconds."""

DOUBT_SECONDS = 3600
"""Seconds after an unexplained error of reading, during which a second one does not cause a new index."""

MAX_CACHE_KIBIBYTES = 2 * 1024
MAX_IDLE = 4
"""Maximum idle connections that stay open."""

AVOIDED_SECONDS = 30
"""Seconds before a file that could not be written is tried again; each time twice as long."""

FORMER_SECONDS = 7 * 24 * 3600
"""Seconds after its last change that an earlier version's index stays: its program may still run."""

_numbers = count()

# Files of earlier versions, and of the index folder of 0.2.0.
_FORMER = (
    *(f"index-{number}.db*" for number in range(1, VERSION)),
    *("index-cache.db*", "index/*.segment", "index/manifest.db*", "index/*.lock"),
)
_SETTINGS = (
    "PRAGMA journal_mode = WAL",
    f"PRAGMA cache_size = -{MAX_CACHE_KIBIBYTES}",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA journal_size_limit = 16777216",
)

_Mark = tuple[int, int] | int | None  # device and inode of an open file; number of a database in memory


class DamagedIndexError(Exception):
    """The index contains invalid data."""


def reading_errors() -> tuple[type[Exception], ...]:
    """Return the errors that invalid data of the index can cause when they are read."""
    by_data = (DamagedIndexError, ValueError, LookupError, TypeError, ArithmeticError, zlib.error)
    return (*by_data, driver().DatabaseError)


class IndexDatabase:
    """The connections to one index; safe for several threads.

    :param folder: folder of the file, made at its first use; ``None`` for memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / NAME
        self._lock = threading.RLock()
        self._idle: list[Any] = []
        self._mine = threading.local()
        self._mark: _Mark = None
        self._memory = next(_numbers)
        self._avoided, self._pause = 0.0, AVOIDED_SECONDS
        self._closed = False
        self._doubted: float | None = None

    @property
    def path(self) -> Path | None:
        """The present file; ``None`` for memory."""
        return self._file if time.monotonic() >= self._avoided else None

    @property
    def is_reading(self) -> bool:
        """Whether this thread is in a transaction of :meth:`reading`."""
        return getattr(self._mine, "connection", None) is not None

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield a connection in a transaction, which reads one state. Transactions of a thread nest."""
        if self.is_reading:
            yield self._mine.connection
            return
        with self._connection() as connection:
            connection.execute("BEGIN")
            self._mine.connection, self._mine.read = connection, {}
            try:
                yield connection
            finally:
                self._mine.connection = None
                connection.execute("COMMIT")

    def rows(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement, within the thread's transaction if there is one."""
        with self.reading() as connection:
            rows: list[Any] = connection.execute(statement, parameters).fetchall()
            return rows

    def rows_once(self, statement: str, *parameters: object) -> list[Any]:
        """Return the rows of a statement that the thread's transaction reads several times."""
        read: dict[Any, list[Any]] = self._mine.read
        if (statement, parameters) not in read:
            read[statement, parameters] = self.rows(statement, *parameters)
        return read[statement, parameters]

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Yield a connection in a transaction that an error rolls back."""
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
        """Remove the index if it is still the open one, so that a new one is made."""
        with self._lock:
            mark, path = self._mark, self.path
            self._drop()
            if path is None:
                self._memory = next(_numbers)
            elif mark is not None and _mark_of(path) == mark:
                for suffix in ("", "-wal", "-shm"):
                    with suppress(OSError):
                        path.with_name(path.name + suffix).unlink()

    def is_damaged(self, error: Exception) -> bool:
        """Return whether an error while the index was read or written calls for a new one.

        Damage that SQLite does not see can cause any error. The first one counts as damage.

        :raises Exception: the error itself, if it occurs again soon, with a new index.
        """
        if isinstance(error, (DamagedIndexError, driver().DatabaseError)):
            # A text that is not UTF-8 is an operational error as well, like a lock that another process has.
            return not isinstance(error, driver().OperationalError) or "not decode" in str(error)
        now = time.monotonic()
        if self._doubted is not None and now < self._doubted + DOUBT_SECONDS:
            raise error
        self._doubted = now
        logger.warning("index: it cannot be read (%r); creating a new one", error)
        return True

    def leave_file(self, why: str) -> None:
        """Use an index in memory for some time, because the file cannot be written."""
        with self._lock:
            if self.path is not None:
                if not self._avoided:
                    logger.warning("index: kept in memory only: %s", why)
                self._avoided = time.monotonic() + self._pause
                self._pause *= 2

    def close(self) -> None:
        """Close the idle connections, and the others after their use."""
        self._closed = True
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        while self._idle:
            self._idle.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        connection, mark = self._take()
        usable = True
        try:
            yield connection
        except driver().DatabaseError as error:
            usable = isinstance(error, driver().OperationalError)
            raise
        finally:
            with self._lock:
                usable = usable and not (connection.in_transaction or self._closed)
                if usable and mark == self._mark and len(self._idle) < MAX_IDLE:
                    self._idle.append(connection)
                else:
                    connection.close()

    def _take(self) -> tuple[Any, _Mark]:
        with self._lock:
            path = self.path
            if self._idle and self._mark == self._mark_now(path):
                return self._idle.pop(), self._mark
            try:
                connection = self._open_memory() if path is None else self._open(path)
            except (driver().Error, OSError) as error:
                if path is None:
                    raise
                self.leave_file(str(getattr(error, "strerror", None) or error))
                return self._take()
            if (mark := self._mark_now(path)) != self._mark:
                self._drop()
                self._mark = mark
            return connection, mark

    def _mark_now(self, path: Path | None) -> _Mark:
        return self._memory if path is None else _mark_of(path)

    def _open_memory(self) -> Any:
        if driver().sqlite_version_info < (3, 36):  # its connections would not share a database
            problem = f"an index in memory needs SQLite 3.36, not {driver().sqlite_version}"
            raise NPLError(problem, hint="pip install pysqlite3")
        return _connect(f"file:/npl-index-{self._memory}?vfs=memdb")

    def _open(self, path: Path) -> Any:
        make_folder(path.parent, 0o700)
        try:
            connection = _connect(str(path))
        except driver().Error as error:
            if isinstance(error, driver().OperationalError) or not _is_ours(path):
                raise
            logger.warning("index: the file is damaged; creating a new one")
            self._mark = _mark_of(path)
            self.discard()
            connection = _connect(str(path))
        path.chmod(0o600)
        if self._mark is None:
            _remove_former(path.parent)
        return connection


def _remove_former(folder: Path) -> None:
    """Remove the index of earlier versions from a data folder unless a program has used it lately."""
    if (folder / "index").is_symlink():
        return
    last = time.time() - FORMER_SECONDS
    for file in (file for pattern in _FORMER for file in folder.glob(pattern)):
        with suppress(OSError):
            if file.stat().st_mtime < last:
                file.unlink()
    with suppress(OSError):
        (folder / "index").rmdir()


def _connect(path: str) -> Any:
    """Return a connection to an index with its tables.

    :param path: path of a file, or an address of SQLite.
    """
    connection = driver().connect(
        path,
        uri=path.startswith("file:"),
        isolation_level=None,
        timeout=MAX_BUSY_SECONDS,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        for setting in _SETTINGS:
            connection.execute(setting)
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: Any) -> None:
    """Make the tables of a new index."""
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
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, VERSION):
        raise driver().DatabaseError(f"its version is {version}")
    return version


def _mark_of(path: Path) -> _Mark:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_ours(path: Path) -> bool:
    """Return whether a file is empty or an SQLite database, and so not another program's."""
    with Folder.opened(path.parent) as folder:
        return folder.read_start(path.name, 16) in (b"", b"SQLite format 3\x00")
