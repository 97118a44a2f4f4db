"""A call that is repeated with its ``request_id`` changes nothing and gets the same answer."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client

from docs.reference import prepare
from npl_mcp.calls import invoking
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.stores import requests
from npl_mcp.stores.base.paging import now
from npl_mcp.tools.domains import shown_tools
from tests import engines
from tests.conftest import Call, Connect, calls, client_of, envelope, listed

ROOM: tuple[str, dict[str, Any]] = ("chat_create_room", {"name": "den", "members": ["ann", "bo"]})
JOINED = 2
"""Events of the room before a message."""

SEND: dict[str, Any] = {"room_id": 1, "persona": "ann", "message": "hello", "request_id": "r1"}


@pytest.mark.parametrize("form", ["json", "markdown"])
async def test_every_writing_tool_is_called_once(settings: Settings, tmp_path: Path, form: str) -> None:
    """Each example of the documentation is sent twice; a reading tool ignores the id."""
    work = tmp_path / "project"
    prepare(work)
    own = replace(settings, cwd=work, roots=(work,), write=True, format=form)

    async with client_of(own) as client:
        for spec in shown_tools(own):
            sent = {**spec.example, "request_id": f"id of {spec.name}"}
            answers = [await client.call_tool(spec.name, sent) for _ in range(2)]
            first, second = (answer.content[0].text for answer in answers)
            assert first == second or spec.may_read(spec.example), spec.name
    writing = sum(not spec.may_read(spec.example) for spec in shown_tools(own))
    assert engines.query(own.data_folder, "SELECT count(*) FROM request") == [(writing,)]


async def test_a_repeated_call_is_made_once(settings: Settings) -> None:
    """Repetitions may arrive at once; without an id each is a call of its own."""
    async with client_of(settings) as client:
        await client.call_tool(*ROOM)
        answers = await asyncio.gather(*(client.call_tool("chat_send_message", SEND) for _ in range(9)))
        assert len({answer.content[0].text for answer in answers}) == 1
        plain = {name: value for name, value in SEND.items() if name != "request_id"}
        for _ in range(2):
            await client.call_tool("chat_send_message", plain)
        feed = envelope(await client.call_tool("chat_get_feed", {"room_id": 1}))["data"]
        assert [event["event_type"] for event in feed["items"]].count("message") == 3


@pytest.fixture
def project(settings: Settings, tmp_path: Path) -> Settings:
    """Settings of a project whose files may be changed."""
    prepare(tmp_path / "project")
    return replace(settings, cwd=tmp_path / "project", roots=(tmp_path / "project",), write=True)


LINE = "Water the beans."
APPEND: tuple[str, dict[str, Any]] = (
    "npl_update_section",
    {"file": "notes/today.md", "operation": "append", "selector": "# Today", "content": LINE},
)
FILED: dict[str, tuple[str, dict[str, Any]]] = {
    "a section": APPEND,
    "a change request": ("create_cr", {"type": "Bug Fix", "data": {"title": LINE}}),
    "a section of a change request": (
        "manage_cr_sections",
        {"key": "DEMO-001", "operation": "append", "section": "1. Description", "content": LINE},
    ),
}


def marked(settings: Settings) -> int:
    files = settings.roots[0].rglob("*.md")
    texts = (file.read_text(encoding="utf-8") for file in files)
    return sum(text.splitlines().count(line) for text in texts for line in (LINE, f"# {LINE}"))


@pytest.mark.parametrize("case", FILED)
async def test_equal_calls_at_once_change_a_file_once(project: Settings, case: str) -> None:
    """Calls reach two servers of one database; all wait for the first, and get its answer."""
    tool, given = FILED[case]

    async with client_of(project) as client, Client(create_server(project)) as other:
        before = marked(project)
        for turn in range(1, 4):
            sent = {**given, "request_id": f"r{turn}"}
            answers = await asyncio.gather(
                *(caller.call_tool(tool, sent) for _ in range(6) for caller in (client, other))
            )
            assert len({answer.content[0].text for answer in answers}) == 1
            assert marked(project) == before + turn


def test_after_a_kill_during_a_change_of_files_a_repetition_is_refused(
    project: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row has no answer, and nothing tells whether the file was changed."""
    monkeypatch.setattr(invoking, "EQUAL_SECONDS", 0.2)
    tool, given = APPEND
    sent = {**given, "request_id": "r1"}
    assert calls(project, [(tool, sent)])[0]["success"]
    engines.execute(project.data_folder, "UPDATE request SET answer = ''")
    for answer in calls(project, [(tool, sent), (tool, sent)]):
        assert not answer["success"]
        assert "'r1'" in answer["error"]
    assert marked(project) == 1
    assert calls(project, [(tool, {**sent, "request_id": "r2"})])[0]["success"]
    assert marked(project) == 2


def test_a_change_of_files_that_failed_can_be_repeated(project: Settings) -> None:
    tool, given = APPEND
    sent = {**given, "file": "notes/new.md", "request_id": "r1"}
    assert calls(project, [(tool, sent)])[0]["error_code"] == "NOT_FOUND"
    (project.roots[0] / "notes" / "new.md").write_text("# Today\n", encoding="utf-8")
    assert calls(project, [(tool, sent)])[0]["success"]


