"""A session as one Markdown text, for people and archives: artifacts, reviews, messages and worklog.

Users' text is quoted or put on one line, so that its headings do not look like headings of the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from npl_mcp.stores import session
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.stores.base.paging import MAX_PAGE, Slice
from npl_mcp.stores.chat import feed
from npl_mcp.stores.chat.feed import Event
from npl_mcp.stores.worklog import rows

MAX_TRANSCRIPT = 8 * 1024 * 1024
"""Maximum characters of a transcript; an answer holds it in memory."""

MIN_EVENT = 36
"""Minimum characters of an event: its number, its time and its author."""

_SPACE = re.compile(r"\s+")


def transcript(tx: Transaction, session_id: str, project: str) -> str:
    """Return a session as Markdown, from one snapshot of the database.

    :param project: project whose worklog of the same name belongs to the session.
    :raises SessionNotFoundError: the session does not exist.
    :raises StoreError: it is too long.
    """
    parts: list[str] = []
    about = session.find(tx, session_id)
    rooms = tx.all(_ROOMS, number=about["number"])
    # A transcript with a minimum length above the limit is refused before it is read.
    left = MAX_TRANSCRIPT if sum(room["event_count"] for room in rooms) * MIN_EVENT <= MAX_TRANSCRIPT else 0
    for part in _parts(tx, about, rooms, project):
        left -= len(part) + 1
        if left < 0:
            problem = f"the text of session {session_id!r} has more than {MAX_TRANSCRIPT:,} characters"
            raise StoreError(problem, hint="read its rooms with chat_get_feed")
        parts.append(part)
    return "\n".join(parts) + "\n"


def _parts(tx: Transaction, about: Row, rooms: Sequence[Row], project: str) -> Iterator[str]:
    yield f"# {_line(about['title'] or about['id'])}"
    yield f"\nSession `{about['id']}`, {about['status']}, {about['created_at']} to {about['updated_at']}."
    yield from _artifacts(tx, about["number"])
    for room in rooms:
        yield from _room(tx, room)
    yield from _worklog(tx, project, about["id"])


def _artifacts(tx: Transaction, number: int) -> Iterator[str]:
    for at, row in enumerate(tx.all(_REVISIONS, number=number)):
        if not at:
            yield "\n## Artifacts\n"
        by = f" by {_line(row['created_by'])}" if row["created_by"] else ""
        purpose = f": {_line(row['purpose'])}" if row["purpose"] else ""
        kept = f"{row['filename']}, {row['size']:,} bytes, {row['created_at']}{by}{purpose}"
        which = f"{_line(row['name'])} (artifact {row['id']}, {_line(row['type'])})"
        yield f"- {which}, revision {row['revision_num']}, {kept}"
    for review in tx.all(_REVIEWS, number=number):
        yield (
            f"\n## Review {review['id']} of {_line(review['name'])}, revision {review['revision_num']}\n\n"
            f"By {_line(review['reviewer_persona'])}, {review['created_at']}, {review['status']}.\n"
        )
        for row in tx.all(_COMMENTS, review=review["id"]):
            where = row["location"] if row["selector"] is None else f"{row['location']} {row['selector']}"
            yield f"- {_line(where)}, {_line(row['persona'])}:\n{_quoted(row['comment'], '  ')}"
        if review["overall_comment"]:
            yield f"\n{_quoted(review['overall_comment'])}"


def _room(tx: Transaction, room: Row) -> Iterator[str]:
    yield f"\n## Room {room['id']}: {_line(room['name'])}"
    if room["description"]:
        yield f"\n{_quoted(room['description'])}"
    yield ""
    since = 0
    while (page := feed.read(tx, room["id"], room["event_count"], since, Slice(MAX_PAGE, 0))).items:
        for event in page.items:
            yield _event(event)
        since = page.items[-1].id


def _event(event: Event) -> str:
    data = event.data
    answers = "" if event.reply_to_id is None else f", to {event.reply_to_id}"
    head = f"- {event.id}, {event.timestamp}, {_line(event.persona)}{answers}"
    if event.event_type in ("message", "handoff", "handoff_ack"):
        kind = {
            "message": "",
            "handoff": f" hands over to {_line(data.get('to'))}",
            "handoff_ack": " takes it",
        }
        return f"{head}{kind[event.event_type]}:\n{_quoted(data['message'], '  ')}"
    if event.event_type == "todo_create":
        doer = f", {_line(data['assigned_to'])}" if data.get("assigned_to") else ""
        return f"{head} todo, {data['status']}{doer}:\n{_quoted(data['description'], '  ')}"
    shown = ", ".join(f"{name} {_line(value)}" for name, value in data.items() if value is not None)
    return f"{head} {event.event_type}: {shown}"


def _worklog(tx: Transaction, project: str, session_id: str) -> Iterator[str]:
    found = rows.called(tx, project, session_id)
    if found is None:
        return
    task = f": {_line(found['task'])}" if found["task"] else ""
    yield f"\n## Worklog {found['id']}{task}\n"
    for entry in rows.every_entry(tx, found["number"]):
        yield (
            f"- {entry.seq}, {entry.ts}, {_line(entry.agent_id)}, {_line(entry.action)}:\n"
            f"{_quoted(entry.summary, '  ')}"
        )


def _line(value: Any) -> str:
    """Return a value on one line."""
    return _SPACE.sub(" ", str(value)).strip()


def _quoted(text: str, indent: str = "") -> str:
    """Return a text as a block quote."""
    return "\n".join(f"{indent}> {line}".rstrip() for line in text.strip().splitlines())


_REVISIONS = """
SELECT artifact.id, artifact.name, artifact.type, revision.revision_num, revision.filename, revision.size,
    revision.created_at, revision.created_by, revision.purpose
FROM session_artifact
JOIN artifact ON artifact.id = session_artifact.artifact_id
JOIN revision ON revision.artifact_id = artifact.id
WHERE session_artifact.session_number = :number ORDER BY artifact.id, revision.revision_num
"""

_REVIEWS = """
SELECT review.id, artifact.name, revision.revision_num, review.reviewer_persona, review.created_at,
    review.status, review.overall_comment
FROM session_artifact
JOIN review ON review.artifact_id = session_artifact.artifact_id
JOIN artifact ON artifact.id = review.artifact_id
JOIN revision ON revision.id = review.revision_id
WHERE session_artifact.session_number = :number ORDER BY review.id
"""

_COMMENTS = """
SELECT location, selector, persona, comment FROM review_comment WHERE review_id = :review ORDER BY id
"""

_ROOMS = """
SELECT id, name, description, event_count FROM room WHERE session_number = :number ORDER BY id
"""
