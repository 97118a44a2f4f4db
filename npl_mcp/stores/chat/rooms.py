"""Rooms, their members, and the insertion of events.

Every change is an event of a room. Positions count the room's events without gaps, so that any page of a
feed is found directly. The functions run in the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Annotated, Any

from npl_index.library.references import near_names
from npl_mcp.config.domains import Of
from npl_mcp.stores import session
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.values import fill

MAX_MEMBERS = 1_000
MAX_ROOMS = 100
"""Maximum rooms on a page; each comes with the names of its members."""

_NEAR = 5
_LOOKED_AT = 1_000

POSITIONS = "SELECT id AS key, event_count AS position FROM room WHERE id IN :keys"
"""The position of a room; see :class:`~npl_mcp.stores.commits.Topic`."""


@dataclass(frozen=True, slots=True)
class Room:
    """A room.

    :param id: id of the room.
    :param name: name of the room.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param description: description of the room.
    :param session_id: id of its session.
    :param event_count: number of its events.
    :param member_count: number of its members.
    :param members: personas in the order of joining; absent among the rooms of a session.
    :param archived_at: time of archiving, after which the room accepts no events; absent for an open room.
    """

    id: int
    name: str
    created_at: str
    description: str | None
    session_id: Annotated[str | None, Of("session")]
    event_count: int
    member_count: int
    members: tuple[str, ...] | None = None
    archived_at: str | None = None


@dataclass(frozen=True, slots=True)
class ChangedRoom:
    """A new or changed room.

    :param room_id: id of the room.
    :param session_id: id of its session.
    :param name: name of the room.
    :param description: description of the room.
    :param members: personas in the order of joining.
    :param archived_at: time of archiving, after which the room accepts no events; absent for an open room.
    :param web_url: address of its page, if the server has pages.
    """

    room_id: int
    session_id: Annotated[str | None, Of("session")]
    name: str
    description: str | None
    members: tuple[str, ...]
    archived_at: str | None = None
    web_url: str | None = None


@dataclass(frozen=True, slots=True)
class NewNotification:
    """A sent notification.

    :param notification_id: id of the notification.
    :param persona: recipient of the notification.
    """

    notification_id: int
    persona: str


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A new event of a room, with the fields of its type.

    :param event_id: id of the event; a repeated reaction returns the event of the first one.
    :param room_id: id of the room.
    :param persona: persona that acted.
    :param target_event_id: id of the event that it reacts to, or of the todo that it changes.
    :param message: text of a message.
    :param mentions: mentioned members of a message, in order of first appearance.
    :param unknown_mentions: mentioned names of non-members.
    :param emoji: emoji of a reaction.
    :param artifact_id: id of a shared artifact.
    :param revision: number of its revision.
    :param status: new status of a todo.
    :param assigned_to: current assignee of a todo.
    :param notifications: of a message to mentioned members; of an artifact to all other members; of a todo to
        a new assignee, to its former one, and to the author after another persona's change of the status.
    """

    event_id: int
    room_id: int
    persona: str
    target_event_id: int | None = None
    message: str | None = None
    mentions: Sequence[str] | None = None
    unknown_mentions: Sequence[str] | None = None
    emoji: str | None = None
    artifact_id: Annotated[int | None, Of("artifact")] = None
    revision: Annotated[int | None, Of("artifact")] = None
    status: str | None = None
    assigned_to: str | None = None
    notifications: Sequence[NewNotification] | None = None


def new_members(names: Sequence[str], parameter: str) -> list[str]:
    """Check the names of new members, and drop duplicates.

    :raises MissingRequestError: the list or a name is empty.
    """
    if not names:
        raise checks.missing(parameter, "is empty", "name a persona")
    return list(dict.fromkeys(checks.each(names, parameter, _new_member, MAX_MEMBERS)))


def _new_member(name: str, parameter: str) -> str:
    """Check a name; a leading ``@`` is refused, because ``@bob`` in a message means ``bob``."""
    clean = checks.name(name, parameter)
    if clean.startswith("@"):
        hint = f"write {clean.lstrip('@')!r}; @ precedes a name only in messages"
        raise checks.invalid(parameter, f"is {clean!r}", hint)
    return clean


def join(tx: Transaction, room_id: int, persona: str) -> None:
    """Add a persona to a room. Idempotent.

    :raises ClosedError: the room is archived.
    :raises InvalidRequestError: no mention could match the name.
    """
    if not is_member(tx, room_id, persona):
        add_member(tx, room_id, _new_member(persona, "persona"))


