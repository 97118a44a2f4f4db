"""A page's size bounds it, and the next one continues where it ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.stores.base.checks import TEXT
from npl_mcp.stores.base.database import PAGE_CHARACTERS
from tests.npl_mcp.stores.test_faults import ask, file
from tests.npl_mcp.stores.writer import settings_in

pytestmark = pytest.mark.thorough

LONG = PAGE_CHARACTERS // TEXT + 6
"""Number of texts that exceeds one page."""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    (tmp_path / "project").mkdir()
    made = App(settings_in(tmp_path))
    ask(made, "chat_create_room", name="room", members=["alice", "bob"])
    ask(made, "artifact_create", name="plan", artifact_type="document", **file())
    ask(made, "review_create", artifact_id=1, revision_id=1, reviewer_persona="bob")
    yield made
    made.close()


def text(number: int) -> str:
    return f"{number:03} @bob " + "x" * (TEXT - 9)


def read(app: App, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = ask(app, tool, limit=1_000, **arguments)
    assert answer["success"]
    data: dict[str, Any] = answer["data"]
    assert 0 < len(data["items"]) < LONG
    return data


def test_a_feed_goes_on_after_its_cursor(app: App) -> None:
    """No entry between is left out, and the latest page ends with the newest."""
    for number in range(LONG):
        ask(app, "chat_send_message", room_id=1, persona="alice", message=text(number))
    first = read(app, "chat_get_feed", room_id=1, since=0)
    rest = read(app, "chat_get_feed", room_id=1, since=first["cursor"])
    ids = [row["id"] for row in (*first["items"], *rest["items"])]
    assert ids == list(range(1, first["total"] + 1))
    latest = read(app, "chat_get_feed", room_id=1)
    assert [row["id"] for row in latest["items"]] == ids[-len(latest["items"]) :]
    newest = read(app, "chat_get_notifications", persona="bob")["items"]
    assert newest[0]["event_id"] == ids[-1]


def test_entries_that_remain_are_read_next(app: App) -> None:
    """The cursor stands where the page ended."""
    for number in range(LONG):
        ask(app, "worklog_log", agent_id="a", action="did", summary=text(number))
    first = read(app, "worklog_read", agent_id="r")
    rest = read(app, "worklog_read", agent_id="r")
    assert [row["seq"] for row in (*first["items"], *rest["items"])] == list(range(1, LONG + 1))
    assert first["remaining"] == len(rest["items"])


def test_comments_and_revisions_are_read_by_offset(app: App) -> None:
    """The next page begins after the shown rows."""
    for number in range(LONG):
        ask(app, "review_add_comment", review_id=1, location="line:1", comment=text(number), persona="bob")
    first = read(app, "review_get", review_id=1)
    rest = read(app, "review_get", review_id=1, offset=len(first["items"]))
    assert [row["id"] for row in (*first["items"], *rest["items"])] == list(range(1, LONG + 1))
    for number in range(LONG):
        ask(app, "artifact_add_revision", artifact_id=1, notes=text(number), **file())
    history = read(app, "artifact_history", artifact_id=1)
    assert [row["revision_num"] for row in history["items"]][:2] == [LONG, LONG - 1]
