"""The SQLite engine: opening, transactions, checks, copies.

WAL so that readers never wait for the writer; ``synchronous=FULL`` so that acknowledged writes survive a loss
of power; ``BEGIN IMMEDIATE`` for every write, because SQLite refuses a transaction that reads first and then
writes, regardless of the busy timeout, if another connection wrote in between.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from npl_index.index.driver import driver
from npl_index.library.files import Folder
from npl_mcp.stores.base import engine
from npl_mcp.stores.base.database import content_digest
from npl_mcp.stores.base.engine import Reason
from npl_mcp.stores.base.errors import RESTORE, BusyError, DatabaseError, RefusedError
from npl_mcp.stores.base.folder import private_folder
from npl_mcp.stores.base.paging import now

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x4E504C44  # "NPLD"
JOURNAL_BYTES = 16 * 1024 * 1024
CACHE_KIBIBYTES = 16 * 1024
STATEMENTS = 256
"""Compiled statements cached per connection; the stores have fewer."""


def weakness() -> str | None:
    """Return the defect of this SQLite; ``None`` if two connections may write and checkpoint concurrently.

    Defective versions can damage a database in WAL mode (https://sqlite.org/wal.html#walresetbug).
    """
    version = driver().sqlite_version_info
    if version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45):
        return None
    return f"two programs that write at once can damage the database with SQLite {driver().sqlite_version}"


REMEDY = "pip install pysqlite3, or use a Python with SQLite 3.51.3 or later"
"""The remedy for that defect."""


_FOREIGN = "its file is not a database of npl; move it away, or choose another data folder"

_REASONS = (
    Reason("disk is full", "the disk is full; make room, then try again"),
    Reason("readonly|read-only", "the data folder is read-only"),
    Reason("unable to open", "its file cannot be opened or created; is there a writable data folder?"),
    Reason("locked", "it was locked by another program for too long; try again", kind=BusyError),
    Reason("malformed|vtable constructor failed", f"it is damaged; {RESTORE}"),
    Reason("could not decode", "a text in it is damaged; 'npl-mcp check' names the row"),
    Reason("not a database", _FOREIGN),
    Reason("disk i/o", "the disk reports an error, or its files were removed"),
    Reason("constraint failed", "it refused a row that contradicts others", kind=RefusedError),
    Reason("cannot store", "it refused a row that contradicts its columns", kind=RefusedError),
)


class SqliteEngine(engine.Engine):
    """A database in one file; its folder is created on first use.

    :param path: the path of the file.
    :param copies: the folder of copies of artifacts. Until 0007 the artifacts were only there, so no new
        database is created while the folder contains files.
    :param check: whether to check the structure of the whole file when it is opened. The check takes time in
        proportion to the size of the file. Short commands leave it to servers; SQLite reports the damage
        that it meets anyway.
    """

    dialect = "sqlite"
    state = "PRAGMA data_version"
    reasons = _REASONS

    def __init__(self, path: Path, copies: Path, *, check: bool = True) -> None:
        self.path = path
        self._copies = copies
        self._checks = check

    def driver(self) -> Any:
        """Return the driver's module."""
        return driver()

    def exists(self) -> bool:
        """Return whether the file exists."""
        return self.path.exists()

    def mark(self) -> tuple[int, int, bool] | None:
        """Return device and inode of the file, and whether it is not empty; ``None`` if it does not exist.

        A connection continues to read and write a file that was removed, replaced or emptied, and its writes
        are lost. So each transaction first verifies that its connections belong to the current file.
        """
        with suppress(OSError):
            state = self.path.stat()
            return state.st_dev, state.st_ino, state.st_size > 0
        return None

    def is_needed(self) -> bool:
        """Return whether files exist that only the database describes.

        Call this before checking for the database: a process that creates both creates the database first.
        """
        with suppress(FileNotFoundError, NotADirectoryError):
            return any(not inside.name.startswith(".") for inside in self._copies.iterdir())
        return False

    def prepare(self) -> DatabaseError | None:
        """Create the folder; return the error for an empty database, if files exist that only it describes.

        :raises DatabaseError: such files exist and the database is missing, or the folder cannot be created.
        """
        try:
            private_folder(self.path.parent)
            needed = self.is_needed()
        except OSError as error:
            problem = f"the data folder cannot be used: {error.strerror}"
            raise DatabaseError(problem, hint="choose another with --data-dir") from None
        if not needed:
            return None
        state, copies = "empty" if self.path.exists() else "missing", self._copies.name
        problem = f"the database {self.path.name} is {state}, but there are files in {copies!r} next to it"
        lost = DatabaseError(problem, hint=f"{RESTORE}; or move {copies!r} away to start empty")
        if state == "missing":
            raise lost
        return lost

    def connect(self, deadline: engine.CallDeadline, *, read_only: bool) -> Any:
        """Open a connection; transactions begin explicitly, without the driver's guesses.

        :raises DatabaseError: the file belongs to another program.
        """
        raw = driver().connect(str(self.path), timeout=deadline.seconds, **_OPTIONS)
        try:
            # Read through SQLite. If the file were opened and closed here, the system would drop all locks
            # that this process has on it (POSIX), and another process could remove the log that a connection
            # still writes to.
            owner = raw.execute("PRAGMA application_id").fetchone()[0]
            # 0: after a crash before the first commit, the database does not record its owner.
            if owner not in (0, APPLICATION_ID):
                raise DatabaseError(f"the database cannot be used: {_FOREIGN}")
            _use_log(raw, deadline)
            raw.create_function("terms_of", 1, _terms_of)
            for pragma in _PRAGMAS:
                raw.execute(f"PRAGMA {pragma}")
            raw.execute(f"PRAGMA query_only = {int(read_only)}")
        except BaseException:
            raw.close()
            raise
        return raw

    def is_idle(self, raw: Any) -> bool:
        """Return whether a connection is outside a transaction."""
        return not raw.in_transaction

    def begin(self, raw: Any, deadline: engine.CallDeadline, *, read_only: bool, schema: str | None) -> str:  # noqa: ARG002
        """Begin a transaction with any schema; all users of the file share the clock of one machine."""
        raw.execute(f"PRAGMA busy_timeout = {deadline.milliseconds}")
        raw.execute("BEGIN" if read_only else "BEGIN IMMEDIATE")
        return now()

    def commit(self, raw: Any, *, read_only: bool) -> None:  # noqa: ARG002
        """Commit a transaction."""
        raw.execute("COMMIT")

    def statement(self, sql: str, values: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return a statement in which a list is one parameter, as JSON."""
        given = dict(values)
        for name, value in values.items():
            if value.__class__ in (list, tuple):
                given[name] = json.dumps(value)
                sql = re.sub(rf"IN :{name}\b", f"IN (SELECT value FROM json_each(:{name}))", sql)
        return sql, given

    def described(self, error: BaseException) -> str:
        """Return the driver's text; it names no paths of this machine."""
        text = str(error).lower()
        if "malformed" in text:
            logger.warning("the database is damaged: %s", getattr(error, "sqlite_errorname", text))
        return text

    def schema(self, raw: Any) -> engine.Schema | None:
        """Return the schema of the file; ``None`` if it is empty."""
        sql = "SELECT count(*) FROM sqlite_master WHERE name = 'alembic_version'"
        if not raw.execute(sql).fetchone()[0]:
            return None
        row = raw.execute("SELECT version_num FROM alembic_version").fetchone()
        number = "" if row is None else str(row[0])
        return engine.Schema(number, number)

    def check_content(self, raw: Any) -> None:
        """Check the structure of the file.

        :raises DatabaseError: the file is damaged.
        """
        if not self._checks:
            return
        problem = raw.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise DatabaseError(f"the database is damaged: {problem}", hint=RESTORE)

    @contextmanager
    def migration(self, deadline: engine.CallDeadline) -> Iterator[Any]:
        """Begin a transaction for migrations with foreign keys off: they are checked before it ends.

        Tables are changed by copying them to new ones; with foreign keys on, dropping the old one would
        delete the rows that refer to it.
        """
        with closing(self.connect(deadline, read_only=False)) as raw:
            if (schema := self.schema(raw)) is not None:
                copy(self.path, self.path.with_suffix(f".{schema.number}.bak"))
            raw.execute("PRAGMA foreign_keys = OFF")
            raw.create_function("kept_file", 5, self._kept_file)
            raw.execute("BEGIN IMMEDIATE")
            yield raw
            raw.execute("COMMIT")
        # SQLite creates its files with the default permissions.
        private_folder(self.path.parent)

    def _kept_file(self, owner: int, number: int, filename: bytes, size: int, digest: bytes) -> bytes | None:
        """Return the file that held a revision before 0007; ``None`` if it differs from the stored one."""
        with suppress(OSError, ValueError), Folder.opened(self._copies, str(owner)) as inside:
            content = inside.read_start(f"revision-{number}-{filename.decode()}", size + 1)
            return content if content_digest(content).encode() == digest else None
        return None

    def run_script(self, raw: Any, text: str) -> None:
        """Execute statements one by one: the driver's ``executescript`` would commit the previous ones."""
        statement = ""
        for line in text.splitlines(keepends=True):
            statement += line
            if driver().complete_statement(statement):
                raw.execute(statement)
                statement = ""

    def finish(self, raw: Any, oldest: str) -> None:  # noqa: ARG002
        """Record the owner of the database; the processes of one machine are upgraded together."""
        raw.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        if broken := raw.execute("PRAGMA foreign_key_check").fetchall():
            raise DatabaseError(f"the migration would break {len(broken)} references")

    def problems(self, transaction: Any) -> list[str]:
        """Return problems of structure and references."""
        texts = [row["integrity_check"] for row in transaction.all("PRAGMA integrity_check")]
        rows = transaction.all("PRAGMA foreign_key_check")
        lost = [f"a row of {row['table']} refers to a missing row of {row['parent']}" for row in rows]
        return [text for text in texts if text != "ok"] + lost

    def tables(self, transaction: Any) -> list[engine.StoreTable]:
        """Return all tables of the stores."""
        parts, rows = ("columns", "key", "parents"), transaction.all(_TABLES)
        return [engine.StoreTable(**row | {part: json.loads(row[part]) for part in parts}) for row in rows]

    def go_on_numbering(self, transaction: Any, table: engine.StoreTable) -> None:
        """Do nothing: SQLite notes the highest number of any row."""

    def rows(self, read: Callable[[], AbstractContextManager[Any]]) -> Iterator[tuple[str, str, engine.Row]]:
        """Yield every row of every table by its number, because a key may be damaged.

        Invalid UTF-8 becomes lone surrogates, which no stored text has.
        """
        with read() as tx:
            tables = self.tables(tx)
        for table in tables:
            columns = ("rowid AS rowid", *table.columns)
            for page in engine.pages(partial(_lenient, read), table._replace(columns=columns, key=["rowid"])):
                for row in page:
                    yield table.name, f"row {row['rowid']}", row

    def copy(self, target: Path) -> bool:
        """Copy the database while it is in use."""
        copy(self.path, target)
        return True


def _use_log(raw: Any, deadline: engine.CallDeadline) -> None:
    # If two processes switch a new database to WAL at once, SQLite refuses one of them without waiting.
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
            return
        except driver().OperationalError as error:
            if "locked" not in str(error) or not deadline.seconds:
                raise
            time.sleep(0.005)


# Without the tables of the full-text indexes, which are derived from the others.
_TABLES = """
SELECT name, sql LIKE '%AUTOINCREMENT%' AS numbered,
    (SELECT json_group_array(name) FROM pragma_table_info(stored.name)) AS columns,
    (SELECT json_group_array(name)
        FROM (SELECT name FROM pragma_table_info(stored.name) WHERE pk ORDER BY pk)) AS key,
    (SELECT json_group_array(DISTINCT [table]) FROM pragma_foreign_key_list(stored.name)) AS parents
FROM sqlite_master AS stored JOIN pragma_table_list AS list USING (name)
WHERE list.type = 'table' AND list.schema = 'main' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"""

_OPTIONS = {"isolation_level": None, "check_same_thread": False, "cached_statements": STATEMENTS}

_PRAGMAS = (
    "synchronous = FULL",
    "foreign_keys = ON",
    f"journal_size_limit = {JOURNAL_BYTES}",
    f"cache_size = -{CACHE_KIBIBYTES}",
    "temp_store = MEMORY",
)


@contextmanager
def _lenient(read: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
    with read() as tx:
        before = tx.raw.text_factory
        tx.raw.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
        try:
            yield tx
        finally:
            tx.raw.text_factory = before


def _terms_of(text: bytes) -> str:
    """Return the terms by which a row is found; triggers call it.

    :param text: the bytes of the text, since a damaged one is no UTF-8.
    """
    # Slow to import, and most commands write nothing that is searched.
    from npl_index.ranking.analysis import searched_terms

    return " ".join(searched_terms(text.decode("utf-8", "replace")))


def copy(path: Path, target: Path) -> None:
    """Copy a database while it is in use, by SQLite's backup.

    :param target: the copy's path, which must not exist.
    """
    module = driver()
    with closing(module.connect(str(path))) as source, closing(module.connect(str(target))) as copied:
        source.backup(copied)
