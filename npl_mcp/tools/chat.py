"""Chat: rooms in which personas talk, react, share artifacts and assign todos.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any

from npl_index.errors import MissingRequestError
from npl_mcp.app.context import Context
from npl_mcp.app.waiting import when_new
from npl_mcp.config.domains import Of
from npl_mcp.stores import session
from npl_mcp.stores.artifact.artifacts import require_revision
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import AlreadyExistsError, RecordNotFoundError
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import conditions
from npl_mcp.stores.chat import feed, rooms, todos
from npl_mcp.stores.chat.mentions import SIGNS, mentions_in
from npl_mcp.stores.chat.rooms import NewEvent
from npl_mcp.stores.commits import Topic
from npl_mcp.tools.contract.parameters import (
    Actor,
    ActorIfOwn,
    Check,
    Line,
    Name,
    RowId,
    ShortName,
    Text,
    Unlisted,
    Wait,
    Whole,
)
from npl_mcp.tools.contract.spec import ToolSpec

EMOJI = 32
"""Maximum characters of a reaction."""


@dataclass(frozen=True, slots=True)
class MarkedRead:
    """A read notification.

    :param notification_id: id of the notification.
    :param read_at: time when it was first read.
    """

    notification_id: int
    read_at: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim.

    :param claimed: whether a todo was claimed.
    :param todo: the claimed todo.
    """

    claimed: bool
    todo: todos.Todo | None


Join = Annotated[RowId | None, Unlisted]
Emoji = Annotated[str, Check(checks.line, EMOJI, "give an emoji")]


@contextmanager
def _write(app: Context, join: int | None, persona: str) -> Iterator[Transaction]:
    """Begin a change, before which a persona may join a room: both or neither."""
    with app.database.write() as tx:
        if join is not None:
            rooms.join(tx, join, persona)
        yield tx


def chat_create_room(
    app: Context,
    name: Line,
    members: Annotated[list[str], Check(rooms.new_members)],
    description: Text | None = None,
    session_id: Annotated[ShortName | None, Of("session")] = None,
    session_title: Line | None = None,
) -> rooms.ChangedRoom:
    """Create a room.

    :param name: name of the room, unique.
    :param members: personas in the room.
    :param description: description of the room.
    :param session_id: id of its session; the session is created if it does not exist.
    :param session_title: title of a session that is created.
    :returns: a new or changed room.
    :raises AlreadyExistsError: the name is taken.
    :raises MissingRequestError: a name is empty, or there are no members.
    """
    with app.database.write() as tx:
        about: dict[str, Any] = {"name": name, "description": description, "created_at": tx.now}
        if session_id is not None or session_title is not None:
            about["session_number"] = session.ensure(tx, session_id, session_title)
        row: Row | None = tx.insert("room", "id", "name", **about)
        if row is None:
            taken = tx.value("SELECT id FROM room WHERE name = :name", name=name)
            problem = f"there is already a room {name!r}, room {taken}"
            raise AlreadyExistsError(problem, hint="choose another name")
        for persona in members:
            rooms.add_member(tx, row["id"], persona)
        room = rooms.changed_room(tx, row["id"])
    pages = app.settings.web_url
    return replace(room, web_url=pages and f"{pages}/rooms/{room.room_id}")


def chat_update_room(
    app: Context,
    room_id: RowId,
    persona: Actor,
    action: Annotated[str, "join, leave, archive or reopen", Check(checks.choice, tuple(rooms.ACTIONS))],
) -> rooms.ChangedRoom:
    """Join, leave, archive or reopen a room.

    :returns: a new or changed room.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona archives or reopens a room it is not a member of.
    :raises ClosedError: the room or its session is archived.
    """
    with app.database.write() as tx:
        rooms.ACTIONS[action](tx, room_id, persona)
        return rooms.changed_room(tx, room_id)


