"""The interface of an engine: everything that the database module needs from SQLite or PostgreSQL.

Statements are the same for all engines: SQL text with ``:name`` parameters. An engine opens connections,
begins and ends transactions, translates errors of its driver, and creates and checks its databases.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

from npl_mcp.stores.base.errors import DatabaseError

BUSY_MILLISECONDS = 10_000
"""Milliseconds that a call waits, for its turn in this process and for other programs together."""

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


def page_of(table: str) -> int:
    """Return the number of rows that a check reads at a time; contents are long."""
    return 1 if table in _LONG else 500


_LONG = frozenset({"content", "library_content", "library_index_part"})


class RefusedError(DatabaseError):
    """A constraint refused a row; the connections are sound."""


class MigratedError(DatabaseError):
    """The schema changed since the database was opened; no transaction was begun."""


class Deadline:
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

    :param number: of its newest migration; empty if it should have one and has none.
    :param oldest: the oldest newest migration that a program may know and still use the database.
    """

    number: str
    oldest: str


class Table(NamedTuple):
    """A table of the stores.

    :param name: its name.
    :param columns: their names.
    :param key: columns of its primary key.
    :param parents: tables that its rows refer to.
    :param numbered: whether the database numbers its rows, by the key.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    parents: frozenset[str]
    numbered: bool


class TableRow(NamedTuple):
    """A row as a check reads it.

    :param table: where it is.
    :param place: which it is.
    :param row: its columns; empty if it cannot be read.
    :param problem: what is wrong if it cannot be read.
    """

    table: str
    place: str
    row: Row
    problem: str | None = None


class Commits(ABC):
    """Watcher of commits of this process and others; used by one thread."""

    @abstractmethod
    def wait(self, seconds: float) -> bool:
        """Wait; return whether there was, or may have been, a commit since the last call.

        :raises DatabaseError: the database cannot be used.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


