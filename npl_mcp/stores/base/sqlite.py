"""What is particular to SQLite: opening, beginning transactions, checking, copying.

WAL so that readers never wait for the writer; ``synchronous=FULL`` so that what was acknowledged survives a
loss of power; ``BEGIN IMMEDIATE`` for every write, because a transaction that reads first and then writes is
refused at once, whatever the busy timeout, when somebody else wrote in between.
"""

from __future__ import annotations

import importlib.util
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from npl_mcp.stores.base.errors import DatabaseError

APPLICATION_ID = 0x4E504C44  # "NPLD"
BUSY_MILLISECONDS = 10_000
"""How long a call waits: for its turn in this process and for other programs, together."""

READERS = 4
JOURNAL_BYTES = 16 * 1024 * 1024
CACHE_KIBIBYTES = 16 * 1024
STATEMENTS = 256
"""Statements each connection keeps compiled; the stores have fewer."""

# Below this a call has not waited, and its connection's own timeout serves.
_NO_WAIT_MILLISECONDS = 50


class BusyError(DatabaseError):
    """Others held the database for too long; the connections are sound."""


class RefusedError(DatabaseError):
    """A constraint refused a row; the connections are sound."""


@cache
def driver() -> Any:
    """Return the SQLite driver: that of the package ``pysqlite3`` if it is installed, else that of Python.

    Versions before 3.51.3 can damage a database in WAL mode when two connections write and checkpoint in
    the same instant (https://sqlite.org/wal.html#walresetbug).
    """
    # Loaded when a store is first used, so that calls without stores need not wait for it.
    name = "pysqlite3" if importlib.util.find_spec("pysqlite3") else "sqlite3"
    return importlib.import_module(f"{name}.dbapi2")


def remove(path: Path) -> None:
    """Remove a database and what SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class Deadline:
    """When a call that waits gives up."""

    def __init__(self) -> None:
        self._end = time.monotonic() + BUSY_MILLISECONDS / 1000

    @property
    def milliseconds(self) -> int:
        """What is left, at least 1."""
        return max(1, int((self._end - time.monotonic()) * 1000))

    @property
    def seconds(self) -> float:
        """What is left, at least 0."""
        return max(0.0, self._end - time.monotonic())


class Connections:
    """The connections of one kind to one database file, handed out to one caller each.

    :param path: the database file.
    :param most: connections that are open at once.
    :param read_only: they can change nothing.
    """

    def __init__(self, path: Path, most: int, *, read_only: bool) -> None:
        self._path, self._read_only = path, read_only
        self._begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"
        self._turns = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._closed = False

    @contextmanager
    def transaction(self, deadline: Deadline) -> Iterator[Any]:
        """Begin a transaction; it is committed at the end, or rolled back on any error.

        :returns: the driver's connection.
        :raises BusyError: there was no turn, or no lock, before the deadline.
        """
        with self._connection(deadline) as raw:
            raw.execute(self._begin)
            try:
                yield raw
                raw.execute("COMMIT")
            except BaseException:
                # Some errors, such as a full disk, have already rolled it back.
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connections; those in use are closed when their callers are done."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for raw in idle:
            raw.close()

    @contextmanager
    def _connection(self, deadline: Deadline) -> Iterator[Any]:
        if not self._turns.acquire(timeout=deadline.seconds):
            raise BusyError("the database cannot be used: too many calls wait for it; try again")
        try:
            with self._lock:
                raw = self._idle.pop() if self._idle else None
            raw = raw or connect(self._path, deadline, read_only=self._read_only)
            try:
                with _waiting(raw, deadline):
                    yield raw
            except BaseException:
                if raw.in_transaction:
                    raw.close()
                    raw = None
                raise
            finally:
                self._put_back(raw)
        finally:
            self._turns.release()

    def _put_back(self, raw: Any) -> None:
        with self._lock:
            if raw is not None and not self._closed:
                self._idle.append(raw)
                return
        if raw is not None:
            raw.close()


@contextmanager
def _waiting(raw: Any, deadline: Deadline) -> Iterator[None]:
    """Let a call that has waited for its turn wait for other programs only as long as it has left."""
    left = deadline.milliseconds
    if left > BUSY_MILLISECONDS - _NO_WAIT_MILLISECONDS:
        yield
        return
    raw.execute(f"PRAGMA busy_timeout = {left}")
    try:
        yield
    finally:
        with suppress(driver().Error):
            raw.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")


def connect(path: Path, deadline: Deadline, *, read_only: bool) -> Any:
    """Open a connection; transactions begin where the program says so, not where the driver guesses.

    :raises DatabaseError: the file is another program's.
    """
    raw = driver().connect(
        str(path),
        timeout=deadline.seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS,
    )
    try:
        _check_owner(raw)
        _use_log(raw, deadline)
        for pragma in _pragmas(read_only):
            raw.execute(f"PRAGMA {pragma}")
    except BaseException:
        raw.close()
        raise
    return raw


def _check_owner(raw: Any) -> None:
    # Asked through SQLite. If the file were opened and closed here, the system would drop all locks that this
    # process has on it (POSIX), and another process could remove the log that a connection still writes to.
    owner = raw.execute("PRAGMA application_id").fetchone()[0]
    # 0: a crash before the first commit leaves a database that does not say whose it is.
    if owner not in (0, APPLICATION_ID):
        raise DatabaseError(f"the database cannot be used: {_FOREIGN}")


def _use_log(raw: Any, deadline: Deadline) -> None:
    # If two processes switch a new database to WAL at once, SQLite refuses one of them without waiting.
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
            return
        except driver().OperationalError as error:
            if "locked" not in str(error) or not deadline.seconds:
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


class Commits:
    """Tells that somebody committed, in this process or another; used by one thread.

    :param path: the database file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._raw: Any = None
        self._file: tuple[int, int] | None = None
        self._version: int | None = None

    def wait(self, seconds: float) -> bool:
        """Wait; return whether something was committed since the last call, or may have been.

        :raises DatabaseError: the database cannot be used.
        """
        time.sleep(seconds)
        try:
            found = self._path.stat()
            file = (found.st_dev, found.st_ino)
        except OSError:
            file = None
        with translated():
            if file != self._file:
                # The connection would go on looking at a file that was replaced.
                self.close()
            if self._raw is None and file is not None:
                self._raw, self._file = connect(self._path, Deadline(), read_only=True), file
            before = self._version
            if self._raw is not None:
                self._version = self._raw.execute("PRAGMA data_version").fetchone()[0]
        return self._version != before

    def close(self) -> None:
        """Close its connection."""
        raw, self._raw = self._raw, None
        self._file = self._version = None
        if raw is not None:
            raw.close()


