"""Promises of the chat tools, as an MCP client sees them."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.stores.chat.messages import mentioned
from tests import engines
from tests.conftest import Call, Connect, cases
from tests.engines import execute

TEAM = ["alice", "bob", "carol"]


CASES = cases("npl_mcp/tools/chat")


class Desk:
    """A caller of a server's tools.

    :param call: calls a tool by its full name.
    """

    def __init__(self, call: Call) -> None:
        self.call = call

    def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a chat tool, or another by its full name; return the envelope."""
        return self.call(tool if tool.startswith(("artifact_", "session_")) else f"chat_{tool}", **arguments)

    def do(self, tool: str, **arguments: Any) -> Any:
        body = self.ask(tool, **arguments)
        assert body["success"], (tool, arguments, body)
        return body["data"]

    def refused(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """Call a tool that refuses; return the code and the text."""
        body = self.ask(tool, **arguments)
        assert not body["success"], (tool, arguments, body)
        return body["error_code"], body["error"]

    def room(self, name: str = "den", members: list[str] = TEAM) -> int:
        return int(self.do("create_room", name=name, members=members)["room_id"])

    def say(self, room: int, message: str) -> int:
        return int(self.do("send_message", room_id=room, persona="alice", message=message)["event_id"])

    def artifact(self) -> int:
        """Make an artifact with two revisions, 0 and 1."""
        content = {"content": "# Plan\n", "filename": "plan.md"}
        made = self.do("artifact_create", name="plan", artifact_type="document", **content)
        self.do("artifact_add_revision", artifact_id=made["artifact_id"], **content)
        return int(made["artifact_id"])


@pytest.fixture
def desk(call: Call) -> Desk:
    return Desk(call)


def rows(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    """Look into the database without the server."""
    return engines.query(settings.data_folder, sql)


# Rooms


def test_a_room_begins_with_its_members(desk: Desk) -> None:
    """A member named twice is one member, the order stays, and each has an event of joining."""
    made = desk.do(
        "create_room", name=" den ", members=["bob", "alice", "bob", " alice "], description="talk\nhere"
    )
    assert made == {
        "room_id": 1,
        "name": "den",
        "description": "talk\nhere",
        "members": ["bob", "alice"],
    }
    page = desk.do("get_feed", room_id=1)
    assert [(event["event_type"], event["persona"], event["data"]) for event in page["items"]] == [
        ("persona_join", "bob", {"action": "joined", "persona": "bob"}),
        ("persona_join", "alice", {"action": "joined", "persona": "alice"}),
    ]
    assert (page["total"], page["cursor"]) == (2, page["items"][-1]["id"])


def test_a_room_belongs_to_a_session(desk: Desk) -> None:
    """A missing session is made, and every event of the room is activity of the session."""
    first = desk.do("create_room", name="a", members=TEAM, session_id="s1", session_title="One")
    second = desk.do("create_room", name="b", members=TEAM, session_id="s1")
    third = desk.do("create_room", name="c", members=TEAM, session_title="Two")
    assert first["session_id"] == second["session_id"] == "s1" != third["session_id"]
    got = desk.do("session_get", session_id="s1")
    assert (got["session"]["title"], got["session"]["room_count"]) == ("One", 2)
    assert [room["id"] for room in got["chat_rooms"]] == [2, 1]
    todo = desk.do("create_todo", room_id=1, persona="alice", description="x")
    artifact = desk.artifact()
    moments = [got["session"]["updated_at"]]
    for tool, arguments in (
        ("send_message", {"room_id": 1, "message": "hello"}),
        ("react", {"event_id": 1, "emoji": "+1"}),
        ("share_artifact", {"room_id": 1, "artifact_id": artifact}),
        ("create_todo", {"room_id": 1, "description": "y"}),
        ("update_todo", {"event_id": todo["event_id"], "status": "done"}),
    ):
        desk.do(tool, persona="bob", **arguments)
        moments.append(desk.do("session_get", session_id="s1")["session"]["updated_at"])
    assert moments == sorted(set(moments))


def test_a_room_has_an_address_where_there_is_a_web_face(settings: Settings, connect: Connect) -> None:
    """The address is the setting's, then /rooms/ and the id, with a session and without."""
    desk = Desk(connect(replace(settings, web_url="http://127.0.0.1:8765")))
    plain = desk.do("create_room", name="a", members=TEAM)
    within = desk.do("create_room", name="b", members=TEAM, session_id="s")
    assert plain["web_url"] == "http://127.0.0.1:8765/rooms/1"
    assert within["web_url"] == "http://127.0.0.1:8765/rooms/2"


# Who may do what, and where


def test_what_cannot_be_is_refused_and_changes_nothing(settings: Settings, desk: Desk) -> None:
    den, attic = desk.room(), desk.room("attic", ["alice", "zoe"])
    message = desk.say(den, "hello")
    todo = desk.do("create_todo", room_id=den, persona="alice", description="x")["event_id"]
    elsewhere = desk.say(attic, "hello")
    here = {"room_id": den, "persona": "alice"}
    lost = {"room_id": 99, "persona": "alice"}
    stranger = {"room_id": den, "persona": "alicia"}
    refusals: list[tuple[str, dict[str, Any], str, str]] = [
        ("send_message", {**lost, "message": "x"}, "ROOM_NOT_FOUND", "chat_list_rooms"),
        ("get_feed", {"room_id": 99}, "ROOM_NOT_FOUND", "chat_list_rooms"),
        (
            "send_message",
            {**stranger, "message": "x"},
            "PERMISSION_DENIED",
            "members: 'alice', …; chat_update_room",
        ),
        ("send_message", {**stranger, "persona": "zoe", "message": "x"}, "PERMISSION_DENIED", "'carol'"),
        ("send_message", {**here, "persona": "Alice", "message": "x"}, "PERMISSION_DENIED", "'alice'"),
        ("react", {"event_id": message, "persona": "zoe", "emoji": "+1"}, "PERMISSION_DENIED", "room 1"),
        ("create_todo", {**here, "description": "x", "assigned_to": "zoe"}, "PERMISSION_DENIED", "'zoe'"),
        (
            "update_todo",
            {"event_id": todo, "persona": "bob", "status": "done", "assigned_to": "zoe"},
            "PERMISSION_DENIED",
            "'zoe'",
        ),
        ("send_message", {**here, "message": "x", "reply_to_id": elsewhere}, "NOT_FOUND", "room 2"),
        ("send_message", {**here, "message": "x", "reply_to_id": 9999}, "NOT_FOUND", "event 9999"),
        ("share_artifact", {**here, "artifact_id": 12345}, "ARTIFACT_NOT_FOUND", "12345"),
        (
            "update_todo",
            {"event_id": message, "persona": "bob", "status": "done"},
            "INVALID_PARAMETER",
            f"event {message} is a message",
        ),
        (
            "update_todo",
            {"event_id": todo, "persona": "bob", "status": "finished"},
            "INVALID_PARAMETER",
            "pending, in_progress, done, cancelled",
        ),
        (
            "react",
            {"event_id": todo, "persona": "alice", "emoji": "x" * 33},
            "INVALID_PARAMETER",
            "emoji",
        ),
        ("react", {"event_id": todo, "persona": "alice", "emoji": "a\na"}, "INVALID_PARAMETER", "emoji"),
    ]
    before = rows(settings, "SELECT * FROM event"), rows(settings, "SELECT * FROM notification")
    for tool, arguments, code, part in refusals:
        got = desk.refused(tool, **arguments)
        assert got[0] == code, (tool, arguments, got)
        assert part in got[1], (tool, arguments, got)
    assert (rows(settings, "SELECT * FROM event"), rows(settings, "SELECT * FROM notification")) == before
    assert rows(settings, "SELECT event_count FROM room") == [(5,), (3,)]


# Mentions


@pytest.mark.parametrize(("text", "names"), cases("mentions"))
def test_mentions_name_members(text: str, names: list[str]) -> None:
    """The longest name after the sign counts, in order of appearance; addresses and outsiders do not."""
    members = CASES["members"]
    assert list(mentioned(text, members)[0]) == names


def test_mentions_are_found_in_any_text() -> None:
    """Random text neither fails nor mentions a member twice; a long run of signs is read in time."""
    draw = random.Random(3)
    members = ["a", "ab", "a-b", "ab c", "b.", "é"]
    for _ in range(2000):
        text = "".join(draw.choice("@@ab-c. é\n_") for _ in range(draw.randrange(30)))
        names = mentioned(text, members)[0]
        assert len(set(names)) == len(names)
        assert all(f"@{name}" in text for name in names)
    assert mentioned("@aé " * 16_000, ["a" * length for length in range(1, 200)])[0] == ()


# Feeds


def test_a_time_gives_what_came_later(settings: Settings, desk: Desk) -> None:
    """Any ISO 8601 form means its time, and the answer has a cursor for the next call."""
    moments = [f"2026-03-01T{hour:02}:00:00.500000Z" for hour in (9, 10, 10, 11)]
    forms = CASES["forms_of_a_time"]
    room = desk.room("old", ["alice"])
    ids = [1, *[desk.say(room, "x") for _ in moments[1:]]]
    for event, moment in zip(ids, moments, strict=True):
        execute(settings.data_folder, f"UPDATE event SET timestamp = '{moment}' WHERE id = {event}")
    for since, count in forms:
        page = desk.do("get_feed", room_id=room, since=since)
        assert [event["id"] for event in page["items"]] == ids[len(ids) - count :], since
        assert (page["total"], page["cursor"]) == (count, ids[-1]), since


def test_times_of_a_room_never_fall(settings: Settings, desk: Desk) -> None:
    """After a clock was set back, later events still have later times."""
    room = desk.room()
    execute(settings.data_folder, "UPDATE event SET timestamp = '2999-01-01T00:00:00.000000Z' WHERE id = 3")
    desk.say(room, "x")
    assert desk.do("get_feed", room_id=room)["items"][-1]["timestamp"] == "2999-01-01T00:00:00.000000Z"


def test_what_is_no_place_in_a_feed_is_refused(desk: Desk) -> None:
    """The message shows a valid cursor and a valid time."""
    room = desk.room()
    bad = [*CASES["no_places_in_a_feed"], "1" * 17, "x" * 100_000]
    for since in bad:
        code, text = desk.refused("get_feed", room_id=room, since=since)
        assert (code, "since" in text, len(text) < 400) == ("INVALID_PARAMETER", True, True), (since, text)
    for since in ("x", -1):
        code, text = desk.refused("get_notifications", persona="bob", since=since)
        assert (code, "since" in text) == ("INVALID_PARAMETER", True)


# Many at once


def test_a_poller_sees_every_event_once(desk: Desk) -> None:
    """It follows the cursor in small pages while eight others write."""
    room, side = desk.room(), desk.room("side")
    seen: list[int] = []
    cursor = desk.do("get_feed", room_id=room)["cursor"]

    def write(number: int) -> list[int]:
        sent = []
        for turn in range(6):
            sent.append(desk.say(room, f"{number} {turn}"))
            desk.say(side, "noise")
        return sent

    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, number) for number in range(8)]
        over = False
        while not over:
            over = all(task.done() for task in writing)
            while (page := desk.do("get_feed", room_id=room, since=cursor, limit=3))["items"]:
                seen.extend(event["id"] for event in page["items"])
                cursor = page["cursor"]
    assert seen == sorted(event for task in writing for event in task.result())


def test_nothing_is_waited_for_by_an_unknown_persona(desk: Desk) -> None:
    """It could get no notification; similar names are suggested."""
    desk.room()
    code, text = desk.refused("get_notifications", persona="allice", wait=60)
    assert code == "NOT_FOUND"
    assert text == "'allice' is in no room; chat_update_room lets it join; near: alice"
