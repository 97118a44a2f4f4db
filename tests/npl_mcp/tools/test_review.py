"""Reviews through the tools: comments, completion, annotated copies of files."""

import base64
from typing import Any

import pytest

from npl_mcp.stores.base.checks import TEXT
from npl_mcp.tools.review import MAX_ANNOTATED
from tests.conftest import Call, cases


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


PICTURE = b"\x89PNG\r\n\x1a\n\x00\x00"


def stored(call: Call, content: bytes = b"one\ntwo\nthree\n", filename: str = "text.md") -> dict[str, int]:
    """Store an artifact and begin a review of it by bob."""
    made = call(
        "artifact_create",
        name=filename,
        artifact_type="document",
        file_content_base64=encoded(content),
        filename=filename,
    )["data"]
    ids = {"artifact_id": made["artifact_id"], "revision_id": made["revision_id"]}
    review = call("review_create", **ids, reviewer_persona="bob")["data"]
    return {**ids, "review_id": review["review_id"]}


def on(ids: dict[str, int]) -> dict[str, int]:
    return {"artifact_id": ids["artifact_id"], "revision_id": ids["revision_id"]}


def comment(ids: dict[str, int], location: str = "line:1", **more: Any) -> dict[str, Any]:
    given = {"review_id": ids["review_id"], "location": location, "comment": "c", "persona": "bob"}
    return {**given, **more}