def add_member(tx: Transaction, room_id: int, persona: str) -> None:
    """Add a persona that is not a member yet."""
    sql = """
        INSERT INTO member (room_id, persona, position, joined_at)
        SELECT id, :persona, event_count + 1, :moment FROM room WHERE id = :room"""
    tx.run(sql, persona=persona, moment=tx.now, room=room_id)
    post(tx, room_id, persona, "persona_join", {"action": "joined", "persona": persona})


def leave(tx: Transaction, room_id: int, persona: str) -> None:
    """Remove a persona from a room. Idempotent.

    :raises ClosedError: the room is archived.
    """
    if is_member(tx, room_id, persona):
        post(tx, room_id, persona, "persona_leave", {"action": "left", "persona": persona})
        tx.run("DELETE FROM member WHERE room_id = :room AND persona = :who", room=room_id, who=persona)


def archive(tx: Transaction, room_id: int, persona: str, *, reopen: bool = False) -> None:
    """Archive or reopen a room, with an event that is its last or its next one. Idempotent."""
    require_member(tx, room_id, persona)
    sql = "UPDATE room SET archived_at = :moment WHERE id = :room"
    is_archived = details(tx, room_id).archived_at is not None
    if reopen and is_archived:
        tx.run(sql, moment=None, room=room_id)
        post(tx, room_id, persona, "room_reopen", {"action": "reopened"})
    elif not reopen and not is_archived:
        post(tx, room_id, persona, "room_archive", {"action": "archived"})
        tx.run(sql, moment=tx.now, room=room_id)


ACTIONS: Mapping[str, Callable[[Transaction, int, str], None]] = {
    "join": join,
    "leave": leave,
    "archive": archive,
    "reopen": partial(archive, reopen=True),
}
"""Actions of a persona on a room; each is idempotent."""


def changed_room(tx: Transaction, room_id: int) -> ChangedRoom:
    """Return a room after a change."""
    return fill(ChangedRoom, details(tx, room_id), room_id=room_id)


def details(tx: Transaction, room_id: int) -> Room:
    """Return all properties of a room without its events.

    :raises RoomNotFoundError: the room does not exist.
    """
    require_room(tx, room_id)
    return select(tx, "= :room", room=room_id)[0]


def of_session(tx: Transaction, session_id: str, most: int) -> tuple[Room, ...]:
    """Return the newest rooms of a session, without the names of their members."""
    sql = f"{_SELECT} WHERE session.id = :session ORDER BY room.id DESC LIMIT :most"
    return tuple(fill(Room, row) for row in tx.all(sql, session=session_id, most=most))


def select(tx: Transaction, which: str, **values: Any) -> list[Room]:
    """Return the rooms with some ids, newest first.

    :param which: the condition after the id.
    """
    rows = tx.all(f"{_SELECT} WHERE room.id {which} ORDER BY room.id DESC", **values)
    members: dict[int, list[str]] = {row["id"]: [] for row in rows}
    sql = "SELECT room_id, persona FROM member WHERE room_id IN :rooms ORDER BY room_id, position"
    for row in tx.all(sql, rooms=list(members)):
        members[row["room_id"]].append(row["persona"])
    return [fill(Room, row, members=tuple(members[row["id"]])) for row in rows]


_SELECT = """
SELECT room.id, room.name, room.created_at, room.description, session.id AS session_id, room.event_count,
    (SELECT count(*) FROM member WHERE member.room_id = room.id) AS member_count, room.archived_at
FROM room LEFT JOIN session ON session.number = room.session_number"""


def post(
    tx: Transaction,
    room_id: int,
    persona: str,
    event_type: str,
    data: Mapping[str, object],
    reply_to_id: int | None = None,
    notify: Mapping[str, Sequence[str]] | None = None,
) -> NewEvent:
    """Append an event of a member to a room, and notify other members.

    Its time is never earlier than that of the previous event, even if a clock was set back.

    :param notify: the recipients by type of their notification; see :func:`deliver`.
    :raises NotAllowedError: the persona is not a member.
    :raises ClosedError: the room or its session is archived.
    """
    # Checked in the same statement: another round trip to a remote database would delay all other writers.
    sql = """
        UPDATE room SET event_count = event_count + 1 WHERE id = :room AND archived_at IS NULL
        AND EXISTS (SELECT 1 FROM member WHERE room_id = :room AND persona = :persona)
        RETURNING event_count, session_number"""
    room = tx.first(sql, room=room_id, persona=persona)
    if room is None:
        require_member(tx, room_id, persona)
        hint = "chat_update_room with the action reopen opens it again"
        raise errors.ClosedError(f"room {room_id} is archived", hint=hint)
    sql = """
        INSERT INTO event (room_id, position, event_type, persona, timestamp, data, reply_to_id)
        VALUES (:room, :position, :event_type, :persona,
        (SELECT max(moment) FROM (SELECT timestamp AS moment FROM event WHERE room_id = :room
        AND position = :position - 1 UNION ALL SELECT CAST(:moment AS TEXT)) AS moments),
        :data, :reply_to_id) RETURNING id"""
    place = {"room": room_id, "position": room["event_count"], "moment": tx.now, "reply_to_id": reply_to_id}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    event_id = tx.value(sql, event_type=event_type, persona=persona, data=text, **place)
    if room["session_number"] is not None:
        session.touch(tx, room["session_number"])
    sent = notify and [
        entry for kind, names in notify.items() for entry in deliver(tx, event_id, room_id, kind, names)
    ]
    return fill(NewEvent, data, event_id=event_id, room_id=room_id, persona=persona, notifications=sent)


