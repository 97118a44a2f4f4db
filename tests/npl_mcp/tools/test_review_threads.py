"""Threads of reviews through the tools: replies, resolving, verdicts, and comments at later revisions."""

from typing import Any

import pytest

from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.stores.review.reviews import MAX_FOLLOWED
from npl_mcp.web.pages.artifacts import comments_on
from tests.conftest import Call
from tests.npl_mcp.tools.test_review import comment, stored


def test_a_reply_joins_the_thread_from_another_review(call: Call) -> None:
    ids = stored(call)
    first = call("review_add_comment", **comment(ids))["data"]["comment_id"]
    given = {"artifact_id": ids["artifact_id"], "revision_id": ids["revision_id"], "reviewer_persona": "amy"}
    hers = call("review_create", **given)["data"]["review_id"]
    reply = {**comment(ids, persona="amy"), "review_id": hers, "reply_to": first}
    second = call("review_add_comment", **reply)["data"]["comment_id"]
    third = call("review_add_comment", **{**reply, "reply_to": second})["data"]["comment_id"]
    items = call("review_get", review_id=hers)["data"]["items"]
    assert {row["id"]: row["reply_to"] for row in items} == {second: first, third: first}
    elsewhere = stored(call, filename="other.md")
    refused = call("review_add_comment", **comment(elsewhere, reply_to=first))
    assert refused["error_code"] == "NOT_FOUND"


def test_a_thread_is_resolved_and_reopened_any_number_of_times(call: Call) -> None:
    ids = stored(call)
    first = call("review_add_comment", **comment(ids))["data"]["comment_id"]
    reply = call("review_add_comment", **comment(ids, reply_to=first))["data"]["comment_id"]

    def state() -> tuple[str | None, bool]:
        comment = call("review_get", review_id=ids["review_id"])["data"]["items"][0]
        return comment.get("resolved_by"), "resolved_at" in comment

    about = {"review_id": ids["review_id"], "reviewer_persona": "amy"}
    for _ in range(2):
        assert call("review_complete", **about, resolve=reply)["data"] == {
            "review_id": ids["review_id"],
            "status": "resolved",
            "comment_id": first,
        }
        assert state() == ("amy", True)
    assert call("review_complete", **about, reopen=first)["data"]["status"] == "open"
    assert state() == (None, False)
    assert call("review_complete", **about, resolve=99)["error_code"] == "NOT_FOUND"
    for more in ({"reopen": first}, {"verdict": "approved"}, {"overall_comment": "Good."}):
        refused = call("review_complete", **about, resolve=first, **more)
        assert (refused["error_code"], refused["parameter"]) == ("INVALID_PARAMETER", "resolve")
    assert state() == (None, False)


def test_a_verdict_is_given_once(call: Call) -> None:
    ids = stored(call)
    done = {"review_id": ids["review_id"], "verdict": "approved"}
    for _ in range(2):
        assert call("review_complete", **done)["data"]["verdict"] == "approved"
    assert call("review_complete", **{**done, "verdict": "changes_needed"})["success"] is False
    assert call("review_complete", **{**done, "verdict": "fine"})["error_code"] == "INVALID_PARAMETER"
    assert call("review_list", artifact_id=ids["artifact_id"])["data"]["items"][0]["verdict"] == "approved"


def placed(settings: Settings, **where: int) -> list[dict[str, Any]]:
    """Return the comments of a revision's page."""
    app = App(settings)
    try:
        return comments_on(app, **where)
    finally:
        app.close()


CARRIED = {
    "moved": ("line:2", b"zero\none\ntwo\nthree\n", (3, 3, None)),
    "changed": ("line:2", b"one\n2\nthree\n", (None, None, True)),
    "a part is left": ("line:1-2", b"two\nthree\n", (1, 1, None)),
    "other line ends": ("line:3", b"one\r\ntwo\r\nthree", (3, 3, None)),
    "everything gone": ("line:1-3", b"zero\n", (None, None, True)),
}


@pytest.mark.parametrize("case", CARRIED)
def test_an_open_comment_comes_along_with_its_lines(call: Call, settings: Settings, case: str) -> None:
    location, content, expected = CARRIED[case]
    ids = stored(call)
    call("review_add_comment", **comment(ids, location))
    resolved = call("review_add_comment", **comment(ids))["data"]["comment_id"]
    call("review_complete", review_id=ids["review_id"], resolve=resolved)
    revision = {"filename": "text.md", "content": content.decode()}
    made = call("artifact_add_revision", artifact_id=ids["artifact_id"], **revision)["data"]
    where = {"artifact_id": ids["artifact_id"], "revision_id": made["revision_id"]}
    (earlier,) = placed(settings, **where)
    assert (earlier.get("first"), earlier.get("last"), earlier.get("outdated")) == expected
    assert (earlier["location"], earlier["revision_num"]) == (location, 0)


def test_comments_of_the_latest_revisions_are_followed(call: Call, settings: Settings) -> None:
    """Those of older ones have no place, so a page takes no longer with many revisions."""
    ids, made = stored(call), dict[str, int]()
    for number in range(MAX_FOLLOWED + 2):
        call("review_add_comment", **comment(ids, "line:1"))
        revision = {"artifact_id": ids["artifact_id"], "filename": "text.md", "content": f"one\n{number}\n"}
        made = call("artifact_add_revision", **revision)["data"]
        about = {"artifact_id": ids["artifact_id"], "revision_id": made["revision_id"]}
        ids |= call("review_create", **about, reviewer_persona="amy")["data"]
    shown = placed(settings, artifact_id=ids["artifact_id"], revision_id=made["revision_id"])
    lines = {row["revision_num"]: row.get("first") for row in shown}
    assert lines == {number: 1 if number > 1 else None for number in range(MAX_FOLLOWED + 2)}
    assert not any("outdated" in row for row in shown)
