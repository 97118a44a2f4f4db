"""The chat tools as they should answer; see :mod:`tests.npl_mcp.stores.models_base`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.npl_mcp.stores.models_base import (
    WHEN,
    Answer,
    Artifacts,
    Refused,
    Room,
    Session,
    chosen,
    cut,
    given,
    paged,
)


@dataclass
class Todo:
    room: int
    creator: str
    status: str
    assigned_to: str | None


class Rooms(Artifacts):
    """The chat tools."""

    def __init__(self) -> None:
        super().__init__()
        self.event_rooms: list[int] = []
        self.todos: dict[int, Todo] = {}
        self.notifications: list[Answer] = []

    def chat_create_room(
        self,
        name: str,
        members: Sequence[str],
        description: str | None = None,
        session_id: str | None = None,
        session_title: str | None = None,
    ) -> Answer:
        if not members:
            raise Refused("MISSING_REQUIRED")
        if any(room.name == name for room in self.rooms):
            raise Refused("ALREADY_EXISTS")
        if session_id is not None and session_id not in self.sessions:
            self.sessions[session_id] = Session(session_id, session_title)
        room = Room(name, list(dict.fromkeys(members)), description, session_id)
        self.rooms.append(room)
        for persona in room.members:
            self._post(
                len(self.rooms), persona, "persona_join", {"action": "joined", "persona": persona}, None
            )
        return given(
            room_id=len(self.rooms),
            session_id=session_id,
            name=name,
            description=description,
            members=room.members,
        )

    def chat_list_rooms(
        self, persona: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> Answer:
        part = cut(limit, offset, 50, 100)
        shown = [
            given(
                id=number,
                name=room.name,
                created_at=WHEN,
                description=room.description,
                session_id=room.session,
                event_count=len(room.events),
                members=room.members,
            )
            for number, room in reversed(list(enumerate(self.rooms, 1)))
            if persona is None or persona in room.members
        ]
        return paged(shown, *part)

    def chat_send_message(
        self, room_id: int, persona: str, message: str, reply_to_id: int | None = None
    ) -> Answer:
        room = self._member(room_id, persona)
        if reply_to_id is not None and self._room_of(reply_to_id) != room_id:
            raise Refused("NOT_FOUND")
        # Only texts whose signs stand between blanks, commas or ends are tried here.
        signs = re.findall(r"(?:^|(?<=\s))@([\w-]+(?: D)?)(?=[\s,]|$)", message)
        by_case = {name.lower(): name for name in room.members}
        mentions = list(dict.fromkeys(by_case[sign.lower()] for sign in signs if sign.lower() in by_case))
        event = self._post(
            room_id, persona, "message", {"message": message, "mentions": mentions}, reply_to_id
        )
        told = self._tell(event, "mention", [name for name in mentions if name != persona])
        return {
            "event_id": event,
            "room_id": room_id,
            "persona": persona,
            "message": message,
            "mentions": mentions,
            "notifications": told,
        }

    def chat_react(self, event_id: int, persona: str, emoji: str) -> Answer:
        number = self._room_of(event_id)
        target = self._event(event_id)
        self._member(number, persona)
        same = [
            event["id"]
            for event in self.rooms[number - 1].events
            if event["event_type"] == "emoji_reaction"
            and (event["reply_to_id"], event["persona"], event["data"]["emoji"]) == (event_id, persona, emoji)
        ]
        if not same:
            data = {"emoji": emoji, "target_event_id": event_id}
            same = [self._post(number, persona, "emoji_reaction", data, event_id)]
            target.setdefault("reactions", {}).setdefault(emoji, []).append(persona)
        return {"event_id": same[0], "target_event_id": event_id, "persona": persona, "emoji": emoji}

    def chat_share_artifact(
        self, room_id: int, persona: str, artifact_id: int, revision: int | None = None
    ) -> Answer:
        room = self._member(room_id, persona)
        number = self._revision(artifact_id, revision)["revision_num"]
        data = {"artifact_id": artifact_id, "revision": number}
        event = self._post(room_id, persona, "artifact_share", data, None)
        told = self._tell(event, "artifact_share", [name for name in room.members if name != persona])
        if room.session is not None:
            self.sessions[room.session].artifacts.add(artifact_id)
        return {"event_id": event, "room_id": room_id, "persona": persona, **data, "notifications": told}

    def chat_create_todo(
        self, room_id: int, persona: str, description: str, assigned_to: str | None = None
    ) -> Answer:
        self._member(room_id, persona)
        self._member(room_id, assigned_to or persona)
        data = {"description": description, "assigned_to": assigned_to, "status": "pending"}
        event = self._post(room_id, persona, "todo_create", data, None)
        self.todos[event] = Todo(room_id, persona, "pending", assigned_to)
        others = [] if assigned_to in (None, persona) else [assigned_to]
        told = self._tell(event, "todo_assign", [name for name in others if name is not None])
        return given(
            event_id=event,
            room_id=room_id,
            persona=persona,
            description=description,
            assigned_to=assigned_to,
            notification=told[0] if told else None,
        )

    def chat_update_todo(
        self, event_id: int, persona: str, status: str, assigned_to: str | None = None
    ) -> Answer:
        chosen(status, "pending", "in_progress", "done", "cancelled")
        number = self._room_of(event_id)
        if event_id not in self.todos:
            raise Refused("INVALID_PARAMETER")
        todo = self.todos[event_id]
        self._member(number, persona)
        self._member(number, assigned_to or persona)
        doer = assigned_to or todo.assigned_to
        data = {"target_event_id": event_id, "status": status, "assigned_to": doer}
        event = self._post(number, persona, "todo_update", data, event_id)
        asked = [doer] if doer not in (None, persona, todo.assigned_to) else []
        told = self._tell(event, "todo_assign", [name for name in asked if name is not None])
        if status != todo.status and todo.creator not in (persona, *asked):
            told += self._tell(event, "todo_update", [todo.creator])
        todo.status, todo.assigned_to = status, doer
        self._event(event_id)["data"].update(status=status, assigned_to=doer)
        return given(event_id=event, room_id=number, persona=persona, **data, notifications=told)

    def chat_get_feed(
        self,
        room_id: int,
        since: int | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Answer:
        size, skipped = cut(limit, offset, 50)
        events = self._room(room_id).events
        if since is None:
            end = max(len(events) - skipped, 0)
            items, total = events[max(end - size, 0) : end], len(events)
        else:
            after = [event for event in events if event["id"] > since]
            items, total = after[skipped : skipped + size], len(after)
        cursor = items[-1]["id"] if items else since or 0
        return {"items": items, "total": total, "limit": size, "offset": skipped, "cursor": cursor}

    def chat_get_notifications(
        self,
        persona: str,
        unread_only: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
        since: int | None = None,
    ) -> Answer:
        part = cut(limit, offset, 50)
        shown = [
            {name: value for name, value in one.items() if name != "persona"}
            for one in self.notifications
            if one["persona"] == persona and one["id"] > (since or 0)
            if unread_only is False or "read_at" not in one
        ]
        page = paged(shown if since is not None else shown[::-1], *part)
        cursor = max((one["id"] for one in page["items"]), default=since or 0)
        return {**page, "cursor": cursor}

    def chat_mark_read(self, notification_id: int) -> Answer:
        if notification_id > len(self.notifications):
            raise Refused("NOT_FOUND")
        self.notifications[notification_id - 1]["read_at"] = WHEN
        return {"notification_id": notification_id, "read_at": WHEN}

    def _room(self, number: int) -> Room:
        if number > len(self.rooms):
            raise Refused("ROOM_NOT_FOUND")
        return self.rooms[number - 1]

    def _member(self, number: int, persona: str) -> Room:
        room = self._room(number)
        if persona not in room.members:
            raise Refused("PERMISSION_DENIED")
        return room

    def _room_of(self, event_id: int) -> int:
        if event_id > len(self.event_rooms):
            raise Refused("NOT_FOUND")
        return self.event_rooms[event_id - 1]

    def _event(self, event_id: int) -> Answer:
        events = self.rooms[self._room_of(event_id) - 1].events
        return next(event for event in events if event["id"] == event_id)

    def _post(self, room: int, persona: str, kind: str, data: Answer, reply_to: int | None) -> int:
        self.event_rooms.append(room)
        number = len(self.event_rooms)
        self.rooms[room - 1].events.append(
            given(
                id=number,
                room_id=room,
                event_type=kind,
                persona=persona,
                timestamp=WHEN,
                data=data,
                reply_to_id=reply_to,
            )
        )
        return number

    def _tell(self, event_id: int, kind: str, personas: Sequence[str]) -> list[Answer]:
        event = self._event(event_id)
        ids = {}
        for persona in self.rooms[event["room_id"] - 1].members:
            if persona in personas:
                ids[persona] = len(self.notifications) + 1
                self.notifications.append(
                    {
                        "persona": persona,
                        "id": ids[persona],
                        "event_id": event_id,
                        "notification_type": kind,
                        "created_at": WHEN,
                        "room_id": event["room_id"],
                        "event_type": event["event_type"],
                        "event_persona": event["persona"],
                        "timestamp": WHEN,
                        "event_data": event["data"],
                    }
                )
        return [{"notification_id": ids[persona], "persona": persona} for persona in personas]
