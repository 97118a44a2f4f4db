"""What the session tools promise, seen by an MCP client."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, calls

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_a_session_gets_a_short_id_of_its_own(settings: Settings) -> None:
    """Eight small letters and digits, active, dated, and no address without a web site."""
    data = calls(settings, [("session_create", {"title": "Parser review"})])[0]["data"]
    assert re.fullmatch("[a-z0-9]{8}", data["session_id"])
    assert STAMP.fullmatch(data["created_at"])
    assert data == {
        "session_id": data["session_id"],
        "title": "Parser review",
        "created_at": data["created_at"],
        "status": "active",
    }


def test_answers_link_to_the_web_face_where_there_is_one(settings: Settings) -> None:
    """The address is the setting's, then /sessions/ and the id."""
    told = replace(settings, web_url="http://127.0.0.1:8765")
    answers = calls(
        told,
        [
            ("session_create", {"session_id": "s1"}),
            ("session_get", {"session_id": "s1"}),
            ("session_update", {"session_id": "s1", "title": "T"}),
            ("session_list", {}),
        ],
    )
    created, got, updated, listed = (answer["data"] for answer in answers)
    assert created["web_url"] == got["web_url"] == updated["web_url"] == "http://127.0.0.1:8765/sessions/s1"
    assert listed["items"][0]["web_url"] == created["web_url"]


def test_a_taken_id_is_refused_and_nothing_changes(settings: Settings) -> None:
    """The predecessor answered with another id, as if it had succeeded."""
    first, second, got, listed = calls(
        settings,
        [
            ("session_create", {"session_id": "alpha", "title": "One"}),
            ("session_create", {"session_id": "alpha", "title": "Two"}),
            ("session_get", {"session_id": "alpha"}),
            ("session_list", {}),
        ],
    )
    assert first["success"]
    assert second["error_code"] == "ALREADY_EXISTS"
    assert got["data"]["session"]["title"] == "One"
    assert listed["data"]["total"] == 1


@pytest.mark.parametrize("wanted", ["-a", ".a", "a b", "a/b", "a\nb", "é", "x" * 65, "../x"])
def test_an_id_is_plain(settings: Settings, wanted: str) -> None:
    """Letters, digits and a few signs; what is refused leaves nothing behind."""
    refused, listed = calls(settings, [("session_create", {"session_id": wanted}), ("session_list", {})])
    assert refused["error_code"] in ("INVALID_PARAMETER", "MISSING_REQUIRED")
    assert "session_id" in refused["error"]
    assert listed["data"]["total"] == 0


def test_a_session_shows_its_rooms_and_artifacts(settings: Settings) -> None:
    """Newest first, with the counts of each, and linked ones only."""
    content = {"artifact_type": "document", "file_content_base64": "eA==", "filename": "x.md"}
    answers = calls(
        settings,
        [
            ("session_create", {"session_id": "s1", "title": "T"}),
            ("artifact_create", {"name": "one", "session_id": "s1", **content}),
            ("artifact_create", {"name": "alone", **content}),
            ("artifact_create", {"name": "two", "session_id": "s1", **content}),
            ("artifact_add_revision", {"artifact_id": 1, "file_content_base64": "eQ==", "filename": "y.md"}),
            ("chat_create_room", {"name": "talk", "members": ["amy", "bob"], "session_id": "s1"}),
            ("session_get", {"session_id": "s1"}),
        ],
    )
    assert all(answer["success"] for answer in answers)
    data = answers[-1]["data"]
    session = data["session"]
    assert (session["id"], session["title"], session["status"]) == ("s1", "T", "active")
    assert (session["room_count"], session["artifact_count"]) == (1, 2)
    assert session["updated_at"] > session["created_at"]
    (room,) = data["chat_rooms"]
    assert (room["name"], room["session_id"], room["member_count"]) == ("talk", "s1", 2)
    shown = [
        (one["id"], one["name"], one["current_revision"], one["revision_count"]) for one in data["artifacts"]
    ]
    assert shown == [(3, "two", 0, 1), (1, "one", 1, 2)]
    assert data["artifacts"][1]["current_revision_id"] == answers[4]["data"]["revision_id"]


