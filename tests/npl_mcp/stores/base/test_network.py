"""The network between a replica and PostgreSQL breaks or stands still at every moment of a call."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.stores.base import engine, postgres
from tests import engines
from tests.npl_mcp.http.http_server import call, in_flight
from tests.npl_mcp.stores.test_faults import ask, file, fill
from tests.npl_mcp.stores.writer import examine, settings_in
from tests.proxy import Fault, Network, network
from tests.replicas import replica
from tests.until import PATIENCE, until

pytestmark = pytest.mark.engine("postgres")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


@pytest.fixture
def net(place: Path) -> Iterator[Network]:
    with network(engines.address(place / "data") or "") as made:
        yield made


@pytest.fixture
def app(place: Path, net: Network) -> Iterator[App]:
    """A replica behind that network, with rows of every kind."""
    made = App(replace(settings_in(place), database_url=net.address(engines.name_of(place / "data"))))
    fill(made)
    yield made
    made.close()


@pytest.fixture
def other(place: Path) -> Iterator[App]:
    """Another replica on the same database, with a sound network."""
    made = App(replace(settings_in(place), data_dir=place / "other"))
    yield made
    made.close()


SOON = PATIENCE
"""Seconds after which a test fails."""


# What a call adds a row to, and its arguments; a number makes them unlike those of any other call.
WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "session_create": ("session", {"session_id": "later{}"}),
    "artifact_create": ("artifact", {"name": "later{}", "artifact_type": "document", **file()}),
    "artifact_add_revision": ("revision", {"artifact_id": 1, **file(b"# Plan 2\n")}),
    "chat_send_message": ("event", {"room_id": 1, "persona": "alice", "message": "@bob look at {}"}),
    "chat_create_todo": ("todo", {"room_id": 1, "persona": "alice", "description": "do {}"}),
    "review_add_comment": (
        "review_comment",
        {"review_id": 1, "location": "line:1", "comment": "why {}?", "persona": "bob"},
    ),
    "worklog_log": ("worklog_entry", {"agent_id": "alice", "action": "did", "summary": "something {}"}),
}

UNKNOWN = "check whether the change was made"


@pytest.mark.parametrize("done", [False, True], ids=["requests are lost", "answers are lost"])
@pytest.mark.parametrize("tool", WRITES)
def test_a_write_whose_connection_breaks_is_done_once_or_says_what_to_do(
    app: App, net: Network, place: Path, tool: str, done: bool
) -> None:
    """Acknowledged writes are there once, failed ones never; only a lost answer asks the caller to check."""
    table, arguments = WRITES[tool]
    unknown = 0
    for requests in count():
        assert ask(app, "session_list")["success"]
        with app.stores.database.write():  # both kinds of connection are open
            pass
        given = {
            key: value.format(requests) if isinstance(value, str) else value
            for key, value in arguments.items()
        }
        before = rows(place, table)
        net.plan(requests, Fault.BREAK, done=done)
        body = ask(app, tool, **given)
        written = rows(place, table) - before
        if not net.has_happened:
            break
        if body["success"]:
            assert written == 1
        else:
            assert body["error_code"] == "DATABASE_ERROR"
            assert "try again" in body["error"]
            if UNKNOWN in body["error"]:
                unknown += 1
                assert written == done
            else:
                assert written == 0
    assert requests >= 3
    assert unknown == 1
    assert (body["success"], written) == (True, 1)
    assert [problem for problems in examine(place).values() for problem in problems] == []


def rows(place: Path, table: str) -> int:
    return int(engines.query(place / "data", f"SELECT count(*) FROM {table}")[0][0])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all times to wait, in their usual order."""
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 0.8)
    monkeypatch.setattr(engine, "BUSY_MILLISECONDS", 1_500)
    monkeypatch.setattr(postgres, "SILENCE_SECONDS", 2)


def say(app: App, text: str) -> dict[str, Any]:
    return ask(app, "chat_send_message", room_id=1, persona="alice", message=text)


def said(app: App) -> list[str]:
    feed = ask(app, "chat_get_feed", room_id=1, limit=1_000)["data"]["items"]
    return [event["data"]["message"] for event in feed if event["event_type"] == "message"]


# Which request of a call is where the network stands still; the last one commits.
MOMENTS = {"as it begins": 0, "in its midst": 3, "as it commits": -1}


