"""The database of all stores: opened on first use, with one writer, a few readers and one transaction per
call.

Statements are SQL text with ``:name`` parameters, in the common subset of SQLite and PostgreSQL. Each engine
has a module for its differences, :mod:`npl_mcp.stores.base.sqlite` and :mod:`npl_mcp.stores.base.postgres`,
behind :class:`~npl_mcp.stores.base.engine.Engine`.

Replicas of a shared database are upgraded one after the other. The first new replica migrates the database.
If the migration only adds parts that the previous version does not need, the database records that
(:data:`OLDEST`), and replicas of that version continue until their upgrade. Older replicas are refused, also
running ones: on PostgreSQL each transaction first checks the schema, in a few hundredths of a millisecond.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from npl_index.errors import NotFoundError
from npl_index.library.references import near_names
from npl_mcp.stores.base.engine import CallDeadline, Engine, Pool, Schema
from npl_mcp.stores.base.engine import Row as Row
from npl_mcp.stores.base.errors import RESTORE, BusyError, DatabaseError, MigratedError, RefusedError
from npl_mcp.stores.base.migrating import HEAD as HEAD
from npl_mcp.stores.base.migrating import RELEASED, migrate
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import fill, insertion

P = ParamSpec("P")
T = TypeVar("T")

OLDEST = "0005"
"""The oldest migration whose programs may still use a database with the newest: all later migrations only add
parts that those programs do not need.
"""

READERS = 4

PAGE_CHARACTERS = 4 * 1024 * 1024
"""Maximum characters of a page; further rows are on the next page. A thousand of the longest messages have 64
MiB.
"""


@dataclass(slots=True)
class Transaction:
    """A transaction; it takes effect as a whole or not at all.

    Parameters are given by keyword; a list or tuple fills ``IN :name``.

    :param raw: the driver's connection, for the engine.
    :param engine: the engine of the database.
    :param now: the transaction's start by the database's clock, which all replicas share; UTC, ISO 8601. A
        transaction that may write begins after the end of the previous one.
    """

    raw: Any
    engine: Engine
    now: str

    def all(self, sql: str, /, **values: Any) -> list[Row]:
        """Return all rows, by column name."""
        with closing(self._rows(sql, values)) as rows:
            return list(rows)

    def first_rows(self, sql: str, /, **values: Any) -> list[Row]:
        """Return the first rows, by column name: at most :data:`PAGE_CHARACTERS` of text, at least one row.

        Later rows are not read.
        """
        first_rows: list[Row] = []
        room = PAGE_CHARACTERS
        with closing(self._rows(sql, values)) as rows:
            for row in rows:
                room -= sum(len(value) for value in row.values() if value.__class__ is str)
                if room < 0 and first_rows:
                    break
                first_rows.append(row)
        return first_rows

    def first(self, sql: str, /, **values: Any) -> Row | None:
        """Return the first row, or ``None``."""
        with closing(self._rows(sql, values)) as rows:
            return next(rows, None)

    def require(self, error: NotFoundError, sql: str, /, **values: Any) -> Row:
        """Return the first row.

        :raises NotFoundError: the given error, if there is no row.
        """
        row = self.first(sql, **values)
        if row is None:
            raise error
        return row

    def value(self, sql: str, /, **values: Any) -> Any:
        """Return the first column of the first row, or ``None``; also for ``INSERT … RETURNING id``."""
        row = self.first(sql, **values)
        return None if row is None else next(iter(row.values()))

    def near(self, name: str, sql: str, /, **values: Any) -> tuple[str, ...]:
        """Return the names in the first column of the rows that are near a wrong one."""
        return near_names(name[:64], [next(iter(row.values())) for row in self._rows(sql, values)])

    def contents(self, table: str, digests: Iterable[str]) -> dict[str, bytes]:
        """Return the undamaged contents of a table by their digests.

        :param digests: the digests, at most one batch.
        """
        sql = f"SELECT digest, data FROM {table} WHERE digest IN :digests"
        rows = self.all(sql, digests=sorted(set(digests)))
        # Drivers return bytes, memory views or buffers.
        contents = {row["digest"]: bytes(row["data"]) for row in rows}
        return {digest: data for digest, data in contents.items() if content_digest(data) == digest}

    def run(self, sql: str, /, **values: Any) -> int:
        """Execute a statement and return the number of changed rows."""
        changed: int = self.raw.execute(*self.engine.statement(sql, values)).rowcount
        return changed

    def insert(self, table: str, returning: str, unique: str = "", /, **values: Any) -> Any:
        """Insert a row and return some of its columns, by name.

        :param returning: the names of the columns.
        :param unique: the columns with values that another row may already have; then nothing is inserted and
            ``None`` is returned.
        """
        conflict = f" ON CONFLICT ({unique}) DO NOTHING" if unique else ""
        return self.first(f"{insertion(table, values)}{conflict} RETURNING {returning}", **values)

    def upsert(self, table: str, key: str, /, **values: Any) -> None:
        """Insert a row, or update the one with the same key.

        :param key: the columns of the key.
        """
        others = (name for name in values if name not in key.split(", "))
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        self.run(f"{insertion(table, values)} ON CONFLICT ({key}) DO UPDATE SET {changes}", **values)

    def page(self, kind: type[T], sql: str, total: int, part: Slice, /, **values: Any) -> Page[T]:
        """Return a page of a list.

        :param kind: a dataclass; its fields are columns.
        :param sql: a query for the entries of ``:limit`` and ``:offset``.
        :param total: the number of entries in the whole list.
        """
        rows = self.first_rows(sql, limit=part.limit, offset=part.offset, **values)
        return part.page((fill(kind, row) for row in rows), total)

    def insert_many(self, table: str, rows: Sequence[Mapping[str, Any]], /) -> None:
        """Insert rows with values of the same columns."""
        if rows:
            statement, _ = self.engine.statement(insertion(table, rows[0]), rows[0])
            with closing(self.raw.cursor()) as cursor:
                cursor.executemany(statement, rows)

    def _rows(self, sql: str, values: Mapping[str, Any]) -> Generator[Row]:
        """Yield the rows, by column name; close it, because an unfinished statement prevents the commit."""
        with closing(self.raw.cursor()) as cursor:
            cursor.execute(*self.engine.statement(sql, values))
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))


InTransaction = Callable[Concatenate[Transaction, P], T]


def content_digest(data: bytes) -> str:
    """Return the digest of a stored content or a document."""
    return blake2b(data, digest_size=16).hexdigest()


def damaged(what: str) -> DatabaseError:
    """Return the error for an unreadable row.

    :param what: the row, and the problem.
    """
    return DatabaseError(f"the database is damaged: {what}", hint=RESTORE)


def json_of(text: Any, where: str) -> Any:
    """Return the value of a column that holds JSON.

    :param where: the row and the column, for the message.
    :raises DatabaseError: the text is not valid JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise damaged(f"{where} is not valid JSON") from None


