"""The interface of an engine between the database module and SQLite or PostgreSQL.

Statements are the same for all engines: SQL text with ``:name`` parameters. An engine opens connections,
begins and ends transactions, translates errors of its driver, and creates and checks its databases.
"""

from __future__ import annotations

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from npl_mcp.stores.base.errors import DatabaseError

BUSY_MILLISECONDS = 10_000
"""Milliseconds of a call's wait for its turn in this process and for other programs, together."""

READERS = 4

SCARCE_SECONDS = 10
"""Seconds for which a process keeps no idle connections after its server ran out of them."""

PASSED_SECONDS = 0.5
"""Seconds for which a process reuses scarce connections; then another process may take one."""

_RETRY_SECONDS = 0.1

Row = dict[str, Any]


class BusyError(DatabaseError):
    """Other programs held the database for too long; the connections are sound."""


class FullError(BusyError):
    """The server accepts no further connection; the open ones are sound."""


class RefusedError(DatabaseError):
    """A constraint refused a row; the connections are sound."""


class MigratedError(DatabaseError):
    """The schema changed since the database was opened; no transaction was begun."""


class CallDeadline:
    """The deadline of a waiting call."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Restart the deadline after progress."""
        self._end = time.monotonic() + BUSY_MILLISECONDS / 1000

    @property
    def milliseconds(self) -> int:
        """Remaining milliseconds, at least 1."""
        return max(1, int((self._end - time.monotonic()) * 1000))

    @property
    def seconds(self) -> float:
        """Remaining seconds, at least 0."""
        return max(0.0, self._end - time.monotonic())


class Schema(NamedTuple):
    """The schema of a database.

    :param number: the number of its newest migration; empty if it is missing.
    :param oldest: the number of the oldest migration whose programs may still use the database.
    """

    number: str
    oldest: str


class StoreTable(NamedTuple):
    """A table of the stores.

    :param name: the table's name.
    :param columns: the names of its columns.
    :param key: the columns of its primary key.
    :param parents: the tables of its foreign keys.
    :param numbered: whether the database numbers its rows, by the key.
    """

    name: str
    columns: Sequence[str]
    key: Sequence[str]
    parents: Collection[str]
    numbered: bool


def page_of(table: str) -> int:
    """Return the number of rows of a page in a check; contents are long."""
    return 1 if table in ("content", "library_content", "library_index_part") else 500


def pages(read: Callable[[], AbstractContextManager[Any]], table: StoreTable) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of its key, a page at a time.

    :param read: a context with the transaction of a page.
    """
    select = f"SELECT {', '.join(table.columns)} FROM {table.name}"
    key, most = ", ".join(table.key), page_of(table.name)
    beyond, last = "", dict[str, Any]()
    while True:
        with read() as tx:
            page = tx.all(f"{select} {beyond} ORDER BY {key} LIMIT {most}", **last)
        if page:
            yield page
        if len(page) < most:
            return
        beyond = f"WHERE ({key}) > ({', '.join(f':last_{name}' for name in table.key)})"
        last = {f"last_{name}": page[-1][name] for name in table.key}


class TableRow(NamedTuple):
    """A row in a check.

    :param table: the row's table.
    :param place: the row's key or number, for messages.
    :param row: its columns; empty for an unreadable row.
    :param problem: the problem of an unreadable row.
    """

    table: str
    place: str
    row: Row
    problem: str | None = None


class Commits(ABC):
    """Watcher of commits of this process and others; used by one thread.

    :param engine: the engine that connects to the database.
    """

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.raw: Any = None

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Wait; return whether a commit happened, or may have happened, since the last call.

        :raises DatabaseError: the database cannot be used.
        """

    def close(self) -> None:
        """Close the connection; the next wait opens another one."""
        raw, self.raw = self.raw, None
        if raw is not None:
            raw.close()


class Reason(NamedTuple):
    """A reason of errors of a driver.

    :param pattern: a regular expression for the text of an error; see :meth:`Engine.described`.
    :param meaning: the meaning of the error.
    :param hint: the remedy.
    :param kind: the class of the error that is raised.
    """

    pattern: str
    meaning: str
    hint: str | None = None
    kind: Callable[..., DatabaseError] = DatabaseError