def chat_send_message(
    app: Context,
    room_id: RowId,
    persona: Actor,
    message: Text,
    reply_to_id: RowId | None = None,
    join: Join = None,
) -> NewEvent:
    """Send a message; @name notifies a member, @all everyone.

    :param reply_to_id: id of the event that the message answers.
    :returns: a new message.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of it.
    :raises RecordNotFoundError: the answered event is not in the room.
    :raises ClosedError: the room or its session is archived.
    """
    with _write(app, join, persona) as tx:
        if reply_to_id is not None:
            rooms.require_member(tx, room_id, persona)  # reported before all other errors
            if (other := rooms.require_event(tx, reply_to_id)["room_id"]) != room_id:
                problem = f"event {reply_to_id} is in room {other}, not in room {room_id}"
                raise RecordNotFoundError(problem, hint="answer in the room of the event")
        members = () if SIGNS.isdisjoint(message) else rooms.members(tx, room_id)
        names, unknown = mentions_in(message, members) if members else ((), ())
        data = {"message": message, "mentions": names}
        others = [name for name in names if name != persona]
        event = rooms.post(tx, room_id, persona, "message", data, reply_to_id, {"mention": others})
    return replace(event, unknown_mentions=unknown or None)


def chat_react(app: Context, event_id: RowId, persona: Actor, emoji: Emoji, join: Join = None) -> NewEvent:
    """React to an event.

    :returns: a reaction to an event.
    :raises RecordNotFoundError: there is no such event.
    :raises NotAllowedError: the persona is not a member of its room.
    """
    with _write(app, join, persona) as tx:
        room = rooms.require_event(tx, event_id)["room_id"]
        rooms.require_member(tx, room, persona)
        sql = """
            SELECT reaction_event_id FROM reaction
            WHERE event_id = :event AND emoji = :emoji AND persona = :persona"""
        first = tx.value(sql, event=event_id, emoji=emoji, persona=persona)
        if first is not None:
            return NewEvent(first, room, persona, event_id, emoji=emoji)
        data = {"emoji": emoji, "target_event_id": event_id}
        event = rooms.post(tx, room, persona, "emoji_reaction", data, event_id)
        row = {"event_id": event_id, "emoji": emoji, "persona": persona}
        tx.insert("reaction", "event_id", **row, reaction_event_id=event.event_id)
        return event


def chat_share_artifact(
    app: Context,
    room_id: RowId,
    persona: Actor,
    artifact_id: Annotated[RowId, Of("artifact")],
    revision: Annotated[Whole | None, "Number"] = None,
) -> NewEvent:
    """Share an artifact with a room.

    :param revision: number of the revision; by default the current one.
    :returns: an artifact shared in a room.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of it.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    """
    with app.database.write() as tx:
        rooms.require_member(tx, room_id, persona)
        number = require_revision(tx, artifact_id, revision)["revision_num"]
        data = {"artifact_id": artifact_id, "revision": number}
        others = [name for name in rooms.members(tx, room_id) if name != persona]
        event = rooms.post(tx, room_id, persona, "artifact_share", data, notify={"artifact_share": others})
        linked = tx.value("SELECT session_number FROM room WHERE id = :room", room=room_id)
        if linked is not None:
            session.link_artifact(tx, linked, artifact_id)
        return event


def chat_create_todo(
    app: Context,
    room_id: RowId,
    persona: Actor,
    description: Text,
    assigned_to: Name | None = None,
    join: Join = None,
) -> todos.Todo:
    """Create a todo in a room.

    :param description: text of the todo.
    :returns: a todo in its current state.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: one of the personas is not a member of it.
    """
    others = [] if assigned_to in (None, persona) else [assigned_to]
    with _write(app, join, persona) as tx:
        for name in others:
            rooms.require_member(tx, room_id, name)
        data = {"description": description, "assigned_to": assigned_to, "status": todos.STATUSES[0]}
        event = rooms.post(tx, room_id, persona, "todo_create", data, notify={"todo_assign": others})
        change = {"changed_at": tx.now, "changed_by": persona}
        tx.insert("todo", "event_id", event_id=event.event_id, assigned_to=assigned_to, **change)
    sent = next(iter(event.notifications or ()), None)
    return todos.Todo(event.event_id, room_id, persona, description, todos.STATUSES[0], assigned_to, sent)