@pytest.mark.parametrize("done", [False, True], ids=["before it arrives", "before the answer does"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_network_that_stands_still_ends_a_call_and_nothing_is_done_later(
    impatient: None, app: App, other: App, net: Network, moment: str, done: bool
) -> None:
    """A reported failure or uncertainty is true; other calls wait only a moment."""
    for _ in range(6):  # then the driver has prepared all statements
        assert say(app, "before")["success"]
    net.plan(1_000, Fault.PAUSE, done=done)
    assert say(app, "counted")["success"]
    net.plan(MOMENTS[moment] % net.passed, Fault.PAUSE, done=done)
    body = say(app, "lost")
    commits = moment == "as it commits"
    assert body["error_code"] == "DATABASE_ERROR"
    assert "try again" in body["error"]
    assert (UNKNOWN in body["error"]) is commits
    expected = [*["before"] * 6, "counted", *(["lost"] if commits and done else [])]
    assert said(other) == expected
    assert say(other, "meanwhile")["success"]
    net.resume()
    assert say(app, "after")["success"]
    assert said(app) == said(other) == [*expected, "meanwhile", "after"]
    assert app.stores.database.check() == []


def test_a_turn_that_never_comes_ends_a_call(app: App, net: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BUSY_MILLISECONDS", 500)
    monkeypatch.setattr(postgres, "SILENCE_SECONDS", 20 * SOON)
    assert say(app, "before")["success"]
    net.plan(0, Fault.PAUSE, done=False)
    future: Future[dict[str, Any]] = Future()
    threading.Thread(target=lambda: future.set_result(say(app, "lost")), daemon=True).start()
    assert future.result(SOON)["error_code"] == "DATABASE_ERROR"
    net.resume()
    assert said(app) == ["before"]


@pytest.mark.usefixtures("impatient")
def test_calls_while_the_network_stands_still_all_say_so(app: App, net: Network) -> None:
    """Reads, writes, and calls that have to connect first fail with the reason."""
    net.pause()
    bodies = [say(app, "lost"), ask(app, "chat_get_feed", room_id=1), ask(app, "session_list")]
    assert [body["error_code"] for body in bodies] == ["DATABASE_ERROR"] * 3
    assert all("try again" in body["error"] for body in bodies)
    net.resume()
    assert [say(app, "after")["success"], said(app)] == [True, ["after"]]


def waiting(app: App, since: int, seconds: float = 60) -> Future[dict[str, Any]]:
    """Begin to wait for what comes after an event; return the future answer."""
    future: Future[dict[str, Any]] = Future()

    def wait() -> None:
        future.set_result(ask(app, "chat_get_feed", room_id=1, since=since, wait=seconds))

    threading.Thread(target=wait, daemon=True).start()
    until(lambda: app.stores.news.waiting)
    return future


def break_it(net: Network) -> None:
    net.sever()


def pause_it(net: Network) -> None:
    net.pause()
    threading.Timer(0.5, net.resume).start()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("harm", [break_it, pause_it])
def test_a_waiting_reader_survives(
    app: App, other: App, net: Network, harm: Callable[[Network], None]
) -> None:
    """After its connection broke or stood still, the reader gets what came meanwhile."""
    last = say(app, "before")["data"]["event_id"]
    future = waiting(app, last)
    harm(net)
    assert say(other, "news")["success"]
    body = future.result(SOON)
    assert [event["data"]["message"] for event in body["data"]["items"]] == ["news"]


@pytest.mark.usefixtures("impatient")
def test_a_replica_ends_while_the_network_stands_still(app: App, net: Network) -> None:
    """Waiting callers are told, and closing delays no one."""
    last = say(app, "before")["data"]["event_id"]
    future = waiting(app, last)
    net.pause()
    closing = threading.Thread(target=app.close)
    closing.start()
    closing.join(SOON)
    assert not closing.is_alive()
    assert future.result(SOON)["error_code"] == "DATABASE_ERROR"


def test_a_server_is_asked_to_end_while_the_network_stands_still(net: Network, place: Path) -> None:
    """It ends by itself, despite waiting and running calls."""
    with (
        replica(place, net.address(engines.name_of(place / "data")), 0) as server,
        ThreadPoolExecutor() as pool,
    ):
        room = {"name": "room", "members": ["alice", "bob"]}
        assert call(server, "chat_create_room", room).status == 200
        pool.submit(call, server, "chat_get_feed", {"room_id": 1, "since": 2, "wait": 60})
        until(lambda: in_flight(server) == 1)
        net.pause()
        pool.submit(call, server, "session_list", {})
        until(lambda: in_flight(server) == 2)
        server.process.terminate()
        assert server.process.wait(SOON) == 0