def deliver(
    tx: Transaction, event_id: int, room_id: int, kind: str, personas: Sequence[str]
) -> Sequence[NewNotification]:
    """Notify members of a room about one of its events.

    :param kind: the type of the notification; see :class:`~npl_mcp.stores.chat.feed.Notification`.
    :param personas: the recipients, without duplicates; former members are skipped.
    :returns: one notification for each member, in their order.
    """
    if not personas:
        return ()
    recipients = {"room": room_id, "personas": personas}
    sql = """
        INSERT INTO mailbox (persona, total)
        SELECT persona, 1 FROM member WHERE room_id = :room AND persona IN :personas
        ON CONFLICT (persona) DO UPDATE SET total = mailbox.total + 1"""
    tx.run(sql, **recipients)
    sql = """
        INSERT INTO notification (persona, event_id, notification_type, created_at)
        SELECT persona, :event, :kind, :moment FROM member
        WHERE room_id = :room AND persona IN :personas ORDER BY position RETURNING id, persona"""
    rows = tx.all(sql, event=event_id, kind=kind, moment=tx.now, **recipients)
    ids = dict(map(itemgetter("persona", "id"), rows))
    return [NewNotification(ids[persona], persona) for persona in personas if persona in ids]


def members(tx: Transaction, room_id: int) -> tuple[str, ...]:
    """Return the members of a room in the order of joining."""
    rows = tx.all("SELECT persona FROM member WHERE room_id = :room ORDER BY position", room=room_id)
    return tuple(map(itemgetter("persona"), rows))


def require_member(tx: Transaction, room_id: int, persona: str) -> None:
    """Refuse a persona outside a room.

    :raises NotAllowedError: the persona is not a member; the error names similar members.
    """
    if is_member(tx, room_id, persona):
        return
    known = members(tx, room_id)
    names = near_names(persona, known, _NEAR) or known[:_NEAR]
    listed = ", ".join(map(repr, names)) + (", …" if len(names) < len(known) else "")
    hint = f"members: {listed}; chat_update_room lets it join"
    raise errors.NotAllowedError(f"{persona!r} is not a member of room {room_id}", hint=hint)


def require_known(tx: Transaction, persona: str) -> None:
    """Refuse a persona without rooms and notifications.

    :raises RecordNotFoundError: the persona is unknown; the error names similar members of rooms.
    """
    sql = "SELECT 1 FROM member WHERE persona = :who UNION ALL SELECT 1 FROM mailbox WHERE persona = :who"
    if tx.value(sql, who=persona) is not None:
        return
    near = tx.near(persona, f"SELECT DISTINCT persona FROM member ORDER BY persona LIMIT {_LOOKED_AT}")
    raise errors.RecordNotFoundError(f"{persona!r} is in no room; chat_update_room lets it join", near=near)


def is_member(tx: Transaction, room_id: int, persona: str) -> bool:
    """Return whether a persona is a member of a room.

    :raises RoomNotFoundError: the room does not exist.
    """
    sql = "SELECT persona FROM room LEFT JOIN member ON room_id = id AND persona = :who WHERE id = :room"
    return tx.require(_missing(room_id), sql, room=room_id, who=persona)["persona"] is not None


def require_room(tx: Transaction, room_id: int) -> int:
    """Return the number of events in a room.

    :raises RoomNotFoundError: the room does not exist.
    """
    sql = "SELECT event_count FROM room WHERE id = :room"
    return int(tx.require(_missing(room_id), sql, room=room_id)["event_count"])


def _missing(room_id: int) -> errors.RoomNotFoundError:
    return errors.RoomNotFoundError(f"there is no room {room_id}", hint="chat_list_rooms lists all rooms")


def require_event(tx: Transaction, event_id: int) -> Row:
    """Return the room and the type of an event.

    :raises RecordNotFoundError: the event does not exist.
    """
    hint = "chat_get_feed shows the events of a room"
    missing = errors.RecordNotFoundError(f"there is no event {event_id}", hint=hint)
    return tx.require(missing, "SELECT room_id, event_type FROM event WHERE id = :event", event=event_id)
