"""Artifacts and their reviews: revisions, changes between them, and comments at their places."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
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
from npl_mcp.web.routing import TEAM, Action, Data, WebPage
from npl_mcp.web.signing_in import local_path
from npl_mcp.web.tables import columns, paged
from npl_mcp.web.visits import CallError, Visit, address

SHOWN = 100
"""Maximum artifacts of a list, and revisions and reviews of an artifact on its page."""

COLUMNS = columns("name", "reviews", "revisions", "type", created_at="Created")

LINES = 1_000
"""Maximum lines of a text on a page."""

_CONFINED = {"Content-Security-Policy": "default-src 'none'; sandbox"}
"""A stricter policy than that of other pages; the other headers of pages still apply."""


async def artifacts(visit: Visit) -> Data:
    """Return a page of the current or the archived artifacts, with their reviews."""
    verdicts = defaultdict[int, list[str]](list)
    for review in await visit.every("review_list") if visit.sees("review") else ():
        verdict = review.get("verdict", review["status"]).replace("_", " ")
        verdicts[review["artifact_id"]].append(f"{review['reviewer_persona']}: {verdict}")
    rows = [
        {**artifact, "reviews": verdicts[artifact["id"]], "revisions": artifact["current_revision"] + 1}
        for artifact in await visit.every("artifact_list", archived=visit.flag("archived"))
    ]
    return paged(visit, rows, COLUMNS, SHOWN)


async def artifact(visit: Visit) -> Data:
    """Return a revision of an artifact, by default the latest, with the comments of all its reviews."""
    artifact_id, offset = visit.path("artifact"), visit.number("offset") or 0
    history = await visit.call("artifact_history", artifact_id=artifact_id, limit=SHOWN)
    latest: Data = {"items": []}
    if visit.sees("review"):
        latest = await visit.call("review_list", artifact_id=artifact_id, limit=SHOWN)
    number, review = visit.request.path_params.get("revision"), visit.number("review")
    about, lines, text, total = await visit.run(_look, artifact_id, number, offset)
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
        "total": total,
        "limit": LINES,
        "offset": offset,
        "comments": comments,
        "reviews": latest["items"],
        "history": history["items"],
        "revisions": history["total"],
        "review": await visit.call("review_get", review_id=review, limit=1) if review else None,
        "place": _place(visit),
    }


def _look(
    app: Context, artifact_id: int, number: int | None, offset: int = 0
) -> tuple[Data, Sequence[str] | None, str, int]:
    """Return a revision, the lines of a page, its text, and the number of all lines; no lines without text.

    :param number: number of the revision; ``None`` for the newest.
    """
    row, content = app.database.reading(store.content, artifact_id, number)
    about = {name: value for name, value in row.items() if value is not None}
    if kind := picture_type(content):
        about["media_type"] = kind
    text = as_text(content)
    if text is None:
        return about, None, "", 0
    shown = islice(split_lines(text), offset, offset + LINES)
    return about, [cut_line(line.rstrip("\r\n")) for line in shown], text, count_lines(text)


async def _comments(visit: Visit, revision_id: int) -> list[Data]:
    """Return the comments on a revision with their places, if the visitor may see them."""

    def read(app: Context) -> list[Data]:
        comments = app.database.reading(comments_on, revision_id)
        places = ((comment, comment.place._asdict()) for comment in comments)
        return [
            as_dict(comment) | {name: at for name, at in place.items() if at is not None}
            for comment, place in places
        ]

    return await visit.run(read) if visit.sees("review") else []


async def review(visit: Visit) -> Response:
    """Return the redirection from a review to its revision."""
    number = visit.path("review")
    about = await visit.call("review_get", review_id=number, limit=1)
    place = f"/artifacts/{about['artifact_id']}/revisions/{about['revision_num']}"
    return RedirectResponse(address(place, review=number), 307)


def _lines(lines: Sequence[str], offset: int, comments: Sequence[Mapping[str, Any]]) -> list[Data]:
    """Return lines, each with the comments that begin there and a mark within a commented range."""
    at = _by_line(comments, "first")
    reach = max(
        (comment["last"] for comment in comments if comment.get("first", offset + 1) <= offset), default=0
    )
    rows = []
    for number, line in enumerate(lines, offset + 1):
        reach = max([reach, *(comment["last"] for comment in at[number])])
        rows.append({"number": number, "text": line, "comments": at[number], "meant": number <= reach})
    return rows


def _by_line(comments: Sequence[Mapping[str, Any]], end: str) -> defaultdict[int, list[Any]]:
    """Return the comments at lines, by their ``first`` or ``last`` line."""
    by_line = defaultdict[int, list[Any]](list)
    for comment in comments:
        if end in comment:
            by_line[comment[end]].append(comment)
    return by_line


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
    _, before, first, _ = await visit.run(_look, artifact_id, old)
    about, after, second, _ = await visit.run(_look, artifact_id, new)
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
    artifact_id, number = visit.path("artifact"), visit.path("revision")
    row, content = await visit.run(lambda app: app.database.reading(store.content, artifact_id, number))
    kind = picture_type(content)
    use = "inline" if kind else "attachment"
    disposition = f"{use}; filename*=UTF-8''{quote(row['filename'], safe='', errors='replace')}"
    headers = {**_CONFINED, "Content-Disposition": disposition}
    return Response(content, 200, headers, kind or "application/octet-stream")


async def _write(visit: Visit, tool: str, **given: str | None) -> tuple[Data, str]:
    """Write into the visitor's review of a revision, which the first comment or a verdict begins.

    :returns: the data of the tool's result, and the page of the form.
    """
    place = {"artifact_id": visit.path("artifact"), "revision": visit.path("revision")}
    written = await visit.call(tool, **place, reviewer_persona=visit.who, **given)
    page = local_path(visit.form.get("next", ""))
    return written, page if page.startswith(("/artifacts/", "/reviews/")) else "/artifacts"


async def comment(visit: Visit) -> str:
    """Write a comment into the visitor's open review of a revision."""
    given = {name: visit.form.get(name, "") for name in ("location", "comment")}
    written, page = await _write(visit, "review_comment_own", **given)
    return f"{page}#comment-{written['comment_id']}"


async def finish(visit: Visit) -> str:
    """Complete the visitor's review of a revision, with or without a verdict."""
    given = {name: visit.form.get(name) or None for name in ("overall_comment", "verdict")}
    _, page = await _write(visit, "review_complete_own", **given)
    return f"{page}{'&' if '?' in page else '?'}sent={given['verdict'] or 'comment'}"


_ARTIFACT = "/artifacts/{artifact:id}"
_REVISION = f"{_ARTIFACT}/revisions/{{revision:id}}"

DECLARED = (
    WebPage("/artifacts", artifacts, "list.html", "artifact", "Artifacts", entry=TEAM),
    WebPage(_ARTIFACT, artifact, "artifact.html", "artifact"),
    WebPage(_REVISION, artifact, "artifact.html", "artifact"),
    WebPage(f"{_ARTIFACT}/compare", compared, "compare.html", "artifact"),
    WebPage("/reviews/{review:id}", review, "", "review"),
    WebPage(f"{_REVISION}/file", file, "", "artifact"),
    Action(f"{_REVISION}/comments", comment, "review"),
    Action(f"{_REVISION}/verdict", finish, "review"),
)
