"""Todos of rooms: created, claimed, reassigned, finished; the functions run in the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import fill
from npl_mcp.stores.chat import feed, rooms
from npl_mcp.stores.chat.rooms import NewEvent, NewNotification

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
    notification: NewNotification | None = None


def create(tx: Transaction, room_id: int, persona: str, description: str, assigned_to: str | None) -> Todo:
    """Create a todo in a room."""
    others = [] if assigned_to in (None, persona) else [assigned_to]
    for name in others:
        rooms.require_member(tx, room_id, name)
    data = {"description": description, "assigned_to": assigned_to, "status": STATUSES[0]}
    event = rooms.post(tx, room_id, persona, "todo_create", data, notify={"todo_assign": others})
    change = {"changed_at": tx.now, "changed_by": persona}
    tx.insert("todo", "event_id", event_id=event.event_id, assigned_to=assigned_to, **change)
    sent = next(iter(event.notifications or ()), None)
    return Todo(event.event_id, room_id, persona, description, STATUSES[0], assigned_to, sent)


def update(
    tx: Transaction,
    event_id: int,
    persona: str,
    status: str,
    assigned_to: str | None = None,
    expect: str | None = None,
) -> NewEvent:
    """Change a todo.

    :param event_id: the id of the todo.
    :param status: the new status, from :data:`STATUSES`; ``pending`` frees a todo in progress.
    :param assigned_to: the new assignee; ``None`` keeps the current one.
    :param expect: the status that the todo must have; ``None`` for any.
    :raises ConflictError: the todo has another status.
    """
    before = _require(tx, event_id)
    rooms.require_member(tx, before["room_id"], persona)
    if expect not in (None, before["status"]):
        raise _conflict(before)
    assignee, creator = before["assigned_to"], before["persona"]
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
    before = _require(tx, event_id)
    rooms.require_member(tx, before["room_id"], persona)
    if before["status"] not in STATUSES[:2] or before["assigned_to"] not in (None, persona):
        raise _conflict(before)
    if (before["status"], before["assigned_to"]) != ("in_progress", persona):
        update(tx, event_id, persona, "in_progress", persona)
    return _todo(_require(tx, event_id))


def claim_next(tx: Transaction, room_id: int, persona: str) -> Todo | None:
    """Claim the oldest todo of a room that is in progress by a persona, or else ready for it.

    A repeated call after a lost answer therefore does not claim a second todo.
    """
    rooms.require_member(tx, room_id, persona)
    # "in_progress" comes before "pending".
    which = f"(todo.status = 'in_progress' AND {FILTERS['mine']} OR {FILTERS['ready']})"
    sql = f"SELECT event.id {_FROM} WHERE {_OPEN} AND {which} AND +event.room_id = :room"
    sql += " ORDER BY todo.status, +event.id LIMIT 1"
    event_id = tx.value(sql, room=room_id, persona=persona)
    return None if event_id is None else claim(tx, event_id, persona)


def read(tx: Transaction, room_id: int | None, which: str, persona: str | None, page: Slice) -> Page[Todo]:
    """Return todos, oldest first.

    :param room_id: the room of the todos; ``None`` for all rooms of the persona.
    :param which: the filter, from :data:`FILTERS`.
    :param persona: the owner of the todos in ``mine``; todos assigned to others are not ready for it.
    :raises MissingRequestError: the call has neither a room nor a persona, or ``mine`` has no persona.
    """
    if persona is None and (room_id is None or which == "mine"):
        raise checks.missing("persona", "is missing", "give persona, or room_id and another filter")
    if room_id is not None:
        rooms.require_room(tx, room_id)
    sign = "" if which == "done" else "+"
    where = f"{FILTERS[which]} AND {sign}event.room_id {_IN_ROOMS_OF if room_id is None else '= :room'}"
    values = {"room": room_id, "persona": persona}
    total = tx.value(f"SELECT count(*) {_FROM} WHERE {where}", **values)
    sql = f"{_SELECT} {_FROM} WHERE {where} ORDER BY {sign}event.id LIMIT :limit OFFSET :offset"
    rows = tx.first_rows(sql, limit=page.limit, offset=page.offset, **values)
    return page.page(tuple(map(_todo, rows)), total)


_IN_ROOMS_OF = """
    IN (SELECT member.room_id FROM member JOIN room ON room.id = member.room_id
    WHERE member.persona = :persona AND room.archived_at IS NULL)"""

_FROM = "FROM event JOIN todo ON todo.event_id = event.id"

_SELECT = (
    "SELECT event.id AS event_id, event.room_id, event.persona, event.data, todo.status, todo.assigned_to"
)


def _require(tx: Transaction, event_id: int) -> Row:
    """Return the current state of a todo."""
    row = tx.first(f"{_SELECT} {_FROM} WHERE event.id = :event", event=event_id)
    if row is None:
        kind = rooms.require_event(tx, event_id)["event_type"]
        hint = "give the event_id that chat_create_todo answered"
        raise InvalidRequestError(f"event {event_id} is a {kind}", parameter="event_id", hint=hint)
    return row


def _conflict(row: Row) -> ConflictError:
    owner = f", {row['assigned_to']}'s" if row["assigned_to"] else ""
    problem = f"todo {row['event_id']} is {row['status']}{owner}"
    return ConflictError(problem, hint="chat_list_todos shows what is ready")


def _todo(row: Row) -> Todo:
    return fill(Todo, row, description=feed.data_of(row)["description"])
