"""The events of a room in order, from a caller's last position, and the notifications about them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Annotated, Any

from npl_mcp.config.domains import Of
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction, damaged, json_of
from npl_mcp.stores.base.paging import Page, Slice, moment_of, stamp
from npl_mcp.stores.base.values import fill
from npl_mcp.stores.chat import rooms

MAILBOX_POSITIONS = "SELECT persona AS key, total AS position FROM mailbox WHERE persona IN :keys"
"""The position of a mailbox; see :class:`~npl_mcp.stores.commits.Topic`."""


_TOO_LONG = 17
"""Digits of a number above every id."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a room.

    :param id: id of the event; ids grow with time, and serve as cursors of a feed.
    :param room_id: id of the room.
    :param event_type: persona_join, persona_leave, message, emoji_reaction, artifact_share, todo_create,
        todo_update, room_archive or room_reopen; of earlier versions also handoff and handoff_ack.
    :param persona: persona that acted.
    :param timestamp: time of the event, never earlier than that of the previous event.
    :param data: details by type; for a todo_create also the todo's current status and assigned_to.
    :param reply_to_id: id of the event that this one answers, reacts to or changes.
    :param reactions: personas that reacted, by emoji, in the order of their reactions.
    """

    id: int
    room_id: int
    event_type: str
    persona: str
    timestamp: str
    data: Annotated[Mapping[str, Any], Of("artifact", "artifact_id", "revision")]
    reply_to_id: int | None
    reactions: Mapping[str, Sequence[str]] | None


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification with its event.

    :param id: id of the notification, for chat_mark_read.
    :param event_id: id of the event.
    :param notification_type: mention, artifact_share, todo_assign or todo_update; of earlier versions also
        handoff, handoff_ack and lease_end.
    :param created_at: time of the notification.
    :param read_at: time of reading; present only if read notifications were requested as well.
    :param room_id: id of the event's room.
    :param event_type: type of the event.
    :param event_persona: persona that acted.
    :param timestamp: time of the event.
    :param event_data: data of the event, as in the feed.
    """

    id: int
    event_id: int
    notification_type: str
    created_at: str
    read_at: str | None
    room_id: int
    event_type: str
    event_persona: str
    timestamp: str
    event_data: Annotated[Mapping[str, Any], Of("artifact", "artifact_id", "revision")]


def parse_since(since: int | str, name: str) -> int | str:
    """Check a caller's last position: the id of an event, or a time, which is converted to the stored form.

    A time is ISO 8601, as :meth:`datetime.datetime.fromisoformat` reads it. Without a zone it is UTC.

    :param name: the name of the parameter.
    """
    written = str(since).strip()
    if written.isascii() and written.isdecimal():
        return checks.whole(int(written[:_TOO_LONG]), name)
    try:
        return stamp(moment_of(written.upper()))
    except (ValueError, OverflowError):
        hint = "give the cursor of the last answer, or a time such as 2025-12-31T23:59:00Z"
        raise checks.invalid(name, f"is {written[:64]!r}", hint) from None


def read(tx: Transaction, room_id: int, count: int, since: int | str | None, page: Slice) -> Page[Event]:
    """Return events of a room in chronological order.

    Positions in a room have no gaps, so every page begins at one of them.

    :param count: events in the room.
    :param since: the event or the time before the first returned event; ``None`` for the latest events, where
        ``page.offset`` skips the newest.
    :returns: a page; its total counts all events, or all events after ``since``.
    """
    if since is None:
        seen, side, bound, order = 0, "<=", count - page.offset, "event.position DESC"
    else:
        seen, order = _position_of(tx, room_id, since), "event.position"
        side, bound = ">", seen + page.offset
    where, order = f"event.room_id = :room AND event.position {side} :bound", f"{order} LIMIT :limit"
    items = _events(tx, where, order, room=room_id, bound=bound, limit=page.limit)
    if items:
        return page.page(items, count - seen, items[-1].id)
    sql = "SELECT id FROM event WHERE room_id = :room AND position = :last"
    last = count if since is None else seen
    cursor = since if isinstance(since, int) else tx.value(sql, room=room_id, last=last) or 0
    return page.page(items, count - seen, cursor)


