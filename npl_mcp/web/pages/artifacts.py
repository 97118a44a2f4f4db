"""Artifacts and their reviews: revisions, what changed between them, and comments at their places."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from npl_mcp.stores.base.extras import how_to_install, is_installed
from npl_mcp.web.files import sent
from npl_mcp.web.markdown import LIMIT
from npl_mcp.web.routing import Action, Data, Download, Page
from npl_mcp.web.visits import Visit

SHOWN = 100
"""Artifacts of a page, and revisions in the list of one."""

LINES = 1_000
"""Lines of a text on a page."""


async def artifacts(visit: Visit) -> Data:
    """Return the artifacts."""
    archived = visit.flag("archived")
    page = await visit.call(
        "artifact_list", limit=SHOWN, offset=visit.number("offset"), archived=archived or None
    )
    return {**page, "archived": archived}


async def artifact(visit: Visit) -> Data:
    """Return an artifact as it is now."""
    return await _revision(visit, visit.path("artifact"), None)


async def revision(visit: Visit) -> Data:
    """Return a revision of an artifact."""
    return await _revision(visit, visit.path("artifact"), visit.path("revision"))


async def review(visit: Visit) -> Data:
    """Return a review with what it is about."""
    number = visit.path("review")
    about = await visit.call("review_get", review_id=number, limit=1)
    shown = await _revision(visit, about["artifact_id"], about["revision_num"], number)
    # Comments are shown at their places, and once.
    return {**shown, "review": {name: about[name] for name in about.keys() - {"items"}}}


async def _revision(visit: Visit, artifact_id: int, number: int | None, review_id: int | None = None) -> Data:
    """Return a revision with the comments of all its reviews, or of one."""
    rendered = visit.text("view") == "rendered"
    about = await visit.call(
        "artifact_look",
        artifact_id=artifact_id,
        revision=number,
        offset=visit.number("offset"),
        limit=LINES,
        text=LIMIT + 1 if rendered else None,
    )
    lines, text, total = about.pop("lines", None), about.pop("text", ""), about.pop("total")
    comments: list[Any] = []
    size: Data = {}
    if visit.sees("review"):
        found = await visit.call("review_places", artifact_id=artifact_id, revision_id=about["revision_id"])
        comments = [one for one in found["items"] if review_id in (None, one["review_id"])]
        size = {name: found[name] for name in ("width", "height") if name in found}
    history = await visit.call("artifact_history", artifact_id=artifact_id, limit=SHOWN)
    is_markdown = lines is not None and about["filename"].lower().endswith((".md", ".markdown"))
    offset = visit.number("offset") or 0
    return {
        "about": about,
        "picture": {"type": about["media_type"], **size} if "media_type" in about else None,
        "_missing": None if is_installed("pictures") else how_to_install("pictures"),
        "markdown": is_markdown,
        "view": "rendered" if is_markdown and rendered else "source",
        "is_text": lines is not None,
        "_text": text,
        "items": _lines(lines or (), offset, comments),
        "total": total,
        "limit": LINES,
        "offset": offset,
        "comments": comments,
        "reviews": await _reviews(visit, artifact_id, about["revision_id"]),
        "history": history["items"],
        "revisions": history["total"],
        "review": None,
        "place": _place(visit),
    }


def _lines(lines: Sequence[str], offset: int, comments: Sequence[Mapping[str, Any]]) -> list[Data]:
    """Return lines with the comments that begin at each, and whether one is about them."""
    at: dict[int, list[Any]] = {}
    meant: set[int] = set()
    for one in comments:
        if "first" in one:
            at.setdefault(one["first"], []).append(one)
            meant.update(range(max(one["first"], offset + 1), min(one["last"], offset + len(lines)) + 1))
    return [
        {"number": number, "text": line, "comments": at.get(number, []), "meant": number in meant}
        for number, line in enumerate(lines, offset + 1)
    ]


async def _reviews(visit: Visit, artifact_id: int, revision_id: int) -> list[Any]:
    """Return the reviews of a revision."""
    if not visit.sees("review"):
        return []
    found = await visit.call("review_list", artifact_id=artifact_id, limit=SHOWN)
    return [one for one in found["items"] if one["revision_id"] == revision_id]


def _place(visit: Visit) -> str:
    """Return the place that somebody chose for a comment; a click on a picture sends two numbers."""
    x, y, line = map(visit.number, ("spot.x", "spot.y", "line"))
    if x is not None and y is not None:
        return f"@x:{x},y:{y}"
    return f"line:{line}" if line else ""


async def compared(visit: Visit) -> Data:
    """Return what changed between two revisions."""
    artifact_id = visit.path("artifact")
    history = await visit.call("artifact_history", artifact_id=artifact_id, limit=SHOWN)
    last = history["total"] - 1
    new = visit.number("to", last) or 0
    old = visit.number("from", max(0, new - 1)) or 0
    found = await visit.call("artifact_compare", artifact_id=artifact_id, old=old, new=new)
    view = "split" if visit.text("view") == "split" else "unified"
    return {**found, "history": history["items"], "view": view, "_rows": _rows}


def _rows(hunk: Sequence[Mapping[str, Any]]) -> list[Data]:
    """Return pairs of lines as one column: what was removed above what took its place."""
    rows: list[Data] = []
    added: list[Data] = []
    for pair in hunk:
        old, new, before, after = (pair.get(name) for name in ("old", "new", "before", "after"))
        if old and new and after is None:
            rows += [*added, {"old": old, "new": new, "sign": "", "text": before}]
            added = []
            continue
        if old:
            rows.append({"old": old, "new": None, "sign": "−", "text": before})
        if new:
            added.append({"old": None, "new": new, "sign": "+", "text": after})
    return rows + added


async def file(visit: Visit) -> Response:
    """Return the file of a revision."""
    got = await visit.call(
        "artifact_get", artifact_id=visit.path("artifact"), revision=visit.path("revision"), text=False
    )
    return sent(base64.b64decode(got["file_content"]), got["filename"])


async def comment(visit: Visit) -> str:
    """Write a comment into one's open review of a revision; the first begins one."""
    who = visit.who
    artifact_id, number = visit.path("artifact"), visit.path("revision")
    about = await visit.call("artifact_look", artifact_id=artifact_id, revision=number, limit=1)
    revision_id = about["revision_id"]
    found = await visit.call(
        "review_list", artifact_id=artifact_id, reviewer_persona=who, status="in_progress", limit=SHOWN
    )
    review_id = next((one["id"] for one in found["items"] if one["revision_id"] == revision_id), None)
    if review_id is None:
        begun = await visit.call(
            "review_create", artifact_id=artifact_id, revision_id=revision_id, reviewer_persona=who
        )
        review_id = begun["review_id"]
    made = await visit.call(
        "review_add_comment",
        review_id=review_id,
        location=visit.form.get("location", ""),
        comment=visit.form.get("comment", ""),
        persona=who,
    )
    back = f"/artifacts/{artifact_id}/revisions/{number}"
    return f"{back}#comment-{made['comment_id']}"


