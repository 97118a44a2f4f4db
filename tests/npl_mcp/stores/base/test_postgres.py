"""Cases of PostgreSQL alone: broken connections, dying servers, foreign schemas, a clock set back."""

import base64
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base import postgres
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import BusyError, DatabaseError
from npl_mcp.stores.base.opening import database_of
from tests import engines
from tests.conftest import cases
from tests.npl_mcp.stores.test_faults import ask
from tests.postgres_server import Server, serving
from tests.until import until

pytestmark = pytest.mark.engine("postgres")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    made = engines.database(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that may be killed; it hands commits to the system before it reports them."""
    with serving("fsync=off") as made:
        yield made


@pytest.fixture
def app(tmp_path: Path, server: Server) -> Iterator[App]:
    """An application on that server, with a room."""
    (tmp_path / "project").mkdir()
    name = f"t{abs(hash(tmp_path.name)):x}"
    with psycopg.connect(server.address(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    made = App(
        Settings(
            cwd=tmp_path / "project",
            home=tmp_path,
            data_dir=tmp_path / "data",
            database_url=server.address(name),
            warm_up=False,
        )
    )
    assert ask(made, "chat_create_room", name="room", members=["alice", "bob"])["success"]
    yield made
    made.close()


def say(app: App, text: str) -> dict[str, Any]:
    return ask(app, "chat_send_message", room_id=1, persona="alice", message=text)


def messages(app: App) -> list[str]:
    feed = ask(app, "chat_get_feed", room_id=1, limit=1_000)["data"]["items"]
    return [event["data"]["message"] for event in feed if event["event_type"] == "message"]


def test_a_server_that_is_killed_costs_calls_and_nothing_else(app: App, server: Server) -> None:
    """Acknowledged writes are there; calls meanwhile say to retry; then the same process goes on."""
    kept: list[str] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            if say(app, text := f"m{len(kept)}").get("success"):
                kept.append(text)

    writer = threading.Thread(target=write)
    writer.start()
    while len(kept) < 20:
        stop.wait(0.01)
    server.ask("kill")
    stop.set()
    writer.join()
    refused = [say(app, "lost"), ask(app, "chat_get_feed", room_id=1)]
    assert [answer["error_code"] for answer in refused] == ["DATABASE_ERROR"] * 2
    assert all("try again" in answer["error"] for answer in refused)
    server.ask("start")
    assert say(app, "after")["success"]
    stored = messages(app)
    assert [text for text in stored if text in kept] == kept
    assert stored[-1] == "after"
    assert app.stores.database.check() == []


def until_it_is_back(app: App, server: Server) -> None:
    """Wait for a server that restarts by itself, or start it again."""

    def is_back() -> bool:
        if ask(app, "session_list")["success"]:
            return True
        server.ask("start")
        return False

    until(is_back)


# Bytes that a file of the server may have: more than a piece of its log, which has 16 MiB. A page that is
# written in part is what a full disk leaves; one that is refused whole has another reason than a full disk.
ROOMS = {
    "a part of a page has room": (17_000_000, "disk is full"),
    "no page has": (17_039_360, "server failed"),
}


@pytest.mark.parametrize("case", ROOMS)
def test_a_full_disk_refuses_what_finds_no_room(app: App, server: Server, case: str) -> None:
    """Other calls work, acknowledged rows are there, and with room the same process goes on."""
    size, reason = ROOMS[case]
    server.ask(f"files {size}")
    try:
        answers = [store(app, number) for number in range(5)]
        assert say(app, "short")["success"]
        kept = [answer["data"]["artifact_id"] for answer in answers if answer["success"]]
        assert all(is_stored(app, artifact) for artifact in kept)
    finally:
        server.ask("files -1")
    refused = [answer for answer in answers if not answer["success"]]
    assert len(kept) == ask(app, "artifact_list")["data"]["total"] == 5 - len(refused) < 5
    assert {answer["error_code"] for answer in refused} == {"DATABASE_ERROR"}
    assert all(reason in answer["error"] and "try again" in answer["error"] for answer in refused)
    new = store(app, 9)["data"]["artifact_id"]
    assert all(is_stored(app, artifact) for artifact in [*kept, new])
    assert messages(app) == ["short"]
    assert app.stores.database.check() == []


def test_a_disk_without_room_for_the_log_costs_calls_and_nothing_else(app: App, server: Server) -> None:
    """The server ends itself during a call; acknowledged rows are there when it is back."""
    kept = [text for text in map(str, range(10)) if say(app, text)["success"]]
    server.ask("files 4000000")
    try:
        answers = [store(app, number) for number in range(3)]
    finally:
        server.ask("files -1")
    assert {answer["error_code"] for answer in answers if not answer["success"]} == {"DATABASE_ERROR"}
    assert all("try again" in answer["error"] for answer in answers if not answer["success"])
    assert not all(answer["success"] for answer in answers)
    until_it_is_back(app, server)
    assert messages(app) == kept
    stored = {row["id"] for row in ask(app, "artifact_list")["data"]["items"]}
    assert stored >= {answer["data"]["artifact_id"] for answer in answers if answer["success"]}
    assert all(is_stored(app, artifact) for artifact in stored)
    assert say(app, "after")["success"]
    assert app.stores.database.check() == []


def store(app: App, number: int) -> dict[str, Any]:
    """Store six million incompressible bytes under this name."""
    content = base64.b64encode(noise(number)).decode()
    return ask(
        app,
        "artifact_create",
        name=str(number),
        artifact_type="noise",
        file_content_base64=content,
        filename="noise.bin",
    )


def is_stored(app: App, artifact_id: int) -> bool:
    artifact = ask(app, "artifact_get", artifact_id=artifact_id)["data"]
    return base64.b64decode(artifact["file_content"]) == noise(int(artifact["artifact_name"]))


def noise(seed: int) -> bytes:
    return random.Random(seed).randbytes(6_000_000)


def test_a_deadlock_with_another_program_ends(database: Database, tmp_path: Path) -> None:
    """One of the two is told to try again, and its connection is sound."""
    with database.write() as tx:
        tx.insert_many("total", [{"name": "a", "value": 1}, {"name": "b", "value": 1}])
    raised: list[BaseException] = []
    with psycopg.connect(engines.address(tmp_path) or "") as other:
        other.execute("UPDATE total SET value = 2 WHERE name = 'b'")

        def cross() -> None:
            try:
                other.execute("UPDATE total SET value = 2 WHERE name = 'a'")
            except psycopg.errors.DeadlockDetected as error:
                raised.append(error)

        thread = threading.Thread(target=cross)
        try:
            with database.write() as tx:
                tx.run("UPDATE total SET value = 3 WHERE name = 'a'")
                thread.start()
                tx.run("UPDATE total SET value = 3 WHERE name = 'b'")
        except BusyError as error:
            raised.append(error)
        thread.join()
        other.rollback()
    assert len(raised) == 1
    with database.write() as tx:
        assert tx.run("UPDATE total SET value = 4") == 2


def test_a_process_that_stands_still_delays_no_other(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server ends its transaction, and the process learns that when it goes on."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 1)
    other = engines.database(tmp_path)

    def work() -> None:
        with database.write() as tx:
            tx.run("INSERT INTO total (name, value) VALUES ('still', 1)")
            with other.write() as second:  # waits until the first is ended
                second.run("INSERT INTO total (name, value) VALUES ('second', 1)")
            tx.run("INSERT INTO total (name, value) VALUES ('late', 1)")

    with pytest.raises(DatabaseError):
        work()
    with other.read() as tx:
        assert [row["name"] for row in tx.all("SELECT name FROM total")] == ["second"]
    other.close()


VERSIONS = {
    "a newer one": ("9999", "npl, from schema 9999 on", "newer version"),
    "an unknown one": ("zz", "npl, from schema zz on", "does not know"),
    "another program's": ("0001", None, "another program"),
}


@pytest.mark.parametrize("case", VERSIONS)
def test_a_database_of_others_is_refused_and_not_touched(
    database: Database, tmp_path: Path, case: str
) -> None:
    """Its version is newer, or it is not one of ours."""
    version, comment, said = VERSIONS[case]
    database.open()
    database.close()
    engines.execute(tmp_path, f"UPDATE alembic_version SET version_num = '{version}'")
    quoted = "NULL" if comment is None else f"'{comment}'"
    engines.execute(tmp_path, f"COMMENT ON TABLE alembic_version IS {quoted}")
    connection, query = engines.watched(tmp_path)
    before = connection.execute(query).fetchone()
    with pytest.raises(DatabaseError, match=said), database.read():
        pass
    assert connection.execute(query).fetchone() == before
    connection.close()


REFUSED = cases("npl_mcp/stores/base/postgres")["refused"]


@pytest.mark.parametrize("case", REFUSED)
def test_an_address_that_cannot_be_used_says_why(tmp_path: Path, case: str) -> None:
    """The message shows neither address nor password."""
    host = (engines.SERVER or "").rpartition("host=")[2]
    with pytest.raises(DatabaseError, match=REFUSED[case]) as caught:
        database_of(tmp_path, case.format(host=host)).open()
    assert "secret" not in str(caught.value)
    assert "nobody@" not in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_texts_are_ordered_byte_by_byte(database: Database) -> None:
    """The order is SQLite's, for any language of the server."""
    words = ["Z", "a", "é", "B", "_", "10", "9", "A"]
    with database.write() as tx:
        tx.insert_many("total", [{"name": word, "value": 1} for word in words])
        names = [row["name"] for row in tx.all("SELECT name FROM total ORDER BY name")]
    assert names == sorted(words, key=str.encode)


def test_a_colon_or_a_percent_sign_in_a_text_is_no_parameter(database: Database) -> None:
    with database.read() as tx:
        row = tx.first(
            "SELECT ':no %s 100%' AS text, CAST(:yes AS TEXT)::text AS given, 7 % 4 AS rest", yes="%x"
        )
    assert row == {"text": ":no %s 100%", "given": "%x", "rest": 3}
