"""The PostgreSQL engine: connections, a single writer, errors, checks.

Each transaction that may write holds an advisory lock from its beginning to its end, like SQLite's single
writer. So no other write can come between a store's reads and its writes, and ids grow in the order of their
visibility. Readers see one snapshot and never wait for writers. A rollback may skip an id.

A pooler such as PgBouncer may give each transaction another connection to the server. So each transaction
repeats its settings. With a pooler, statements are not prepared.
"""

from __future__ import annotations

import logging
import math
import re
import selectors
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

import psycopg

from npl_mcp.stores.base import engine
from npl_mcp.stores.base.engine import Reason
from npl_mcp.stores.base.errors import BusyError, DatabaseError, FullError, MigratedError, RefusedError

WRITERS = 0x4E504C44  # "NPLD"
"""Key of the writers' advisory lock; its scope is one database."""

OLDEST_SERVER = 14
IDLE_SECONDS = 5
"""Maximum idle seconds of a transaction: a process that hangs in one holds up all writers, which wait twice
as long."""

SILENCE_SECONDS = 6
"""Maximum seconds of the server's answer within a transaction; no statement of a store takes a second. It
exceeds the maximum idle time of a transaction. So after a commit without an answer, a caller can look up the
outcome: by then the server has committed or given up. The beginning of a transaction, which waits for its
turn, may take as long as the call."""

ANSWER_SECONDS = 1
"""Seconds for the server's answer that a turn did not come."""

LONG_SECONDS = 60
"""Maximum seconds of a statement that reads or changes all rows, in a check or a migration."""