async def add_comment(visit: Visit) -> str:
    """Write a comment into a review."""
    number = visit.path("review")
    made = await visit.call(
        "review_add_comment",
        review_id=number,
        location=visit.form.get("location", ""),
        comment=visit.form.get("comment", ""),
        persona=visit.who,
    )
    return f"/reviews/{number}" + f"#comment-{made['comment_id']}"


async def complete(visit: Visit) -> str:
    """Complete a review."""
    number = visit.path("review")
    await visit.call(
        "review_complete", review_id=number, overall_comment=visit.form.get("overall_comment") or None
    )
    return f"/reviews/{number}"


async def change(visit: Visit) -> str:
    """Archive an artifact, or bring it back."""
    number = visit.path("artifact")
    await visit.call("artifact_archive", artifact_id=number, archived=visit.form.get("action") == "archive")
    return f"/artifacts/{number}"


_ARTIFACT = "/artifacts/{artifact:id}"
_REVISION = f"{_ARTIFACT}/revisions/{{revision:id}}"

DECLARED = (
    Page("/artifacts", artifacts, "artifacts.html", "artifact", "Artifacts"),
    Page(_ARTIFACT, artifact, "artifact.html", "artifact"),
    Page(_REVISION, revision, "artifact.html", "artifact"),
    Page(f"{_ARTIFACT}/compare", compared, "compare.html", "artifact"),
    Page("/reviews/{review:id}", review, "artifact.html", "review"),
    Download(f"{_REVISION}/file", file),
    Action(f"{_REVISION}/comments", comment),
    Action(f"{_ARTIFACT}/state", change),
    Action("/reviews/{review:id}/comments", add_comment),
    Action("/reviews/{review:id}/completion", complete),
)
