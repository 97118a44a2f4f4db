"""Acknowledged writes survive every end of a process; several servers share one data folder."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from npl_mcp.app.app import App
from tests import engines
from tests.conftest import envelope
from tests.engines import execute
from tests.npl_mcp.stores.killing import Life, Outcome, kill_writers
from tests.npl_mcp.stores.writer import (
    SESSION,
    Acknowledged,
    Writer,
    caller,
    digest,
    examine,
    settings_in,
)

pytestmark = pytest.mark.thorough

KILLS = {"sqlite": 6, "postgres": 3}[engines.ENGINE]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return the state after a few kills; ``python -m tests.npl_mcp.stores.killing`` kills many."""
    return kill_writers(tmp_path_factory.mktemp("killed"), KILLS)


def test_writers_write_until_they_are_killed(outcome: Outcome) -> None:
    """None fails, and all together get something done."""
    assert outcome.ended == []
    assert outcome.kills >= KILLS
    assert outcome.acknowledged


def test_a_writer_that_failed_is_no_ordinary_kill(tmp_path: Path) -> None:
    """Its error is reported, also if it is killed before it has ended."""
    life = Life(tmp_path, "w")
    (tmp_path / "w.err").write_text("the database is damaged")
    assert life.end() == "the database is damaged"
    assert Life(tmp_path, "sound").end() is None


KILLED = {
    "damaged": "the database passes its integrity check and no reference is broken",
    "lost": "everything acknowledged is there, as it was written",
    "miscounted": "kept counts are those of the rows, and numbers have no gaps",
    "stray or changed contents": "each content is what was stored, and has a revision",
}


@pytest.mark.parametrize("promise", KILLED, ids=KILLED.values())
def test_after_a_kill(outcome: Outcome, promise: str) -> None:
    """Each promise holds after every kill."""
    assert outcome.broken[promise] == []


# How a sound data folder is broken, and what must notice it.
HARMS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a reference leads nowhere": (
        "damaged",
        lambda data: execute(data, "UPDATE notification SET event_id = 99"),
    ),
    "a message is another": (
        "lost",
        lambda data: execute(
            data, "UPDATE event SET data = '{\"message\":\"x\"}' WHERE event_type = 'message'"
        ),
    ),
    "an entry is gone": (
        "lost",
        lambda data: execute(data, "DELETE FROM worklog_entry WHERE seq = 1"),
    ),
    "a position is left out": (
        "miscounted",
        lambda data: execute(data, "UPDATE event SET position = position + 50 WHERE id = 4"),
    ),
    "a total is wrong": (
        "miscounted",
        lambda data: execute(data, "UPDATE total SET value = value + 1"),
    ),
    "a mailbox is wrong": ("miscounted", lambda data: execute(data, "UPDATE mailbox SET unread = 0")),
    "an entry is not counted": (
        "miscounted",
        lambda data: execute(data, "UPDATE worklog_session SET entry_count = entry_count + 1"),
    ),
    "a content is gone": ("damaged", lambda data: execute(data, "DELETE FROM content")),
    "a content is another": (
        "stray or changed contents",
        lambda data: execute(data, f"UPDATE content SET data = CAST('x' AS {engines.BLOB})"),
    ),
    "a content has no row": (
        "stray or changed contents",
        lambda data: execute(
            data, f"INSERT INTO content (digest, data) VALUES ('x', CAST('' AS {engines.BLOB}))"
        ),
    ),
}


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[Acknowledged]]:
    """Make a data folder by some work without kills; return a copy of it, and the acknowledged writes."""
    place = tmp_path_factory.mktemp("sound")
    (place / "project").mkdir()
    app = App(settings_in(place))
    writer = Writer(caller(app), "w")
    said = [writer.first(), *(writer.next() for _ in range(40))]
    app.close()
    engines.keep(place / "data")
    return place, shutil.copytree(place, place.with_name(f"{place.name}-copy")), said


@pytest.fixture
def sound(worked: tuple[Path, Path, list[Acknowledged]]) -> tuple[Path, list[Acknowledged]]:
    """The data folder as it was; projects are known by their path, so it lies where it lay."""
    place, copy, said = worked
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    engines.restore(place / "data")
    return place, said