# A connection to a silently vanished server is given up after eleven seconds.
_NETWORK: Mapping[str, Any] = {
    "application_name": "npl",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


_RETRY_SECONDS = 0.1

# The driver also raises the errors of its warnings, which would reveal user and database.
logging.getLogger("psycopg").setLevel(logging.ERROR)


class Connection(psycopg.Connection[Any]):
    """Connection that gives up if the server is silent for too long."""

    patience: float | None = None
    """Maximum seconds of silence; ``None`` for :data:`SILENCE_SECONDS`."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for an answer of the server."""
        if timeout is None:
            timeout = SILENCE_SECONDS if self.patience is None else self.patience
        return super().wait(gen, interval, timeout)


_OWN = "give npl a database of its own"
_AGAIN = "try again; if this persists, check that the server of NPL_DATABASE_URL is running"
_LOG = "check its log for the reason, then try again"
_FOREIGN = "its tables belong to another program"

_MORE = "try again, or raise its max_connections or CONNECTION LIMIT: an npl server takes up to six"
_FULL = "the server has no connection left"

# By the SQLSTATE, or by the text of an error without one.
_REASONS = (
    # Without a SQLSTATE: the connection was refused or lost.
    Reason("clients already|connection slots|(too many|no more) connections", _FULL, _MORE, FullError),
    Reason("pg_hba", "the server refuses connections from here"),
    Reason(
        "^state (55P03|40|57014)", "it was locked by another program for too long; try again", kind=BusyError
    ),
    Reason("^state 53100", "the server's disk is full", "make room there, then try again"),
    Reason("^state 53300", _FULL, _MORE, FullError),
    Reason("^state 53", "the server has too little room or memory", _AGAIN),
    Reason("^state 57P", "the server is starting or ending", _AGAIN),
    Reason("^state 08", "the connection was lost", _AGAIN),
    Reason("^state 25P03", "the call was idle for too long", "try again"),
    Reason("^state 25006", "it is read-only"),
    Reason("^state 28|password|authentication|role", "the server refuses the user of NPL_DATABASE_URL"),
    Reason("^state 3D|does not exist", "the server has no database of that name"),
    Reason("^state 42501", "the user of NPL_DATABASE_URL may not do that"),
    Reason("^state 42P07", _FOREIGN, _OWN),
    Reason("^state (42P01|XX00[12])", "it is damaged; stop all servers, then restore a backup"),
    # Includes disk errors other than a full disk, such as an exhausted quota.
    Reason("^state (XX|58)", "the server failed", _LOG),
    Reason("^state 2[23]", "it refused a row that contradicts others", kind=RefusedError),
    Reason("^(?!state )", "PostgreSQL cannot be reached, or the connection was lost", _AGAIN),
)


class PostgresEngine(engine.Engine):
    """A database of a PostgreSQL server.

    :param address: an address for libpq, ``postgresql://…``.
    :raises DatabaseError: the address is not valid.
    """

    dialect = "postgres"
    state = "SELECT pg_current_snapshot()::text"
    reasons = _REASONS
    unused_seconds = 1.0

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            parts = urlsplit(address.encode().decode())  # UTF-8 only
        except ValueError:
            raise _unreadable() from None
        # Without user and password.
        where = f"{parts.netloc.rpartition('@')[2]} {parts.path} {parts.query}"
        self.name = blake2b(where.encode(), digest_size=6).hexdigest()

    def driver(self) -> Any:
        """Return the driver's module."""
        return psycopg

    def connect(self, deadline: engine.CallDeadline, *, read_only: bool) -> Any:  # noqa: ARG002
        """Open a connection; wait for a free one of the server."""
        while True:
            try:
                return self._connected(deadline)
            except FullError:
                if not deadline.seconds:
                    raise
                time.sleep(min(_RETRY_SECONDS, deadline.seconds))

    def _connected(self, deadline: engine.CallDeadline) -> Any:
        conninfo = psycopg.conninfo
        try:
            given = conninfo.conninfo_to_dict(self._address)
        except psycopg.ProgrammingError:
            raise _unreadable() from None
        # libpq ignores a timeout of less than two seconds.
        waits = {**_NETWORK, "connect_timeout": max(2, math.ceil(deadline.seconds))}
        where = conninfo.make_conninfo(**{**waits, **given, "client_encoding": "utf8"})
        with self.translated():
            raw: Any = Connection.connect(where, autocommit=True)
        try:
            if raw.info.server_version < OLDEST_SERVER * 10_000:
                needed = f"PostgreSQL {OLDEST_SERVER} or later is needed"
                raise DatabaseError(f"the database cannot be used: {needed}")
            if raw.info.parameter_status("server_encoding") != "UTF8":
                raise DatabaseError("the database cannot be used: its encoding is not UTF8", hint=_OWN)
            # A pooler identifies itself with its own name.
            (greeted,) = raw.execute("SELECT pg_backend_pid()", prepare=False).fetchone()
            if greeted != raw.info.backend_pid:
                raw.prepare_threshold = None
        except BaseException:
            raw.close()
            raise
        return raw

    def is_alive(self, raw: Any) -> bool:
        """Return whether the server is silent; on an idle connection it only announces its end."""
        with selectors.DefaultSelector() as selector:
            selector.register(raw.fileno(), selectors.EVENT_READ)
            return not selector.select(0)

    def is_idle(self, raw: Any) -> bool:
        """Return whether a connection is sound and in no transaction."""
        idle = psycopg.pq.TransactionStatus.IDLE
        return not raw.closed and raw.pgconn.transaction_status == idle

    def begin(self, raw: Any, deadline: engine.CallDeadline, *, read_only: bool, schema: str | None) -> str:
        """Begin a transaction; one that may write waits for its turn among all users of the database."""
        # A statement sees all earlier commits, so the first one after the lock sees everything.
        # A fast plan for the lists of one room or persona may be slow for another, and planning takes a tenth
        # of a millisecond. A write finds its rows by their keys; repeated planning took half of its time,
        # while all other writers wait.
        level = "REPEATABLE READ, READ ONLY" if read_only else "READ COMMITTED, READ WRITE"
        turn = f"SELECT pg_advisory_xact_lock({WRITERS})"
        begun = f"""
            BEGIN ISOLATION LEVEL {level};
            SET LOCAL idle_in_transaction_session_timeout = '{IDLE_SECONDS}s';
            SET LOCAL lock_timeout = {deadline.milliseconds};
            {"SET LOCAL plan_cache_mode = force_custom_plan" if read_only else turn}"""
        raw.patience = deadline.seconds + ANSWER_SECONDS
        version = "NULL" if schema is None else "(SELECT version_num FROM alembic_version)"
        cursor = raw.execute(f"{begun}; SELECT {_NOW}, {version}", prepare=False)
        while cursor.nextset():
            pass
        raw.patience = None
        moment, number = cursor.fetchone()
        if number != schema:
            raise MigratedError("the database was migrated by another server; try again")
        return str(moment)

    def commit(self, raw: Any, *, read_only: bool) -> None:
        """Commit a transaction.

        :raises DatabaseError: the connection was lost, and the outcome is unknown.
        """
        if raw.pgconn.transaction_status == psycopg.pq.TransactionStatus.INERROR:
            raise DatabaseError("the database cannot be used: a statement failed, so nothing was changed")
        try:
            raw.execute("COMMIT", prepare=False)
        except psycopg.OperationalError as error:
            if read_only or error.sqlstate is not None:
                raise
            problem = "the database cannot be used: the connection was lost before it answered"
            raise DatabaseError(problem, hint="check whether the change was made, then try again") from error

    def statement(self, sql: str, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return a statement with parameters in the driver's form; a list is one parameter, an array."""
        lists = tuple(name for name, value in values.items() if value.__class__ in (list, tuple))
        given = {**values, **{name: list(values[name]) for name in lists}} if lists else values
        return _translated(sql, lists), given

    def described(self, error: BaseException) -> str:
        """Return the SQLSTATE of an error, else the driver's text without names and passwords."""
        state = getattr(error, "sqlstate", None)
        if state is None and isinstance(error, psycopg.DataError):
            state = "22000"  # the driver refused a value
        return f"state {state}" if state else re.sub("\"[^\"]*\"|'[^']*'", "", str(error).lower())

    def schema(self, raw: Any) -> engine.Schema | None:
        """Return the schema of the database; ``None`` if it has no tables of ours.

        :raises DatabaseError: another program stores its version there.
        """
        sql = "SELECT to_regclass('alembic_version')::oid, obj_description(to_regclass('alembic_version'))"
        table, comment = raw.execute(sql).fetchone()
        if table is None:
            return None
        owner = _COMMENT.fullmatch(comment or "")
        if owner is None:
            raise DatabaseError(f"the database cannot be used: {_FOREIGN}", hint=_OWN)
        row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
        return engine.Schema("" if row is None else str(row[0]), owner[1])

    @contextmanager
    def migration(self, deadline: engine.CallDeadline) -> Iterator[Any]:
        """Begin a transaction for migrations; it also waits for readers of a changed table."""
        with closing(self.connect(deadline, read_only=False)) as raw:
            raw.patience = LONG_SECONDS
            timeout = f"SET LOCAL lock_timeout = '{LONG_SECONDS}s'"
            raw.execute(f"BEGIN; {timeout}; SELECT pg_advisory_xact_lock({WRITERS})", prepare=False)
            yield raw
            raw.execute("COMMIT", prepare=False)

    def run_script(self, raw: Any, text: str) -> None:
        """Execute statements in PostgreSQL's dialect; texts are compared byte by byte, as in SQLite."""
        raw.execute(_WORD.sub(lambda word: _WORDS[word[0]], text), prepare=False)

    def finish(self, raw: Any, oldest: str) -> None:
        """Record the owner of the tables, and the oldest program that may use them."""
        raw.execute(f"COMMENT ON TABLE alembic_version IS 'npl, from schema {oldest} on'")

    def tables(self, transaction: Any) -> list[engine.StoreTable]:
        """Return all tables of the stores."""
        return [engine.StoreTable(**row) for row in transaction.all(_TABLES)]

    def go_on_numbering(self, transaction: Any, table: engine.StoreTable) -> None:
        """Set the sequence of a numbered table to the highest number."""
        key, name = table.key[0], table.name
        transaction.value(f"SELECT setval(pg_get_serial_sequence('{name}', '{key}'), max({key})) FROM {name}")


_COMMENT = re.compile(r"npl, from schema (\w{1,32}) on")

_WORDS = {
    "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT": "BIGSERIAL NOT NULL PRIMARY KEY",
    "INTEGER": "BIGINT",
    "TEXT": 'TEXT COLLATE "C"',
    "BLOB": "BYTEA",
    ") STRICT;": ");",
}
"""PostgreSQL's equivalents of words of SQLite."""

_WORD = re.compile(r"INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT|\b(?:INTEGER|TEXT|BLOB)\b|\) STRICT;")

# An unchanged literal; a cast; a parameter; a character with a meaning for the driver.
_PARTS = re.compile(r"'[^']*'|::|:(?P<name>[a-z_][a-z0-9_]*)|%")


@lru_cache(1_024)  # more than the number of statements
def _translated(sql: str, lists: tuple[str, ...]) -> str:
    for name in lists:
        sql = re.sub(rf"IN :{name}\b", f"= ANY(:{name})", sql)

    def written(part: re.Match[str]) -> str:
        name = part["name"]
        return part[0].replace("%", "%%") if name is None else f"%({name})s"

    return _PARTS.sub(written, sql)


def _unreadable() -> DatabaseError:
    # The address is omitted: it may hold a password.
    problem = "the address of the database cannot be read"
    return DatabaseError(problem, hint="e.g. postgresql://user@host/database")


_NOW = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

_TABLES = """
SELECT relname AS name,
    ARRAY(SELECT attname::text FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum) AS columns,
    ARRAY(SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS part (number, place)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = part.number ORDER BY place) AS key,
    ARRAY(SELECT DISTINCT confrelid::regclass::text FROM pg_constraint AS reference
        WHERE reference.conrelid = pg_class.oid AND contype = 'f') AS parents,
    EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum = conkey[1]
        AND pg_get_serial_sequence(relname, attname) IS NOT NULL) AS numbered
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE contype = 'p' AND relnamespace = current_schema()::regnamespace ORDER BY relname"""