def chat_update_todo(
    app: Context,
    event_id: RowId,
    persona: Actor,
    status: Annotated[str, "pending, in_progress, done or cancelled", Check(checks.choice, todos.STATUSES)],
    assigned_to: Name | None = None,
    expect: Annotated[str | None, "Status you read", Check(checks.choice, todos.STATUSES)] = None,
    join: Join = None,
) -> NewEvent:
    """Change a todo's status or assignee.

    :param event_id: id of the todo.
    :param status: the new status; ``pending`` frees a todo in progress.
    :param expect: status from an answer; the call fails if it has changed since.
    :returns: a change of a todo.
    :raises RecordNotFoundError: there is no such event.
    :raises NotAllowedError: one of the personas is not a member of its room.
    :raises ConflictError: the todo has not the expected status.
    :raises InvalidRequestError: the event is not a todo.
    """
    with _write(app, join, persona) as tx:
        before = todos.require(tx, event_id, persona)
        if expect not in (None, before["status"]):
            raise todos.conflict(before)
        return todos.change(tx, before, persona, status, assigned_to)


async def chat_claim_todo(
    app: Context,
    persona: Actor,
    event_id: RowId | None = None,
    room_id: Annotated[RowId | None, "Without event_id: your claimed todo, else the oldest ready one"] = None,
    wait: Wait = 0,
    join: Join = None,
) -> Claim:
    """Claim a todo for yourself: it is in progress, as yours.

    :param event_id: id of the todo.
    :param wait: seconds to wait for a ready todo of the room.
    :returns: the result of a claim.
    :raises RecordNotFoundError: there is no such event.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of the room.
    :raises ConflictError: the todo is another persona's, or it is not open.
    :raises ClosedError: the room or its session is archived.
    :raises InvalidRequestError: the event is not a todo.
    """
    if (event_id is None) is (room_id is None):
        problem, hint = "a todo or a room is required, not both", "give event_id or room_id"
        raise MissingRequestError(problem, parameter="event_id", hint=hint)

    def claim(tx: Transaction) -> Claim:
        if join is not None:
            rooms.join(tx, join, persona)
        todo = event_id if event_id is not None else todos.next_of(tx, room_id or 0, persona)
        return Claim(todo is not None, None if todo is None else todos.claim(tx, todo, persona))

    topic, seconds = Topic(rooms.POSITIONS, room_id or 0), 0 if room_id is None else wait
    return await when_new(app, lambda _: topic, seconds, claim, lambda claim: not claim.claimed, write=True)


