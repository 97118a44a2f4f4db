"""Rooms: their events, and forms to answer and to claim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from npl_mcp.stores.chat import feed, rooms
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.web.routing import Action, Data, WebPage
from npl_mcp.web.signing_in import local_path
from npl_mcp.web.visits import CallError, Visit

SHOWN = 100
"""Events of a page."""

_TODOS = 50
_QUOTED = 120
"""Characters of a quoted event."""


async def room(visit: Visit) -> Data:
    """Return a room with its latest events, or with those around, before or after an event."""
    number = visit.path("room")
    details = await visit.read(rooms.details, number)
    chosen = visit.text("todos", "open")
    reply = visit.number("reply")
    todos = await visit.call("chat_list_todos", room_id=number, filter=chosen, limit=_TODOS)
    events = await _events(visit, number)
    return {
        "room": details,
        "writes": visit.may_write and "archived_at" not in details,
        **events,
        "reply": None if reply is None else _words(await _event(visit, number, reply)),
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
    wanted = {event["reply_to_id"] for event in events if "reply_to_id" in event}
    missing = sorted(wanted - known.keys())
    if missing:
        others = await visit.read(feed.by_ids, number, missing)
        known.update((event["id"], event) for event in others)
    return [
        {**event, "answers": _words(known[event["reply_to_id"]])}
        if event.get("reply_to_id") in known
        else event
        for event in events
    ]


def _words(event: Any) -> Data:
    data = event["data"]
    text = data.get("message") or data.get("description") or event["event_type"].replace("_", " ")
    return {"id": event["id"], "persona": event["persona"], "words": " ".join(text[:_QUOTED].split())}


async def _event(visit: Visit, room: int, event_id: int) -> Any:
    for event in await visit.read(feed.by_ids, room, [event_id]):
        return event
    raise CallError(f"there is no event {event_id} in room {room}", ErrorCode.NOT_FOUND)


def _back(visit: Visit, mark: object = None) -> str:
    """Return the address of the form's page."""
    return f"/rooms/{visit.path('room')}" + (f"#event-{mark}" if mark else "#end")


def _member(visit: Visit) -> dict[str, Any]:
    """Return the sender of a form, who becomes a member of its room."""
    return {"join": visit.path("room"), "persona": visit.who}


async def write(tool: str, fields: Sequence[str], visit: Visit) -> str:
    """Write an event with a tool, from the fields of the form."""
    given = {name: visit.form.get(name) or None for name in fields}
    written = await visit.call(tool, room_id=visit.path("room"), **_member(visit), **given)
    return _back(visit, written["event_id"])


async def react(visit: Visit) -> str:
    """React to an event; the button gives the event and the reaction."""
    target, _, emoji = visit.form.get("reaction", "").partition(" ")
    await visit.call("chat_react", event_id=target, emoji=emoji, **_member(visit))
    return _back(visit, target)


async def change_todo(visit: Visit) -> str:
    """Claim a todo, or set its state."""
    todo, wanted = visit.path("event"), visit.form.get("status", "")
    if wanted == "claim":
        await visit.call("chat_claim_todo", event_id=todo, **_member(visit))
    else:
        await visit.call("chat_update_todo", event_id=todo, status=wanted, **_member(visit))
    return _back(visit, todo)


async def change_room(visit: Visit) -> str:
    """Join or leave, archive or reopen a room."""
    wanted = {"persona": visit.who, "action": visit.form.get("action", "")}
    await visit.call("chat_update_room", room_id=visit.path("room"), **wanted)
    return _back(visit)


async def mark_read(visit: Visit) -> str:
    """Mark a notification as read."""
    await visit.call("chat_mark_read", notification_id=visit.path("notification"), persona=visit.who)
    return local_path(visit.form.get("next", ""))


_ROOM = "/rooms/{room:id}"

DECLARED = (
    WebPage(_ROOM, room, "room.html", "chat"),
    Action(f"{_ROOM}/messages", partial(write, "chat_send_message", ("message", "reply_to_id")), "chat"),
    Action(f"{_ROOM}/reactions", react, "chat"),
    Action(f"{_ROOM}/todos", partial(write, "chat_create_todo", ("description", "assigned_to")), "chat"),
    Action(f"{_ROOM}/todos/{{event:id}}", change_todo, "chat"),
    Action(f"{_ROOM}/state", change_room, "chat"),
    Action("/rooms/notifications/{notification:id}", mark_read, "chat"),
)
