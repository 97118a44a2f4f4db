"""The interface of an engine between the database module and SQLite or PostgreSQL.

Statements are the same for all engines: SQL text with ``:name`` parameters. An engine opens connections,
begins and ends transactions, translates errors of its driver, and creates and checks its databases.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from npl_mcp.stores.base.errors import BusyError, DatabaseError

BUSY_MILLISECONDS = 10_000
"""Maximum milliseconds that a call waits for its turn, for a connection and for locks, together."""

Row = dict[str, Any]


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


def pages(read: Callable[[], AbstractContextManager[Any]], table: StoreTable) -> Iterator[list[Row]]:
    """Yield the rows of a table in the order of its key, a page at a time.

    :param read: a context with the transaction of a page.
    """
    select = f"SELECT {', '.join(table.columns)} FROM {table.name}"
    key, most = ", ".join(table.key), 1 if "data" in table.columns and "digest" in table.columns else 500
    where, last = "", dict[str, Any]()
    while True:
        with read() as tx:
            page = tx.all(f"{select} {where} ORDER BY {key} LIMIT {most}", **last)
        if page:
            yield page
        if len(page) < most:
            return
        where = f"WHERE ({key}) > ({', '.join(f':last_{name}' for name in table.key)})"
        last = {f"last_{name}": page[-1][name] for name in table.key}


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


class Pool:
    """Connections of one kind to one database, each for one caller at a time; they stay open between
    transactions.

    :param most: the maximum number of connections.
    """

    def __init__(self, engine: Engine, most: int, *, read_only: bool) -> None:
        self._engine, self._read_only = engine, read_only
        self._turns, self._first = threading.Semaphore(most), threading.Lock()
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Any]] = []
        self._timer: threading.Timer | None = None
        self._closed = False

    def take(self, deadline: CallDeadline) -> Any:
        """Return a connection outside a transaction.

        :raises BusyError: no connection is free before the deadline.
        """
        if not self._has_turn(deadline):
            raise BusyError("the database cannot be used: too many calls wait for it; try again")
        try:
            with suppress(IndexError):
                while True:
                    raw = self._idle.pop()[1]
                    if self._engine.is_alive(raw):
                        return raw
                    raw.close()
            return self._engine.connect(deadline, read_only=self._read_only)
        except BaseException:
            self._turns.release()
            raise

    def _has_turn(self, deadline: CallDeadline) -> bool:
        """Wait for a turn behind the callers that wait already: a semaphore alone lets new ones overtake."""
        if not self._first.acquire(timeout=deadline.seconds):
            return False
        try:
            return self._turns.acquire(timeout=deadline.seconds)
        finally:
            self._first.release()

    def put_back(self, raw: Any) -> None:
        """Take back a connection; one that is not sound is closed."""
        if self._engine.is_idle(raw):
            self._idle.append((time.monotonic(), raw))
        else:
            raw.close()
        self._turns.release()
        if self._timer is None or self._closed:
            self._close_unused()

    def close(self) -> None:
        """Close the connections; one in use is closed when it comes back."""
        self._closed = True
        self._close_unused()

    def _close_unused(self) -> None:
        """Close the connections that were unused for long, now and later, or all of a closed pool."""
        with self._lock:
            longest = 0.0 if self._closed else self._engine.unused_seconds
            with suppress(IndexError):  # taken meanwhile
                while self._idle[0][0] <= time.monotonic() - longest:
                    self._idle.pop(0)[1].close()
            self._timer = None
            if self._idle and longest < math.inf:
                self._timer = threading.Timer(longest, self._close_unused)
                self._timer.daemon = True
                self._timer.start()


class Engine(Protocol):
    """One database and its driver; construction opens nothing.

    ``raw`` is a connection of the driver: it has ``execute``, ``cursor`` and ``close``.
    """

    dialect: str
    """The name of this engine in its own SQL files; see :mod:`npl_mcp.stores.base.migrating`."""

    name: str = ""
    """Identifier of this database, for a part of a file's name."""

    unused_seconds: float = math.inf
    """Seconds after which an unused connection is closed, since another process may need it."""

    state: str
    """The query whose result differs after each commit."""

    def driver(self) -> Any:
        """Return the driver's module."""

    def exists(self) -> bool:
        """Return whether the database exists; nothing is created."""
        return True

    def is_needed(self) -> bool:
        """Return whether files exist that only the database describes."""
        return False

    def mark(self) -> object:
        """Return the identity of the database's file; after a change, connections must be reopened."""
        return None

    def prepare(self) -> DatabaseError | None:
        """Create the place of the database; return the error to raise if the database turns out to be empty.

        :raises DatabaseError: the database was lost, or its place cannot be created.
        """
        return None

    def connect(self, deadline: CallDeadline, *, read_only: bool) -> Any:
        """Open a connection."""

    def is_alive(self, raw: Any) -> bool:  # noqa: ARG002
        """Return whether an idle connection can be used again."""
        return True

    def is_idle(self, raw: Any) -> bool:
        """Return whether a connection is sound and outside a transaction."""

    def begin(self, raw: Any, deadline: CallDeadline, *, read_only: bool, schema: str | None) -> str:
        """Begin a transaction; one that may write is the only one of its kind.

        :param schema: the number of the schema when the database was opened; ``None`` for any.
        :returns: the beginning of the transaction, by the database's clock.
        :raises MigratedError: another program has changed the schema; not every engine looks.
        """

    def commit(self, raw: Any, *, read_only: bool) -> None:
        """Commit a transaction durably: after the return, it survives a crash."""

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

    def described(self, error: BaseException) -> str:
        """Return the text of a driver's error that :attr:`reasons` are compared with."""

    def as_database_error(self, error: BaseException) -> DatabaseError:
        """Translate an error of the driver, without paths and passwords."""
        text = self.described(error)
        for reason in self.reasons:
            if re.search(reason.pattern, text):
                return reason.kind(f"the database cannot be used: {reason.meaning}", hint=reason.hint)
        return DatabaseError(f"the database cannot be used: {type(error).__name__}")

    def schema(self, raw: Any) -> Schema | None:
        """Return the schema of a database; ``None`` if it is empty.

        :raises DatabaseError: the database belongs to another program.
        """

    def check_content(self, raw: Any) -> None:  # noqa: ARG002
        """Check the structure of the database when it is opened.

        :raises DatabaseError: the database is damaged.
        """
        return None  # noqa: RET501 - otherwise the function would be abstract

    def migration(self, deadline: CallDeadline) -> AbstractContextManager[Any]:
        """Begin a transaction for migrations, on a separate connection, while no other program writes.

        It is committed at the end, or rolled back on any error. A file is backed up before.
        """

    def run_script(self, raw: Any, text: str) -> None:
        """Execute the statements of a migration, in the dialect of SQLite."""

    def finish(self, raw: Any, oldest: str) -> None:
        """Record the owner of the tables, and check the references after a migration.

        :param oldest: the new :attr:`Schema.oldest`.
        :raises DatabaseError: the migration broke references.
        """

    def problems(self, transaction: Any) -> list[str]:  # noqa: ARG002
        """Return the problems of structure and references that the database itself does not prevent."""
        return []

    def tables(self, transaction: Any) -> list[StoreTable]:
        """Return all tables of the stores."""

    def go_on_numbering(self, transaction: Any, table: StoreTable) -> None:
        """Number the next row of a table after the highest number that a copied row has."""

    def rows(self, read: Callable[[], AbstractContextManager[Any]]) -> Iterator[tuple[str, str, Row]]:
        """Yield every row of every table, with the name of the table and the row's key.

        :param read: a context with a :class:`~npl_mcp.stores.base.database.Transaction`.
        """
        with read() as tx:
            tables = self.tables(tx)
        for table in tables:
            for page in pages(read, table):
                for row in page:
                    yield table.name, ", ".join(f"{name} {row[name]}" for name in table.key), row

    def copy(self, target: Path) -> bool:  # noqa: ARG002
        """Copy the database to a file of SQLite while it is in use.

        :param target: the copy's path, which must not exist.
        :returns: whether there is a copy: only some engines support it.
        """
        return False


def watch_commits(engine: Engine) -> Generator[bool]:
    """Yield whether a commit, of any process, happened or may have happened since the last look.

    Close it, because it has a connection.

    :raises DatabaseError: the database cannot be used; a new look needs a new generator.
    """
    raw: Any = None
    mark: object = None
    state: object = None
    try:
        while True:
            before = state
            with engine.translated():
                if raw is not None and engine.mark() != mark:
                    raw.close()  # the connection would continue to watch a replaced file
                    raw = None
                if raw is None and engine.exists():
                    mark = engine.mark()
                    raw = engine.connect(CallDeadline(), read_only=True)
                state = raw and raw.execute(engine.state).fetchone()
            yield state != before
    finally:
        if raw is not None:
            raw.close()
