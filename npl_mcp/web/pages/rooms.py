"""Rooms: their events, and forms to answer and to claim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from npl_mcp.stores.chat import feed, rooms
from npl_mcp.web.routing import TEAM, Action, Data, WebPage
from npl_mcp.web.signing_in import local_path
from npl_mcp.web.tables import columns, paged
from npl_mcp.web.visits import Visit

SHOWN = 100
"""Rows or events of a page."""

COLUMNS = columns("name", "members", event_count="Events", description="About", created_at="Created")

_TODOS = 50
_QUOTED = 120
"""Characters of a quoted event."""


async def every_room(visit: Visit) -> Data:
    """Return a page of the current or the archived rooms."""
    every = await visit.every("chat_list_rooms", archived=visit.flag("archived"))
    return paged(visit, every, COLUMNS, SHOWN)


async def room(visit: Visit) -> Data:
    """Return a room with its latest events, or with those around, before or after an event."""
    number = visit.path("room")
    details = await visit.read(rooms.details, number)
    chosen = visit.text("todos", "open")
    reply = visit.number("reply")
    replied = await visit.read(feed.by_ids, number, [reply]) if reply else []
    todos = await visit.call("chat_list_todos", room_id=number, filter=chosen, limit=_TODOS)
    events = await _events(visit, number)
    return {
        "room": details,
        "writes": visit.may_write and "archived_at" not in details,
        **events,
        "reply": next(map(_words, replied), None),
        "todos": {"filter": chosen, **todos},
    }


async def _events(visit: Visit, number: int) -> Data:
    """Return a page of events, and the positions of older and newer pages."""
    since, before, around = map(visit.number, ("since", "before", "event"))
    offset = None
    if since is None and (before or around):
        # Positions count from the newest event, so the number of later events gives the position of a page.
        later = await visit.call("chat_get_feed", room_id=number, since=around or (before or 1) - 1, limit=1)
        offset = max(0, later["total"] - SHOWN // 2) if around else later["total"]
    page = await visit.call("chat_get_feed", room_id=number, since=since, offset=offset, limit=SHOWN)
    items = await _quoting(visit, number, page["items"])
    left = page["total"] - (offset or 0) - len(items)
    older = since if since is not None else left
    newer = left if since is not None else offset
    return {
        "items": items,
        "total": page["total"],
        "older": items[0]["id"] if items and older else None,
        "newer": items[-1]["id"] if items and newer else None,
        "marked": around,
    }


async def _quoting(visit: Visit, number: int, events: Sequence[Any]) -> list[Any]:
    """Return events, each with a short quotation of the event that it answers, reacts to or changes."""
    known = {event["id"]: event for event in events}
    missing = {event["reply_to_id"] for event in events if "reply_to_id" in event} - known.keys()
    if missing:
        others = await visit.read(feed.by_ids, number, sorted(missing))
        known |= {event["id"]: event for event in others}
    answers = (known.get(event.get("reply_to_id")) for event in events)
    pairs = zip(events, answers, strict=True)
    return [{**event, "answers": _words(other)} if other else event for event, other in pairs]


def _words(event: Any) -> Data:
    data = event["data"]
    text = data.get("message") or data.get("description") or event["event_type"].replace("_", " ")
    return {"id": event["id"], "persona": event["persona"], "words": " ".join(text[:_QUOTED].split())}


async def _act(visit: Visit, tool: str, event: object = None, **given: object) -> str:
    """Act in the room of a form, whose member the sender becomes, and return the address of the event."""
    room = visit.path("room")
    written = await visit.call(tool, join=room, persona=visit.who, **given)
    return f"/rooms/{room}#event-{event or written['event_id']}"


async def write(tool: str, fields: Sequence[str], visit: Visit) -> str:
    """Write an event with a tool, from the fields of the form."""
    given = {name: visit.form.get(name) or None for name in fields}
    return await _act(visit, tool, room_id=visit.path("room"), **given)


async def react(visit: Visit) -> str:
    """React to an event; the button gives the event and the reaction."""
    target, _, emoji = visit.form.get("reaction", "").partition(" ")
    return await _act(visit, "chat_react", target, event_id=target, emoji=emoji)


async def change_todo(visit: Visit) -> str:
    """Claim a todo, or set its state."""
    todo, wanted = visit.path("event"), visit.form.get("status", "")
    if wanted == "claim":
        return await _act(visit, "chat_claim_todo", todo, event_id=todo)
    return await _act(visit, "chat_update_todo", todo, event_id=todo, status=wanted)


async def change_room(visit: Visit) -> str:
    """Join or leave, archive or reopen a room."""
    room, wanted = visit.path("room"), visit.form.get("action", "")
    await visit.call("chat_update_room", room_id=room, persona=visit.who, action=wanted)
    return f"/rooms/{room}#end"


async def mark_read(visit: Visit) -> str:
    """Mark a notification as read."""
    await visit.call("chat_mark_read", notification_id=visit.path("notification"), persona=visit.who)
    return local_path(visit.form.get("next", ""))


_ROOM = "/rooms/{room:id}"

DECLARED = (
    WebPage("/rooms", every_room, "list.html", "chat", "Rooms", entry=TEAM),
    WebPage(_ROOM, room, "room.html", "chat"),
    Action(f"{_ROOM}/messages", partial(write, "chat_send_message", ("message", "reply_to_id")), "chat"),
    Action(f"{_ROOM}/reactions", react, "chat"),
    Action(f"{_ROOM}/todos", partial(write, "chat_create_todo", ("description", "assigned_to")), "chat"),
    Action(f"{_ROOM}/todos/{{event:id}}", change_todo, "chat"),
    Action(f"{_ROOM}/state", change_room, "chat"),
    Action("/rooms/notifications/{notification:id}", mark_read, "chat"),
)
