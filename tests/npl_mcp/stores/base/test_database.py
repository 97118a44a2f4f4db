"""The database itself: opening, transactions, copies, and damaged or misplaced files."""

import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fastmcp import Client

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.stores.base import sqlite
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.opening import database_of
from tests import engines
from tests.conftest import cases


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return database_of(tmp_path / "data", engines.empty_address(tmp_path / "data"))


def place(folder: Path) -> list[str]:
    """Return what another process needs to open a database."""
    return [str(folder), *([engines.empty_address(folder) or ""] if engines.SERVER else [])]


def add(database: Database, name: str) -> None:
    with database.write() as tx:
        tx.run("INSERT INTO total (name, value) VALUES (:name, 1)", name=name)


def names(database: Database) -> list[str]:
    with database.read() as tx:
        return [row["name"] for row in tx.all("SELECT name FROM total ORDER BY name")]


def test_the_folder_and_the_tables_are_made_when_first_needed(database: Database, tmp_path: Path) -> None:
    """Making the object touches no disk; the first call makes everything."""
    assert not (tmp_path / "data").exists()
    add(database, "a")
    assert names(database) == ["a"]
    assert database.check() == []


def test_a_list_fills_its_own_parameter_only(database: Database) -> None:
    """Another parameter may have a name that begins with this one's."""
    for name in "abcd":
        add(database, name)
    sql = "SELECT name FROM total WHERE name IN :names OR name IN :names_too ORDER BY name"
    with database.read() as tx:
        names = [row["name"] for row in tx.all(sql, names=["a"], names_too=["b", "d"])]
    assert names == ["a", "b", "d"]


def test_processes_that_open_a_new_database_at_once_agree(database: Database, tmp_path: Path) -> None:
    """One makes the tables, and the others use them."""
    code = (
        "import sys, pathlib; from npl_mcp.stores.base.opening import database_of;"
        "d = database_of(pathlib.Path(sys.argv[2]), *sys.argv[3:])\n"
        'with d.write() as tx: tx.run("INSERT INTO total VALUES (:n, 1)", n=sys.argv[1])\n'
        "d.close()"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, f"p{number}", *place(tmp_path / "data")])
        for number in range(5)
    ]
    assert [process.wait(60) for process in running] == [0] * 5
    assert names(database) == [f"p{number}" for number in range(5)]


