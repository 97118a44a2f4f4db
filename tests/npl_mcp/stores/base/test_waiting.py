"""While another program holds the database, every call gives up in time, also behind waiting calls."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from npl_mcp.stores.base import database as base
from npl_mcp.stores.base import postgres, sqlite
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.engine import CallDeadline
from npl_mcp.stores.base.errors import DatabaseError
from tests import engines

WRITERS = 50
PATIENT, HASTY = 600.0, 0.001
"""Seconds that a call waits: in its own thread longer than any test takes, and in the test's thread."""


class DeadlineByThread(CallDeadline):
    """Deadlines by thread: late calls are hasty, whenever the other threads get to run."""

    def renew(self) -> None:
        is_hasty = threading.current_thread() is threading.main_thread()
        self._end = time.monotonic() + (HASTY if is_hasty else PATIENT)


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    made = engines.database(tmp_path)
    made.open()
    monkeypatch.setattr(base, "CallDeadline", DeadlineByThread)
    yield made
    monkeypatch.undo()
    made.close()


@contextmanager
def locked(folder: Path, *, whole: bool) -> Iterator[None]:
    """Hold the lock of writers, or keep everybody out. The driver is the stores' own: the system's locks keep
    out other processes, not another library in this one.
    """
    if engines.ENGINE == "sqlite":
        connection = sqlite.driver().connect(str(folder / "npl.db"), isolation_level=None)
        begin = ("BEGIN EXCLUSIVE", "INSERT INTO total (name, value) VALUES ('held', 1)")
        statements = ("PRAGMA locking_mode = EXCLUSIVE", *begin) if whole else begin
    else:
        connection = psycopg.connect(engines.address(folder) or "")
        lock = f"SELECT pg_advisory_xact_lock({postgres.WRITERS})"
        statements = ("LOCK TABLE alembic_version", lock) if whole else (lock,)
    with closing(connection):
        for statement in statements:
            connection.execute(statement)
        yield
        connection.execute("ROLLBACK")


def write(database: Database) -> None:
    with database.write() as tx:
        tx.run("INSERT INTO total (name, value) VALUES (:name, 1)", name=uuid4().hex)


def read(database: Database) -> None:
    with database.read() as tx:
        tx.value("SELECT count(*) FROM total")


@pytest.fixture
def calls() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(WRITERS + 5) as pool:
        yield pool


def test_reads_do_not_wait_for_writers_that_wait(
    database: Database, tmp_path: Path, calls: ThreadPoolExecutor
) -> None:
    """Fifty writers wait for another program, and still wait after later reads are done."""
    with locked(tmp_path, whole=False):
        writers = [calls.submit(write, database) for _ in range(WRITERS)]
        for reader in [calls.submit(read, database) for _ in range(5)]:
            reader.result()
        assert not any(writer.done() for writer in writers)
    for writer in writers:
        writer.result()


def test_a_writer_has_its_time_from_its_call_on(
    database: Database, tmp_path: Path, calls: ThreadPoolExecutor
) -> None:
    """A hasty writer gives up behind fifty patient ones, which continue to wait."""
    with locked(tmp_path, whole=False):
        writers = [calls.submit(write, database) for _ in range(WRITERS)]
        with pytest.raises(DatabaseError, match="again"):
            write(database)
        assert not any(writer.done() for writer in writers)
    for writer in writers:
        writer.result()


@pytest.mark.parametrize("call", [write, read])
def test_opening_is_waited_for_no_longer_than_a_call_may(
    database: Database, tmp_path: Path, calls: ThreadPoolExecutor, call: Callable[[Database], None]
) -> None:
    """While a program keeps everybody out, a hasty call gives up behind the patient one that opens."""
    database.close()
    with locked(tmp_path, whole=True):
        opening = [calls.submit(work, database) for work in [write, read] * (WRITERS // 2)]
        with pytest.raises(DatabaseError, match="again"):
            call(database)
        assert not any(opener.done() for opener in opening)
    for opener in opening:
        opener.result()


def test_a_refused_row_closes_no_connection(tmp_path: Path) -> None:
    """The next call need not open the database again."""
    with closing(engines.database(tmp_path)) as database:
        database.open()
        opened = database._pools
        with pytest.raises(DatabaseError, match="contradicts"), database.write() as tx:
            tx.run("INSERT INTO total (name, value) VALUES ('a', 'many')")
        assert database._pools is opened
