"""Joining, leaving and archiving rooms; whom messages reach; handoffs. Seen by an MCP client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Call

TEAM = ["ann", "bo", "cy"]


@pytest.fixture
def den(call: Call) -> Call:
    """Calls of a server with a room of three members, room 1, in the session s1."""
    call("chat_create_room", name="den", members=TEAM, session_id="s1")
    return call


def do(call: Call, tool: str, **arguments: Any) -> Any:
    answer = call(tool, **arguments)
    assert answer["success"], (tool, arguments, answer)
    return answer["data"]


def refused(call: Call, tool: str, **arguments: Any) -> tuple[str, str]:
    answer = call(tool, **arguments)
    assert not answer["success"], (tool, arguments, answer)
    return answer["error_code"], answer["error"]


def say(call: Call, message: str, persona: str = "ann", **more: Any) -> Any:
    return do(call, "chat_send_message", room_id=1, persona=persona, message=message, **more)


def update(call: Call, persona: str, action: str) -> Any:
    return do(call, "chat_update_room", room_id=1, persona=persona, action=action)


def kinds(call: Call, persona: str) -> list[str]:
    page = do(call, "chat_get_notifications", persona=persona, since=0)
    return [note["notification_type"] for note in page["items"]]


def test_personas_come_and_go(den: Call) -> None:
    """Each time with an event; who is there already comes no second time."""
    assert update(den, "dee", "join") == {"room_id": 1, "members": [*TEAM, "dee"]}
    assert update(den, "dee", "join")["members"] == [*TEAM, "dee"]
    assert say(den, "@dee hello")["mentions"] == ["dee"]
    assert do(den, "chat_list_rooms", persona="dee")["total"] == 1
    assert update(den, "bo", "leave")["members"] == ["ann", "cy", "dee"]
    assert update(den, "bo", "leave")["members"] == ["ann", "cy", "dee"]
    assert do(den, "chat_list_rooms", persona="bo")["total"] == 0
    assert update(den, "bo", "join")["members"] == ["ann", "cy", "dee", "bo"]
    events = do(den, "chat_get_feed", room_id=1, since=3)["items"]
    assert [(one["event_type"], one["persona"]) for one in events] == [
        ("persona_join", "dee"),
        ("message", "ann"),
        ("persona_leave", "bo"),
        ("persona_join", "bo"),
    ]
    assert do(den, "session_get", session_id="s1")["chat_rooms"][0]["member_count"] == 4


def test_who_left_is_told_no_more_and_writes_no_more(den: Call) -> None:
    """Also where it made a todo that others finish."""
    todo = do(den, "chat_create_todo", room_id=1, persona="bo", description="x")["event_id"]
    update(den, "bo", "leave")
    assert do(den, "chat_update_todo", event_id=todo, persona="ann", status="done")["notifications"] == []
    code, text = refused(den, "chat_send_message", room_id=1, persona="bo", message="m")
    assert (code, "chat_update_room" in text) == ("PERMISSION_DENIED", True)
    for persona in TEAM:
        update(den, persona, "leave")
    assert refused(den, "chat_send_message", room_id=1, persona="ann", message="m")[0] == "PERMISSION_DENIED"
    assert update(den, "ann", "join")["members"] == ["ann"]


MENTIONS: dict[str, tuple[list[str], list[str]]] = {
    "@bo and @eve, @Zoe-2 and @eve": (["bo"], ["eve", "Zoe-2"]),
    "@all": (TEAM, []),
    "@cy, @ALL!": (["cy", "ann", "bo"], []),
    "@all-hands @allen": ([], ["all-hands", "allen"]),
    "me@eve.org, a/@eve, @ eve, @, @!": ([], []),
    "nobody": ([], []),
}


@pytest.mark.parametrize("text", MENTIONS)
def test_everybody_is_mentioned_and_nobody_is_named(den: Call, text: str) -> None:
    """A name that nobody has is in the answer, so that the sender can mend it."""
    mentions, unknown = MENTIONS[text]
    sent = say(den, text)
    assert (sent["mentions"], sent.get("unknown_mentions", [])) == (mentions, unknown)
    assert [note["persona"] for note in sent["notifications"]] == [one for one in mentions if one != "ann"]


def test_a_member_of_that_name_is_not_everybody(den: Call) -> None:
    """Names come first."""
    update(den, "all", "join")
    assert say(den, "@all")["mentions"] == ["all"]


def test_nobody_joins_with_the_sign_of_a_mention(den: Call) -> None:
    """No message could mention it: ``@bo`` means ``bo``."""
    joining = {"room_id": 1, "persona": "@dan", "action": "join"}
    for tool, arguments in (
        ("chat_create_room", {"name": "other", "members": ["ann", "@dan"]}),
        ("chat_update_room", joining),
    ):
        answer = den(tool, **arguments)
        assert answer["error_code"] == "INVALID_PARAMETER"
        assert "'dan'" in answer["error"]
    assert do(den, "chat_list_rooms")["total"] == 1


def test_few_of_many_unknown_names_are_told(den: Call) -> None:
    """A text full of signs is code."""
    assert len(say(den, " ".join(f"@x{number}" for number in range(99)))["unknown_mentions"]) == 20


def test_a_handoff_is_acknowledged(den: Call) -> None:
    """Who gets it is told, and who gave it learns that it arrived; the feed shows by which event."""
    given = say(den, "@cy knows: the parser is yours, @bo", kind="handoff", to="bo")
    assert [note["persona"] for note in given["notifications"]] == ["bo", "cy"]
    assert (kinds(den, "bo"), kinds(den, "cy")) == (["handoff"], ["mention"])
    event = do(den, "chat_get_feed", room_id=1)["items"][-1]
    assert (event["event_type"], event["data"]["to"], "ack_event_id" in event["data"]) == (
        "handoff",
        "bo",
        False,
    )
    taken = say(den, "I have it", "bo", kind="ack", reply_to_id=given["event_id"])
    assert [note["persona"] for note in taken["notifications"]] == ["ann"]
    assert kinds(den, "ann") == ["handoff_ack"]
    shown = do(den, "chat_get_feed", room_id=1, since=given["event_id"] - 1)["items"]
    assert [one["event_type"] for one in shown] == ["handoff", "handoff_ack"]
    assert shown[0]["data"]["ack_event_id"] == taken["event_id"]


def test_a_todo_changes_hands_when_the_handoff_is_acknowledged(den: Call) -> None:
    """Not before; a claim on it ends, since its holder gave it away."""
    todo = do(den, "chat_create_todo", room_id=1, persona="cy", description="x")["event_id"]
    do(den, "chat_claim_todo", persona="ann", event_id=todo)
    given = say(den, "yours", kind="handoff", to="bo", reply_to_id=todo)["event_id"]
    assert do(den, "chat_list_todos", room_id=1)["items"][0]["assigned_to"] == "ann"
    say(den, "mine", "bo", kind="ack", reply_to_id=given)
    now = do(den, "chat_list_todos", room_id=1)["items"][0]
    assert (now["status"], now["assigned_to"], "lease_until" in now) == ("in_progress", "bo", False)


def test_a_todo_that_is_another_s_by_then_stays_where_it_is(den: Call) -> None:
    """Who gave it away had it no more."""
    todo = do(den, "chat_create_todo", room_id=1, persona="ann", description="x", assigned_to="cy")[
        "event_id"
    ]
    given = say(den, "yours", kind="handoff", to="bo", reply_to_id=todo)["event_id"]
    say(den, "mine", "bo", kind="ack", reply_to_id=given)
    assert do(den, "chat_list_todos", room_id=1)["items"][0]["assigned_to"] == "cy"


HANDOFFS: dict[str, tuple[dict[str, Any], str]] = {
    "to nobody": ({"kind": "handoff"}, "MISSING_REQUIRED"),
    "to oneself": ({"kind": "handoff", "to": "ann"}, "INVALID_PARAMETER"),
    "to a stranger": ({"kind": "handoff", "to": "eve"}, "PERMISSION_DENIED"),
    "a message to one": ({"to": "bo"}, "INVALID_PARAMETER"),
    "an unknown kind": ({"kind": "handof", "to": "bo"}, "INVALID_PARAMETER"),
    "an ack of nothing": ({"kind": "ack"}, "MISSING_REQUIRED"),
    "an ack of a join": ({"kind": "ack", "reply_to_id": 1}, "INVALID_PARAMETER"),
    "an ack of what is to another": ({"kind": "ack", "reply_to_id": 4}, "PERMISSION_DENIED"),
    "a second ack": ({"kind": "ack", "reply_to_id": 5}, "OPERATION_FAILED"),
}


def test_what_is_no_handoff_and_no_acknowledgement(den: Call) -> None:
    """Each is refused, and nothing is sent."""
    assert say(den, "to bo", kind="handoff", to="bo")["event_id"] == 4
    assert say(den, "to ann", "bo", kind="handoff", to="ann")["event_id"] == 5
    say(den, "thanks", kind="ack", reply_to_id=5)
    before = do(den, "chat_get_feed", room_id=1)
    for case, (arguments, code) in HANDOFFS.items():
        found = refused(den, "chat_send_message", room_id=1, persona="ann", message="m", **arguments)
        assert found[0] == code, (case, found)
    assert do(den, "chat_get_feed", room_id=1) == before


WRITES: dict[str, dict[str, Any]] = {
    "chat_send_message": {"room_id": 1, "persona": "ann", "message": "m"},
    "chat_react": {"event_id": 1, "persona": "ann", "emoji": "ok"},
    "chat_share_artifact": {"room_id": 1, "persona": "ann", "artifact_id": 1},
    "chat_create_todo": {"room_id": 1, "persona": "ann", "description": "x"},
    "chat_update_todo": {"event_id": 4, "persona": "ann", "status": "done"},
    "chat_claim_todo": {"room_id": 1, "persona": "ann"},
    "chat_update_room": {"room_id": 1, "persona": "dee", "action": "join"},
}


@pytest.mark.parametrize("what", ["room", "session"])
def test_what_is_archived_refuses_every_write(den: Call, what: str) -> None:
    """A room by itself, or by its session; both are still read, and open again as they were."""
    content = {"artifact_type": "text", "content": "x", "filename": "x.md"}
    do(den, "artifact_create", name="x", **content)
    do(den, "chat_create_todo", room_id=1, persona="bo", description="x")
    if what == "room":
        assert "archived_at" in update(den, "bo", "archive")
        assert "archived_at" in update(den, "bo", "archive")
    else:
        do(den, "session_update", session_id="s1", status="archived")
        code, text = refused(den, "artifact_create", name="y", session_id="s1", **content)
        assert (code, "session_update" in text) == ("OPERATION_FAILED", True)
        code, _ = refused(den, "chat_create_room", name="n", members=["ann"], session_id="s1")
        assert code == "OPERATION_FAILED"
        assert refused(den, "session_update", session_id="s1", title="T")[0] == "OPERATION_FAILED"
    before = do(den, "chat_get_feed", room_id=1)
    for tool, arguments in WRITES.items():
        code, text = refused(den, tool, **arguments)
        assert (code, "is archived;" in text) == ("OPERATION_FAILED", True), (tool, text)
    assert do(den, "chat_get_feed", room_id=1) == before
    if what == "room":
        update(den, "ann", "reopen")
    else:
        do(den, "session_update", session_id="s1", status="active")
    for tool, arguments in WRITES.items():
        do(den, tool, **arguments)


def test_archived_rooms_are_listed_apart(den: Call) -> None:
    """Everywhere with right totals, however often they come and go; their todos are nobody's work."""
    do(den, "chat_create_room", name="other", members=["ann"])
    do(den, "chat_create_todo", room_id=1, persona="ann", description="x")
    for action in ("archive", "archive", "reopen", "archive"):
        update(den, "ann", action)
    for persona, here, there in ((None, [2], [1]), ("ann", [2], [1]), ("bo", [], [1]), ("eve", [], [])):
        who = {} if persona is None else {"persona": persona}
        for archived, expected in ((False, here), (True, there)):
            page = do(den, "chat_list_rooms", archived=archived, **who)
            assert ([one["id"] for one in page["items"]], page["total"]) == (expected, len(expected))
    assert do(den, "chat_list_todos", persona="ann")["items"] == []
    assert (
        refused(den, "chat_update_room", room_id=1, persona="eve", action="reopen")[0] == "PERMISSION_DENIED"
    )
    assert refused(den, "chat_update_room", room_id=9, persona="ann", action="join")[0] == "ROOM_NOT_FOUND"
    assert (
        refused(den, "chat_update_room", room_id=1, persona="ann", action="close")[0] == "INVALID_PARAMETER"
    )


@pytest.mark.parametrize("wait", [0, 60])
def test_a_cursor_after_the_newest_entry_is_refused(den: Call, wait: int) -> None:
    """No entry would ever come after it; the newest one is a cursor."""
    newest = say(den, "@bo hello")["event_id"]
    note = do(den, "chat_get_notifications", persona="bo")["cursor"]
    code, text = refused(den, "chat_get_feed", room_id=1, since=newest + 1, wait=wait)
    assert (code, f"newest entry is {newest}" in text) == ("INVALID_PARAMETER", True)
    code, text = refused(den, "chat_get_notifications", persona="bo", since=note + 1, wait=wait)
    assert (code, f"newest entry is {note}" in text) == ("INVALID_PARAMETER", True)
    assert do(den, "chat_get_feed", room_id=1, since=newest)["cursor"] == newest
    assert do(den, "chat_get_notifications", persona="bo", since=note)["cursor"] == note
