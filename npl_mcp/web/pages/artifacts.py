"""Artifacts and their reviews: revisions, changes between them, and comments at their places."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from npl_mcp.app.context import Context
from npl_mcp.stores.artifact import artifacts as store
from npl_mcp.stores.artifact.comparing import compare, cut_line
from npl_mcp.stores.artifact.files import as_text, picture_type
from npl_mcp.stores.review.annotation import count_lines, split_lines
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.review import comments_on
from npl_mcp.web.rendering import in_thread
from npl_mcp.web.routing import Action, Data, Download, WebPage
from npl_mcp.web.signing_in import local_path
from npl_mcp.web.visits import CallError, Visit, address

SHOWN = 100
"""Maximum revisions and reviews of an artifact on its page."""

LINES = 1_000
"""Maximum lines of a text on a page."""

_CONFINED = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""A stricter policy than that of other pages; the other headers of pages still apply."""


async def artifact(visit: Visit) -> Data:
    """Return a revision of an artifact, by default the latest, with the comments of all its reviews."""
    artifact_id, offset = visit.path("artifact"), visit.number("offset") or 0
    history = await visit.call("artifact_history", artifact_id=artifact_id, limit=SHOWN)
    number, review = visit.request.path_params.get("revision"), visit.number("review")
    about, lines, text = await visit.run(_look, artifact_id, number, offset)
    comments = await _comments(visit, about["revision_id"])
    is_markdown = lines is not None and about["filename"].lower().endswith((".md", ".markdown"))
    # Comments stand at the lines of the source.
    first = "source" if visit.text("line") or comments or offset else "rendered"
    return {
        "about": about,
        "markdown": is_markdown,
        "view": "rendered" if is_markdown and visit.text("view", first) == "rendered" else "source",
        "is_text": lines is not None,
        "_text": text,
        "items": _lines(lines or (), offset, comments),
        "total": count_lines(text),
        "limit": LINES,
        "offset": offset,
        "comments": comments,
        "reviews": await _reviews(visit, artifact_id),
        "history": history["items"],
        "revisions": history["total"],
        "review": await visit.call("review_get", review_id=review, limit=1) if review else None,
        "place": _place(visit),
    }


def _look(
    app: Context, artifact_id: int, number: int | None, offset: int = 0
) -> tuple[Data, Sequence[str] | None, str]:
    """Return a revision, the lines of a page, and its text; without lines and text if it is not text.

    :param number: number of the revision; ``None`` for the newest.
    """
    row, content = app.database.reading(store.content, artifact_id, number)
    about = {name: value for name, value in row.items() if value is not None}
    if kind := picture_type(content):
        about["media_type"] = kind
    text = as_text(content)
    if text is None:
        return about, None, ""
    shown = islice(split_lines(text), offset, offset + LINES)
    return about, [cut_line(line.rstrip("\r\n")) for line in shown], text


async def _comments(visit: Visit, revision_id: int) -> list[Data]:
    """Return the comments on a revision, if the visitor may see them."""
    return await visit.run(_comments_on, revision_id) if visit.sees("review") else []


def _comments_on(app: Context, revision_id: int) -> list[Data]:
    """Return the comments on a revision, with their places."""
    comments = app.database.reading(comments_on, revision_id)
    return [
        as_dict(comment) | {name: at for name, at in comment.place._asdict().items() if at is not None}
        for comment in comments
    ]


async def review(visit: Visit) -> Response:
    """Return the redirection from a review to its revision."""
    number = visit.path("review")
    about = await visit.call("review_get", review_id=number, limit=1)
    place = f"/artifacts/{about['artifact_id']}/revisions/{about['revision_num']}"
    return RedirectResponse(address(place, review=number), 307)


def _lines(lines: Sequence[str], offset: int, comments: Sequence[Mapping[str, Any]]) -> list[Data]:
    """Return lines, each with the comments that begin there and a mark within a commented range."""
    at = _by_line(comments, "first")
    meant: set[int] = set()
    for comment in chain(*at.values()):
        first, last = max(comment["first"], offset + 1), min(comment["last"], offset + len(lines))
        meant.update(range(first, last + 1))
    return [
        {"number": number, "text": line, "comments": at[number], "meant": number in meant}
        for number, line in enumerate(lines, offset + 1)
    ]