def test_a_call_that_only_reads_keeps_no_answer(settings: Settings) -> None:
    peek = {"agent_id": "bo", "peek": True, "request_id": "r1"}
    calls(settings, [("worklog_init", {"task": "sow"}), ("worklog_read", peek)])
    assert engines.query(settings.data_folder, "SELECT count(*) FROM request") == [(0,)]


OTHERS = [
    ("chat_send_message", {"message": "hi"}),
    ("chat_create_todo", {"message": None, "description": "hello"}),
]


@pytest.mark.parametrize(("tool", "changes"), OTHERS)
def test_an_id_belongs_to_one_call(call: Call, tool: str, changes: dict[str, Any]) -> None:
    """A different tool or different arguments are refused; the message names the id."""
    call(ROOM[0], **ROOM[1])
    assert call("chat_send_message", **SEND)["success"]
    other = {name: value for name, value in {**SEND, **changes}.items() if value is not None}
    answer = call(tool, **other)
    assert (answer["error_code"], answer["parameter"]) == ("INVALID_PARAMETER", "request_id")
    assert "'r1'" in answer["error"]


@pytest.mark.parametrize("wrong", [7, "", "a\nb", "x" * 300, ["r"]])
def test_an_id_is_a_short_text(call: Call, wrong: object) -> None:
    call(ROOM[0], **ROOM[1])
    answer = call("chat_send_message", **{**SEND, "request_id": wrong})
    assert (answer["success"], answer["parameter"]) == (False, "request_id")
    assert call("chat_get_feed", room_id=1)["data"]["total"] == JOINED


def test_a_call_that_failed_can_be_repeated(call: Call) -> None:
    """A failure writes nothing, so no answer is kept."""
    assert call("chat_send_message", **SEND)["error_code"] == "ROOM_NOT_FOUND"
    call(ROOM[0], **ROOM[1])
    assert call("chat_send_message", **SEND)["success"]


def test_answers_are_kept_for_a_day(settings: Settings, connect: Connect) -> None:
    call = connect(settings)
    call(ROOM[0], **ROOM[1])
    first = call("chat_send_message", **SEND)
    yesterday = f"{int(now()[:4]) - 1}{now()[4:]}"
    engines.execute(settings.data_folder, f"UPDATE request SET created_at = '{yesterday}'")
    assert call("chat_send_message", **SEND)["data"]["event_id"] > first["data"]["event_id"]
    assert engines.query(settings.data_folder, "SELECT count(*) FROM request") == [(1,)]


def test_the_oldest_of_many_answers_are_dropped_after_an_hour(
    settings: Settings, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_KEPT", 2)
    call = connect(settings)
    call(ROOM[0], **ROOM[1])
    for number in range(4):
        call("chat_send_message", **{**SEND, "request_id": f"new {number}"})
    kept = "SELECT count(*) FROM request"
    assert engines.query(settings.data_folder, kept) == [(4,)]
    before = requests.later(now(), -2 * requests.SURELY_KEPT)
    engines.execute(settings.data_folder, f"UPDATE request SET created_at = '{before}'")
    call("chat_send_message", **{**SEND, "request_id": "newest"})
    assert engines.query(settings.data_folder, kept) == [(1,)]


async def test_a_call_that_waits_is_repeated_safely(settings: Settings) -> None:
    """The call claims a todo that arrives meanwhile, and its repetition gets the same one."""
    claim = {"room_id": 1, "persona": "bo", "wait": 30, "request_id": "c1"}

    async with client_of(settings) as client:
        await client.call_tool(*ROOM)
        waiting = asyncio.create_task(client.call_tool("chat_claim_todo", claim))
        for name in ("weed", "sow"):
            todo = {"room_id": 1, "persona": "ann", "description": name}
            await client.call_tool("chat_create_todo", todo)
        first = envelope(await waiting)["data"]
        assert first["claimed"]
        assert envelope(await client.call_tool("chat_claim_todo", claim))["data"] == first
        ready = envelope(await client.call_tool("chat_list_todos", {"room_id": 1, "filter": "ready"}))["data"]
        assert ready["total"] == 1


def test_the_list_does_not_show_the_parameter(settings: Settings) -> None:
    """Programs know it from API.md; a listed parameter costs every agent tokens."""
    assert "request_id" not in json.dumps(listed(settings))


def test_the_write_and_its_answer_are_one_transaction(settings: Settings) -> None:
    """If the answer cannot be stored, nothing is written."""
    calls(settings, [ROOM])
    engines.execute(settings.data_folder, "ALTER TABLE request ADD COLUMN more TEXT CHECK (more IS NOT NULL)")
    answer = calls(settings, [("chat_send_message", SEND)])[0]
    assert answer["error_code"] == "DATABASE_ERROR"
    assert calls(settings, [("chat_get_feed", {"room_id": 1})])[0]["data"]["total"] == JOINED