def test_an_update_changes_what_is_given_and_the_time(settings: Settings) -> None:
    """The rest stays."""
    created, titled, done = calls(
        settings,
        [
            ("session_create", {"session_id": "s1", "title": "Old"}),
            ("session_update", {"session_id": "s1", "title": "New"}),
            ("session_update", {"session_id": "s1", "status": "completed"}),
        ],
    )
    assert (titled["data"]["title"], titled["data"]["status"]) == ("New", "active")
    assert (done["data"]["title"], done["data"]["status"]) == ("New", "completed")
    assert done["data"]["created_at"] == created["data"]["created_at"]
    assert created["data"]["created_at"] < titled["data"]["updated_at"] < done["data"]["updated_at"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"),
    [
        ("session_get", {"session_id": "s11"}, "SESSION_NOT_FOUND", "near: s1"),
        ("session_update", {"session_id": "s11", "title": "x"}, "SESSION_NOT_FOUND", "near: s1"),
        ("session_update", {"session_id": "s1"}, "MISSING_REQUIRED", "title or status"),
        ("session_update", {"session_id": "s1", "status": "done"}, "INVALID_PARAMETER", "completed"),
        ("session_update", {"session_id": "s1", "title": " "}, "MISSING_REQUIRED", "title"),
        ("session_list", {"status": "activ"}, "INVALID_PARAMETER", "'active'"),
        ("session_list", {"limit": 0}, "INVALID_PARAMETER", "limit"),
        ("session_list", {"offset": -1}, "INVALID_PARAMETER", "offset"),
        ("session_create", {"title": "a\nb"}, "INVALID_PARAMETER", "title"),
        ("session_create", {"title": "x" * 201}, "INVALID_PARAMETER", "title"),
        ("session_get", {}, "MISSING_REQUIRED", "session_id"),
    ],
)
def test_errors_say_what_to_write(
    settings: Settings, tool: str, arguments: dict[str, Any], code: str, said: str
) -> None:
    """Each has its code, and changes nothing."""
    made = ("session_create", {"session_id": "s1", "title": "T"})
    get = ("session_get", {"session_id": "s1"})
    _, before, answer, after = calls(settings, [made, get, (tool, arguments), get])
    assert answer["error_code"] == code
    assert said in answer["error"]
    assert before == after


def test_a_session_shows_its_reviews_and_its_worklog(call: Call) -> None:
    """Reviews of its artifacts, and the worklog that this project has under its id."""
    call("session_create", session_id="s1")
    file = {"artifact_type": "text", "content": "x", "filename": "x.md"}
    call("artifact_create", name="plan", session_id="s1", **file)
    call("review_create", artifact_id=1, revision_id=1, reviewer_persona="bo")
    call("review_add_comment", review_id=1, location="line:1", comment="when?", persona="bo")
    call("review_complete", review_id=1, overall_comment="good")
    call("worklog_init", session_id="s1", task="ship")
    call("worklog_log", agent_id="bo-1", action="found", summary="a date")
    call("artifact_create", name="alone", **file)
    call("review_create", artifact_id=2, revision_id=2, reviewer_persona="cy")
    data = call("session_get", session_id="s1")["data"]
    (review,) = data["reviews"]
    assert (review["id"], review["artifact_id"], review["revision_num"]) == (1, 1, 0)
    assert (review["reviewer_persona"], review["status"], review["comment_count"]) == ("bo", "completed", 1)
    worklog = data["worklog"]
    assert (worklog["session_id"], worklog["task"], worklog["entry_count"]) == ("s1", "ship", 1)
    assert (worklog["agents"], worklog["current"]) == (["bo-1"], True)
    call("session_create", session_id="s2")
    assert "worklog" not in call("session_get", session_id="s2")["data"]