def _position_of(tx: Transaction, room_id: int, since: int | str) -> int:
    """Return the number of events up to an id or a time; neither ever decreases in a room."""
    before = "timestamp <= :since ORDER BY position"
    if isinstance(since, int):
        checks.known_cursor(since, tx.value("SELECT max(id) FROM event"))
        before = "id <= :since ORDER BY id"
    sql = f"SELECT position FROM event WHERE room_id = :room AND {before} DESC LIMIT 1"
    return tx.value(sql, room=room_id, since=since) or 0


def by_ids(tx: Transaction, room_id: int, ids: Sequence[int]) -> tuple[Event, ...]:
    """Return the events of a room with some ids, in order; ids of other rooms and unknown ids are skipped.

    :param ids: the ids of the events.
    """
    where = "event.room_id = :room AND event.id IN :ids"
    return _events(tx, where, room=room_id, ids=list(ids))


def _events(tx: Transaction, where: str, order: str = "event.id", **values: Any) -> tuple[Event, ...]:
    """Return the events that match a condition, oldest first.

    :param order: the order, by position or by id, which grow together, in which a page has the first events.
    :param values: the parameters of the condition.
    """
    sql = f"""
        SELECT event.id, event.room_id, event.event_type, event.persona, event.timestamp, event.data,
        event.reply_to_id, todo.status, todo.assigned_to
        FROM event {_WITH_TODO} WHERE {where} ORDER BY {order}"""
    rows = sorted(tx.first_rows(sql, **values), key=itemgetter("id"))
    reactions: dict[int, dict[str, list[str]]] = {}
    sql = "SELECT event_id, emoji, persona FROM reaction WHERE event_id IN :ids ORDER BY reaction_event_id"
    for row in tx.all(sql, ids=[row["id"] for row in rows]):
        reactions.setdefault(row["event_id"], {}).setdefault(row["emoji"], []).append(row["persona"])
    return tuple(fill(Event, row, data=data_of(row), reactions=reactions.get(row["id"])) for row in rows)


def notifications(
    tx: Transaction, persona: str, unread_only: bool, since: int | None, page: Slice
) -> Page[Notification]:
    """Return notifications of a persona, newest first.

    :param since: the last known notification; the page has later ones, oldest first.
    :returns: a page; its total counts all matching notifications.
    :raises RecordNotFoundError: the persona is unknown in all rooms, so a wait would never end.
    """
    order, values = "DESC" if since is None else "ASC", {"persona": persona, "since": since or 0}
    where = "notification.persona = :persona AND notification.id > :since"
    where += " AND read_at IS NULL" if unread_only else ""
    total = tx.value(f"SELECT count(*) FROM notification WHERE {where}", **values)
    if not total:
        rooms.require_known(tx, persona)
        checks.known_cursor(since or 0, tx.value("SELECT max(id) FROM notification"))
    sql = f"""
        SELECT notification.id, notification.event_id, notification.notification_type,
        notification.created_at, notification.read_at, event.room_id, event.event_type,
        event.persona AS event_persona, event.timestamp, event.data, todo.status, todo.assigned_to
        FROM notification JOIN event ON event.id = notification.event_id {_WITH_TODO}
        WHERE {where} ORDER BY notification.id {order} LIMIT :limit OFFSET :offset"""
    rows = tx.first_rows(sql, limit=page.limit, offset=page.offset, **values)
    items = tuple(fill(Notification, row, event_data=data_of(row)) for row in rows)
    cursor = max((item.id for item in items), default=since or 0)
    return page.page(items, total, cursor)


_WITH_TODO = "LEFT JOIN todo ON todo.event_id = event.id"


def text_of(data: str) -> str:
    """Return the text of an event without the names of other records in it; empty for damaged data.

    :param data: the column of this name.
    """
    try:
        fields = json.loads(data)
    except ValueError:
        return ""
    texts = (fields.get(name) for name in ("message", "description")) if isinstance(fields, dict) else ()
    return " ".join(text for text in texts if isinstance(text, str))


def data_of(row: Row) -> dict[str, Any]:
    """Return an event's data; that of a todo has its current state, not its initial one.

    :param row: a row with ``data`` of an event, and ``status`` and ``assigned_to`` of a todo; its id is
        ``event_id``, or else ``id``.
    :raises DatabaseError: the data is not readable.
    """
    where = f"event {row['event_id'] if 'event_id' in row else row['id']}, column data"
    data = json_of(row["data"], where)
    if not isinstance(data, dict):
        raise damaged(f"{where} holds no object")
    state = {} if row["status"] is None else {name: row[name] for name in ("status", "assigned_to")}
    return data | state
