"""Sessions: they group rooms and artifacts.

The functions run in the caller's transaction, so that a room or an artifact and its session are created
together or not at all.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Annotated

from npl_mcp.config.domains import Of
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import AlreadyExistsError, ClosedError, SessionNotFoundError
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import conditions, fill

STATUSES = ("active", "completed", "archived")
PAGE = 20
_COMPARED = 500
_COLUMNS = (
    "number, id, title, created_at, updated_at, status,"
    " (SELECT count(*) FROM room WHERE room.session_number = session.number) AS room_count,"
    " (SELECT count(*) FROM session_artifact AS link WHERE link.session_number = session.number)"
    " AS artifact_count"
)

ARTIFACTS = """
(SELECT link.artifact_id FROM session_artifact AS link
    JOIN session ON session.number = link.session_number WHERE session.id = :session)"""
"""Ids of the artifacts that are linked to a session."""


@dataclass(frozen=True, slots=True)
class Session:
    """A session.

    :param id: id of the session.
    :param title: title of the session.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param updated_at: time of the last change of the session, its rooms or artifacts, UTC, ISO 8601.
    :param status: ``active``, ``completed`` or ``archived``.
    :param room_count: number of its rooms.
    :param artifact_count: number of its artifacts.
    :param web_url: address of its page, if the server has pages.
    """

    id: str
    title: str | None
    created_at: str
    updated_at: str
    status: str
    room_count: Annotated[int, Of("chat")]
    artifact_count: Annotated[int, Of("artifact")]
    web_url: str | None = None


def find(tx: Transaction, session_id: str) -> Row:
    """Return the row of a session.

    :raises SessionNotFoundError: the session does not exist; the error has similar ids.
    """
    row = tx.first(f"SELECT {_COLUMNS} FROM session WHERE id = :id", id=session_id)
    if row is None:
        near = tx.near(session_id, f"SELECT id FROM session ORDER BY number DESC LIMIT {_COMPARED}")
        hint = None if near else "session_list lists all sessions"
        raise SessionNotFoundError(f"there is no session {session_id!r}", near=near, hint=hint)
    return row


def ensure(tx: Transaction, session_id: str | None, title: str | None) -> int:
    """Return the number of a session; create it if it does not exist.

    :param session_id: its id; ``None`` creates a session with a new one.
    :param title: title of a new session.
    """
    number: int | None = tx.value("SELECT number FROM session WHERE id = :id", id=session_id)
    return _insert(tx, session_id, title)["number"] if number is None else number


def touch(tx: Transaction, number: int) -> None:
    """Record a change of a session at the present time.

    :raises ClosedError: it is archived.
    """
    sql = "UPDATE session SET updated_at = :now WHERE number = :number AND status != 'archived'"
    if not tx.run(sql, now=tx.now, number=number):
        raise _archived(tx.value("SELECT id FROM session WHERE number = :number", number=number))


def _archived(session_id: str) -> ClosedError:
    problem = f"session {session_id!r} is archived"
    return ClosedError(problem, hint="set its status to active with session_update first")


def link_artifact(tx: Transaction, number: int, artifact_id: int) -> None:
    """Link an artifact to a session; a repeated call only updates the session's time.

    :raises ClosedError: the session is archived.
    """
    key = "session_number, artifact_id"
    row = {"session_number": number, "artifact_id": artifact_id, "linked_at": tx.now}
    tx.insert("session_artifact", "artifact_id", key, **row)
    touch(tx, number)


def create(tx: Transaction, session_id: str | None, title: str | None) -> Session:
    """Create a session.

    :param session_id: its id; ``None`` for a random one.
    """
    return fill(Session, _insert(tx, session_id, title))


def get(tx: Transaction, session_id: str) -> Session:
    """Return a session."""
    return fill(Session, find(tx, session_id))


def load_page(tx: Transaction, part: Slice, status: str | None) -> Page[Session]:
    """Return sessions, newest first.

    :param status: status of the returned sessions; ``None`` for all.
    """
    where, values = conditions(status=("status = :status", status))
    sql = f"SELECT {_COLUMNS} FROM session WHERE {where} ORDER BY number DESC LIMIT :limit OFFSET :offset"
    total = tx.value(f"SELECT count(*) FROM session WHERE {where}", **values)
    return tx.page(Session, sql, total, part, **values)


def update(tx: Transaction, session_id: str, title: str | None, status: str | None) -> Session:
    """Change a session's title or status.

    :raises ClosedError: the session is archived.
    """
    before = find(tx, session_id)
    if before["status"] == "archived" and title is not None and status in (None, "archived"):
        raise _archived(before["id"])
    sql = (
        "UPDATE session SET title = coalesce(:title, title), status = coalesce(:status, status),"
        f" updated_at = :now WHERE number = :number RETURNING {_COLUMNS}"
    )
    (after,) = tx.all(sql, title=title, status=status, now=tx.now, number=before["number"])
    return fill(Session, after)


def _insert(tx: Transaction, wanted: str | None, title: str | None) -> Row:
    row: Row | None = None
    while row is None:
        session_id = wanted or secrets.token_hex(4)
        row = tx.insert(
            "session", _COLUMNS, "id", id=session_id, title=title, created_at=tx.now, updated_at=tx.now
        )
        if row is None and wanted is not None:
            problem = f"there is already a session {wanted!r}"
            raise AlreadyExistsError(problem, hint="choose another id, or leave it out")
    return row
