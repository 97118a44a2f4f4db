"""The expected behaviour of the chat tools; see :mod:`tests.npl_mcp.stores.models_base`.

Todos and mentions have examples of their own, in :mod:`tests.npl_mcp.tools`.
"""

from collections.abc import Sequence

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


class Rooms(Artifacts):
    def __init__(self) -> None:
        super().__init__()
        self.event_rooms: list[int] = []
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
        if session_id in self.sessions:
            self._open_session(session_id)
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
        return self._changed(len(self.rooms))

    def _changed(self, number: int) -> Answer:
        room = self.rooms[number - 1]
        return given(
            room_id=number,
            session_id=room.session,
            name=room.name,
            description=room.description,
            members=room.members,
            archived_at=WHEN if room.archived else None,
        )

    def chat_update_room(self, room_id: int, persona: str, action: str) -> Answer:
        chosen(action, "join", "leave", "archive", "reopen")
        room = self._room(room_id)
        joining, leaving = action == "join", action == "leave"
        if action in ("archive", "reopen"):
            self._member(room_id, persona)
            if action == "archive" and not room.archived:
                self._post(room_id, persona, "room_archive", {"action": "archived"}, None)
            if action == "reopen" and room.archived:
                self._open_session(room.session)
                room.archived = False
                self._post(room_id, persona, "room_reopen", {"action": "reopened"}, None)
            room.archived = action == "archive"
        elif joining is (persona not in room.members):
            data = {"action": "joined" if joining else "left", "persona": persona}
            self._post(room_id, persona, "persona_leave" if leaving else "persona_join", data, None)
            room.members = [name for name in room.members if name != persona] + [persona] * joining
        return self._changed(room_id)

    def chat_list_rooms(
        self,
        persona: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        archived: bool = False,
    ) -> Answer:
        part = cut(limit, offset, 50, 100)
        shown = [
            {**self._room_entry(number), "members": room.members}
            for number, room in reversed(list(enumerate(self.rooms, 1)))
            if room.archived is archived and (persona is None or persona in room.members)
        ]
        return paged(shown, *part)

    def chat_send_message(
        self, room_id: int, persona: str, message: str, reply_to_id: int | None = None
    ) -> Answer:
        room = self._member(room_id, persona)
        if reply_to_id is not None and self._room_of(reply_to_id) != room_id:
            raise Refused("NOT_FOUND")
        mentions = room.members if message == "@all" else []
        event = self._post(
            room_id, persona, "message", {"message": message, "mentions": list(mentions)}, reply_to_id
        )
        told = self._tell(event, "mention", [name for name in mentions if name != persona])
        return given(
            event_id=event,
            room_id=room_id,
            persona=persona,
            message=message,
            mentions=list(mentions),
            notifications=told,
        )

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
        about = {"room_id": number, "persona": persona, "emoji": emoji}
        return {"event_id": same[0], "target_event_id": event_id, **about}

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

    def chat_get_feed(
        self, room_id: int, since: int | None = None, limit: int | None = None, offset: int | None = None
    ) -> Answer:
        size, skipped = cut(limit, offset, 50)
        events = self._room(room_id).events
        if since is None:
            end = max(len(events) - skipped, 0)
            items, total = events[max(end - size, 0) : end], len(events)
        else:
            after = [event for event in events if event["id"] > since]
            if since > max((event["id"] for room in self.rooms for event in room.events), default=0):
                raise Refused("INVALID_PARAMETER")
            items, total = after[skipped : skipped + size], len(after)
        last = events[-1]["id"] if events else 0
        cursor = items[-1]["id"] if items else last if since is None else since
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
            {name: value for name, value in note.items() if name != "persona"}
            for note in self.notifications
            if note["persona"] == persona and note["id"] > (since or 0)
            if unread_only is False or "read_at" not in note
        ]
        told = {note["persona"] for note in self.notifications}
        if persona not in told.union(*(room.members for room in self.rooms)):
            raise Refused("NOT_FOUND")
        if (since or 0) > max((note["id"] for note in self.notifications), default=0):
            raise Refused("INVALID_PARAMETER")
        page = paged(shown if since is not None else shown[::-1], *part)
        cursor = max((note["id"] for note in page["items"]), default=since or 0)
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

    def _writable(self, room: Room) -> None:
        if room.archived:
            raise Refused("OPERATION_FAILED")
        self._open_session(room.session)

    def _post(self, room: int, persona: str, kind: str, data: Answer, reply_to: int | None) -> int:
        self._writable(self.rooms[room - 1])
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

    def _tell(self, event_id: int, kind: str, personas: Sequence[str | None]) -> list[Answer]:
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
        return [
            {"notification_id": ids[persona], "persona": persona} for persona in personas if persona in ids
        ]
