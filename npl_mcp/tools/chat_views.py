"""Rooms for people: what the pages show beside the feed.

These tools are called by name and not listed.
"""

from __future__ import annotations

from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.stores.base.paging import Page
from npl_mcp.stores.chat.feed import Event
from npl_mcp.stores.chat.rooms import RoomDetails
from npl_mcp.tools.spec import ToolSpec


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
    ToolSpec(chat_room, listed=False),
    ToolSpec(chat_events, listed=False),
    ToolSpec(chat_thread, listed=False),
)
