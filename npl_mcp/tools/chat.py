"""Chat: rooms in which personas talk, react, share artifacts and assign todos."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from npl_mcp.core.app import App
from npl_mcp.core.waiting import waits, when_new
from npl_mcp.stores.base.paging import Page
from npl_mcp.stores.chat.feed import Event
from npl_mcp.stores.chat.inbox import MarkedRead, Notification
from npl_mcp.stores.chat.rooms import NewRoom, Room, RoomDetails, RoomState
from npl_mcp.stores.chat.store import Claim, Message, Reaction, Share
from npl_mcp.stores.chat.todos import ListedTodo, Todo, TodoUpdate
from npl_mcp.tools.spec import ToolSpec, Wait


def chat_create_room(
    app: App,
    name: str,
    members: list[str],
    description: str | None = None,
    session_id: str | None = None,
    session_title: str | None = None,
) -> NewRoom:
    """Create a room.

    :param members: personas.
    :param session_id: the session it belongs to; it is made if absent.
    :param session_title: of a session that is made.
    :returns: a room that was made.
    :raises AlreadyExistsError: the name is taken.
    :raises MissingRequestError: a name is empty, or there are no members.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    room = app.stores.chat.create_room(name, members, description, session_id, session_title)
    if app.settings.web_url is None:
        return room
    return replace(room, web_url=f"{app.settings.web_url}/rooms/{room.room_id}")


def chat_update_room(
    app: App, room_id: int, persona: str, action: Annotated[str, "join, leave, archive or reopen"]
) -> RoomState:
    """Join, leave, archive or reopen a room.

    :returns: a room after a change.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona archives or reopens a room it is not a member of.
    :raises ClosedError: the room or its session is archived.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.update_room(room_id, persona, action)


def chat_send_message(
    app: App,
    room_id: int,
    persona: str,
    message: str,
    reply_to_id: int | None = None,
    kind: Annotated[str | None, "handoff, or ack of the one replied to"] = None,
    to: Annotated[str | None, "Who gets a handoff"] = None,
) -> Message:
    """Send a message; @name notifies a member, @all everybody.

    :returns: a message that was sent.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of it.
    :raises RecordNotFoundError: what is answered is not in the room.
    :raises ClosedError: the room or its session is archived, or the handoff was acknowledged.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.send_message(room_id, persona, message, reply_to_id, kind or "message", to)


def chat_react(app: App, event_id: int, persona: str, emoji: str) -> Reaction:
    """React to an event.

    :returns: a reaction to an event.
    :raises RecordNotFoundError: there is no such event.
    :raises NotAllowedError: the persona is not a member of its room.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.react(event_id, persona, emoji)


def chat_share_artifact(
    app: App,
    room_id: int,
    persona: str,
    artifact_id: int,
    revision: Annotated[int | None, "Number"] = None,
) -> Share:
    """Share an artifact with a room.

    :param revision: its number; by default the current one.
    :returns: an artifact that was shared in a room.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of it.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.share_artifact(room_id, persona, artifact_id, revision)


def chat_create_todo(
    app: App,
    room_id: int,
    persona: str,
    description: str,
    assigned_to: str | None = None,
    blocked_by: list[int] | None = None,
) -> Todo:
    """Create a todo in a room.

    :param blocked_by: todos that must be done first.
    :returns: a todo that was made.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: one of the personas is not a member of it.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.create_todo(room_id, persona, description, assigned_to, blocked_by)


def chat_update_todo(
    app: App,
    event_id: int,
    persona: str,
    status: Annotated[str, "pending, in_progress, done or cancelled"],
    assigned_to: str | None = None,
    blocked_by: list[int] | None = None,
) -> TodoUpdate:
    """Change a todo's status or assignee.

    :param event_id: that of the todo.
    :param blocked_by: todos that must be done first.
    :returns: a change of a todo.
    :raises RecordNotFoundError: there is no such event.
    :raises NotAllowedError: one of the personas is not a member of its room.
    :raises ConflictError: somebody else has claimed it.
    :raises InvalidRequestError: the event is no todo, or an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.update_todo(event_id, persona, status, assigned_to, blocked_by)


