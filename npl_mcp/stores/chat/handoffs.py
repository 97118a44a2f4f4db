"""Handoffs: messages by which one member gives something to another, who acknowledges that it has it.

A handoff that answers a todo gives away the todo: whoever acknowledges it is from that moment who is to do
it. The functions work inside a transaction of a caller.
"""

from __future__ import annotations

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.base.errors import ClosedError, NotAllowedError
from npl_mcp.stores.chat import inbox, todos
from npl_mcp.stores.chat.inbox import Delivered
from npl_mcp.stores.chat.rooms import Posted

KINDS = ("message", "handoff", "ack")


def check(kind: str, persona: str, to: str | None, answered: int | None) -> None:
    """Check what a message of a kind needs.

    :param to: who gets a handoff.
    :param answered: the event it answers.
    :raises InvalidRequestError: something is missing, or too much.
    """
    if kind == "handoff" and to is None:
        raise MissingRequestError("to is missing", parameter="to", hint="name the member it is handed to")
    if kind != "handoff" and to is not None:
        raise InvalidRequestError(
            f"a message of the kind {kind} is to everybody",
            parameter="to",
            hint='give it with kind="handoff"',
        )
    if to == persona:
        raise InvalidRequestError(
            "nobody hands over to themselves", parameter="to", hint="name another member"
        )
    if kind == "ack" and answered is None:
        raise MissingRequestError(
            "reply_to_id is missing", parameter="reply_to_id", hint="give the event_id of the handoff"
        )


def give(tx: Transaction, event: Posted, to: str) -> tuple[Delivered, ...]:
    """Note that an event is a handoff, and tell who gets it."""
    tx.insert("handoff", "event_id", event_id=event.id, persona=to)
    return inbox.deliver(tx, event, "handoff", [to])


def require_open(tx: Transaction, event_id: int, persona: str) -> None:
    """Refuse an acknowledgement of what is no handoff to a persona, or is acknowledged.

    :raises InvalidRequestError: the event is no handoff.
    :raises NotAllowedError: it is to somebody else.
    :raises ClosedError: it was acknowledged before.
    """
    row = tx.one("SELECT persona, ack_event_id FROM handoff WHERE event_id = :event", event=event_id)
    if row is None:
        raise InvalidRequestError(
            f"event {event_id} is no handoff", parameter="reply_to_id", hint="give the event_id of a handoff"
        )
    if row["persona"] != persona:
        raise NotAllowedError(f"handoff {event_id} is to {row['persona']!r}")
    if row["ack_event_id"] is not None:
        raise ClosedError(f"handoff {event_id} was acknowledged by event {row['ack_event_id']}")


def take(tx: Transaction, event: Posted, persona: str, handoff_id: int) -> tuple[Delivered, ...]:
    """Note that an event acknowledges a handoff, tell its sender, and move the todo it answers."""
    tx.run("UPDATE handoff SET ack_event_id = :ack WHERE event_id = :event", ack=event.id, event=handoff_id)
    given = tx.one("SELECT persona, reply_to_id FROM event WHERE id = :event", event=handoff_id)
    assert given is not None
    sent = inbox.deliver(tx, event, "handoff_ack", [given["persona"]])
    if given["reply_to_id"] is not None:
        todos.hand_over(tx, given["reply_to_id"], given["persona"], persona)
    return sent
