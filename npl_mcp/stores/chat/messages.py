"""Messages, handoffs, reactions and shared artifacts; the functions run in the caller's transaction.

A message mentions members: ``@name``, or ``@all``; a name in code mentions no one.

By a handoff, a member passes work to another member, who acknowledges its receipt. A handoff that answers a
todo passes on that todo: the acknowledgement assigns the todo to the recipient.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from npl_index.errors import InvalidRequestError
from npl_index.markdown.front_matter import with_line_feeds
from npl_index.markdown.prose import without_code
from npl_mcp.stores import session
from npl_mcp.stores.artifact.artifacts import require_revision
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.base.errors import ClosedError, NotAllowedError, RecordNotFoundError
from npl_mcp.stores.chat import inbox, rooms, todos
from npl_mcp.stores.chat.inbox import Delivered
from npl_mcp.stores.chat.rooms import InRoom, Posted

KINDS = ("message", "handoff", "ack")

EMOJI = 32
"""Maximum characters of a reaction."""


MAX_CHARACTERS = 1_000
"""Maximum ``@`` signs considered in a text: each needs a look-up of names."""

MAX_UNKNOWN = 20
"""Maximum unknown names in a report; a text with more is code."""

EVERYBODY = "all"

# In these scripts no blank separates words: Thai, Lao, Burmese, Khmer, Chinese, Japanese, Korean.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u318f\u31f0-\u31ff\u3400-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)

# Excludes the sign of an address (me@x.com), of a path (modules/@x) or of a second server (@a@x).
_SIGN = re.compile(rf"(?:(?<=[{_UNSPACED}])|(?<![\w.+\-@/]))@(?=\S)")

# A name ends unless a letter, digit or underscore follows, directly or after hyphens, or an address
# continues.
_END = re.compile(rf"(?!-*(?![{_UNSPACED}])[\w@])")


_WORD = re.compile(rf"[^\W{_UNSPACED}]{{1,64}}(?:-[^\W{_UNSPACED}]{{1,64}}){{0,3}}|\w{{1,64}}")


@dataclass(frozen=True, slots=True)
class Mentions:
    """The members mentioned in a text.

    :param members: mentioned members, in order of first appearance, without duplicates.
    :param unknown: other names after an @, in order, without duplicates, at most 20.
    """

    members: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Message(InRoom):
    """A sent message.

    :param event_id: id of its event.
    :param room_id: id of the room.
    :param persona: author.
    :param message: text of the message.
    :param mentions: mentioned members, in order of first appearance.
    :param notifications: notifications to mentioned members; for a handoff to its recipient, for an
        acknowledgement to the sender of the handoff.
    :param unknown_mentions: mentioned names of non-members.
    """

    message: str
    mentions: tuple[str, ...]
    notifications: tuple[Delivered, ...]
    unknown_mentions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """A reaction to an event.

    :param event_id: id of its event; a repeated reaction returns the event of the first one.
    :param target_event_id: id of the reaction's target.
    :param persona: persona that reacted.
    :param emoji: emoji of the reaction.
    """

    event_id: int
    target_event_id: int
    persona: str
    emoji: str


@dataclass(frozen=True, slots=True)
class Share(InRoom):
    """An artifact shared in a room.

    :param event_id: id of its event.
    :param room_id: id of the room.
    :param persona: persona that shared it.
    :param artifact_id: id of the artifact.
    :param revision: number of the revision.
    :param notifications: notifications to all other members.
    """

    artifact_id: int
    revision: int
    notifications: tuple[Delivered, ...]


def send(
    tx: Transaction, room_id: int, persona: str, message: str, answered: int | None, kind: str, to: str | None
) -> Message:
    """Post to a room, and notify the mentioned members.

    :param answered: the answered event, of the same room.
    :param kind: the kind of message, from :data:`KINDS`.
    :param to: the recipient of a handoff.
    :raises RecordNotFoundError: the answered event is not in the room.
    """
    _check(kind, persona, to, answered)
    if answered is not None or to is not None:  # report a missing membership before all other errors
        rooms.require_member(tx, room_id, persona)
    if answered is not None and (there := rooms.room_of(tx, answered)) != room_id:
        problem = f"event {answered} is in room {there}, not in room {room_id}"
        raise RecordNotFoundError(problem, hint="answer in the room of the event")
    found = mentioned(message, rooms.members(tx, room_id)) if "@" in message else Mentions()
    data = {"message": message, "mentions": found.members}
    sent: tuple[Delivered, ...] = ()
    if to is not None:
        rooms.require_member(tx, room_id, to)
        event = rooms.post(tx, room_id, persona, "handoff", data | {"to": to}, answered)
        tx.insert("handoff", "event_id", event_id=event.id, persona=to)
        sent = inbox.deliver(tx, event, "handoff", [to])
    elif kind == "ack" and answered is not None:
        _require_open(tx, answered, persona)
        event = rooms.post(tx, room_id, persona, "handoff_ack", data, answered)
        sent = _take(tx, event, persona, answered)
    else:
        event = rooms.post(tx, room_id, persona, "message", data, answered)
    # At most one notification per event and persona.
    told = {persona, *(one.persona for one in sent)}
    sent += inbox.deliver(tx, event, "mention", [name for name in found.members if name not in told])
    return Message(event.id, room_id, persona, message, found.members, sent, found.unknown or None)


def _check(kind: str, persona: str, to: str | None, answered: int | None) -> None:
    """Check the required arguments of a kind of message.

    :param to: the recipient of a handoff.
    :param answered: the answered event.
    :raises InvalidRequestError: an argument is missing or superfluous.
    """
    if kind == "handoff" and to is None:
        raise checks.missing("to", "is missing", "name the member it is handed to")
    if kind != "handoff" and to is not None:
        problem = f"a message of the kind {kind} is to everybody"
        raise InvalidRequestError(problem, parameter="to", hint='give it with kind="handoff"')
    if to == persona:
        problem = "a handoff needs another member"
        raise InvalidRequestError(problem, parameter="to", hint="name another member")
    if kind == "ack" and answered is None:
        raise checks.missing("reply_to_id", "is missing", "give the event_id of the handoff")


def _require_open(tx: Transaction, event_id: int, persona: str) -> None:
    """Refuse the acknowledgement of any event except an open handoff to the persona.

    :raises InvalidRequestError: the event is not a handoff.
    :raises NotAllowedError: the handoff has another recipient.
    :raises ClosedError: the handoff is already acknowledged.
    """
    row = tx.one("SELECT persona, ack_event_id FROM handoff WHERE event_id = :event", event=event_id)
    if row is None:
        problem = f"event {event_id} is not a handoff"
        raise InvalidRequestError(problem, parameter="reply_to_id", hint="give the event_id of a handoff")
    if row["persona"] != persona:
        raise NotAllowedError(f"handoff {event_id} is to {row['persona']!r}")
    if row["ack_event_id"] is not None:
        raise ClosedError(f"handoff {event_id} was acknowledged by event {row['ack_event_id']}")


def _take(tx: Transaction, event: Posted, persona: str, handoff_id: int) -> tuple[Delivered, ...]:
    """Record the acknowledgement of a handoff, notify its sender, and reassign the answered todo."""
    tx.run("UPDATE handoff SET ack_event_id = :ack WHERE event_id = :event", ack=event.id, event=handoff_id)
    given = tx.one("SELECT persona, reply_to_id FROM event WHERE id = :event", event=handoff_id)
    assert given is not None
    sent = inbox.deliver(tx, event, "handoff_ack", [given["persona"]])
    if given["reply_to_id"] is not None:
        todos.hand_over(tx, given["reply_to_id"], given["persona"], persona)
    return sent


def react(tx: Transaction, event_id: int, persona: str, emoji: str) -> Reaction:
    """React to an event. Idempotent."""
    room = rooms.room_of(tx, event_id)
    rooms.require_member(tx, room, persona)
    sql = (
        "SELECT reaction_event_id FROM reaction"
        " WHERE event_id = :event AND emoji = :emoji AND persona = :persona"
    )
    own: int | None = tx.value(sql, event=event_id, emoji=emoji, persona=persona)
    if own is None:
        data = {"emoji": emoji, "target_event_id": event_id}
        own = rooms.post(tx, room, persona, "emoji_reaction", data, event_id).id
        row = {"event_id": event_id, "emoji": emoji, "persona": persona, "reaction_event_id": own}
        tx.insert("reaction", "event_id", **row)
    return Reaction(own, event_id, persona, emoji)


def share(tx: Transaction, room_id: int, persona: str, artifact_id: int, revision: int | None) -> Share:
    """Share an artifact in a room, and link it to the room's session.

    :param revision: the number of the revision; ``None`` for the current one.
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


def mentioned(text: str, members: Sequence[str]) -> Mentions:
    """Return the members mentioned in a text outside of code.

    The longest name after the sign wins: an exact match, else the first match that differs only in case.
    ``@all`` mentions every member, unless a member has that name.

    :param text: the text.
    :param members: the names of the members, with any characters.
    """
    if "@" not in text:
        return Mentions()
    text = without_code(with_line_feeds(text))
    exact = frozenset(members)
    folded = {name.lower(): name for name in reversed(members)}
    lengths = sorted({len(name) for name in members}, reverse=True)
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}

    def name_at(start: int) -> str | None:
        for length in lengths:
            written = text[start : start + length]
            name = written if written in exact else folded.get(written.lower())
            if name is not None and _END.match(text, start + length):
                return name
        return None

    for sign in islice(_SIGN.finditer(text), MAX_CHARACTERS):
        name = name_at(sign.end())
        word = None if name is not None else _WORD.match(text, sign.end())
        if name is not None:
            known[name] = None
        elif word is not None and word[0].lower() == EVERYBODY:
            known |= dict.fromkeys(members)
        elif word is not None and len(unknown) < MAX_UNKNOWN:
            unknown[word[0]] = None
    return Mentions(tuple(known), tuple(unknown))