def test_a_transaction_happens_whole_or_not_at_all(database: Database) -> None:

    def work() -> None:
        with database.write() as tx:
            tx.run("INSERT INTO total (name, value) VALUES ('a', 1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert names(database) == []


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(DatabaseError), database.read() as tx:
        tx.run("INSERT INTO total (name, value) VALUES ('a', 1)")
    assert names(database) == []


BROKEN_ROWS = cases("npl_mcp/stores/base/database")["broken_rows"]


@pytest.mark.parametrize("case", BROKEN_ROWS)
def test_the_database_itself_refuses_broken_rows(database: Database, case: str) -> None:
    """The database enforces foreign keys, checks and types."""
    with pytest.raises(DatabaseError), database.write() as tx:
        tx.run(BROKEN_ROWS[case])
    assert database.check() == []


def test_an_answer_stands_in_the_room_of_what_it_answers(database: Database) -> None:
    """The schema itself forbids a reply across rooms."""
    with database.write() as tx:
        rooms = [
            tx.value("INSERT INTO room (name, created_at) VALUES (:name, 't') RETURNING id", name=name)
            for name in "ab"
        ]
        event = (
            "INSERT INTO event (room_id, position, event_type, persona, timestamp, data, reply_to_id) "
            "VALUES (:room, :at, 'message', 'p', 't', '{}', :reply) RETURNING id"
        )
        first = tx.value(event, room=rooms[0], at=1, reply=None)
        tx.value(event, room=rooms[0], at=2, reply=first)
    with pytest.raises(DatabaseError), database.write() as tx:
        tx.value(event, room=rooms[1], at=1, reply=first)


def test_ids_are_never_used_again(database: Database) -> None:
    """A cursor stays valid when the newest row is deleted."""
    insert = "INSERT INTO room (name, created_at) VALUES (:name, 't') RETURNING id"
    with database.write() as tx:
        first = tx.value(insert, name="a")
        tx.run("DELETE FROM room WHERE id = :id", id=first)
        assert tx.value(insert, name="b") > first


def test_many_threads_write_one_after_the_other(database: Database) -> None:
    add(database, "counter")

    def work() -> None:
        for _ in range(25):
            with database.write() as tx:
                value = tx.value("SELECT value FROM total WHERE name = 'counter'")
                tx.run("UPDATE total SET value = :value WHERE name = 'counter'", value=value + 1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as tx:
        assert tx.value("SELECT value FROM total WHERE name = 'counter'") == 201


def test_a_call_that_waits_is_not_overtaken(database: Database) -> None:
    """A thread that writes again at once gets its next turn after the thread that waited for the first."""
    order, asks = [], threading.Event()

    def wait() -> None:
        asks.set()
        with database.write():
            order.append("waiting")

    waiting = threading.Thread(target=wait)
    with database.write():
        waiting.start()
        asks.wait()
        time.sleep(0.3)
    with database.write():
        order.append("again")
    waiting.join()
    assert order == ["waiting", "again"]


def foreign_text(path: Path) -> None:
    path.write_text("these are somebody's notes, and more than a hundred bytes of them. " * 3)


def foreign_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA application_id = 7")
        connection.execute("CREATE TABLE notes (text)")
    connection.close()


def newer(path: Path) -> None:
    first = database_of(path.parent)
    first.open()
    with first.write() as tx:
        tx.run("UPDATE alembic_version SET version_num = '9999'")
    first.close()


def cut(path: Path) -> None:
    first = database_of(path.parent)
    with first.write() as tx:
        tx.insert_many("total", [{"name": f"{number:0500}", "value": 1} for number in range(2_000)])
    first.close()
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\xff" * 40_000)


UNUSABLE = {
    "notes": (foreign_text, "not a database of npl"),
    "another program's database": (foreign_database, "not a database of npl"),
    "a newer version's database": (newer, "newer version"),
    "a damaged database": (cut, "damaged"),
}


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize("case", UNUSABLE)
def test_a_file_that_cannot_be_used_is_left_as_it_is(database: Database, tmp_path: Path, case: str) -> None:
    """The error says what is wrong; when the file is moved away the next call works."""
    make, text = UNUSABLE[case]
    path = tmp_path / "data" / "npl.db"
    path.parent.mkdir()
    make(path)
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match=text) as caught:
        names(database)
    assert str(path.parent) not in str(caught.value)
    assert path.read_bytes() == before
    path.rename(path.with_suffix(".old"))
    for leftover in ("-wal", "-shm"):
        path.with_name(path.name + leftover).unlink(missing_ok=True)
    assert names(database) == []


@pytest.mark.engine("sqlite")
def test_an_empty_file_becomes_the_database(database: Database, tmp_path: Path) -> None:
    """A crash before the first commit leaves such a file."""
    path = tmp_path / "data" / "npl.db"
    path.parent.mkdir()
    path.touch()
    add(database, "a")
    assert names(database) == ["a"]


@pytest.mark.engine("sqlite")
def test_a_folder_in_the_way_is_reported_and_the_next_call_works(tmp_path: Path) -> None:
    """The data folder may become usable while the server runs."""
    blocked = tmp_path / "data"
    blocked.write_text("a file where the folder should be")
    database = database_of(blocked)
    with pytest.raises(DatabaseError, match="data folder") as caught:
        names(database)
    assert str(tmp_path) not in str(caught.value)
    blocked.unlink()
    assert names(database) == []


@pytest.mark.engine("sqlite")
def test_a_copy_made_while_others_write_is_complete(database: Database, tmp_path: Path) -> None:
    """It has everything committed before it began, and is a sound database."""
    add(database, "before")
    going = threading.Event()

    def work() -> None:
        number = 0
        while not going.is_set():
            number += 1
            add(database, f"n{number}")

    writer = threading.Thread(target=work)
    writer.start()
    try:
        (tmp_path / "copy").mkdir()
        assert database.copy(tmp_path / "copy" / "npl.db")
    finally:
        going.set()
        writer.join()
    copied = database_of(tmp_path / "copy")
    assert "before" in names(copied)
    assert copied.check() == []
    copied.close()


@pytest.mark.engine("sqlite")
def test_a_damaged_database_is_reported_when_the_server_starts(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The report needs no call; a folder without a database stays without one."""
    app = App(Settings(cwd=tmp_path, home=tmp_path, data_dir=tmp_path / "data"))
    app.warm_up()
    app.close()
    assert not (tmp_path / "data" / "npl.db").exists()
    (tmp_path / "data").mkdir(exist_ok=True)
    cut(tmp_path / "data" / "npl.db")
    app = App(Settings(cwd=tmp_path, home=tmp_path, data_dir=tmp_path / "data"))
    app.warm_up()
    app.close()
    assert "damaged" in caplog.text


@pytest.mark.engine("sqlite")
def test_the_driver_is_free_of_the_known_damage() -> None:
    """Where the package brings a current SQLite, that one is used."""
    version = sqlite.driver().sqlite_version_info
    if sys.platform == "linux" and sqlite.driver().__name__.startswith("pysqlite3"):
        assert version >= (3, 51, 3)
    assert version >= (3, 37, 0)  # STRICT tables


@pytest.mark.engine("sqlite")
@pytest.mark.parametrize(
    ("version", "sound"), cases("npl_mcp/stores/base/database")["an_old_sqlite_is_named"]
)
def test_an_old_sqlite_is_named(monkeypatch: pytest.MonkeyPatch, version: str, sound: bool) -> None:
    """Later patch releases with the correction are sound."""
    monkeypatch.setattr(sqlite.driver(), "sqlite_version", version)
    monkeypatch.setattr(sqlite.driver(), "sqlite_version_info", tuple(map(int, version.split("."))))
    assert (sqlite.weakness() is None) == sound
    assert sound or version in str(sqlite.weakness())


@pytest.mark.engine("sqlite")
async def test_a_server_warns_of_an_old_sqlite_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Neither each command nor each connection warns."""
    monkeypatch.setattr(sqlite.driver(), "sqlite_version_info", (3, 40, 1))
    settings = Settings(cwd=tmp_path, home=tmp_path, data_dir=tmp_path / "data")

    async with Client(create_server(settings)) as client:
        for number in range(3):
            await client.call_tool("chat_create_room", {"name": f"room{number}", "members": ["a"]})
    assert [record.message for record in caplog.records if "can damage" in record.message] == [
        f"{sqlite.weakness()}; {sqlite.REMEDY}"
    ]