def check_content(raw: Any) -> None:
    """Check the structure of the database.

    :raises DatabaseError: it is damaged.
    """
    found = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise DatabaseError(f"the database is damaged: {found}", hint="restore a backup of the data folder")


def copy(path: Path, target: Path) -> None:
    """Copy a database while others use it, by SQLite's backup.

    :param target: the copy; must not exist.
    """
    module = driver()
    with closing(module.connect(str(path))) as source, closing(module.connect(str(target))) as copied:
        source.backup(copied)


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the driver into :class:`DatabaseError`."""
    try:
        yield
    except driver().Error as error:
        raise as_database_error(error) from error


def as_database_error(error: BaseException) -> DatabaseError:
    """Return the error for one of the driver, in words that show no path of this machine."""
    text = str(error).lower()
    for part, meaning, kind in _REASONS:
        if part in text:
            return kind(f"the database cannot be used: {meaning}")
    return DatabaseError(f"the database cannot be used: {type(error).__name__}")


def undecodable(raw: Any, sql: str, values: object, error: BaseException) -> str | None:
    """Return which row of a query's result holds a text that is none, where an error is about that.

    :param sql: the query; only those that change nothing are asked again.
    """
    found = _COLUMN.search(str(error))
    table = _TABLE.search(sql)
    if found is None or table is None or not sql.lstrip().upper().startswith(("SELECT", "WITH")):
        return None
    before, raw.text_factory = raw.text_factory, bytes
    try:
        cursor = raw.execute(sql, values)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            if any(isinstance(value, bytes) and not _is_text(value) for value in row):
                shown = [
                    f"{name} {value}"
                    for name, value in zip(names, row, strict=True)
                    if isinstance(value, int)
                ]
                return f"a row of {table[1]} ({', '.join(shown[:2])}), column {found[1]}"
    finally:
        raw.text_factory = before
    return None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_COLUMN = re.compile(r"decode to UTF-8 column '(\w{1,64})'")
_TABLE = re.compile(r"\bFROM\s+(\w+)")

_FOREIGN = "its file is not a database of npl; move it away, or choose another data folder"

_REASONS: tuple[tuple[str, str, Callable[[str], DatabaseError]], ...] = (
    ("disk is full", "the disk is full", DatabaseError),
    ("readonly", "the data folder is read-only", DatabaseError),
    ("read-only", "the data folder is read-only", DatabaseError),
    (
        "unable to open",
        "its file cannot be opened or made; is the data folder there and writable?",
        DatabaseError,
    ),
    ("locked", "it was locked by another program for too long; try again", BusyError),
    ("malformed", "it is damaged; restore a backup", DatabaseError),
    ("could not decode", "a text in it is damaged; 'npl-mcp check' names the row", DatabaseError),
    ("not a database", _FOREIGN, DatabaseError),
    ("disk i/o", "the disk reports an error, or its files were removed", DatabaseError),
    ("constraint failed", "it refused a row that contradicts others", RefusedError),
    ("cannot store", "it refused a row that contradicts its columns", RefusedError),
)