def chat_list_todos(
    app: Context,
    room_id: Annotated[RowId | None, "Default: all rooms of the persona"] = None,
    persona: Actor | None = None,
    filter: Annotated[
        str | None, "ready, open, mine or done", Check(checks.choice, tuple(todos.FILTERS))
    ] = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Page[todos.Todo]:
    """List todos, oldest first; ready ones can be claimed.

    :param persona: persona whose todos are listed, required for ``mine`` and without ``room_id``.
    :returns: a page; each item is a todo in its current state.
    :raises RoomNotFoundError: there is no such room.
    :raises MissingRequestError: a persona is required.
    """
    part, which = Slice.parse(limit, offset), filter or "open"
    if persona is None and (room_id is None or which == "mine"):
        raise checks.missing("persona", "is missing", "give persona, or room_id and another filter")
    sign = "" if which == "done" else "+"
    where = f"{todos.FILTERS[which]} AND {sign}event.room_id {_IN_ROOMS_OF if room_id is None else '= :room'}"
    sql = f"{todos.SELECT} WHERE {where} ORDER BY {sign}event.id LIMIT :limit OFFSET :offset"
    values = {"room": room_id, "persona": persona}
    with app.database.read() as tx:
        if room_id is not None:
            rooms.require_room(tx, room_id)
        total = tx.value(f"SELECT count(*) {todos.TABLES} WHERE {where}", **values)
        rows = tx.first_rows(sql, limit=part.limit, offset=part.offset, **values)
    return part.page(map(todos.todo_of, rows), total)


async def chat_get_feed(
    app: Context,
    room_id: RowId,
    since: Annotated[
        int | str | None,
        "Cursor of the last answer, or ISO 8601 time",
        {"type": "string"},
        Check(feed.parse_since),
    ] = None,
    limit: int | None = None,
    offset: int | None = None,
    wait: Wait = 0,
) -> Page[feed.Event]:
    """Read a room's latest events, oldest first.

    :returns: a page; each item is an event in a room.
    :raises RoomNotFoundError: there is no such room.
    """
    part, topic = Slice.parse(limit, offset), Topic(rooms.POSITIONS, room_id)

    def read(tx: Transaction) -> Page[feed.Event]:
        return feed.read(tx, room_id, rooms.require_room(tx, room_id), since, part)

    return await when_new(app, lambda _: topic, wait, read, lambda page: page.total == 0)


def chat_list_rooms(
    app: Context,
    persona: Name | None = None,
    limit: int | None = None,
    offset: int | None = None,
    archived: bool = False,
) -> Page[rooms.Room]:
    """List rooms and their members, newest first.

    :param persona: only rooms with this member.
    :param archived: list archived rooms instead of the others.
    :returns: a page; each item is a room.
    :raises InvalidRequestError: the page is out of range.
    """
    part = Slice.parse(limit, offset, most=rooms.MAX_ROOMS)
    source = f"FROM room WHERE archived_at IS {'NOT ' if archived else ''}NULL"
    if persona is not None:
        source += " AND id IN (SELECT room_id FROM member WHERE persona = :persona)"
    which = f"IN (SELECT id {source} ORDER BY id DESC LIMIT :limit OFFSET :offset)"
    with app.database.read() as tx:
        total = tx.value(f"SELECT count(*) {source}", persona=persona)
        rows = rooms.select(tx, which, limit=part.limit, offset=part.offset, persona=persona)
    return part.page(rows, total)


async def chat_get_notifications(
    app: Context,
    persona: Actor,
    unread_only: bool = True,
    limit: int | None = None,
    offset: int | None = None,
    since: Annotated[Whole | None, "Cursor of the last answer"] = None,
    wait: Wait = 0,
) -> Page[feed.Notification]:
    """List notifications, newest first.

    :param unread_only: leave out notifications that were read.
    :param since: cursor of the last answer; only later notifications, oldest first.
    :returns: a page; each item is a notification with its event.
    :raises RecordNotFoundError: the persona is not in any room.
    """
    part, topic = Slice.parse(limit, offset), Topic(feed.MAILBOX_POSITIONS, persona)

    def read(tx: Transaction) -> Page[feed.Notification]:
        return feed.notifications(tx, persona, unread_only, since, part)

    return await when_new(app, lambda _: topic, wait, read, lambda page: page.total == 0)


def chat_mark_read(app: Context, notification_id: RowId, persona: ActorIfOwn = None) -> MarkedRead:
    """Mark a notification as read.

    :returns: a read notification.
    :raises RecordNotFoundError: there is no such notification.
    """
    where, values = conditions(id=("id = :id", notification_id), persona=("persona = :persona", persona))
    hint = "chat_get_notifications lists them"
    missing = RecordNotFoundError(f"there is no notification {notification_id}", hint=hint)
    sql = f"UPDATE notification SET read_at = coalesce(read_at, :moment) WHERE {where} RETURNING read_at"
    with app.database.write() as tx:
        return MarkedRead(notification_id, tx.require(missing, sql, moment=tx.now, **values)["read_at"])


_IN_ROOMS_OF = """
    IN (SELECT member.room_id FROM member JOIN room ON room.id = member.room_id
    WHERE member.persona = :persona AND room.archived_at IS NULL)"""

TOOLS = (
    ToolSpec(chat_create_room, title="Create Room", read_only=False, idempotent=False),
    ToolSpec(chat_update_room, title="Update Room", read_only=False),
    ToolSpec(chat_send_message, title="Send Message", read_only=False, idempotent=False),
    ToolSpec(chat_react, title="React", read_only=False),
    ToolSpec(chat_share_artifact, title="Share Artifact", read_only=False, idempotent=False),
    ToolSpec(chat_create_todo, title="Create Todo", read_only=False, idempotent=False),
    ToolSpec(chat_update_todo, title="Update Todo", read_only=False, idempotent=False),
    ToolSpec(chat_claim_todo, title="Claim Todo", read_only=False, idempotent=False),
    ToolSpec(chat_list_todos, title="List Todos"),
    ToolSpec(chat_get_feed, title="Read Room"),
    ToolSpec(chat_list_rooms, title="List Rooms"),
    ToolSpec(chat_get_notifications, title="List Notifications"),
    ToolSpec(chat_mark_read, title="Mark Read", read_only=False),
)
