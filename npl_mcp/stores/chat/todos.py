"""Todos of a room: created, claimed for a time, reassigned, finished; a todo may depend on others.

A claim is a lease. When it expires before the todo is done, the todo returns to its earlier state: free, or
still assigned to its assignee. No write is needed for that, because the state is computed on reading. The row
of a todo that its assignee claims stays ``pending``: with a lease that means in progress, and the end of the
lease leaves the assignment. The functions run in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.stores.base.paging import Page, Slice, later, moment_of
from npl_mcp.stores.base.values import conditions, filled
from npl_mcp.stores.chat import feed, rooms
from npl_mcp.stores.chat.feed import EXPIRED, RELEASED, TODO_STATE
from npl_mcp.stores.chat.rooms import NewEvent, NewNotification

STATUSES = ("pending", "in_progress", "done", "cancelled")
"""States of a todo; the first two are open."""

FILTERS = ("ready", "open", "mine", "done")

LEASE = 600
"""Default seconds of a claim."""

MAX_LEASE = 24 * 3600
MAX_BLOCKERS = 100

_OPEN = "('pending', 'in_progress')"


class NotYetError(ConflictError):
    """The todo is not claimable now: another persona has claimed it, or other todos block it."""


@dataclass(frozen=True, slots=True)
class Todo:
    """A todo in its current state.

    :param event_id: id of its event, which is the id of the todo.
    :param room_id: id of the room.
    :param persona: persona that created it.
    :param description: text of the todo.
    :param status: pending, in_progress, done or cancelled.
    :param assigned_to: assignee, or holder of the claim.
    :param lease_until: end of the claim unless it is renewed.
    :param blocked_by: ids of the open todos to finish first.
    :param notification: notification of a new todo to its assignee, unless the author is the assignee.
    """

    event_id: int
    room_id: int
    persona: str
    description: str
    status: str
    assigned_to: str | None
    lease_until: str | None
    blocked_by: Sequence[int] | None
    notification: NewNotification | None = None


def create(
    tx: Transaction,
    room_id: int,
    persona: str,
    description: str,
    assigned_to: str | None,
    blocked_by: Sequence[int],
) -> Todo:
    """Create a todo in a room."""
    others = [] if assigned_to in (None, persona) else [assigned_to]
    for name in others:
        rooms.require_member(tx, room_id, name)
    data = {"description": description, "assigned_to": assigned_to, "status": STATUSES[0]}
    event = rooms.post(tx, room_id, persona, "todo_create", data, notify={"todo_assign": others})
    change = {"changed_at": tx.now, "changed_by": persona}
    tx.insert("todo", "event_id", event_id=event.event_id, assigned_to=assigned_to, **change)
    _block(tx, event.event_id, room_id, blocked_by)
    return replace(_get(tx, event.event_id), notification=next(iter(event.notifications or ()), None))


def update(
    tx: Transaction,
    event_id: int,
    persona: str,
    status: str,
    assigned_to: str | None,
    blocked_by: Sequence[int] | None = None,
) -> NewEvent:
    """Change a todo.

    :param event_id: the id of the todo.
    :param status: the new status, from :data:`STATUSES`.
    :param assigned_to: the new assignee; ``None`` keeps the current one.
    :param blocked_by: the todos to finish first; ``None`` keeps the current ones.
    :raises ConflictError: another persona has claimed or finished it.
    """
    before = _require(tx, event_id)
    rooms.require_member(tx, before["room_id"], persona)
    if before["lease_until"] and persona not in (before["assigned_to"], before["creator"]):
        raise _conflict(event_id, before)
    # After an expired claim, another persona may have done the work.
    doers = (before["changed_by"], before["assigned_to"], before["creator"])
    if status == before["status"] == "done" and persona not in doers:
        raise ConflictError(
            f"todo {event_id} is done, by {before['changed_by']}", hint="set it to pending to do it again"
        )
    if blocked_by is not None:
        _block(tx, event_id, before["room_id"], blocked_by)
    # A persona that finishes a todo did the work, even after its claim expired.
    late = persona if persona == before["holder"] and status in STATUSES[1:3] else None
    doer = assigned_to or before["assigned_to"] or late
    if before["lease_until"] and status == "pending" and assigned_to is None:
        doer = None  # the claim is released
    keeps = status == "in_progress" and doer == before["assigned_to"]
    return _change(tx, before, persona, status, doer, before["lease_until"] if keeps else None)


def claim(tx: Transaction, event_id: int, persona: str, seconds: int) -> Todo:
    """Claim a todo for a time, or extend a claim.

    :raises ConflictError: another persona has claimed it or is its assignee; it is blocked; it is not open.
    """
    before = _require(tx, event_id)
    rooms.require_member(tx, before["room_id"], persona)
    if before["status"] not in STATUSES[:2]:
        problem = f"todo {event_id} is {before['status']}"
        raise ConflictError(problem, hint="chat_list_todos shows what is open")
    if before["assigned_to"] not in (None, persona):
        raise _conflict(event_id, before)
    if waits := _blockers(tx, [event_id]).get(event_id):
        names = ", ".join(map(str, waits[:5]))
        raise NotYetError(f"todo {event_id} waits for todo {names}", hint="claim that first")
    until = later(tx.now, timedelta(seconds=seconds))
    if before["lease_until"]:
        # No event: an assignee renews its claim often, and the state for others stays the same.
        sql = "UPDATE todo SET lease_until = :until WHERE event_id = :event"
        tx.run(sql, until=until, event=event_id)
    else:
        _change(tx, before, persona, "in_progress", persona, until)
    return _get(tx, event_id)


def claim_next(tx: Transaction, room_id: int, persona: str, seconds: int) -> Todo | None:
    """Claim the oldest todo of a room that a persona has already claimed, or else that is ready for it.

    A repeated call after a lost answer therefore does not claim a second todo.
    """
    rooms.require_member(tx, room_id, persona)
    for which in ("claimed", "ready"):
        first = f"SELECT event.id {_FROM} WHERE {_where(room_id, which)} ORDER BY +event.id LIMIT 1"
        if (event_id := tx.value(first, moment=tx.now, room=room_id, persona=persona)) is not None:
            return claim(tx, event_id, persona, seconds)
    return None


def lease_end(tx: Transaction, **which: int | str | None) -> float | None:
    """Return the seconds until the first active claim of some todos ends; ``None`` without an active claim.

    :param which: the ``event_id`` or the ``room_id`` of the todos.
    """
    where, values = conditions(**{name: (f"{name} = :{name}", value) for name, value in which.items()})
    sql = f"SELECT min(lease_until) {_FROM} WHERE {where} AND lease_until > :moment AND status IN {_OPEN}"
    end = tx.value(sql, moment=tx.now, **values)
    return None if end is None else (moment_of(end) - moment_of(tx.now)).total_seconds()


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
    where, values = _where(room_id, which), {"moment": tx.now, "room": room_id, "persona": persona}
    total = tx.value(f"SELECT count(*) {_FROM} WHERE {where}", **values)
    by = "event.id" if which == "done" else "+event.id"
    sql = f"{_SELECT} {_FROM} WHERE {where} ORDER BY {by} LIMIT :limit OFFSET :offset"
    return page.page(_todos(tx, tx.first_rows(sql, limit=page.limit, offset=page.offset, **values)), total)


def _where(room_id: int | None, which: str) -> str:
    """Return the SQL condition for the arguments of :func:`read`, with ``:room`` or ``:persona``."""
    # Few todos are open, many are done: the sign, here and in the order, prevents a database from reading all
    # events of a room.
    room = "event.room_id" if which == "done" else "+event.room_id"
    return f"{_CONDITIONS[which]} AND {room} {'= :room' if room_id is not None else _IN_ROOMS_OF}"


_MINE = f"(todo.assigned_to = :persona AND NOT {RELEASED})"

_IN_ROOMS_OF = (
    "IN (SELECT member.room_id FROM member JOIN room ON room.id = member.room_id"
    " WHERE member.persona = :persona AND room.archived_at IS NULL)"
)

_FROM = "FROM event JOIN todo ON todo.event_id = event.id"

_SELECT = (
    "SELECT event.id AS event_id, event.room_id, event.persona AS creator, event.data,"
    " todo.assigned_to AS holder, todo.changed_by,"
    " CASE WHEN todo.lease_until IS NULL OR todo.status = 'pending' THEN todo.assigned_to END AS assignee,"
    f" {TODO_STATE}"
)

_BLOCKED = (
    "EXISTS (SELECT 1 FROM todo_blocker JOIN todo AS blocker ON blocker.event_id = todo_blocker.blocker_id"
    f" WHERE todo_blocker.todo_id = todo.event_id AND blocker.status IN {_OPEN})"
)

_CONDITIONS = {
    "ready": f"(todo.status = 'pending' AND todo.lease_until IS NULL OR {EXPIRED})"
    f" AND todo.status IN {_OPEN} AND NOT {_BLOCKED}"
    f" AND ({_MINE} OR todo.assigned_to IS NULL OR {RELEASED})",
    "claimed": f"todo.lease_until > :moment AND todo.status IN {_OPEN} AND NOT {_BLOCKED} AND {_MINE}",
    "open": f"todo.status IN {_OPEN}",
    "mine": f"todo.status IN {_OPEN} AND {_MINE}",
    "done": "event.event_type = 'todo_create' AND todo.status = 'done'",
}


def _require(tx: Transaction, event_id: int) -> Row:
    """Return the current state of a todo."""
    row = tx.first(f"{_SELECT} {_FROM} WHERE event.id = :event", event=event_id, moment=tx.now)
    if row is None:
        kind = rooms.require_event(tx, event_id)["event_type"]
        hint = "give the event_id that chat_create_todo answered"
        raise InvalidRequestError(f"event {event_id} is a {kind}", parameter="event_id", hint=hint)
    return row


def _conflict(event_id: int, row: Row) -> ConflictError:
    until = f" until {row['lease_until']}" if row["lease_until"] else ""
    problem = f"todo {event_id} is {row['assigned_to']}'s{until}"
    return (NotYetError if until else ConflictError)(problem, hint="chat_list_todos shows what is ready")


def _change(
    tx: Transaction, before: Row, persona: str, status: str, doer: str | None, lease_until: str | None
) -> NewEvent:
    """Store a todo's state, with an event, and notify the personas concerned.

    :param before: the previous state.
    """
    event_id, room_id, creator = before["event_id"], before["room_id"], before["creator"]
    assigned = [] if doer in (None, persona, before["assigned_to"]) else [doer]
    for name in assigned:
        rooms.require_member(tx, room_id, name)
    concerned = [creator] if status != before["status"] else []
    if doer != before["holder"] and before["holder"] is not None:
        concerned.append(before["holder"])  # the assignee, or the holder of an expired claim
    # At most one notification per event and persona.
    others = list(dict.fromkeys(name for name in concerned if name not in (persona, *assigned)))
    data = {"target_event_id": event_id, "status": status, "assigned_to": doer}
    notify = {"todo_assign": assigned, "todo_update": others}
    event = rooms.post(tx, room_id, persona, "todo_update", data, event_id, notify)
    stored = STATUSES[0] if lease_until and doer == before["assignee"] else status
    sql = (
        "UPDATE todo SET status = :status, assigned_to = :doer, changed_at = :moment, changed_by = :persona,"
        " lease_until = :until WHERE event_id = :event"
    )
    change = {"status": stored, "doer": doer, "moment": tx.now, "persona": persona}
    tx.run(sql, **change, until=lease_until, event=event_id)
    return event


def _block(tx: Transaction, event_id: int, room_id: int, blockers: Sequence[int]) -> None:
    """Set the todos of the same room that block a todo.

    :raises InvalidRequestError: a blocker is not a todo, or depends on this todo.
    """
    sql = f"SELECT event.id {_FROM} WHERE event.room_id = :room AND event.id IN :blockers"
    todos = [row["id"] for row in tx.all(sql, room=room_id, blockers=list(blockers))]
    if others := [blocker for blocker in blockers if blocker not in todos]:
        problem = f"has {others[0]}, which is not a todo of room {room_id}"
        raise checks.invalid("blocked_by", problem, "give event_ids that chat_list_todos shows")
    tx.run("DELETE FROM todo_blocker WHERE todo_id = :todo", todo=event_id)
    tx.insert_many("todo_blocker", [{"todo_id": event_id, "blocker_id": blocker} for blocker in blockers])
    if blockers and tx.value(_CIRCLE, todo=event_id):
        problem = f"todo {event_id} would wait for itself"
        raise InvalidRequestError(problem, parameter="blocked_by", hint="leave one of them out")


_CIRCLE = """
WITH RECURSIVE before(id) AS (
    SELECT blocker_id FROM todo_blocker WHERE todo_id = :todo
    UNION SELECT todo_blocker.blocker_id FROM todo_blocker JOIN before ON todo_blocker.todo_id = before.id
)
SELECT 1 FROM before WHERE id = :todo
"""


def _blockers(tx: Transaction, ids: Sequence[int]) -> dict[int, list[int]]:
    """Return the open todos that block each todo."""
    sql = (
        "SELECT todo_id, blocker_id FROM todo_blocker JOIN todo ON todo.event_id = blocker_id"
        f" WHERE todo_id IN :ids AND todo.status IN {_OPEN} ORDER BY blocker_id"
    )
    blockers: dict[int, list[int]] = {}
    for row in tx.all(sql, ids=ids):
        blockers.setdefault(row["todo_id"], []).append(row["blocker_id"])
    return blockers


def _get(tx: Transaction, event_id: int) -> Todo:
    return _todos(tx, [_require(tx, event_id)])[0]


def _todos(tx: Transaction, rows: Sequence[Row]) -> tuple[Todo, ...]:
    waits = _blockers(tx, [row["event_id"] for row in rows])
    return tuple(
        filled(
            Todo,
            row,
            persona=row["creator"],
            description=feed.data_of(row)["description"],
            blocked_by=waits.get(row["event_id"]),
        )
        for row in rows
    )
