"""Sessions: they group rooms and artifacts.

The functions run in the caller's transaction, so that a room or an artifact and its session are created
together or not at all.
"""

from __future__ import annotations

import secrets

from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import AlreadyExistsError, ClosedError, SessionNotFoundError

_COMPARED = 500
COLUMNS = (
    "number, id, title, created_at, updated_at, status,"
    " (SELECT count(*) FROM room WHERE room.session_number = session.number) AS room_count,"
    " (SELECT count(*) FROM session_artifact AS link WHERE link.session_number = session.number)"
    " AS artifact_count"
)

ARTIFACTS = """
(SELECT link.artifact_id FROM session_artifact AS link
    JOIN session ON session.number = link.session_number WHERE session.id = :session)"""
"""Ids of the artifacts that are linked to a session."""


def find(tx: Transaction, session_id: str) -> Row:
    """Return the row of a session.

    :raises SessionNotFoundError: the session does not exist; the error has similar ids.
    """
    row = tx.first(f"SELECT {COLUMNS} FROM session WHERE id = :id", id=session_id)
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
    return insert(tx, session_id, title)["number"] if number is None else number


def touch(tx: Transaction, number: int) -> None:
    """Record a change of a session at the present time.

    :raises ClosedError: it is archived.
    """
    sql = "UPDATE session SET updated_at = :now WHERE number = :number AND status != 'archived'"
    if not tx.run(sql, now=tx.now, number=number):
        raise archived(tx.value("SELECT id FROM session WHERE number = :number", number=number))


def archived(session_id: str) -> ClosedError:
    """Return the error for a change of an archived session."""
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


def insert(tx: Transaction, wanted: str | None, title: str | None) -> Row:
    """Create a session.

    :param wanted: its id; ``None`` for a random one.
    """
    row: Row | None = None
    while row is None:
        session_id = wanted or secrets.token_hex(4)
        times = {"created_at": tx.now, "updated_at": tx.now}
        row = tx.insert("session", COLUMNS, "id", id=session_id, title=title, **times)
        if row is None and wanted is not None:
            problem = f"there is already a session {wanted!r}"
            raise AlreadyExistsError(problem, hint="choose another id, or leave it out")
    return row
