"""What personas do in rooms; each method is one transaction.

Errors are those of the functions that they call, and ``InvalidRequestError`` for arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_mcp.stores import session
from npl_mcp.stores.artifact import store as artifact
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import RecordNotFoundError
from npl_mcp.stores.base.paging import LARGEST_PAGE, Page, Slice
from npl_mcp.stores.changes import Topic
from npl_mcp.stores.chat import feed, handoffs, inbox, rooms, todos
from npl_mcp.stores.chat.feed import Event
from npl_mcp.stores.chat.inbox import Delivered, MarkedRead, Notification
from npl_mcp.stores.chat.mentions import Mentions, mentioned
from npl_mcp.stores.chat.rooms import NewRoom, Room, RoomDetails, RoomState
from npl_mcp.stores.chat.todos import ListedTodo, Todo, TodoUpdate

EMOJI = 32
"""Characters of a reaction."""

MOST_MEMBERS = 1_000
MOST_ROOMS = 100
"""Rooms of one page; each comes with the names of its members."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message that was sent.

    :param event_id: its event.
    :param room_id: the room.
    :param persona: who sent it.
    :param message: the text.
    :param mentions: members it mentions, in order of first appearance.
    :param notifications: sent to each of them but the sender; of a handoff to who gets it, of an
        acknowledgement to who handed over.
    :param unknown_mentions: what it mentions that is no member.
    """

    event_id: int
    room_id: int
    persona: str
    message: str
    mentions: tuple[str, ...]
    notifications: tuple[Delivered, ...]
    unknown_mentions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """A reaction to an event.

    :param event_id: its own event; the first one if the persona reacted in the same way before.
    :param target_event_id: what it reacts to.
    :param persona: who reacted.
    :param emoji: how.
    """

    event_id: int
    target_event_id: int
    persona: str
    emoji: str


@dataclass(frozen=True, slots=True)
class Share:
    """An artifact that was shared in a room.

    :param event_id: its event.
    :param room_id: the room.
    :param persona: who shared it.
    :param artifact_id: the artifact.
    :param revision: the revision's number.
    :param notifications: sent to every other member.
    """

    event_id: int
    room_id: int
    persona: str
    artifact_id: int
    revision: int
    notifications: tuple[Delivered, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """What came of a claim.

    :param claimed: whether there was something to claim.
    :param todo: what was claimed.
    """

    claimed: bool
    todo: ListedTodo | None


ROOM_ACTIONS: Mapping[str, Callable[[Transaction, int, str], None]] = {
    "join": rooms.join,
    "leave": rooms.leave,
    "archive": rooms.archive,
    "reopen": rooms.reopen,
}


class ChatStore:
    """Rooms, their events, notifications and todos.

    :param database: where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create_room(
        self,
        name: str,
        members: Sequence[str],
        description: str | None = None,
        session_id: str | None = None,
        session_title: str | None = None,
    ) -> NewRoom:
        """Make a room; with a session's id or title it belongs to that session, which is made if absent.

        :param members: personas, up to 1,000; repeated ones count once.
        :raises MissingRequestError: a name is empty, or there are no members.
        """
        clean = checks.line(name, "name")
        personas = checks.lines(members, "members", MOST_MEMBERS)
        text = checks.maybe(checks.text, description, "description")
        if not personas:
            raise MissingRequestError("members is empty", parameter="members", hint="name a persona")
        for persona in personas:
            rooms.check_new_member(persona, "members")
        with self._database.write() as tx:
            return rooms.create(tx, clean, personas, text, session_id, session_title)

    def list_rooms(
        self,
        persona: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        *,
        archived: bool = False,
    ) -> Page[Room]:
        """List rooms, the newest first; a page has at most 100.

        :param persona: only rooms it is a member of.
        :param archived: those that are archived, in place of the others.
        """
        who = checks.maybe(checks.line, persona, "persona")
        page = Slice.parse(None if limit is None else min(limit, MOST_ROOMS), offset)
        with self._database.read() as tx:
            return rooms.read(tx, who, archived, page)

    def update_room(self, room_id: int, persona: str, action: str) -> RoomState:
        """Let a persona join or leave a room, or archive or reopen it; what is so already changes nothing.

        :param action: one of :data:`ROOM_ACTIONS`.
        """
        room, who = checks.row_id(room_id, "room_id"), checks.line(persona, "persona")
        work = ROOM_ACTIONS[checks.choice(action, "action", tuple(ROOM_ACTIONS))]
        with self._database.write() as tx:
            work(tx, room, who)
            return rooms.state(tx, room)

    def send_message(
        self,
        room_id: int,
        persona: str,
        message: str,
        reply_to_id: int | None = None,
        kind: str = "message",
        to: str | None = None,
    ) -> Message:
        """Write into a room; members the text mentions are notified.

        :param reply_to_id: an event of the same room.
        :param kind: one of :data:`~npl_mcp.stores.chat.handoffs.KINDS`.
        :param to: who gets a handoff.
        :raises RecordNotFoundError: what is answered is not in the room.
        """
        room, who = checks.row_id(room_id, "room_id"), checks.line(persona, "persona")
        text = checks.text(message, "message")
        target = checks.maybe(checks.row_id, reply_to_id, "reply_to_id")
        checks.choice(kind, "kind", handoffs.KINDS)
        receiver = checks.maybe(checks.line, to, "to")
        handoffs.check(kind, who, receiver, target)
        with self._database.write() as tx:
            if target is not None or receiver is not None:  # who is no member is told that before all else
                rooms.require_member(tx, room, who)
            if target is not None and (there := rooms.room_of(tx, target)) != room:
                raise RecordNotFoundError(
                    f"event {target} is in room {there}, not in room {room}",
                    hint="answer in the room of the event",
                )
            found = mentioned(text, rooms.members(tx, room)) if "@" in text else Mentions()
            data = {"message": text, "mentions": found.members}
            sent: tuple[Delivered, ...] = ()
            if receiver is not None:
                rooms.require_member(tx, room, receiver)
                event = rooms.post(tx, room, who, "handoff", data | {"to": receiver}, target)
                sent = handoffs.give(tx, event, receiver)
            elif kind == "ack" and target is not None:
                handoffs.require_open(tx, target, who)
                event = rooms.post(tx, room, who, "handoff_ack", data, target)
                sent = handoffs.take(tx, event, who, target)
            else:
                event = rooms.post(tx, room, who, "message", data, target)
            # Nobody gets two notifications for one event.
            told = {who, *(one.persona for one in sent)}
            sent += inbox.deliver(tx, event, "mention", [name for name in found.members if name not in told])
        return Message(event.id, room, who, text, found.members, sent, found.unknown or None)

    def react(self, event_id: int, persona: str, emoji: str) -> Reaction:
        """React to an event; a second equal reaction adds nothing.

        :param emoji: one line of up to 32 characters.
        """
        target, who = checks.row_id(event_id, "event_id"), checks.line(persona, "persona")
        sign = checks.line(emoji, "emoji", EMOJI)
        with self._database.write() as tx:
            room = rooms.room_of(tx, target)
            rooms.require_member(tx, room, who)
            first: int | None = tx.value(
                "SELECT reaction_event_id FROM reaction"
                " WHERE event_id = :event AND emoji = :emoji AND persona = :persona",
                event=target,
                emoji=sign,
                persona=who,
            )
            if first is None:
                data = {"emoji": sign, "target_event_id": target}
                first = rooms.post(tx, room, who, "emoji_reaction", data, target).id
                tx.run(
                    "INSERT INTO reaction (event_id, emoji, persona, reaction_event_id)"
                    " VALUES (:event, :emoji, :persona, :own)",
                    event=target,
                    emoji=sign,
                    persona=who,
                    own=first,
                )
        return Reaction(first, target, who, sign)

    def share_artifact(
        self, room_id: int, persona: str, artifact_id: int, revision: int | None = None
    ) -> Share:
        """Share an artifact in a room; it is linked to the room's session.

        :param revision: its number; ``None``: the present one.
        """
        room, who = checks.row_id(room_id, "room_id"), checks.line(persona, "persona")
        shared = checks.row_id(artifact_id, "artifact_id")
        wanted = checks.maybe(checks.whole, revision, "revision")
        with self._database.write() as tx:
            rooms.require_member(tx, room, who)
            number = artifact.require_revision(tx, shared, wanted)["revision_num"]
            event = rooms.post(tx, room, who, "artifact_share", {"artifact_id": shared, "revision": number})
            others = [name for name in rooms.members(tx, room) if name != who]
            sent = inbox.deliver(tx, event, "artifact_share", others)
            if event.session_number is not None:
                session.link_artifact(tx, event.session_number, shared)
        return Share(event.id, room, who, shared, number, sent)

    def create_todo(
        self,
        room_id: int,
        persona: str,
        description: str,
        assigned_to: str | None = None,
        blocked_by: Sequence[int] | None = None,
    ) -> Todo:
        """Make a todo in a room.

        :param assigned_to: a member.
        :param blocked_by: todos of the room that have to be done first.
        """
        room, who = checks.row_id(room_id, "room_id"), checks.line(persona, "persona")
        text = checks.text(description, "description")
        doer = checks.maybe(checks.line, assigned_to, "assigned_to")
        waits = _todo_ids(blocked_by or ())
        with self._database.write() as tx:
            return todos.create(tx, room, who, text, doer, waits)

    def update_todo(
        self,
        event_id: int,
        persona: str,
        status: str,
        assigned_to: str | None = None,
        blocked_by: Sequence[int] | None = None,
    ) -> TodoUpdate:
        """Change a todo.

        :param event_id: the event that made it.
        :param status: pending, in_progress, done or cancelled.
        :param assigned_to: a member; ``None``: as before.
        :param blocked_by: todos of the room that have to be done first; ``None``: as before.
        """
        target, who = checks.row_id(event_id, "event_id"), checks.line(persona, "persona")
        state = checks.choice(status, "status", todos.STATUSES)
        doer = checks.maybe(checks.line, assigned_to, "assigned_to")
        waits = None if blocked_by is None else _todo_ids(blocked_by)
        with self._database.write() as tx:
            return todos.update(tx, target, who, state, doer, waits)

    def claim_todo(
        self, persona: str, event_id: int | None = None, room_id: int | None = None, lease: int | None = None
    ) -> Claim:
        """Claim a todo for a time, or prolong a claim.

        :param event_id: the todo.
        :param room_id: in place of it: the oldest of this room that is ready.
        :param lease: seconds; by default ten minutes.
        :raises InvalidRequestError: neither or both are named.
        """
        who = checks.line(persona, "persona")
        seconds = todos.LEASE if lease is None else lease
        if not 1 <= seconds <= todos.LONGEST_LEASE:
            raise InvalidRequestError(
                "lease is out of range",
                parameter="lease",
                hint=f"give seconds, from 1 to {todos.LONGEST_LEASE:,}",
            )
        todo = checks.maybe(checks.row_id, event_id, "event_id")
        room = checks.maybe(checks.row_id, room_id, "room_id")
        if (todo is None) == (room is None):
            raise MissingRequestError(
                "a todo or a room is needed, not both", parameter="event_id", hint="give event_id or room_id"
            )
        with self._database.write() as tx:
            found = (
                todos.claim(tx, todo, who, seconds)
                if todo is not None
                else todos.claim_next(tx, room, who, seconds)
            )
        return Claim(found is not None, found)

    def list_todos(
        self,
        room_id: int | None = None,
        persona: str | None = None,
        which: str = "open",
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[ListedTodo]:
        """List todos, the oldest first.

        :param room_id: only of this room; ``None``: of all rooms of the persona.
        :param persona: see :func:`~npl_mcp.stores.chat.todos.read`.
        :param which: one of :data:`~npl_mcp.stores.chat.todos.FILTERS`.
        :raises MissingRequestError: neither a room nor a persona is named, or ``mine`` means nobody's.
        """
        room = checks.maybe(checks.row_id, room_id, "room_id")
        who = checks.maybe(checks.line, persona, "persona")
        checks.choice(which, "filter", todos.FILTERS)
        page = Slice.parse(limit, offset)
        if who is None and (room is None or which == "mine"):
            raise MissingRequestError(
                "persona is missing", parameter="persona", hint="give persona, or room_id and another filter"
            )
        with self._database.read() as tx:
            return todos.read(tx, room, which, who, page)

    def feed(
        self,
        room_id: int,
        since: int | str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Event]:
        """Return events of a room, the oldest first.

        :param since: a cursor (an event's id) or a time: only events after it. Without it, the latest
            events, where ``offset`` leaves out the newest.
        """
        room, start = checks.row_id(room_id, "room_id"), feed.parse_since(since)
        page = Slice.parse(limit, offset)
        with self._database.read() as tx:
            return feed.read(tx, room, rooms.require_room(tx, room), start, page)

    def events(self, room_id: int, ids: Sequence[int]) -> tuple[Event, ...]:
        """Return some events of a room, the oldest first; those it does not have are left out."""
        room = checks.row_id(room_id, "room_id")
        wanted = [checks.row_id(one, f"event_ids[{at}]") for at, one in enumerate(ids[:LARGEST_PAGE])]
        with self._database.read() as tx:
            rooms.require_room(tx, room)
            return feed.some(tx, room, wanted)

    def thread(self, event_id: int, limit: int | None = None, offset: int | None = None) -> Page[Event]:
        """Return an event with what it answers, and with all that was answered to these, the oldest first."""
        wanted, page = checks.row_id(event_id, "event_id"), Slice.parse(limit, offset)
        with self._database.read() as tx:
            rooms.room_of(tx, wanted)
            return feed.thread(tx, wanted, page)

    def room(self, room_id: int) -> RoomDetails:
        """Return all about a room but what happened in it."""
        wanted = checks.row_id(room_id, "room_id")
        with self._database.read() as tx:
            return rooms.details(tx, wanted)

    def room_topic(self, room_id: int) -> Topic:
        """Return what changes with each event of a room."""
        return Topic(rooms.POSITIONS, checks.row_id(room_id, "room_id"))

    def mailbox_topic(self, persona: str) -> Topic:
        """Return what changes with each notification of a persona."""
        return Topic(inbox.POSITIONS, checks.line(persona, "persona"))

    def notifications(
        self,
        persona: str,
        unread_only: bool = True,
        limit: int | None = None,
        offset: int | None = None,
        since: int | None = None,
    ) -> Page[Notification]:
        """Return notifications of a persona, the newest first.

        :param since: a cursor (a notification's id): only notifications after it, the oldest first.
        """
        who = checks.line(persona, "persona")
        start = checks.maybe(checks.whole, since, "since")
        page = Slice.parse(limit, offset)
        with self._database.read() as tx:
            return inbox.read(tx, who, unread_only, start, page)

    def mark_read(self, notification_id: int, persona: str | None = None) -> MarkedRead:
        """Mark a notification as read; one that was read keeps its time.

        :param persona: only if it is that persona's.
        """
        wanted = checks.row_id(notification_id, "notification_id")
        whose = checks.maybe(checks.line, persona, "persona")
        with self._database.write() as tx:
            return inbox.mark_read(tx, wanted, whose)


def _todo_ids(ids: Sequence[int]) -> tuple[int, ...]:
    if len(ids) > todos.MOST_BLOCKERS:
        raise InvalidRequestError(
            f"blocked_by has {len(ids):,} entries",
            parameter="blocked_by",
            hint=f"at most {todos.MOST_BLOCKERS}",
        )
    return tuple(dict.fromkeys(checks.row_id(one, f"blocked_by[{at}]") for at, one in enumerate(ids)))