def test_work_that_nobody_interrupts_keeps_every_promise(sound: tuple[Path, list[Acknowledged]]) -> None:
    """The examination finds nothing where nothing is wrong."""
    place, said = sound
    assert examine(place, said) == {promise: [] for promise in KILLED}


@pytest.mark.parametrize("harm", HARMS)
def test_the_examination_notices(sound: tuple[Path, list[Acknowledged]], harm: str) -> None:
    """Each promise can be seen to be broken."""
    place, said = sound
    promise, break_it = HARMS[harm]
    break_it(place / "data")
    assert examine(place, said)[promise]


def server(place: Path) -> StdioTransport:
    return StdioTransport(
        sys.executable,
        ["-m", "npl_mcp", "--data-dir", str(place / "data")],
        env={**os.environ, "HOME": str(place), **engines.environment(place / "data")},
        cwd=str(place / "project"),
        keep_alive=False,
    )


async def do(client: Client[Any], tool: str, **arguments: Any) -> Any:
    body = envelope(await client.call_tool(tool, arguments, raise_on_error=False))
    assert body["success"], (tool, body)
    return body["data"]


TURNS = 8


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the view of each of two servers on one data folder after both wrote at once."""
    place = tmp_path_factory.mktemp("shared")
    (place / "project").mkdir()
    seen: dict[str, Any] = {}

    async def write(client: Client[Any], name: str) -> None:
        for turn in range(TURNS):
            text = f"{name} {turn}"
            content = {"file_content_base64": encoded(text), "filename": "a.txt"}
            await do(client, "artifact_add_revision", artifact_id=1, **content, notes=text)
            await do(client, "chat_send_message", room_id=1, persona=name, message=text)
            await do(client, "worklog_log", agent_id=name, action="did", summary=text)

    async def look(client: Client[Any]) -> dict[str, Any]:
        history = (await do(client, "artifact_history", artifact_id=1))["items"]
        contents = [
            await do(client, "artifact_get", artifact_id=1, revision=entry["revision_num"])
            for entry in history[:-1]
        ]
        feed = (await do(client, "chat_get_feed", room_id=1, limit=100))["items"]
        entries = (await do(client, "worklog_read", agent_id="reader", peek=True))["items"]
        return {"history": history, "contents": contents, "feed": feed, "entries": entries}

    async def both() -> None:
        async with Client(server(place)) as one, Client(server(place)) as other:
            await do(one, "chat_create_room", name="room", members=["ann", "ben"])
            await do(
                one,
                "artifact_create",
                name="a",
                artifact_type="text",
                file_content_base64=encoded("-"),
                filename="a.txt",
            )
            await do(one, "worklog_init", session_id=SESSION)
            async with anyio.create_task_group() as group:
                group.start_soon(write, one, "ann")
                group.start_soon(write, other, "ben")
            seen["ann"], seen["ben"] = await look(one), await look(other)

    anyio.run(both)
    seen["examined"] = examine(place)
    return seen


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WRITTEN = sorted(f"{name} {turn}" for name in ("ann", "ben") for turn in range(TURNS))


def test_two_servers_see_each_others_work(shared: dict[str, Any]) -> None:
    """Both give the same answers."""
    assert shared["ann"] == shared["ben"]


def test_two_servers_number_revisions_without_gaps(shared: dict[str, Any]) -> None:
    """No revision is lost, and each has the content that was written as it."""
    history = shared["ann"]["history"]
    assert [entry["revision_num"] for entry in history] == list(range(2 * TURNS, -1, -1))
    notes = [entry["notes"] for entry in history[:-1]]
    assert sorted(notes) == WRITTEN
    contents = [one["content"] for one in shared["ann"]["contents"]]
    assert contents == notes


def test_two_servers_lose_no_message(shared: dict[str, Any]) -> None:
    """The feed has all messages, each server's in the order in which they were sent."""
    messages = [one["data"]["message"] for one in shared["ann"]["feed"] if one["event_type"] == "message"]
    assert sorted(messages) == WRITTEN
    for name in ("ann", "ben"):
        assert [text for text in messages if text.startswith(name)] == [f"{name} {at}" for at in range(TURNS)]