class Engine(ABC):
    """One database and its driver; construction opens nothing.

    ``raw`` is a connection of the driver: it has ``execute``, ``cursor`` and ``close``.
    """

    dialect: str
    """The name of this engine in its own SQL files; see :mod:`npl_mcp.stores.base.migrating`."""

    name: str = ""
    """Identifier of this database, for a part of a file's name."""

    idle_seconds: float | None = None
    """Seconds for which an unused connection stays open; ``None``: as long as the database."""

    full: tuple[float, FullError] | None = None
    """Time of the last failure to get a connection, by the monotonic clock, and its error."""

    @abstractmethod
    def driver(self) -> Any:
        """Return the driver's module."""

    @property
    def operational(self) -> type[Exception]:
        """The driver's class of errors with causes other than the statement."""
        return self.driver().OperationalError  # type: ignore[no-any-return]

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the database exists; nothing is created."""

    def is_needed(self) -> bool:
        """Return whether files exist that only the database describes."""
        return False

    def scarcity(self) -> FullError | None:
        """Return the server's recent error about its lack of free connections, if any."""
        at, error = self.full or (0.0, None)
        return error if time.monotonic() - at < SCARCE_SECONDS else None

    def mark(self) -> object:
        """Return the identity of the database's file; after a change, connections must be reopened."""
        return None

    def prepare(self) -> DatabaseError | None:
        """Create the place of the database; return the error for an empty database that would be a lost one.

        :raises DatabaseError: the database was lost, or its place cannot be created.
        """
        return None

    @abstractmethod
    def connect(self, deadline: CallDeadline, *, read_only: bool) -> Any:
        """Open a connection."""

    def is_alive(self, raw: Any) -> bool:  # noqa: ARG002
        """Return whether an idle connection can be handed out, as far as known without a query."""
        return True

    @abstractmethod
    def is_idle(self, raw: Any) -> bool:
        """Return whether a connection is sound and outside a transaction."""

    @abstractmethod
    def begin(self, raw: Any, deadline: CallDeadline, *, read_only: bool, schema: str | None) -> str:
        """Begin a transaction; one that may write is the only one of its kind.

        :param schema: the number of the schema when the database was opened; ``None`` for any.
        :returns: the beginning of the transaction, by the database's clock.
        :raises MigratedError: another program has changed the schema; not every engine looks.
        """

    @abstractmethod
    def commit(self, raw: Any, *, read_only: bool) -> None:
        """Commit a transaction durably: after the return, it survives a crash."""

    @abstractmethod
    def statement(self, sql: str, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return a statement and its parameters in the driver's form; ``IN :name`` takes a list."""

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn errors of the driver into :class:`DatabaseError`."""
        try:
            yield
        except self.driver().Error as error:
            raise self.as_database_error(error) from error

    reasons: Sequence[Reason]
    """The reasons of the driver's errors; the first that fits counts."""

    @abstractmethod
    def described(self, error: BaseException) -> str:
        """Return the text of a driver's error that :attr:`reasons` are compared with."""

    def as_database_error(self, error: BaseException) -> DatabaseError:
        """Translate an error of the driver, without paths and passwords."""
        text = self.described(error)
        for reason in self.reasons:
            if re.search(reason.pattern, text):
                return reason.kind(f"the database cannot be used: {reason.meaning}", hint=reason.hint)
        return DatabaseError(f"the database cannot be used: {type(error).__name__}")

    def undecodable(self, raw: Any, sql: str, values: object, error: BaseException) -> str | None:  # noqa: ARG002
        """Return the row of a query's result with invalid UTF-8, if the error is about that."""
        return None

    @abstractmethod
    def schema(self, raw: Any) -> Schema | None:
        """Return the schema of a database; ``None`` if it is empty.

        :raises DatabaseError: the database belongs to another program.
        """

    def check_content(self, raw: Any) -> None:  # noqa: B027
        """Check the structure of the database when it is opened.

        :raises DatabaseError: the database is damaged.
        """

    @abstractmethod
    def migration(self, deadline: CallDeadline) -> AbstractContextManager[Any]:
        """Begin a transaction for migrations, on a separate connection, while no other program writes.

        It is committed at the end, or rolled back on any error. A file is backed up before.
        """

    @abstractmethod
    def run_script(self, raw: Any, text: str) -> None:
        """Execute the statements of a migration, in the dialect of SQLite."""

    @abstractmethod
    def finish(self, raw: Any, oldest: str) -> None:
        """Record the owner of the tables, and check the references after a migration.

        :param oldest: the new :attr:`Schema.oldest`.
        :raises DatabaseError: the migration broke references.
        """

    @abstractmethod
    def problems(self, transaction: Any) -> list[str]:
        """Return the problems of structure and references."""

    @abstractmethod
    def tables(self, transaction: Any) -> list[StoreTable]:
        """Return all tables of the stores."""

    @abstractmethod
    def last_number(self, transaction: Any, table: StoreTable) -> int:
        """Return the highest number that a row of a numbered table has had."""

    @abstractmethod
    def set_last_number(self, transaction: Any, table: StoreTable, number: int) -> None:
        """Set the highest number of a numbered table; the next row gets the number after it."""

    @abstractmethod
    def rows(self, read: Callable[[], AbstractContextManager[Any]]) -> Iterator[TableRow]:
        """Return every row of every table.

        :param read: a context with a :class:`~npl_mcp.stores.base.database.Transaction`.
        """

    @abstractmethod
    def commits(self) -> Commits:
        """Return a watcher of commits."""

    def copy(self, target: Path) -> bool:  # noqa: ARG002
        """Copy the database to a file of SQLite while it is in use.

        :param target: the copy's path, which must not exist.
        :returns: whether there is a copy: only some engines support it.
        """
        return False


class Connections:
    """The connections of one kind to one database, each for one caller at a time.

    :param engine: the engine that opens them.
    :param most: the maximum number of open connections.
    :param read_only: whether the connections are read-only.

    ``schema`` is the parameter of :meth:`Engine.begin`; ``others`` are the connections of the other kind.
    """

    def __init__(self, engine: Engine, most: int, *, read_only: bool) -> None:
        self._engine, self._read_only = engine, read_only
        self.schema: str | None = None
        self.others: Connections | None = None
        self._turns = threading.Semaphore(most)
        self._lock = threading.Condition()
        self._idle: list[Any] = []
        self._waiting = 0
        self._trims = False
        self._closed = False

    @contextmanager
    def transaction(self, deadline: CallDeadline) -> Iterator[tuple[Any, str]]:
        """Begin a transaction; it is committed at the end, or rolled back on any error.

        :returns: the driver's connection, and the beginning of the transaction.
        :raises BusyError: the call got no turn, or no lock, before the deadline.
        """
        engine = self._engine
        with self._connection(deadline) as raw:
            try:
                yield raw, engine.begin(raw, deadline, read_only=self._read_only, schema=self.schema)
                engine.commit(raw, read_only=self._read_only)
            except BaseException:
                # Some errors, such as a full disk, have already rolled it back.
                if not engine.is_idle(raw):
                    with suppress(engine.operational):
                        raw.execute("ROLLBACK")
                raise

    def close(self, *, keeps_open: bool = False) -> None:
        """Close the connections; connections in use are closed after their callers' transactions.

        :param keeps_open: whether to close only the currently idle ones.
        """
        with self._lock:
            self._closed |= not keeps_open
            idle, self._idle = self._idle, []
        for raw, _ in idle:
            raw.close()

    @contextmanager
    def _connection(self, deadline: CallDeadline) -> Iterator[Any]:
        if not self._turns.acquire(timeout=deadline.seconds):
            busy = BusyError("the database cannot be used: too many calls wait for it; try again")
            raise self._engine.scarcity() or busy
        try:
            raw, since = self._idle_one() or self._opened(deadline)
            try:
                yield raw
            finally:
                self._put_back(raw, since)
        finally:
            self._turns.release()

    def _idle_one(self) -> tuple[Any, float] | None:
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None or self._engine.is_alive(found[0]):
                return found
            found[0].close()

    def _opened(self, deadline: CallDeadline) -> tuple[Any, float]:
        """Open a connection; wait for a free connection of the server, until the deadline.

        :returns: the connection, and the time of its opening, by the monotonic clock.
        """
        while True:
            try:
                return self._engine.connect(deadline, read_only=self._read_only), time.monotonic()
            except FullError as error:
                self._engine.full = time.monotonic(), error
                if self.others is not None:
                    self.others.close(keeps_open=True)
                if not deadline.seconds:
                    raise
                with self._lock:
                    self._waiting += 1
                    self._lock.wait(min(_RETRY_SECONDS, deadline.seconds))
                    self._waiting -= 1
                if (passed := self._idle_one()) is not None:
                    return passed

    def _put_back(self, raw: Any, since: float) -> None:
        if self._engine.is_idle(raw):
            with self._lock:
                # An idle connection would be missed by other processes that share the server.
                passes = self._waiting and time.monotonic() - since < PASSED_SECONDS
                if not self._closed and (passes or self._engine.scarcity() is None):
                    self._idle.append((raw, since))
                    self._used = time.monotonic()
                    self._lock.notify()
                    self._trim_later()
                    return
        raw.close()

    def _trim_later(self) -> None:
        """Close the unused connections after a while: another process may wait for them."""
        if self._engine.idle_seconds is not None and not self._trims:
            self._trims = True
            timer = threading.Timer(self._engine.idle_seconds, self._trim)
            timer.daemon = True
            timer.start()

    def _trim(self) -> None:
        with self._lock:
            self._trims = False
            # The last used connection is at the end: a busy process keeps one, and closes the others.
            keeps = time.monotonic() - self._used < (self._engine.idle_seconds or 0)
            idle, self._idle = self._idle, self._idle[-1:] if keeps else []
            for raw, _ in idle[: len(idle) - len(self._idle)]:
                raw.close()
            if self._idle:
                self._trim_later()
