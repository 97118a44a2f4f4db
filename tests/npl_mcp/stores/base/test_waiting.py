"""A database that another program holds: every call gives up at one time, whatever waits before it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from npl_mcp.stores.base import sqlite
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import DatabaseError

CALLS = 50
BUSY = 300


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    monkeypatch.setattr(sqlite, "BUSY_MILLISECONDS", BUSY)
    made = Database(tmp_path / "npl.db")
    made.open()
    yield made
    made.close()


@contextmanager
def held(path: Path, *, whole: bool) -> Iterator[None]:
    """Hold the lock of writers, or keep everybody out.

    By the driver that the stores use: the system's locks keep out other processes, not another library here.
    """
    with closing(sqlite.driver().connect(str(path), isolation_level=None)) as connection:
        if whole:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("INSERT INTO total (name, value) VALUES ('held', 1)")
        yield
        connection.execute("ROLLBACK")


def write(database: Database) -> None:
    with database.write() as tx:
        tx.run("INSERT INTO total (name, value) VALUES (hex(randomblob(8)), 1)")


def together(database: Database, work: list[str]) -> list[str]:
    """Make calls at once; return how each ended, in the order in which they did."""
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
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ended


def test_reads_do_not_wait_for_writers_that_wait(database: Database) -> None:
    """Fifty writers wait for another program: the reads that come after them are done first."""
    with held(database.path, whole=False):
        ended = together(database, ["write"] * CALLS + ["read"] * 5)
    assert ended == ["read done"] * 5 + ["write refused"] * CALLS
    write(database)


def test_writers_that_wait_do_so_together(database: Database) -> None:
    """Each has its time from the moment it was called: they do not wait one after the other."""
    deadline = sqlite.Deadline()
    monitor = threading.Timer(8 * BUSY / 1000, lambda: late.append(threading.active_count()))
    late: list[int] = []
    before = threading.active_count() + 1
    monitor.start()
    with held(database.path, whole=False):
        ended = together(database, ["write"] * CALLS)
        monitor.join()
    assert ended == ["write refused"] * CALLS
    assert late == [before]
    assert not deadline.seconds


def test_opening_is_waited_for_once(database: Database) -> None:
    """A program that keeps everybody out: those who wait for the one that opens wait no longer than it."""
    database.close()
    late: list[int] = []
    before = threading.active_count() + 1
    monitor = threading.Timer(8 * BUSY / 1000, lambda: late.append(threading.active_count()))
    monitor.start()
    with held(database.path, whole=True):
        ended = together(database, ["write", "read"] * (CALLS // 2))
        monitor.join()
    assert {one.split()[1] for one in ended} == {"refused"}
    assert late == [before]
    write(database)


def test_a_refused_row_closes_no_connection(database: Database) -> None:
    """The connections are sound, so the next call need not open the database again."""
    opened = database._kinds
    with pytest.raises(DatabaseError, match="contradicts"), database.write() as tx:
        tx.run("INSERT INTO total (name, value) VALUES ('a', 'many')")
    assert database._kinds is opened
