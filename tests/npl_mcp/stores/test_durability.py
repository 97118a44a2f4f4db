"""Acknowledged writes survive every end of a process; several servers share one data folder."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from npl_mcp.app.app import App
from tests import engines
from tests.conftest import cases, envelope
from tests.messages import calling
from tests.npl_mcp.server.speaking import Speaker, spoken_to
from tests.npl_mcp.stores.killing import Outcome, kill_writers
from tests.npl_mcp.stores.writer import SESSION, Acknowledged, Writer, caller, digest, examine, settings_in

pytestmark = pytest.mark.thorough

KILLS = {"sqlite": 6, "postgres": 3}[engines.ENGINE]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Return the state after a few kills; ``python -m tests.npl_mcp.stores.killing`` kills many."""
    return kill_writers(tmp_path_factory.mktemp("killed"), KILLS)


def test_writers_write_until_they_are_killed(outcome: Outcome) -> None:
    """No writer fails, and together they write enough."""
    assert outcome.ended == []
    assert outcome.kills >= KILLS
    assert outcome.acknowledged


KILLED = cases("npl_mcp/stores/durability")["killed"]


@pytest.mark.parametrize("promise", KILLED, ids=KILLED.values())
def test_after_a_kill(outcome: Outcome, promise: str) -> None:
    assert outcome.broken[promise] == []


# By promise: how a sound data folder breaks it.
HARMS: dict[str, tuple[str, ...]] = {
    # PostgreSQL itself refuses statements that break a reference, and the check leaves references to it.
    "damaged": () if engines.SERVER else ("UPDATE notification SET event_id = 99", "DELETE FROM content"),
    "lost": (
        "UPDATE event SET data = '{\"message\":\"x\"}' WHERE event_type = 'message'",
        "DELETE FROM worklog_entry WHERE seq = 1",
    ),
    "miscounted": (
        "UPDATE event SET position = position + 50 WHERE id = 4",
        "UPDATE mailbox SET total = 0",
        "UPDATE worklog_session SET entry_count = entry_count + 1",
    ),
    "stray or changed contents": (
        f"UPDATE content SET data = CAST('x' AS {engines.BLOB})",
        f"INSERT INTO content (digest, data) VALUES ('x', CAST('' AS {engines.BLOB}))",
    ),
}


@pytest.mark.parametrize(
    ("promise", "statement"), [(name, sql) for name, statements in HARMS.items() for sql in statements]
)
def test_the_examination_notices(tmp_path: Path, promise: str, statement: str) -> None:
    """Each promise holds after some work without kills, and a broken one is detected."""
    (tmp_path / "project").mkdir()
    app = App(settings_in(tmp_path))
    writer = Writer(caller(app), "w")
    said = [writer.first(), *(writer.next() for _ in range(40))]
    app.close()
    assert examine(tmp_path, said) == {promise: [] for promise in KILLED}
    engines.execute(tmp_path / "data", statement)
    assert examine(tmp_path, said)[promise]


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


async def test_two_servers_on_one_data_folder_lose_nothing(tmp_path: Path) -> None:
    """Both write at once and give equal answers; numbers have no gaps, writes keep their order."""
    (tmp_path / "project").mkdir()
    seen: list[dict[str, Any]] = []

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

    async with Client(server(tmp_path)) as ann, Client(server(tmp_path)) as ben:
        file = {"file_content_base64": encoded("-"), "filename": "a.txt"}
        await do(ann, "chat_create_room", name="room", members=["ann", "ben"])
        await do(ann, "artifact_create", name="a", artifact_type="text", **file)
        await do(ann, "worklog_init", session_id=SESSION)
        async with anyio.create_task_group() as group:
            group.start_soon(write, ann, "ann")
            group.start_soon(write, ben, "ben")
        seen.extend([await look(ann), await look(ben)])
    answers, others = seen
    assert answers == others
    history, entries = answers["history"], answers["entries"]
    assert [entry["revision_num"] for entry in history] == list(range(2 * TURNS, -1, -1))
    notes = [entry["notes"] for entry in history[:-1]]
    assert [revision["content"] for revision in answers["contents"]] == notes
    assert [entry["seq"] for entry in entries] == list(range(1, 2 * TURNS + 1))
    messages = [event["data"]["message"] for event in answers["feed"] if event["event_type"] == "message"]
    for name in ("ann", "ben"):
        written = [f"{name} {turn}" for turn in range(TURNS)]
        assert [note for note in reversed(notes) if note.startswith(name)] == written
        assert [message for message in messages if message.startswith(name)] == written
        assert [entry["summary"] for entry in entries if entry["agent_id"] == name] == written
    assert examine(tmp_path) == {promise: [] for promise in KILLED}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def send_many(server: Speaker) -> dict[int, Acknowledged]:
    """Send calls without waiting for answers.

    :returns: by id of the call, what its answer acknowledges but for the ids in it.
    """
    sent = {}
    for number in range(10, 70, 3):
        text = f"@ben {number} " + "x" * 2_000
        content = {"file_content_base64": encoded(text), "filename": "a.txt"}
        server.send(
            calling(number, "chat_send_message", room_id=1, persona="ann", message=text),
            calling(number + 1, "worklog_log", agent_id="ann", action="did", summary=text),
            calling(number + 2, "artifact_create", name=f"a{number}", artifact_type="text", **content),
        )
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
    lines = []
    for line in output.split(b"\n")[:-1]:
        answer = json.loads(line)
        if answer.get("id") in sent and "result" in answer:
            body = json.loads(answer["result"]["content"][0]["text"])
            assert body["success"], body
            said = sent[answer["id"]]
            keys = {name: body["data"][field] for name, field in said["key"].items()}
            lines.append({**said, "key": keys})
    return lines


PATIENCE = 10.0
"""Seconds until a server that does not end is killed."""

ENDINGS: dict[str, Callable[[subprocess.Popen[bytes]], object]] = {
    "its input ends": lambda process: process.stdin and process.stdin.close(),
    "it is asked to terminate": lambda process: process.terminate(),
    "it is interrupted": lambda process: process.send_signal(signal.SIGINT),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_that_is_ended_while_it_writes_keeps_every_promise(tmp_path: Path, ending: str) -> None:
    """It ends soon, every acknowledged write is there, and no write is half done."""
    place = tmp_path / "place"
    place.mkdir()
    with spoken_to(place, cwd="project", **engines.environment(place / "data")) as server:
        server.call("worklog_init", session_id=SESSION)
        server.call("chat_create_room", name="room", members=["ann", "ben"])
        process = server.process
        sent = send_many(server)
        first = server.stdout.readline()
        ENDINGS[ending](process)
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        output = first + server.stdout.read()
        process.wait()
        late.cancel()
    assert process.returncode != -signal.SIGKILL
    said = acknowledged(output, sent)
    assert said
    assert examine(place, said) == {promise: [] for promise in KILLED}