@waits
async def chat_claim_todo(
    app: App,
    persona: str,
    event_id: int | None = None,
    room_id: Annotated[int | None, "Without event_id: its oldest ready todo"] = None,
    lease: Annotated[int | None, "Seconds; claim again to renew"] = None,
    wait: Wait = 0,
) -> Claim:
    """Claim a todo, so that nobody else does it.

    :param event_id: that of the todo.
    :param lease: seconds, by default 600; claim again to renew.
    :returns: what came of a claim.
    :raises RecordNotFoundError: there is no such event.
    :raises RoomNotFoundError: there is no such room.
    :raises NotAllowedError: the persona is not a member of the room.
    :raises ConflictError: somebody else has claimed it, it waits for others, or it is not open.
    :raises ClosedError: the room or its session is archived.
    :raises InvalidRequestError: the event is no todo, or an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    chat = app.stores.chat
    claim = partial(chat.claim_todo, persona, event_id, room_id, lease)
    if room_id is None:
        return claim()
    return await when_new(
        app.news, partial(chat.room_topic, room_id), wait, claim, lambda made: not made.claimed
    )


def chat_list_todos(
    app: App,
    room_id: Annotated[int | None, "Default: all rooms of the persona"] = None,
    persona: str | None = None,
    filter: Annotated[str | None, "ready, open, mine or done"] = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Page[ListedTodo]:
    """List todos, oldest first; ready ones can be claimed.

    :returns: a page; each item is a todo as it is now.
    :raises RoomNotFoundError: there is no such room.
    :raises MissingRequestError: a persona is needed.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.list_todos(room_id, persona, filter or "open", limit, offset)


@waits
async def chat_get_feed(
    app: App,
    room_id: int,
    since: Annotated[
        int | str | None, "Cursor of the last answer, or ISO 8601 time", {"type": "string"}
    ] = None,
    limit: int | None = None,
    offset: int | None = None,
    wait: Wait = 0,
) -> Page[Event]:
    """Read a room's latest events, oldest first.

    :returns: a page; each item is something that happened in a room.
    :raises RoomNotFoundError: there is no such room.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    chat = app.stores.chat
    return await when_new(
        app.news,
        partial(chat.room_topic, room_id),
        wait,
        partial(chat.feed, room_id, since, limit, offset),
        _is_empty,
    )


def _is_empty(page: Page[Any]) -> bool:
    return page.total == 0


def chat_list_rooms(
    app: App,
    persona: str | None = None,
    limit: int | None = None,
    offset: int | None = None,
    archived: bool = False,
) -> Page[Room]:
    """List rooms and their members, newest first.

    :param persona: only rooms it is a member of.
    :param archived: those that are archived, in place of the others.
    :returns: a page; each item is a room as it is listed.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.list_rooms(persona, limit, offset, archived=archived)


@waits
async def chat_get_notifications(
    app: App,
    persona: str,
    unread_only: bool = True,
    limit: int | None = None,
    offset: int | None = None,
    since: Annotated[int | None, "Cursor of the last answer"] = None,
    wait: Wait = 0,
) -> Page[Notification]:
    """List notifications, newest first.

    :param since: cursor of the last answer; what came after it, oldest first.
    :returns: a page; each item is a notification and the event it is about.
    :raises RecordNotFoundError: the persona is in no room.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    chat = app.stores.chat
    return await when_new(
        app.news,
        partial(chat.mailbox_topic, persona),
        wait,
        partial(chat.notifications, persona, unread_only, limit, offset, since),
        _is_empty,
    )


def chat_mark_read(
    app: App,
    notification_id: int,
    persona: Annotated[str | None, "Only if it is this persona's; a token implies its own"] = None,
) -> MarkedRead:
    """Mark a notification as read.

    :returns: a notification that was read.
    :raises RecordNotFoundError: there is no such notification.
    :raises InvalidRequestError: the id cannot be one.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.mark_read(notification_id, persona)


def chat_room(app: App, room_id: int) -> RoomDetails:
    """Show a room and its members.

    :returns: a room, and whether it takes more.
    :raises RoomNotFoundError: there is no such room.
    :raises InvalidRequestError: the id cannot be one.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.room(room_id)


def chat_events(
    app: App, room_id: int, event_ids: Annotated[list[int], "Those it does not have are left out"]
) -> tuple[Event, ...]:
    """Show some events of a room.

    :returns: each is something that happened in a room.
    :raises RoomNotFoundError: there is no such room.
    :raises InvalidRequestError: an id cannot be one.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.events(room_id, event_ids)


def chat_thread(app: App, event_id: int, limit: int | None = None, offset: int | None = None) -> Page[Event]:
    """Show an event with what it answers and what answers it, oldest first.

    :returns: a page; each item is something that happened in a room.
    :raises RecordNotFoundError: there is no such event.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.chat.thread(event_id, limit, offset)


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
    ToolSpec(chat_mark_read, title="Mark Read", read_only=False, implied=("persona",)),
    ToolSpec(chat_room, listed=False),
    ToolSpec(chat_events, listed=False),
    ToolSpec(chat_thread, listed=False),
)
