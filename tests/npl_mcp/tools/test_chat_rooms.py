"""Rooms as an MCP client sees them: joining, leaving, archiving, and the recipients of messages."""

from typing import Any

import pytest

from tests.conftest import Call, cases

TEAM = ["ann", "bo", "cy"]


@pytest.fixture
def den(call: Call) -> Call:
    """Calls of a server with a room of three members, room 1, in the session s1."""
    call("chat_create_room", name="den", members=TEAM, session_id="s1")
    return call


def say(call: Call, message: str, persona: str = "ann", **more: Any) -> Any:
    return call.do("chat_send_message", room_id=1, persona=persona, message=message, **more)


def update(call: Call, persona: str, action: str) -> Any:
    return call.do("chat_update_room", room_id=1, persona=persona, action=action)


MENTIONS: dict[str, tuple[list[str], list[str]]] = {
    "@bo and @eve, @Zoe-2 and @eve": (["bo"], ["eve", "Zoe-2"]),
    "@all": (TEAM, []),
    "@cy, @ALL!": (["cy", "ann", "bo"], []),
    "@all-hands @allen": ([], ["all-hands", "allen"]),
    "me@eve.org, a/@eve, @ eve, @, @!": ([], []),
    "no mention": ([], []),
}


@pytest.mark.parametrize("text", MENTIONS)
def test_all_mentions_everybody_and_unknown_names_are_told(den: Call, text: str) -> None:
    """The answer has an unknown name, so that the sender can correct it."""
    mentions, unknown = MENTIONS[text]
    sent = say(den, text)
    assert (sent["mentions"], sent.get("unknown_mentions", [])) == (mentions, unknown)
    assert [note["persona"] for note in sent["notifications"]] == [name for name in mentions if name != "ann"]


def test_a_member_of_that_name_is_not_everybody(den: Call) -> None:
    update(den, "all", "join")
    assert say(den, "@all")["mentions"] == ["all"]


def test_no_name_begins_with_the_sign_of_a_mention(den: Call) -> None:
    """No message could mention it: ``@bo`` means ``bo``."""
    joining = {"room_id": 1, "persona": "@dan", "action": "join"}
    making = {"name": "other", "members": ["ann", "@dan"]}
    for tool, arguments in (("chat_create_room", making), ("chat_update_room", joining)):
        code, text = den.refused(tool, **arguments)
        assert (code, "'dan'" in text) == ("INVALID_PARAMETER", True)
    assert den.do("chat_list_rooms")["total"] == 1


def test_a_name_is_equal_however_it_was_typed(den: Call) -> None:
    """A keyboard may send an accent as a character of its own."""
    update(den, "Jose\u0301", "join")
    assert say(den, "@Jose\u0301 @jos\u00e9")["mentions"] == ["Jos\u00e9"]
    assert say(den, "hi", persona="Jos\u00e9")["persona"] == say(den, "hi", persona="Jose\u0301")["persona"]
    assert den.do("chat_get_notifications", persona="Jose\u0301")["total"] == 1


def test_few_of_many_unknown_names_are_told(den: Call) -> None:
    """A text with very many signs is code."""
    assert len(say(den, " ".join(f"@x{number}" for number in range(99)))["unknown_mentions"]) == 20


WRITES: dict[str, dict[str, Any]] = cases("npl_mcp/tools/chat_rooms")["writes"]


@pytest.mark.parametrize("what", ["room", "session"])
def test_what_is_archived_refuses_every_write(den: Call, what: str) -> None:
    """A room is archived alone or with its session; both are still read, and reopen as they were."""
    content = {"artifact_type": "text", "content": "x", "filename": "x.md"}
    den.do("artifact_create", name="x", **content)
    den.do("chat_create_todo", room_id=1, persona="bo", description="x")
    if what == "room":
        for _ in range(2):
            assert "archived_at" in update(den, "bo", "archive")
    else:
        den.do("session_update", session_id="s1", status="archived")
        code, text = den.refused("artifact_create", name="y", session_id="s1", **content)
        assert (code, "session_update" in text) == ("OPERATION_FAILED", True)
        room = {"name": "n", "members": ["ann"], "session_id": "s1"}
        assert den.refused("chat_create_room", **room)[0] == "OPERATION_FAILED"
        assert den.refused("session_update", session_id="s1", title="T")[0] == "OPERATION_FAILED"
    before = den.do("chat_get_feed", room_id=1)
    for tool, arguments in WRITES.items():
        code, text = den.refused(tool, **arguments)
        assert (code, "is archived;" in text) == ("OPERATION_FAILED", True), (tool, text)
    assert den.do("chat_get_feed", room_id=1) == before
    if what == "room":
        update(den, "ann", "reopen")
    else:
        den.do("session_update", session_id="s1", status="active")
    for tool, arguments in WRITES.items():
        den.do(tool, **arguments)


@pytest.mark.parametrize("wait", [0, 60])
def test_a_cursor_after_the_newest_entry_is_refused(den: Call, wait: int) -> None:
    """No entry would ever come after it; the newest one is a cursor."""
    newest = say(den, "@bo hello")["event_id"]
    note = den.do("chat_get_notifications", persona="bo")["cursor"]
    code, text = den.refused("chat_get_feed", room_id=1, since=newest + 1, wait=wait)
    assert (code, f"newest entry is {newest}" in text) == ("INVALID_PARAMETER", True)
    code, text = den.refused("chat_get_notifications", persona="bo", since=note + 1, wait=wait)
    assert (code, f"newest entry is {note}" in text) == ("INVALID_PARAMETER", True)
    assert den.do("chat_get_feed", room_id=1, since=newest)["cursor"] == newest
    assert den.do("chat_get_notifications", persona="bo", since=note)["cursor"] == note
