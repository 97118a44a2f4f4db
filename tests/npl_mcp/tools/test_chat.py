"""Promises of the chat tools, as an MCP client sees them."""

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from npl_mcp.stores.chat.mentions import mentions_in
from tests import engines
from tests.conftest import Call, Connect, cases
from tests.engines import execute

TEAM = ["alice", "bob", "carol"]


CASES = cases("npl_mcp/tools/chat")


def new_room(call: Call, name: str = "den", members: list[str] = TEAM) -> int:
    return int(call.do("chat_create_room", name=name, members=members)["room_id"])


def say(call: Call, room: int, message: str) -> int:
    sent = call.do("chat_send_message", room_id=room, persona="alice", message=message)
    return int(sent["event_id"])


def rows(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    """Look into the database without the server."""
    return engines.query(settings.data_folder, sql)


# Rooms


def test_a_room_belongs_to_a_session(call: Call) -> None:
    """A missing session is made, and every event of the room is activity of the session."""
    first = call.do("chat_create_room", name="a", members=TEAM, session_id="s1", session_title="One")
    second = call.do("chat_create_room", name="b", members=TEAM, session_id="s1")
    third = call.do("chat_create_room", name="c", members=TEAM, session_title="Two")
    assert first["session_id"] == second["session_id"] == "s1" != third["session_id"]
    got = call.do("session_get", session_id="s1")
    assert (got["session"]["title"], got["session"]["room_count"]) == ("One", 2)
    assert [room["id"] for room in got["chat_rooms"]] == [2, 1]
    todo = call.do("chat_create_todo", room_id=1, persona="alice", description="x")
    plan = {"name": "plan", "artifact_type": "document", "content": "# Plan\n", "filename": "plan.md"}
    artifact = call.do("artifact_create", **plan)["artifact_id"]
    moments = [got["session"]["updated_at"]]
    for tool, arguments in (
        ("send_message", {"room_id": 1, "message": "hello"}),
        ("react", {"event_id": 1, "emoji": "+1"}),
        ("share_artifact", {"room_id": 1, "artifact_id": artifact}),
        ("create_todo", {"room_id": 1, "description": "y"}),
        ("update_todo", {"event_id": todo["event_id"], "status": "done"}),
    ):
        call.do(f"chat_{tool}", persona="bob", **arguments)
        moments.append(call.do("session_get", session_id="s1")["session"]["updated_at"])
    assert moments == sorted(set(moments))


def test_a_room_has_an_address_where_there_is_a_web_face(settings: Settings, connect: Connect) -> None:
    """The address is the setting's, then /rooms/ and the id, with a session and without."""
    call = connect(replace(settings, web_url="http://127.0.0.1:8765"))
    plain = call.do("chat_create_room", name="a", members=TEAM)
    within = call.do("chat_create_room", name="b", members=TEAM, session_id="s")
    assert plain["web_url"] == "http://127.0.0.1:8765/rooms/1"
    assert within["web_url"] == "http://127.0.0.1:8765/rooms/2"


# Who may do what, and where


def test_what_cannot_be_is_refused_and_changes_nothing(settings: Settings, call: Call) -> None:
    """Room 1 has the message 6 and the todo 7, room 2 the message 8."""
    den, attic = new_room(call), new_room(call, "attic", ["alice", "zoe"])
    assert say(call, den, "hello") == 6
    assert call.do("chat_create_todo", room_id=den, persona="alice", description="x")["event_id"] == 7
    assert say(call, attic, "hello") == 8
    before = rows(settings, "SELECT * FROM event"), rows(settings, "SELECT * FROM notification")
    for tool, arguments, code, part in CASES["refused"]:
        refused, text = call.refused(tool, **arguments)
        assert (refused, part in text) == (code, True), (tool, arguments, text)
    assert (rows(settings, "SELECT * FROM event"), rows(settings, "SELECT * FROM notification")) == before
    assert rows(settings, "SELECT event_count FROM room") == [(5,), (3,)]


# Mentions


@pytest.mark.parametrize(("text", "names"), cases("mentions"))
def test_mentions_name_members(text: str, names: list[str]) -> None:
    """The longest name after the sign counts, in order of appearance; addresses and outsiders do not."""
    members = CASES["members"]
    assert list(mentions_in(text, members)[0]) == names


def test_mentions_are_found_in_any_text() -> None:
    """Random text neither fails nor mentions a member twice; a long run of signs is read in time."""
    draw = random.Random(3)
    members = ["a", "ab", "a-b", "ab c", "b.", "é"]
    for _ in range(2000):
        text = "".join(draw.choice("@@ab-c. é\n_") for _ in range(draw.randrange(30)))
        names = mentions_in(text, members)[0]
        assert len(set(names)) == len(names)
        assert all(f"@{name}" in text for name in names)
    assert mentions_in("@aé " * 16_000, ["a" * length for length in range(1, 200)])[0] == ()


# Feeds


def test_a_time_gives_what_came_later(settings: Settings, call: Call) -> None:
    """Any ISO 8601 form means its time, and the answer has a cursor for the next call."""
    moments = [f"2026-03-01T{hour:02}:00:00.500000Z" for hour in (9, 10, 10, 11)]
    forms = CASES["forms_of_a_time"]
    room = new_room(call, "old", ["alice"])
    ids = [1, *[say(call, room, "x") for _ in moments[1:]]]
    for event, moment in zip(ids, moments, strict=True):
        execute(settings.data_folder, f"UPDATE event SET timestamp = '{moment}' WHERE id = {event}")
    for since, count in forms:
        page = call.do("chat_get_feed", room_id=room, since=since)
        assert [event["id"] for event in page["items"]] == ids[len(ids) - count :], since
        assert (page["total"], page["cursor"]) == (count, ids[-1]), since


def test_times_of_a_room_never_fall(settings: Settings, call: Call) -> None:
    """After a clock was set back, later events still have later times."""
    room = new_room(call)
    execute(settings.data_folder, "UPDATE event SET timestamp = '2999-01-01T00:00:00.000000Z' WHERE id = 3")
    say(call, room, "x")
    assert call.do("chat_get_feed", room_id=room)["items"][-1]["timestamp"] == "2999-01-01T00:00:00.000000Z"


def test_what_is_no_place_in_a_feed_is_refused(call: Call) -> None:
    """The message shows a valid cursor and a valid time."""
    room = new_room(call)
    bad = [*CASES["no_places_in_a_feed"], "1" * 17, "x" * 100_000]
    for since in bad:
        code, text = call.refused("chat_get_feed", room_id=room, since=since)
        assert (code, "since" in text, len(text) < 400) == ("INVALID_PARAMETER", True, True), (since, text)
    for since in ("x", -1):
        code, text = call.refused("chat_get_notifications", persona="bob", since=since)
        assert (code, "since" in text) == ("INVALID_PARAMETER", True)


# Many at once


def test_a_poller_sees_every_event_once(call: Call) -> None:
    """It follows the cursor in small pages while eight others write."""
    room, side = new_room(call), new_room(call, "side")
    seen: list[int] = []
    cursor = call.do("chat_get_feed", room_id=room)["cursor"]

    def write(number: int) -> list[int]:
        sent = []
        for turn in range(6):
            sent.append(say(call, room, f"{number} {turn}"))
            say(call, side, "noise")
        return sent

    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, number) for number in range(8)]
        over = False
        while not over:
            over = all(task.done() for task in writing)
            while (page := call.do("chat_get_feed", room_id=room, since=cursor, limit=3))["items"]:
                seen.extend(event["id"] for event in page["items"])
                cursor = page["cursor"]
    assert seen == sorted(event for task in writing for event in task.result())


def test_a_notification_is_read_once(call: Call) -> None:
    """Its time stays, and the list leaves it out by default."""
    say(call, new_room(call), "@bob")
    (note,) = call.do("chat_get_notifications", persona="bob")["items"]
    first, again = (call.do("chat_mark_read", notification_id=note["id"])["read_at"] for _ in range(2))
    assert call.do("chat_get_notifications", persona="bob")["items"] == []
    (read,) = call.do("chat_get_notifications", persona="bob", unread_only=False)["items"]
    assert first == again == read["read_at"]


def test_nothing_is_waited_for_by_an_unknown_persona(call: Call) -> None:
    """It could get no notification; similar names are suggested."""
    new_room(call)
    code, text = call.refused("chat_get_notifications", persona="allice", wait=60)
    assert code == "NOT_FOUND"
    assert text == "'allice' is in no room; chat_update_room lets it join; near: alice"