def test_a_copy_takes_comments_up_to_a_size(call: Call) -> None:
    """Beyond it the comments are read page by page."""
    ids = stored(call)
    for _ in range(MAX_ANNOTATED // TEXT):
        call("review_add_comment", **comment(ids, comment="x" * TEXT))
    assert call("review_generate_annotated", **on(ids))["success"]
    call("review_add_comment", **comment(ids, comment="x"))
    answer = call("review_generate_annotated", **on(ids))
    assert answer["error_code"] == "OPERATION_FAILED"
    assert "review_get" in answer["error"]


PLACES = cases("npl_mcp/tools/review")["places"]


@pytest.mark.parametrize("location", PLACES)
def test_a_place_must_be_in_the_text(call: Call, location: str) -> None:
    """A text of three lines has no fourth; a refused comment leaves no row."""
    ids = stored(call)
    answer = call("review_add_comment", **comment(ids, location))
    assert answer.get("error_code") == PLACES[location]
    assert ("line:<n>" in answer.get("error", "")) is (PLACES[location] in ("NOT_FOUND", "INVALID_PARAMETER"))
    kept = call("review_get", review_id=ids["review_id"])["data"]["items"]
    assert len(kept) == (PLACES[location] is None)


@pytest.mark.parametrize(("x", "y"), [(-1, 0), (0, -5), (2**60, 0)])
def test_a_spot_must_be_possible(call: Call, x: int, y: int) -> None:
    ids = stored(call, PICTURE, "shot.png")
    spot = {"review_id": ids["review_id"], "x": x, "y": y, "comment": "c", "persona": "bob"}
    assert call("review_add_annotation", **spot)["error_code"] == "INVALID_PARAMETER"
    assert call("review_add_annotation", **{**spot, "x": 199, "y": 149})["success"]
    assert call("review_add_comment", **comment(ids, "line:1"))["error_code"] == "INVALID_PARAMETER"


def test_the_former_name_has_the_comments_under_their_former_name(call: Call) -> None:
    ids = stored(call)
    call("review_add_comment", **comment(ids))
    former = call("get_review", review_id=ids["review_id"])["data"]
    assert former["comments"] == former["items"] != []
    assert "comments" not in call("review_get", review_id=ids["review_id"])["data"]


WRONG = cases("npl_mcp/tools/review")["wrong"]


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_there_is_named(call: Call, case: str) -> None:
    ids = stored(call)
    tool, changed, code = WRONG[case]
    right: dict[str, dict[str, Any]] = {
        "review_create": {**on(ids), "reviewer_persona": "amy"},
        "review_get": {},
        "review_complete": {},
        "review_add_comment": comment(ids),
    }
    answer = call(tool, **{**right[tool], **changed})
    assert answer["error_code"] == code
    if code in ("NOT_FOUND", "REVIEW_NOT_FOUND"):
        assert "lists" in answer["error"]


def test_a_revision_of_another_artifact_is_refused(call: Call) -> None:
    """People confuse row ids; the message names the tool that lists the artifact's own."""
    first, second = stored(call), stored(call, b"x\n", "other.md")
    mixed = {"artifact_id": first["artifact_id"], "revision_id": second["revision_id"]}
    answer = call("review_create", **mixed, reviewer_persona="amy")
    assert answer["error_code"] == "NOT_FOUND"
    assert "it has 1; artifact_history" in answer["error"]
    assert call("review_generate_annotated", **mixed)["error_code"] == "NOT_FOUND"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_annotated_text_keeps_its_line_ends(call: Call, end: str) -> None:
    """Outside the markers every character stays, and added lines end likewise."""
    text = end.join(["# T", "", "one", "two", ""])
    ids = stored(call, text.encode())
    call("review_add_comment", **comment(ids, "line:3-4", comment="both"))
    data = call("review_generate_annotated", **on(ids))["data"]
    assert data["annotated_content"] == end.join(
        [
            *["# T", "", "one", "two[^bob-1]", "", "", "---", "", "# Review Comments", ""],
            *["[^bob-1]: @bob: lines 3-4: both", ""],
        ]
    )


def test_all_reviews_of_the_revision_are_in_the_copy_and_no_other(call: Call) -> None:
    """Counts, reviewers and files cover every review of this revision."""
    ids = stored(call)
    call("review_add_comment", **comment(ids, "line:2", comment="b2"))
    call("review_complete", review_id=ids["review_id"], overall_comment="All in all fine.")
    amy = call("review_create", **on(ids), reviewer_persona="amy")["data"]["review_id"]
    call("review_add_comment", **comment(ids, "line:2", review_id=amy, persona="amy", comment="a2"))
    call("review_add_comment", **comment(ids, "line:1", review_id=amy, persona="zed", comment="guest"))
    newer = call(
        "artifact_add_revision",
        artifact_id=ids["artifact_id"],
        file_content_base64=encoded(b"new\n"),
        filename="text.md",
    )["data"]
    data = call("review_generate_annotated", **on(ids))["data"]
    assert data["annotated_content"].splitlines()[:2] == ["one[^zed-1]", "two[^bob-2][^amy-3]"]
    assert (data["total_comments"], data["reviewers"]) == (3, ["bob", "amy"])
    assert data["reviewer_files"]["bob"].endswith("All in all fine.\n")
    assert "[^amy-3]: line:2: a2" in data["reviewer_files"]["amy"]
    other = call(
        "review_generate_annotated", artifact_id=ids["artifact_id"], revision_id=newer["revision_id"]
    )["data"]
    assert (other["annotated_content"], other["total_comments"]) == ("new\n", 0)


@pytest.mark.parametrize(
    ("content", "filename"),
    [(PICTURE, "shot.png"), (b"\x00\x01\x02", "a.bin"), ("é".encode("latin-1"), "a.txt")],
)
def test_the_copy_of_a_file_without_lines_has_its_comments(call: Call, content: bytes, filename: str) -> None:
    """Comments are in the order of their rows, then columns; nothing is stored."""
    ids = stored(call, content, filename)
    for x, y, persona in ((9000, 60, "amy"), (50, 60, "bob"), (7, 8, "bob")):
        spot = {"review_id": ids["review_id"], "x": x, "y": y}
        assert call("review_add_annotation", **spot, comment=f"at {x}", persona=persona)["success"]
    data = call("review_generate_annotated", **on(ids))["data"]
    assert data["annotated_content"] == (
        "# Review Comments\n\n[^bob-1]: @bob: @x:7,y:8: at 7\n[^bob-2]: @bob: @x:50,y:60: at 50\n"
        "[^amy-3]: @amy: @x:9000,y:60: at 9000\n"
    )
    assert "[^bob-2]: @x:50,y:60: at 50" in data["reviewer_files"]["bob"]
    assert call("artifact_history", artifact_id=ids["artifact_id"])["data"]["total"] == 1


PLAN = (
    b"---\ntitle: T\n---\n# Plan\n\nWhy.\n\n## Steps\n\nOne.\nTwo.\n\n\n"
    b"## Risks\n\nNone.\n\n### Steps\n\nMore.\n"
)


# By selector: the lines it has in that text, or the code and a part of the refusal.
SECTIONS: dict[str, tuple[str, str]] = cases("npl_mcp/tools/review")["sections"]


@pytest.mark.parametrize("selector", SECTIONS)
def test_a_comment_may_be_about_a_section(call: Call, selector: str) -> None:
    """It keeps the selector and the lines that the section has in the reviewed revision."""
    ids = stored(call, PLAN)
    call("artifact_add_revision", artifact_id=1, content="# Else\n", filename="text.md")
    answer = call("review_add_comment", **comment(ids, selector))
    expected, said = SECTIONS[selector]
    if not answer["success"]:
        assert (answer["error_code"], said in answer["error"]) == (expected, True), answer
        assert call("review_get", review_id=1)["data"]["total"] == 0
        return
    assert (answer["data"]["location"], answer["data"]["selector"]) == (expected, selector)
    kept = call("review_get", review_id=1)["data"]["items"][0]
    assert (kept["location"], kept["selector"]) == (expected, selector)
    made = call("review_generate_annotated", **on(ids))["data"]
    last = int(expected.rpartition("-")[2].rpartition(":")[2])
    assert made["annotated_content"].splitlines()[last - 1].endswith("[^bob-1]")
    assert f"[^bob-1]: {expected} ({selector}): c" in made["reviewer_files"]["bob"]


def test_a_picture_has_no_sections(call: Call) -> None:
    ids = stored(call, PICTURE, "shot.png")
    answer = call("review_add_comment", **comment(ids, "## Steps"))
    assert (answer["error_code"], "@x" in answer["error"]) == ("INVALID_PARAMETER", True)


def test_a_verdict_is_given_once(call: Call) -> None:
    ids = stored(call)
    done = {"review_id": ids["review_id"], "verdict": "approved"}
    for _ in range(2):
        assert call("review_complete", **done)["data"]["verdict"] == "approved"
    assert call("review_complete", **{**done, "verdict": "changes_needed"})["success"] is False
    assert call("review_complete", **{**done, "verdict": "fine"})["error_code"] == "INVALID_PARAMETER"
    assert "is complete" in call("review_add_comment", **comment(done))["error"]
    assert call("review_list", artifact_id=ids["artifact_id"])["data"]["items"][0]["verdict"] == "approved"
