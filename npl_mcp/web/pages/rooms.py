"""Rooms: what is said and done in them, live, and a place to answer, claim, hand over and acknowledge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from npl_mcp.tools.errors import ErrorCode
from npl_mcp.web.routing import WAIT_SECONDS, Action, Data, Page, Row, Stream
from npl_mcp.web.visits import CallError, Visit, address

SHOWN = 100
"""Events of a page."""

_TODOS = 50
_QUOTED = 120
"""Characters of what somebody answers to."""

_NUMBER = re.compile("[0-9]{1,15}")

_CHANGING = ("emoji_reaction", "todo_update", "handoff_ack")
"""Events that change how the one looks that they are about."""


def acting(visit: Visit) -> str:
    """Return as whom somebody acts: as their token says, or else as they chose; empty if they did not."""
    return visit.identity.name if visit.identity else visit.form.get("persona") or visit.text("as")


async def rooms(visit: Visit) -> Data:
    """Return the rooms, and what somebody who is named should look at."""
    who = acting(visit)
    archived = visit.flag("archived")
    page = await visit.call(
        "chat_list_rooms", limit=SHOWN, offset=visit.number("offset"), archived=archived or None
    )
    known = who and (await visit.call("chat_list_rooms", persona=who, limit=1))["total"]
    news = await visit.call("chat_get_notifications", persona=who, limit=20) if known else None
    return {**page, "archived": archived, "persona": who, "notifications": news}


async def room(visit: Visit) -> Data:
    """Return a room with its latest events, or those around, before or after one of them."""
    number, who = visit.path("room"), acting(visit)
    about = await visit.call("chat_room", room_id=number)
    shown = visit.text("todos", "open")
    todos = await visit.call("chat_list_todos", room_id=number, filter=shown, limit=_TODOS)
    events = await _events(visit, number)
    return {
        "room": about,
        "persona": who,
        "member": who in about["members"],
        "open": "archived_at" not in about,
        **events,
        "todos": {"filter": shown, **todos},
    }


async def _events(visit: Visit, number: int) -> Data:
    """Return a page of events, and where older and newer ones begin."""
    since, before, around = map(visit.number, ("since", "before", "event"))
    offset = None
    if since is None and (before or around):
        # Positions are counted from the newest, so what came later says where a page lies.
        later = await visit.call("chat_get_feed", room_id=number, since=around or (before or 1) - 1, limit=1)
        offset = max(0, later["total"] - SHOWN // 2) if around else later["total"]
    feed = await visit.call("chat_get_feed", room_id=number, since=since, offset=offset, limit=SHOWN)
    items = await _quoting(visit, number, feed["items"])
    left = feed["total"] - (offset or 0) - len(items)
    older = since if since is not None else left
    newer = left if since is not None else offset
    return {
        "items": items,
        "total": feed["total"],
        "cursor": feed["cursor"],
        "older": items[0]["id"] if items and older else None,
        "newer": items[-1]["id"] if items and newer else None,
        "marked": around,
    }


async def _quoting(visit: Visit, number: int, events: Sequence[Any]) -> list[Any]:
    """Return events with a few words of what each answers, reacts to or changes."""
    known = {event["id"]: event for event in events}
    wanted = {event["reply_to_id"] for event in events if "reply_to_id" in event}
    missing = sorted(wanted - known.keys())
    if missing:
        others = await visit.call("chat_events", room_id=number, event_ids=missing)
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


async def thread(visit: Visit) -> Data:
    """Return an event with what it answers and what answers it, and what can be done about it."""
    number, event_id, who = visit.path("room"), visit.path("event"), acting(visit)
    about = await visit.call("chat_room", room_id=number)
    found = await visit.call("chat_thread", event_id=event_id, limit=SHOWN, offset=visit.number("offset"))
    event = next(iter(await visit.call("chat_events", room_id=number, event_ids=[event_id])), None)
    if event is None:
        raise CallError(f"there is no event {event_id} in room {number}", ErrorCode.NOT_FOUND)
    return {
        "room": about,
        "persona": who,
        "member": who in about["members"],
        "open": "archived_at" not in about,
        "event": event,
        **found,
        "items": await _quoting(visit, number, found["items"]),
    }


async def news(visit: Visit, since: str) -> Sequence[Row]:
    """Return what happened in a room after an event, and what has changed by it."""
    number, who = visit.path("room"), acting(visit)
    feed = await visit.call(
        "chat_get_feed", room_id=number, since=since or None, limit=SHOWN, wait=WAIT_SECONDS
    )
    changed = await affected(visit, number, feed["items"])
    events = await _quoting(visit, number, [*changed, *feed["items"]])
    new = len(changed)
    return [
        *(Row((event, who)) for event in events[:new]),
        *(Row((event, who), str(event["id"])) for event in events[new:]),
    ]


async def affected(visit: Visit, number: int, events: Sequence[Any]) -> list[Any]:
    """Return earlier events of a room, as they are now, that look otherwise because of some later ones."""
    targets = {event["reply_to_id"] for event in events if event["event_type"] in _CHANGING}
    earlier = sorted(targets - {event["id"] for event in events})
    return await visit.call("chat_events", room_id=number, event_ids=earlier) if earlier else []


def _back(visit: Visit, mark: object = None) -> str:
    """Return the address of the page that a form stood on."""
    about = visit.form.get("thread", "")
    path = f"/rooms/{visit.path('room')}" + (f"/events/{about}" if _NUMBER.fullmatch(about) else "")
    who = None if visit.identity else acting(visit)
    return address(path, **{"as": who}) + (f"#event-{mark}" if mark else "#end")


async def send(visit: Visit) -> str:
    """Send a message, hand something over, or acknowledge what was handed over."""
    form = visit.form
    kind = form.get("kind") or ("handoff" if form.get("to") else None)
    sent = await visit.call(
        "chat_send_message",
        room_id=visit.path("room"),
        persona=acting(visit),
        message=form.get("message", ""),
        reply_to_id=form.get("reply_to_id") or None,
        kind=kind,
        to=form.get("to") or None,
    )
    return _back(visit, sent["event_id"])


async def react(visit: Visit) -> str:
    """React to an event."""
    target = visit.form.get("event_id", "")
    await visit.call("chat_react", event_id=target, persona=acting(visit), emoji=visit.form.get("emoji", ""))
    return _back(visit, target)


async def add_todo(visit: Visit) -> str:
    """Make a todo."""
    made = await visit.call(
        "chat_create_todo",
        room_id=visit.path("room"),
        persona=acting(visit),
        description=visit.form.get("description", ""),
        assigned_to=visit.form.get("assigned_to") or None,
    )
    return _back(visit, made["event_id"])


async def change_todo(visit: Visit) -> str:
    """Claim a todo, or set its state."""
    todo, wanted = visit.path("event"), visit.form.get("status", "")
    if wanted == "claim":
        await visit.call("chat_claim_todo", event_id=todo, persona=acting(visit))
    else:
        await visit.call("chat_update_todo", event_id=todo, persona=acting(visit), status=wanted)
    return _back(visit, todo)


async def change_room(visit: Visit) -> str:
    """Join or leave, archive or reopen a room."""
    await visit.call(
        "chat_update_room",
        room_id=visit.path("room"),
        persona=acting(visit),
        action=visit.form.get("action", ""),
    )
    return _back(visit)


async def mark_read(visit: Visit) -> str:
    """Mark a notification as read."""
    who = acting(visit)
    await visit.call("chat_mark_read", notification_id=visit.path("notification"), persona=who)
    return address("/rooms", **{"as": None if visit.identity else who})


_ROOM = "/rooms/{room:id}"

DECLARED = (
    Page("/rooms", rooms, "rooms.html", "chat", "Rooms"),
    Page(_ROOM, room, "room.html", "chat"),
    Page(f"{_ROOM}/events/{{event:id}}", thread, "thread.html", "chat"),
    Stream(f"{_ROOM}/events", news, "chat.html", "event"),
    Action(f"{_ROOM}/messages", send),
    Action(f"{_ROOM}/reactions", react),
    Action(f"{_ROOM}/todos", add_todo),
    Action(f"{_ROOM}/todos/{{event:id}}", change_todo),
    Action(f"{_ROOM}/state", change_room),
    Action("/rooms/notifications/{notification:id}", mark_read),
)
