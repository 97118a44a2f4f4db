"""A database that another program holds: every call gives up at one time, whatever waits before it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from npl_mcp.stores.base import engine, postgres, sqlite
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import DatabaseError
from tests import engines

CALLS = 50
BUSY = 300
TOGETHER_SECONDS = 8 * BUSY / 1000
"""Within which all calls end that wait together; one after the other takes fifty times as long as one."""


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(engine, "BUSY_MILLISECONDS", BUSY)
    made = engines.database(tmp_path)
    made.open()
    yield made
    made.close()


@contextmanager
def held(folder: Path, *, whole: bool) -> Iterator[None]:
    """Hold the lock of writers, or keep everybody out.

    By the driver that the stores use: the system's locks keep out other processes, not another library here.
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


def together(database: Database, work: list[str], within: float = 60) -> list[str]:
    """Make calls at once; return how those ended that did within these seconds, in their order."""
    ended: list[str] = []

    def one(what: str) -> None:
        try:
            if what == "write":
                write(database)
            else:
                with database.read() as tx:
                    tx.value("SELECT count(*) FROM total")
            ended.append(f"{what} done")
        except DatabaseError as error:
            ended.append(f"{what} {'refused' if 'again' in str(error) else error}")

    threads = [threading.Thread(target=one, args=(what,)) for what in work]
    until = time.monotonic() + within
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))
    in_time = ended.copy()
    for thread in threads:
        thread.join()
    return in_time


def test_reads_do_not_wait_for_writers_that_wait(database: Database, tmp_path: Path) -> None:
    """Fifty writers wait for another program: the reads that come after them are done first."""
    with held(tmp_path, whole=False):
        ended = together(database, ["write"] * CALLS + ["read"] * 5)
    assert ended == ["read done"] * 5 + ["write refused"] * CALLS
    write(database)


def test_writers_that_wait_do_so_together(database: Database, tmp_path: Path) -> None:
    """Each has its time from the moment it was called: they do not wait one after the other."""
    deadline = engine.Deadline()
    with held(tmp_path, whole=False):
        ended = together(database, ["write"] * CALLS, TOGETHER_SECONDS)
    assert ended == ["write refused"] * CALLS
    assert not deadline.seconds


def test_opening_is_waited_for_once(database: Database, tmp_path: Path) -> None:
    """A program that keeps everybody out: those who wait for the one that opens wait no longer than it."""
    database.close()
    with held(tmp_path, whole=True):
        ended = together(database, ["write", "read"] * (CALLS // 2), TOGETHER_SECONDS)
    assert Counter(ended) == {"write refused": CALLS // 2, "read refused": CALLS // 2}
    write(database)


def test_a_refused_row_closes_no_connection(database: Database, tmp_path: Path) -> None:
    """The connections are sound, so the next call need not open the database again."""
    opened = database._kinds
    with pytest.raises(DatabaseError, match="contradicts"), database.write() as tx:
        tx.run("INSERT INTO total (name, value) VALUES ('a', 'many')")
    assert database._kinds is opened
