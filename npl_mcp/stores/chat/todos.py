"""Todos of rooms: their states, and changes of them; the functions run in the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.stores.base.values import fill
from npl_mcp.stores.chat import feed, rooms
from npl_mcp.stores.chat.rooms import NewEvent

STATUSES = ("pending", "in_progress", "done", "cancelled")
"""States of a todo; the first two are open."""

_OPEN = "todo.status IN ('pending', 'in_progress')"

# Few todos are open, many are done: open ones have an index, whose condition stands in theirs.
FILTERS = {
    "ready": f"{_OPEN} AND todo.status = 'pending'"
    " AND (todo.assigned_to IS NULL OR todo.assigned_to = :persona)",
    "open": _OPEN,
    "mine": f"{_OPEN} AND todo.assigned_to = :persona",
    "done": "event.event_type = 'todo_create' AND todo.status = 'done'",
}
"""Conditions of SQL by the name of a filter."""


@dataclass(frozen=True, slots=True)
class Todo:
    """A todo in its current state.

    :param event_id: id of its event, which is the id of the todo.
    :param room_id: id of the room.
    :param persona: persona that created it.
    :param description: text of the todo.
    :param status: pending, in_progress, done or cancelled.
    :param assigned_to: assignee, or the persona that claimed it.
    :param notification: notification of a new todo to its assignee, unless the author is the assignee.
    """

    event_id: int
    room_id: int
    persona: str
    description: str
    status: str
    assigned_to: str | None
    notification: rooms.NewNotification | None = None


def change(tx: Transaction, before: Row, persona: str, status: str, assigned_to: str | None) -> NewEvent:
    """Change a todo.

    :param before: its state.
    :param assigned_to: the new assignee; ``None`` keeps the current one.
    """
    event_id, assignee, creator = before["event_id"], before["assigned_to"], before["persona"]
    doer = assigned_to or (None if (before["status"], status) == ("in_progress", "pending") else assignee)
    assigned = [] if doer in (None, persona, assignee) else [doer]
    for name in assigned:
        rooms.require_member(tx, before["room_id"], name)
    concerned = [creator] if status != before["status"] else []
    concerned += [assignee] if doer != assignee and assignee is not None else []
    # At most one notification per event and persona.
    others = list(dict.fromkeys(name for name in concerned if name not in (persona, *assigned)))
    data = {"target_event_id": event_id, "status": status, "assigned_to": doer}
    notify = {"todo_assign": assigned, "todo_update": others}
    event = rooms.post(tx, before["room_id"], persona, "todo_update", data, event_id, notify)
    # Servers of earlier versions may use the same database: for them a claim ends at ``lease_until``.
    sql = """
        UPDATE todo SET status = :status, assigned_to = :doer, changed_at = :now, changed_by = :persona,
        lease_until = NULL WHERE event_id = :event"""
    tx.run(sql, status=status, doer=doer, now=tx.now, persona=persona, event=event_id)
    return event


def claim(tx: Transaction, event_id: int, persona: str) -> Todo:
    """Claim a todo: it is in progress, by this persona. A repeated call changes nothing.

    :raises ConflictError: the todo is another persona's, or it is not open.
    """
    before, claimed = require(tx, event_id, persona), {"status": "in_progress", "assigned_to": persona}
    if before["status"] not in STATUSES[:2] or before["assigned_to"] not in (None, persona):
        raise conflict(before)
    if before | claimed != before:
        change(tx, before, persona, **claimed)
    return todo_of(before | claimed)


def next_of(tx: Transaction, room_id: int, persona: str) -> int | None:
    """Return the oldest todo of a room that is in progress by a persona, or else ready for it.

    A repeated call after a lost answer therefore does not claim a second todo.
    """
    rooms.require_member(tx, room_id, persona)
    # "in_progress" comes before "pending".
    which = f"(todo.status = 'in_progress' AND {FILTERS['mine']} OR {FILTERS['ready']})"
    sql = f"SELECT event.id {TABLES} WHERE {_OPEN} AND {which} AND +event.room_id = :room"
    sql += " ORDER BY todo.status, +event.id LIMIT 1"
    event_id: int | None = tx.value(sql, room=room_id, persona=persona)
    return event_id


TABLES = "FROM event JOIN todo ON todo.event_id = event.id"

SELECT = f"""
SELECT event.id AS event_id, event.room_id, event.persona, event.data, todo.status, todo.assigned_to
{TABLES}"""


def require(tx: Transaction, event_id: int, persona: str) -> Row:
    """Return the current state of a todo.

    :raises NotAllowedError: the persona is not a member of its room.
    :raises InvalidRequestError: the event is not a todo.
    """
    row = tx.first(f"{SELECT} WHERE event.id = :event", event=event_id)
    if row is None:
        kind = rooms.require_event(tx, event_id)["event_type"]
        hint = "give the event_id that chat_create_todo answered"
        raise InvalidRequestError(f"event {event_id} is a {kind}", parameter="event_id", hint=hint)
    rooms.require_member(tx, row["room_id"], persona)
    return row


def conflict(row: Row) -> ConflictError:
    """Return the error for a todo in another state."""
    owner = f", {row['assigned_to']}'s" if row["assigned_to"] else ""
    problem = f"todo {row['event_id']} is {row['status']}{owner}"
    return ConflictError(problem, hint="chat_list_todos shows what is ready")


def todo_of(row: Row) -> Todo:
    """Return a todo.

    :param row: its state.
    """
    return fill(Todo, row, description=feed.data_of(row)["description"])
