"""Notifications; each persona has one mailbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from npl_mcp.config.domains import Of
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.base.errors import RecordNotFoundError
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import conditions, fill
from npl_mcp.stores.chat import feed, rooms

POSITIONS = "SELECT persona AS key, total AS position FROM mailbox WHERE persona IN :keys"
"""The position of a mailbox; see :class:`~npl_mcp.stores.commits.Topic`."""


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


@dataclass(frozen=True, slots=True)
class MarkedRead:
    """A read notification.

    :param notification_id: id of the notification.
    :param read_at: time when it was first read.
    """

    notification_id: int
    read_at: str


def read(
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
    sql = (
        "SELECT notification.id, notification.event_id, notification.notification_type,"
        " notification.created_at, notification.read_at, event.room_id, event.event_type,"
        " event.persona AS event_persona, event.timestamp, event.data, todo.status, todo.assigned_to"
        f" FROM notification JOIN event ON event.id = notification.event_id {feed.WITH_TODO}"
        f" WHERE {where} ORDER BY notification.id {order} LIMIT :limit OFFSET :offset"
    )
    rows = tx.first_rows(sql, limit=page.limit, offset=page.offset, **values)
    items = tuple(fill(Notification, row, event_data=feed.current_data(row)) for row in rows)
    cursor = max((item.id for item in items), default=since or 0)
    return page.page(items, total, cursor)


def mark_read(tx: Transaction, notification_id: int, recipient: str | None = None) -> MarkedRead:
    """Mark a notification as read. Idempotent: the first time stays.

    :param recipient: the required recipient; ``None`` for any.
    :raises RecordNotFoundError: the notification does not exist.
    """
    where, values = conditions(id=("id = :id", notification_id), persona=("persona = :persona", recipient))
    hint = "chat_get_notifications lists them"
    missing = RecordNotFoundError(f"there is no notification {notification_id}", hint=hint)
    sql = f"UPDATE notification SET read_at = coalesce(read_at, :moment) WHERE {where} RETURNING read_at"
    return MarkedRead(notification_id, tx.require(missing, sql, moment=tx.now, **values)["read_at"])