class CallTransaction(ExitStack):
    """The write transactions of a call, joined to one: it begins with the first and ends with this context.

    :param database: the database.
    :param check: a function of the transaction, called before the first write.
    """

    def __init__(self, database: Database, check: Callable[[Transaction], None]) -> None:
        super().__init__()
        self.database, self._check = database, check
        self.begun: Transaction | None = None

    def begin(self) -> Transaction:
        """Return the transaction; begin it at the first call."""
        if self.begun is None:
            self.begun = self.enter_context(self.database.transaction(write=True))
            self._check(self.begun)
        return self.begun


_CALL: ContextVar[CallTransaction | None] = ContextVar("call", default=None)


class Database:
    """The database of all stores; safe for several threads and several processes.

    :param engine: the engine that connects to it.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._lock = threading.Lock()
        self._pools: tuple[Pool, Pool] | None = None
        self._schema: str | None = None
        self._mark: object = None

    @contextmanager
    def joined(self, check: Callable[[Transaction], None] = lambda _: None) -> Iterator[None]:
        """Join the write transactions of this context, and the reads after the first write.

        :param check: a function of the transaction, called before the first write; not in a context that is
            joined already.
        """
        if self._in_call() is not None:
            yield
            return
        with CallTransaction(self, check) as call:
            token = _CALL.set(call)
            try:
                yield
            finally:
                _CALL.reset(token)

    def write(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that may write; it is committed at the end, or rolled back on any error.

        :raises DatabaseError: the database cannot be used; nothing was changed.
        """
        call = self._in_call()
        return self.transaction(write=True) if call is None else nullcontext(call.begin())

    def read(self) -> AbstractContextManager[Transaction]:
        """Begin a read-only transaction on one snapshot of the database.

        :raises DatabaseError: the database cannot be used.
        """
        call = self._in_call()
        begun = None if call is None else call.begun
        return self.transaction(write=False) if begun is None else nullcontext(begun)

    def reading(self, query: InTransaction[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Return the result of a query in a read-only transaction."""
        with self.read() as transaction:
            return query(transaction, *given, **named)

    def writing(self, change: InTransaction[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Return the result of a change in a transaction that may write."""
        with self.write() as transaction:
            return change(transaction, *given, **named)

    def _in_call(self) -> CallTransaction | None:
        call = _CALL.get()
        return call if call is not None and call.database is self else None

    def open(self) -> None:
        """Open the database: create or migrate it, then check it. Idempotent.

        :raises DatabaseError: the database cannot be used; the next call tries again.
        """
        self._open_pools(CallDeadline())

    def migrate(self) -> tuple[str | None, str]:
        """Open the database and migrate it to the newest schema.

        :returns: the schema before, ``None`` for an empty database, and the schema after.
        """
        before = self.schema() if self.engine.exists() else None
        self.open()
        return before, self._schema or HEAD

    def schema(self) -> str | None:
        """Return the schema of an existing database, ``None`` if it is empty; nothing is migrated.

        :raises DatabaseError: the database cannot be used.
        """
        with self.engine.translated(), closing(self.engine.connect(CallDeadline(), read_only=True)) as raw:
            schema = self.engine.schema(raw)
            if schema is None:
                return None
            _usable(schema)
            return schema.number

    def is_made(self) -> bool:
        """Return whether a database exists, or existed."""
        return self.engine.exists() or self.engine.is_needed()

    def check(self) -> list[str]:
        """Check structure and references.

        :returns: the problems.
        :raises DatabaseError: the database cannot be read at all.
        """
        with self.read() as transaction:
            return self.engine.problems(transaction)

    def copy(self, target: Path) -> bool:
        """Copy the database to a file while it is in use.

        :param target: the copy's path, which must not exist.
        :returns: whether there is a copy: only some engines support it.
        :raises DatabaseError: the database cannot be copied.
        """
        self.open()
        with self.engine.translated():
            return self.engine.copy(target)

    def close(self) -> None:
        """Close all connections; the next use reopens them."""
        with self._lock:
            self._dispose()

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Begin a separate transaction, even in a call that has begun one."""
        deadline = CallDeadline()
        begin = partial(self._begin, deadline, read_only=not write)
        pools = self._open_pools(deadline)
        try:
            with self.engine.translated(), ExitStack() as begun:
                try:
                    transaction = begun.enter_context(begin(pools[write]))
                except MigratedError:
                    self._close(pools)
                    pools = self._open_pools(deadline)
                    transaction = begun.enter_context(begin(pools[write]))
                yield transaction
        except (BusyError, RefusedError):
            raise
        except DatabaseError:
            # Some errors, such as a removed log, persist on a connection; the next call opens new ones.
            self._close(pools)
            raise

    @contextmanager
    def _begin(self, deadline: CallDeadline, pool: Pool, *, read_only: bool) -> Iterator[Transaction]:
        """Begin a transaction on a connection of a pool."""
        engine = self.engine
        raw = pool.take(deadline)
        try:
            moment = engine.begin(raw, deadline, read_only=read_only, schema=self._schema)
            yield Transaction(raw, engine, moment)
            engine.commit(raw, read_only=read_only)
        except BaseException:
            # Some errors, such as a full disk, have already rolled it back.
            if not engine.is_idle(raw):
                with suppress(engine.driver().OperationalError):
                    raw.execute("ROLLBACK")
            raise
        finally:
            pool.put_back(raw)

    def _open_pools(self, deadline: CallDeadline) -> tuple[Pool, Pool]:
        pools = self._pools
        if pools is not None and self._mark == self.engine.mark():
            return pools
        # Opening may wait for other programs, and this wait counts towards the caller's deadline.
        if not self._lock.acquire(timeout=deadline.seconds):
            raise BusyError("the database cannot be used: it is being opened; try again")
        try:
            if self._pools is None or self._mark != self.engine.mark():
                self._dispose()
                with self.engine.translated():
                    pools = self._open(deadline)
                self._mark, self._pools = self.engine.mark(), pools
            return self._pools
        finally:
            self._lock.release()

    def _close(self, pools: tuple[Pool, Pool]) -> None:
        """Close the connections of some pools, unless the database was opened again since."""
        with self._lock:
            if self._pools is pools:
                self._dispose()

    def _dispose(self) -> None:
        for pool in self._pools or ():
            pool.close()
        self._pools = None

    def _open(self, deadline: CallDeadline) -> tuple[Pool, Pool]:
        engine = self.engine
        lost = engine.prepare()
        with closing(engine.connect(deadline, read_only=True)) as raw:
            schema = engine.schema(raw)
            if schema is not None:
                engine.check_content(raw)
        if schema is None and lost is not None:
            raise lost
        if schema is None or not _usable(schema):
            migrate(engine, deadline, OLDEST)
            deadline.renew()
        self._schema = HEAD if schema is None else max(HEAD, schema.number)
        return Pool(engine, READERS, read_only=True), Pool(engine, 1, read_only=False)


def _usable(schema: Schema) -> bool:
    """Return whether a database can be used without a migration.

    :raises DatabaseError: this program does not know the schema, so no migration helps.
    """
    if schema.number in RELEASED:
        return schema.number == HEAD
    # The numbers have the same length, so they sort as texts.
    newer = len(schema.number) == len(HEAD) and schema.number.isdecimal() and schema.number > HEAD
    if newer and schema.oldest in RELEASED:
        return True
    creator = "a newer version of npl" if newer else "a version of npl that this one does not know"
    problem = f"the database was created by {creator} (schema {schema.number[:20]!r})"
    raise DatabaseError(problem, hint="install that version or a later one" if newer else RESTORE)
