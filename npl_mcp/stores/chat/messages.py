"""Messages, reactions and shared artifacts; the functions work inside a transaction of a caller."""

from __future__ import annotations

from dataclasses import dataclass

from npl_mcp.stores import session
from npl_mcp.stores.artifact.store import require_revision
from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.base.errors import RecordNotFoundError
from npl_mcp.stores.chat import handoffs, inbox, rooms
from npl_mcp.stores.chat.inbox import Delivered
from npl_mcp.stores.chat.mentions import Mentions, mentioned

EMOJI = 32
"""Characters of a reaction."""


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


def send(
    tx: Transaction,
    room_id: int,
    persona: str,
    message: str,
    answered: int | None,
    kind: str,
    to: str | None,
) -> Message:
    """Write into a room; members the text mentions are notified.

    :param answered: an event of the same room.
    :param kind: one of :data:`~npl_mcp.stores.chat.handoffs.KINDS`.
    :param to: who gets a handoff.
    :raises RecordNotFoundError: what is answered is not in the room.
    """
    handoffs.check(kind, persona, to, answered)
    if answered is not None or to is not None:  # who is no member is told that before all else
        rooms.require_member(tx, room_id, persona)
    if answered is not None and (there := rooms.room_of(tx, answered)) != room_id:
        raise RecordNotFoundError(
            f"event {answered} is in room {there}, not in room {room_id}",
            hint="answer in the room of the event",
        )
    found = mentioned(message, rooms.members(tx, room_id)) if "@" in message else Mentions()
    data = {"message": message, "mentions": found.members}
    sent: tuple[Delivered, ...] = ()
    if to is not None:
        rooms.require_member(tx, room_id, to)
        event = rooms.post(tx, room_id, persona, "handoff", data | {"to": to}, answered)
        sent = handoffs.give(tx, event, to)
    elif kind == "ack" and answered is not None:
        handoffs.require_open(tx, answered, persona)
        event = rooms.post(tx, room_id, persona, "handoff_ack", data, answered)
        sent = handoffs.take(tx, event, persona, answered)
    else:
        event = rooms.post(tx, room_id, persona, "message", data, answered)
    # Nobody gets two notifications for one event.
    told = {persona, *(one.persona for one in sent)}
    sent += inbox.deliver(tx, event, "mention", [name for name in found.members if name not in told])
    return Message(event.id, room_id, persona, message, found.members, sent, found.unknown or None)


def react(tx: Transaction, event_id: int, persona: str, emoji: str) -> Reaction:
    """React to an event; a second equal reaction adds nothing."""
    room = rooms.room_of(tx, event_id)
    rooms.require_member(tx, room, persona)
    own: int | None = tx.value(
        "SELECT reaction_event_id FROM reaction"
        " WHERE event_id = :event AND emoji = :emoji AND persona = :persona",
        event=event_id,
        emoji=emoji,
        persona=persona,
    )
    if own is None:
        data = {"emoji": emoji, "target_event_id": event_id}
        own = rooms.post(tx, room, persona, "emoji_reaction", data, event_id).id
        row = {"event_id": event_id, "emoji": emoji, "persona": persona, "reaction_event_id": own}
        tx.insert("reaction", "event_id", **row)
    return Reaction(own, event_id, persona, emoji)


def share(tx: Transaction, room_id: int, persona: str, artifact_id: int, revision: int | None) -> Share:
    """Share an artifact in a room; it is linked to the room's session.

    :param revision: its number; ``None``: the present one.
    """
    rooms.require_member(tx, room_id, persona)
    number = require_revision(tx, artifact_id, revision)["revision_num"]
    data = {"artifact_id": artifact_id, "revision": number}
    event = rooms.post(tx, room_id, persona, "artifact_share", data)
    others = [name for name in rooms.members(tx, room_id) if name != persona]
    sent = inbox.deliver(tx, event, "artifact_share", others)
    if event.session_number is not None:
        session.link_artifact(tx, event.session_number, artifact_id)
    return Share(event.id, room_id, persona, artifact_id, number, sent)
