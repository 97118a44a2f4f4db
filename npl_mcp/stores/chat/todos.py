"""Todos of a room: created, reassigned, finished.

The functions work inside a transaction of a caller.
"""

from __future__ import annotations

from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.chat import inbox, rooms
from npl_mcp.stores.chat.inbox import Delivered

STATUSES = ("pending", "in_progress", "done", "cancelled")


@dataclass(frozen=True, slots=True)
class Todo:
    """A todo that was made.

    :param event_id: its event, which is also the id of the todo.
    :param room_id: the room.
    :param persona: who made it.
    :param description: what is to be done.
    :param assigned_to: who is to do it.
    :param notification: sent to the assignee, if that is somebody else.
    """

    event_id: int
    room_id: int
    persona: str
    description: str
    assigned_to: str | None
    notification: Delivered | None


@dataclass(frozen=True, slots=True)
class TodoUpdate:
    """A change of a todo.

    :param event_id: the change's own event.
    :param target_event_id: the todo.
    :param room_id: the room.
    :param persona: who changed it.
    :param status: its state now.
    :param assigned_to: who is to do it now.
    :param notifications: sent to a new assignee, and to who made it when somebody else changed its state.
    """

    event_id: int
    target_event_id: int
    room_id: int
    persona: str
    status: str
    assigned_to: str | None
    notifications: tuple[Delivered, ...]


def create(tx: Transaction, room_id: int, persona: str, description: str, assigned_to: str | None) -> Todo:
    """Make a todo in a room."""
    rooms.require_member(tx, room_id, persona)
    others = [] if assigned_to in (None, persona) else [assigned_to]
    for name in others:
        rooms.require_member(tx, room_id, name)
    status = STATUSES[0]
    data = {"description": description, "assigned_to": assigned_to, "status": status}
    event = rooms.post(tx, room_id, persona, "todo_create", data)
    tx.run(
        "INSERT INTO todo (event_id, status, assigned_to, changed_at, changed_by)"
        " VALUES (:event, :status, :assigned_to, :moment, :persona)",
        event=event.id,
        status=status,
        assigned_to=assigned_to,
        moment=event.timestamp,
        persona=persona,
    )
    sent = inbox.deliver(tx, event, "todo_assign", others)
    return Todo(event.id, room_id, persona, description, assigned_to, sent[0] if sent else None)


def update(tx: Transaction, event_id: int, persona: str, status: str, assigned_to: str | None) -> TodoUpdate:
    """Change a todo.

    :param event_id: the event that made it.
    :param status: one of :data:`STATUSES`.
    :param assigned_to: who is to do it; ``None``: as before.
    """
    before = _require(tx, event_id)
    room_id, creator = before["room_id"], before["creator"]
    rooms.require_member(tx, room_id, persona)
    doer = assigned_to or before["assigned_to"]
    assigned = [] if doer in (persona, before["assigned_to"]) else [doer]
    for name in assigned:
        rooms.require_member(tx, room_id, name)
    data = {"target_event_id": event_id, "status": status, "assigned_to": doer}
    event = rooms.post(tx, room_id, persona, "todo_update", data, event_id)
    tx.run(
        "UPDATE todo SET status = :status, assigned_to = :doer, changed_at = :moment, changed_by = :persona"
        " WHERE event_id = :event",
        status=status,
        doer=doer,
        moment=event.timestamp,
        persona=persona,
        event=event_id,
    )
    sent = inbox.deliver(tx, event, "todo_assign", assigned)
    # Nobody gets two notifications for one event.
    if status != before["status"] and creator not in (persona, *assigned):
        sent += inbox.deliver(tx, event, "todo_update", [creator])
    return TodoUpdate(event.id, event_id, room_id, persona, status, doer, sent)


def _require(tx: Transaction, event_id: int) -> Row:
    row = tx.one(
        "SELECT event.room_id, event.event_type, event.persona AS creator, todo.status, todo.assigned_to"
        " FROM event LEFT JOIN todo ON todo.event_id = event.id WHERE event.id = :event",
        event=event_id,
    )
    if row is None:
        raise rooms.no_event(event_id)
    if row["status"] is None:
        raise InvalidRequestError(
            f"event {event_id} is a {row['event_type']}",
            parameter="event_id",
            hint="give the event_id that chat_create_todo answered",
        )
    return row
