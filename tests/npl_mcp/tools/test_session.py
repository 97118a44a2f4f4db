"""Promises of the session tools, as an MCP client sees them."""

import re
from dataclasses import replace
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import calls, cases

STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


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


@pytest.mark.parametrize("wanted", ["-a", ".a", "a b", "a/b", "a\nb", "é", "x" * 65, "../x"])
def test_an_id_is_plain(settings: Settings, wanted: str) -> None:
    """It may have letters, digits and a few signs; a refused id leaves no row."""
    refused, listed = calls(settings, [("session_create", {"session_id": wanted}), ("session_list", {})])
    assert refused["error_code"] in ("INVALID_PARAMETER", "MISSING_REQUIRED")
    assert "session_id" in refused["error"]
    assert listed["data"]["total"] == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "said"), cases("npl_mcp/tools/session")["errors_say_what_to_write"]
)
def test_errors_say_what_to_write(
    settings: Settings, tool: str, arguments: dict[str, Any], code: str, said: str
) -> None:
    made = ("session_create", {"session_id": "s1", "title": "T"})
    get = ("session_get", {"session_id": "s1"})
    _, before, answer, after = calls(settings, [made, get, (tool, arguments), get])
    assert answer["error_code"] == code
    assert said in answer["error"]
    assert before == after


def test_a_session_shows_what_belongs_to_it(settings: Settings) -> None:
    """An artifact that is shared in one of its rooms does, with its reviews."""
    file = {"name": "a", "artifact_type": "x", "filename": "a.md", "content": "# A\n"}
    *_, got = calls(
        settings,
        [
            ("chat_create_room", {"name": "r", "members": ["ann"], "session_id": "s1"}),
            ("artifact_create", file),
            ("chat_share_artifact", {"room_id": 1, "persona": "ann", "artifact_id": 1}),
            ("review_create", {"artifact_id": 1, "revision_id": 1, "reviewer_persona": "ann"}),
            ("worklog_init", {"session_id": "s1"}),
            ("session_get", {"session_id": "s1"}),
        ],
    )
    shown = got["data"]
    assert [[entry["id"] for entry in shown[part]] for part in ("chat_rooms", "artifacts", "reviews")] == [
        [1]
    ] * 3
    assert (shown["session"]["room_count"], shown["session"]["artifact_count"]) == (1, 1)
    assert shown["worklog"]["session_id"] == "s1"
