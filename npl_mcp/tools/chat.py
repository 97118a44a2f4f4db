"""Chat: rooms in which personas talk, react, share artifacts and assign todos.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from npl_index.errors import MissingRequestError
from npl_mcp.app.context import Context
from npl_mcp.app.waiting import when_new
from npl_mcp.config.domains import Of
from npl_mcp.stores import session
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import AlreadyExistsError
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.chat import feed, messages, rooms, todos
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


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim.

    :param claimed: whether a todo was claimed.
    :param todo: the claimed todo.
    """

    claimed: bool
    todo: todos.Todo | None


T = TypeVar("T")

Join = Annotated[RowId | None, Unlisted]
Emoji = Annotated[str, Check(checks.line, messages.EMOJI, "give an emoji")]


def _write(app: Context, join: int | None, persona: str, change: Callable[[Transaction], T]) -> T:
    """Return the result of a change, before which a persona may join a room: both or neither."""
    with app.database.write() as tx:
        if join is not None:
            rooms.join(tx, join, persona)
        return change(tx)


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
) -> rooms.NewEvent:
    """Send a message; @name notifies a member, @all everyone.

    :param reply_to_id: id of the event that the message answers.
    :returns: a new message.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of it.
    :raises RecordNotFoundError: the answered event is not in the room.
    :raises ClosedError: the room or its session is archived.
    """
    return _write(app, join, persona, lambda tx: messages.send(tx, room_id, persona, message, reply_to_id))


def chat_react(
    app: Context, event_id: RowId, persona: Actor, emoji: Emoji, join: Join = None
) -> rooms.NewEvent:
    """React to an event.

    :returns: a reaction to an event.
    :raises RecordNotFoundError: there is no such event.
    :raises NotAllowedError: the persona is not a member of its room.
    """
    return _write(app, join, persona, lambda tx: messages.react(tx, event_id, persona, emoji))


def chat_share_artifact(
    app: Context,
    room_id: RowId,
    persona: Actor,
    artifact_id: Annotated[RowId, Of("artifact")],
    revision: Annotated[Whole | None, "Number"] = None,
) -> rooms.NewEvent:
    """Share an artifact with a room.

    :param revision: number of the revision; by default the current one.
    :returns: an artifact shared in a room.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of it.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    """
    return app.database.writing(messages.share, room_id, persona, artifact_id, revision)


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
    return _write(app, join, persona, lambda tx: todos.create(tx, room_id, persona, description, assigned_to))


def chat_update_todo(
    app: Context,
    event_id: RowId,
    persona: Actor,
    status: Annotated[str, "pending, in_progress, done or cancelled", Check(checks.choice, todos.STATUSES)],
    assigned_to: Name | None = None,
    expect: Annotated[str | None, "Status you read", Check(checks.choice, todos.STATUSES)] = None,
    join: Join = None,
) -> rooms.NewEvent:
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
    return _write(
        app, join, persona, lambda tx: todos.update(tx, event_id, persona, status, assigned_to, expect)
    )


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
        raise MissingRequestError(
            "a todo or a room is required, not both", parameter="event_id", hint="give event_id or room_id"
        )

    def claim(tx: Transaction) -> Claim:
        if join is not None:
            rooms.join(tx, join, persona)
        if event_id is not None:
            return Claim(True, todos.claim(tx, event_id, persona))
        todo = todos.claim_next(tx, room_id or 0, persona)
        return Claim(todo is not None, todo)

    return await when_new(
        app,
        lambda _: Topic(rooms.POSITIONS, room_id or 0),
        0 if room_id is None else wait,
        claim,
        lambda claim: not claim.claimed,
        write=True,
    )


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
    return app.database.reading(todos.read, room_id, filter or "open", persona, Slice.parse(limit, offset))


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
    part = Slice.parse(limit, offset)
    return await when_new(
        app,
        lambda _: Topic(rooms.POSITIONS, room_id),
        wait,
        lambda tx: feed.read(tx, room_id, rooms.require_room(tx, room_id), since, part),
        lambda page: page.total == 0,
    )


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
    part = Slice.parse(limit, offset, largest=rooms.MAX_ROOMS)
    return app.database.reading(rooms.read, persona, archived, part)


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
    part = Slice.parse(limit, offset)

    return await when_new(
        app,
        lambda _: Topic(feed.MAILBOX_POSITIONS, persona),
        wait,
        lambda tx: feed.notifications(tx, persona, unread_only, since, part),
        lambda page: page.total == 0,
    )


def chat_mark_read(app: Context, notification_id: RowId, persona: ActorIfOwn = None) -> feed.MarkedRead:
    """Mark a notification as read.

    :returns: a read notification.
    :raises RecordNotFoundError: there is no such notification.
    """
    return app.database.writing(feed.mark_read, notification_id, persona)


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