class Engine(ABC):
    """One database and its driver; construction opens nothing.

    ``raw`` is a connection of the driver: it has ``execute``, ``cursor`` and ``close``.
    """

    dialect: str
    """The name in files of SQL that are for this engine alone; see :mod:`npl_mcp.stores.base.migrating`."""

    idle_seconds: float | None = None
    """Seconds for which an unused connection stays open; ``None``: as long as the database."""

    full: tuple[float, FullError] | None = None
    """The last time when the server had no connection left, by the monotonic clock, and its error."""

    @property
    def name(self) -> str:
        """Identifier of this database, as a part of a file's name."""
        return ""

    @abstractmethod
    def driver(self) -> Any:
        """Return the driver's module."""

    @property
    def operational(self) -> type[Exception]:
        """The driver's class of errors that are not caused by the statement."""
        return self.driver().OperationalError  # type: ignore[no-any-return]

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is a database, without making one."""

    def is_lost(self) -> bool:
        """Return whether the database is missing though something is there that only it describes."""
        return False

    def scarcity(self) -> FullError | None:
        """Return what the server said when it had no connection left, if that was a short time ago."""
        at, error = self.full or (0.0, None)
        return error if time.monotonic() - at < SCARCE_SECONDS else None

    def mark(self) -> object:
        """Return what connections belong to; when it is another, they must be opened again."""
        return None

    def prepare(self) -> bool:
        """Make what the database lies in; return whether an empty one would mean that it was lost.

        :raises DatabaseError: it was lost, or cannot be made.
        """
        return False

    def lost(self, state: str) -> DatabaseError:
        """Return the error for a database that was lost."""
        return DatabaseError(f"the database is {state}")

    @abstractmethod
    def connect(self, deadline: Deadline, *, read_only: bool) -> Any:
        """Open a connection."""

    def is_alive(self, raw: Any) -> bool:  # noqa: ARG002
        """Return whether an idle connection can be handed out, as far as that is known without asking."""
        return True

    @abstractmethod
    def is_idle(self, raw: Any) -> bool:
        """Return whether a connection is sound and in no transaction."""

    def waiting(self, raw: Any, deadline: Deadline) -> AbstractContextManager[None]:  # noqa: ARG002
        """Let a call wait for other programs only as long as it has left."""
        return nullcontext()

    @abstractmethod
    def begin(self, raw: Any, deadline: Deadline, *, read_only: bool, schema: str | None) -> str:
        """Begin a transaction; one that may write is the only one of its kind.

        :param schema: number of the schema that the database had when it was opened; ``None`` for any.
        :returns: when it began, by the database's clock.
        :raises MigratedError: it has another one, as far as an engine looks: others may migrate it.
        """

    @abstractmethod
    def commit(self, raw: Any, *, read_only: bool) -> None:
        """Commit a transaction; when this returns, it survives whatever comes."""

    @abstractmethod
    def statement(self, sql: str, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return a statement and its parameters as the driver takes them; ``IN :name`` takes a list."""

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn errors of the driver into :class:`DatabaseError`."""
        try:
            yield
        except self.driver().Error as error:
            raise self.as_database_error(error) from error

    @abstractmethod
    def as_database_error(self, error: BaseException) -> DatabaseError:
        """Return the error for one of the driver, in words that show no path and no password."""

    def undecodable(self, raw: Any, sql: str, values: object, error: BaseException) -> str | None:  # noqa: ARG002
        """Return which row of a query's result holds a text that is none, where an error is about that."""
        return None

    @abstractmethod
    def schema(self, raw: Any) -> Schema | None:
        """Return which tables a database has; ``None`` if it is empty.

        :raises DatabaseError: it is another program's.
        """

    def check_content(self, raw: Any) -> None:  # noqa: B027
        """Check the structure of the database when it is opened.

        :raises DatabaseError: it is damaged.
        """

    def before_migration(self, found: Schema) -> None:  # noqa: B027
        """Keep what a migration might spoil."""

    @abstractmethod
    def migration(self, deadline: Deadline) -> AbstractContextManager[Any]:
        """Begin a transaction for migrations, on a connection of its own, while no other program writes.

        It is committed at the end, or rolled back on any error.
        """

    @abstractmethod
    def run_script(self, raw: Any, text: str) -> None:
        """Execute the statements of a migration, which are written in the words of SQLite."""

    @abstractmethod
    def finish(self, raw: Any, oldest: str) -> None:
        """Say whose tables these are, and check what a migration may have broken.

        :param oldest: becomes :attr:`Schema.oldest`.
        :raises DatabaseError: it broke references.
        """

    def after_migration(self) -> None:  # noqa: B027
        """Put right what a migration made."""

    @abstractmethod
    def problems(self, transaction: Any) -> list[str]:
        """Return what is wrong with structure and references."""

    @abstractmethod
    def tables(self, transaction: Any) -> list[Table]:
        """Return all tables of the stores."""

    @abstractmethod
    def last_number(self, transaction: Any, table: Table) -> int:
        """Return the last number that a row of a numbered table got."""

    @abstractmethod
    def set_last_number(self, transaction: Any, table: Table, number: int) -> None:
        """Let the next row of a numbered table get the number after another."""

    @abstractmethod
    def rows(self, read: Callable[[], AbstractContextManager[Any]]) -> Iterator[TableRow]:
        """Return every row of every table.

        :param read: begins a transaction of :class:`~npl_mcp.stores.base.database.Transaction`.
        """

    @abstractmethod
    def commits(self) -> Commits:
        """Return what tells that somebody committed."""

    def copy(self, target: Path) -> bool:  # noqa: ARG002
        """Copy the database to a file of SQLite while it is used.

        :param target: must not exist.
        :returns: whether the engine can do that, and did.
        """
        return False


class Connections:
    """The connections of one kind to one database, handed out to one caller each.

    :param engine: opens them.
    :param most: connections that are open at once.
    :param read_only: they can change nothing.

    ``schema`` is what :meth:`Engine.begin` takes; ``others`` are the connections of the other kind.
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
    def transaction(self, deadline: Deadline) -> Iterator[tuple[Any, str]]:
        """Begin a transaction; it is committed at the end, or rolled back on any error.

        :returns: the driver's connection, and when it began.
        :raises BusyError: there was no turn, or no lock, before the deadline.
        """
        engine = self._engine
        with self._connection(deadline) as raw, engine.waiting(raw, deadline):
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
        """Close the connections; those in use are closed when their callers are done.

        :param keeps_open: close those alone that are idle now.
        """
        with self._lock:
            self._closed |= not keeps_open
            idle, self._idle = self._idle, []
        for raw, _ in idle:
            raw.close()

    @contextmanager
    def _connection(self, deadline: Deadline) -> Iterator[Any]:
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

    def _opened(self, deadline: Deadline) -> tuple[Any, float]:
        """Open a connection; where the server has none left, wait until it has, or until the deadline.

        :returns: the connection, and when it was opened, by the monotonic clock.
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
            # The connection used last is at the end: a busy process keeps one, and the others go.
            keeps = time.monotonic() - self._used < (self._engine.idle_seconds or 0)
            idle, self._idle = self._idle, self._idle[-1:] if keeps else []
            for raw, _ in idle[: len(idle) - len(self._idle)]:
                raw.close()
            if self._idle:
                self._trim_later()