def test_two_servers_number_entries_without_gaps(shared: dict[str, Any]) -> None:
    """The worklog has all entries, numbered from 1, each server's in order."""
    entries = shared["ann"]["entries"]
    assert [entry["seq"] for entry in entries] == list(range(1, 2 * TURNS + 1))
    for name in ("ann", "ben"):
        own = [entry["summary"] for entry in entries if entry["agent_id"] == name]
        assert own == [f"{name} {at}" for at in range(TURNS)]


def test_two_servers_leave_everything_in_order(shared: dict[str, Any]) -> None:
    """Rows, counts and files agree."""
    assert shared["examined"] == {promise: [] for promise in KILLED}


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@contextmanager
def talking(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server that has been greeted and has a room and a worklog session."""
    (place / "project").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "npl_mcp", "--data-dir", str(place / "data")],
        cwd=place / "project",
        env={**os.environ, **engines.environment(place / "data")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            send(process, {"id": 0, "method": "initialize", "params": HELLO})
            send(process, {"method": "notifications/initialized"})
            call(process, 1, "worklog_init", session_id=SESSION)
            answered(process, 1)
            call(process, 2, "chat_create_room", name="room", members=["ann", "ben"])
            answered(process, 2)
            yield process
        finally:
            process.kill()


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def call(process: subprocess.Popen[bytes], number: int, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments}
    send(process, {"id": number, "method": "tools/call", "params": params})


def answered(process: subprocess.Popen[bytes], number: int) -> None:
    assert process.stdout is not None
    while json.loads(process.stdout.readline()).get("id") != number:
        pass


def send_many(process: subprocess.Popen[bytes]) -> dict[int, Acknowledged]:
    """Send calls without waiting for answers.

    :returns: by id of the call, what its answer acknowledges but for the ids in it.
    """
    sent = {}
    for number in range(10, 70, 3):
        text = f"@ben {number} " + "x" * 2_000
        call(process, number, "chat_send_message", room_id=1, persona="ann", message=text)
        call(process, number + 1, "worklog_log", agent_id="ann", action="did", summary=text)
        content = {"file_content_base64": encoded(text), "filename": "a.txt"}
        call(process, number + 2, "artifact_create", name=f"a{number}", artifact_type="text", **content)
        for at, (kind, keys) in enumerate(ANSWERS):
            sent[number + at] = {"kind": kind, "digest": digest(text), "key": keys}
    return sent


# What an answer's fields are in the look-up of what was acknowledged.
ANSWERS = (
    ("message", {"event": "event_id"}),
    ("entry", {"seq": "seq"}),
    ("revision", {"artifact_id": "artifact_id", "number": "revision_num"}),
)


def acknowledged(output: bytes, sent: dict[int, Acknowledged]) -> list[Acknowledged]:
    """Read from whole lines of output which calls were answered; all went well."""
    found = []
    for line in output.split(b"\n")[:-1]:
        answer = json.loads(line)
        if answer.get("id") in sent and "result" in answer:
            body = json.loads(answer["result"]["content"][0]["text"])
            assert body["success"], body
            said = sent[answer["id"]]
            keys = {name: body["data"][field] for name, field in said["key"].items()}
            found.append({**said, "key": keys})
    return found


PATIENCE = 10.0
"""Seconds until a server that does not end is killed."""

ENDINGS: dict[str, Callable[[subprocess.Popen[bytes]], object]] = {
    "its input ends": lambda process: process.stdin and process.stdin.close(),
    "it is asked to terminate": lambda process: process.terminate(),
    "it is interrupted": lambda process: process.send_signal(signal.SIGINT),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_that_is_ended_while_it_writes_keeps_every_promise(tmp_path: Path, ending: str) -> None:
    """It ends soon, all that it answered is there, and nothing is half done."""
    place = tmp_path / "place"
    with talking(place) as process:
        assert process.stdout is not None
        sent = send_many(process)
        first = process.stdout.readline()
        ENDINGS[ending](process)
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        output = first + process.stdout.read()
        process.wait()
        late.cancel()
    assert process.returncode != -signal.SIGKILL
    said = acknowledged(output, sent)
    assert said
    assert examine(place, said) == {promise: [] for promise in KILLED}