def _by_line(comments: Sequence[Mapping[str, Any]], end: str) -> defaultdict[int, list[Any]]:
    """Return the comments at lines, by their ``first`` or ``last`` line."""
    by_line = defaultdict[int, list[Any]](list)
    for comment in comments:
        if end in comment:
            by_line[comment[end]].append(comment)
    return by_line


async def _reviews(visit: Visit, artifact_id: int) -> list[Any]:
    """Return the latest reviews of an artifact."""
    if not visit.sees("review"):
        return []
    latest = await visit.call("review_list", artifact_id=artifact_id, limit=SHOWN)
    return list(latest["items"])


def _place(visit: Visit) -> str:
    """Return the chosen place of a comment; a click on an image sends two numbers."""
    x, y, line = map(visit.number, ("spot.x", "spot.y", "line"))
    if x is not None and y is not None:
        return f"@x:{x},y:{y}"
    return f"line:{line}" if line else ""


async def compared(visit: Visit) -> Data:
    """Return the changes between two revisions."""
    artifact_id = visit.path("artifact")
    history = await visit.call("artifact_history", artifact_id=artifact_id, limit=SHOWN)
    last = history["total"] - 1
    new = visit.number("to", last) or 0
    old = visit.number("from", max(0, new - 1)) or 0
    _, before, first = await visit.run(_look, artifact_id, old)
    about, after, second = await visit.run(_look, artifact_id, new)
    if before is None or after is None:
        raise CallError("only texts can be compared")
    comments = await _comments(visit, about["revision_id"])
    return {
        "artifact_id": artifact_id,
        "artifact_name": about["artifact_name"],
        "old": old,
        "new": new,
        "changes": as_dict(await in_thread(compare, first, second)),
        "history": history["items"],
        "comments": _by_line(comments, "last"),
        "place": _place(visit),
    }


async def file(visit: Visit) -> Response:
    """Return the file of a revision: an image for display, any other content for saving.

    Agents stored the file: the headers prevent a browser from running it, and the content alone decides the
    media type.
    """
    revision = await visit.call(
        "artifact_get", artifact_id=visit.path("artifact"), revision=visit.path("revision"), text=False
    )
    content, filename = base64.b64decode(revision["file_content"]), revision["filename"]
    kind = picture_type(content)
    use = "inline" if kind else "attachment"
    disposition = f"{use}; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"
    headers = {**_CONFINED, "Content-Disposition": disposition}
    return Response(content, 200, headers, kind or "application/octet-stream")


def _own_review(visit: Visit) -> Data:
    """Return the place of the visitor's review of a revision; the first comment or a verdict begins one."""
    place = {"artifact_id": visit.path("artifact"), "revision": visit.path("revision")}
    return {**place, "reviewer_persona": visit.who}


def _next(visit: Visit) -> str:
    """Return the page of the form."""
    page = local_path(visit.form.get("next", ""))
    return page if page.startswith(("/artifacts/", "/reviews/")) else "/artifacts"


async def comment(visit: Visit) -> str:
    """Write a comment into the visitor's open review of a revision."""
    written = await visit.call(
        "review_comment_own",
        **_own_review(visit),
        location=visit.form.get("location", ""),
        comment=visit.form.get("comment", ""),
    )
    return f"{_next(visit)}#comment-{written['comment_id']}"


async def finish(visit: Visit) -> str:
    """Complete the visitor's review of a revision, with or without a verdict."""
    verdict = visit.form.get("verdict")
    overall = visit.form.get("overall_comment") or None
    await visit.call(
        "review_complete_own", **_own_review(visit), overall_comment=overall, verdict=verdict or None
    )
    page = _next(visit)
    return f"{page}{'&' if '?' in page else '?'}sent={verdict or 'comment'}"


_ARTIFACT = "/artifacts/{artifact:id}"
_REVISION = f"{_ARTIFACT}/revisions/{{revision:id}}"

DECLARED = (
    WebPage(_ARTIFACT, artifact, "artifact.html", "artifact"),
    WebPage(_REVISION, artifact, "artifact.html", "artifact"),
    WebPage(f"{_ARTIFACT}/compare", compared, "compare.html", "artifact"),
    Download("/reviews/{review:id}", review),
    Download(f"{_REVISION}/file", file),
    Action(f"{_REVISION}/comments", comment, "review"),
    Action(f"{_REVISION}/verdict", finish, "review"),
)
