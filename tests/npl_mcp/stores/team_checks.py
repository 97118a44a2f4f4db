"""Checks after a team's day: the tools show each answered write once, and no other.

See :mod:`tests.npl_mcp.stores.team_day`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from npl_mcp.stores.base.paging import later
from tests.npl_mcp.stores.team_agents import Said

Read = Callable[..., Any]
"""Calls a tool that reads, and returns the data of its answer."""

MARKS = {
    "chat_send_message": "message",
    "chat_create_todo": "description",
    "session_create": "title",
    "worklog_init": "session_id",
    "worklog_log": "summary",
    "artifact_create": "name",
    "artifact_add_revision": "notes",
    "review_add_comment": "comment",
}
"""By tool, the argument with a text that no other call has."""


class Lease(NamedTuple):
    """An acknowledged claim of a todo, by the database's clock."""

    begin: str
    end: str
    agent: str


@dataclass
class Found:
    """The answers of the tools.

    :param effects: number of times that each write is there.
    :param events: events of each room.
    :param problems: problems found meanwhile.
    """

    effects: Counter[str] = field(default_factory=Counter)
    events: dict[int, list[Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def creators(self) -> dict[int, str]:
        """The agent that has created each todo."""
        every = [one for room in self.events.values() for one in room]
        return {one["id"]: one["persona"] for one in every if one["event_type"] == "todo_create"}

    @property
    def updates(self) -> list[Any]:
        """The changes of todos in all rooms."""
        return [one for room in self.events.values() for one in room if one["event_type"] == "todo_update"]


def read_all(read: Read, rooms: Sequence[int]) -> Found:
    """Read everything that the team has written."""
    found = Found()
    for room in rooms:
        found.events[room] = list(_feed(read, room))
        _read_events(found, room)
    for session in _pages(read, "session_list"):
        found.effects[f"session_create {session['title']}"] += 1
    _read_worklogs(read, found)
    for artifact in _pages(read, "artifact_list"):
        found.effects[f"artifact_create {artifact['name']}"] += 1
        revisions = sorted(_pages(read, "artifact_history", artifact_id=artifact["id"]), key=_number)
        if [_number(one) for one in revisions] != list(range(len(revisions))):
            found.problems.append(f"gap: revisions of artifact {artifact['id']}")
        found.effects.update(f"artifact_add_revision {one['notes']}" for one in revisions[1:])
    for review in _pages(read, "review_list"):
        found.effects[f"review_create {review['reviewer_persona']} {review['revision_id']}"] += 1
        comments = _pages(read, "review_get", review_id=review["id"])
        found.effects.update(f"review_add_comment {one['comment']}" for one in comments)
    return found


def _read_events(found: Found, room: int) -> None:
    events = found.events[room]
    for before, after in pairwise(events):
        if not (before["id"] < after["id"] and before["timestamp"] <= after["timestamp"]):
            found.problems.append(f"order: event {after['id']} of room {room} comes after {before['id']}")
    for event in events:
        kind, data = event["event_type"], event["data"]
        if kind == "message":
            found.effects[f"chat_send_message {data['message']}"] += 1
        elif kind == "todo_create":
            found.effects[f"chat_create_todo {data['description']}"] += 1
        elif kind == "todo_update" and data["status"] == "done":
            found.effects[f"chat_update_todo {event['persona']} {data['target_event_id']}"] += 1


def _read_worklogs(read: Read, found: Found) -> None:
    for session in read("worklog_sessions")["sessions"]:
        name = session["session_id"]
        found.effects[f"worklog_init {name}"] += 1
        if session["status"] == "closed":
            found.effects[f"worklog_close {name}"] += 1
        seen = 0
        while seen < session["entry_count"]:
            page = read("worklog_read", session_id=name, since=seen, limit=200, peek=True)["items"]
            for entry in page:
                seen += 1
                found.effects[f"worklog_log {entry['summary']}"] += 1
                if entry["seq"] != seen:
                    found.problems.append(f"gap: entry {seen} of worklog {name}")
                if not name.startswith(f"{entry['agent_id']}-"):
                    found.problems.append(f"foreign: {entry['agent_id']} wrote to worklog {name}")


def differences(read: Read, said: Sequence[Said], rooms: Sequence[int]) -> tuple[Found, list[str]]:
    """Return what the tools show, and how it differs from what was answered."""
    found = read_all(read, rooms)
    expected = Counter(_effect(one) for one in said if one.data and one.tool != "chat_claim_todo")
    missing = [f"missing: {one}" for one in (expected - found.effects).elements()]
    doubled = [f"doubled or not acknowledged: {one}" for one in (found.effects - expected).elements()]
    return found, [
        *found.problems,
        *missing,
        *doubled,
        *_stale(said),
        *_elsewhere(said),
        *_wrong_times(said),
        *_claimed_twice(found, said),
    ]


def missed(found: Found, agent: str, seen: Mapping[int, Sequence[int]]) -> list[str]:
    """Return the rooms whose events an agent with a cursor has missed, or seen twice.

    :param seen: ids of the events in the order of reading, by room.
    """
    every = {room: [one["id"] for one in events] for room, events in found.events.items()}
    return [
        f"cursor: {agent} has not read the events of room {room} as they are"
        for room, ids in seen.items()
        if every[room][: len(ids)] != list(ids)
    ]


def late(found: Found, said: Sequence[Said]) -> int:
    """Return how many todos were done by an agent without a claim at that moment."""
    leases = _leases(found, said)
    return sum(
        not any(
            one.agent == event["persona"] and one.begin <= event["timestamp"] <= one.end
            for one in leases[event["data"]["target_event_id"]]
        )
        for event in found.updates
        if event["data"]["status"] == "done"
    )


def _effect(one: Said) -> str:
    """Return the name under which :func:`read_all` counts an answered write."""
    if one.tool in MARKS:
        return f"{one.tool} {one.arguments[MARKS[one.tool]]}"
    key = {"review_create": "revision_id", "chat_update_todo": "event_id"}.get(one.tool)
    return f"{one.tool} {one.agent} {one.arguments[key]}" if key else f"{one.tool} {one.data['session_id']}"


def _stale(said: Sequence[Said]) -> list[str]:
    """Return the accepted revisions that did not follow the expected one."""
    return [
        f"stale: revision {one.data['revision_num']} was accepted after {one.arguments['expect']}"
        for one in said
        if one.tool == "artifact_add_revision"
        and one.data
        and one.data["revision_num"] != one.arguments["expect"] + 1
    ]


def _elsewhere(said: Sequence[Said]) -> list[str]:
    """Return the answers about entries in worklogs of other agents."""
    return [
        f"foreign: an entry of {one.agent} was answered for worklog {one.data['session_id']}"
        for one in said
        if one.tool == "worklog_log" and one.data and not one.data["session_id"].startswith(f"{one.agent}-")
    ]


def _wrong_times(said: Sequence[Said]) -> list[str]:
    """Return the answers whose time is not one between the call and its answer: that of a wrong clock."""
    return [
        f"time: {one.tool} of {one.agent} is of {moment}, but was called at {one.asked}"
        for one in said
        if (moment := _moment(one)) is not None and not one.asked <= moment <= one.answered
    ]


def _moment(one: Said) -> str | None:
    """Return the time of a write by the database's clock, if the answer has it."""
    if not one.data:
        return None
    if one.tool == "chat_claim_todo" and one.data["claimed"]:
        return later(one.data["todo"]["lease_until"], -timedelta(seconds=one.arguments["lease"]))
    times = {"worklog_init": "created", "worklog_log": "ts", "session_create": "created_at"}
    return str(one.data[times[one.tool]]) if one.tool in times else None


def _leases(found: Found, said: Sequence[Said]) -> dict[int, list[Lease]]:
    """Return the claims of each todo, oldest first.

    A claim ends with its lease, with the next claim of the same agent, or when its agent finishes the todo.
    """
    done = {
        (one["data"]["target_event_id"], one["persona"]): one["timestamp"]
        for one in reversed(found.updates)
        if one["data"]["status"] == "done"
    }
    leases: dict[int, list[Lease]] = defaultdict(list)
    newest: dict[tuple[int, str], str] = {}
    for one in reversed(said):  # an agent makes one call after the other
        if one.tool == "chat_claim_todo" and one.data and one.data["claimed"]:
            todo, end = one.data["todo"]["event_id"], one.data["todo"]["lease_until"]
            begin, key = str(_moment(one)), (todo, one.agent)
            ends = [
                end,
                newest.get(key, end),
                *(moment for moment in [done.get(key, end)] if moment >= begin),
            ]
            newest[key] = begin
            leases[todo].append(Lease(begin, min(ends), one.agent))
    return defaultdict(list, {todo: sorted(claims) for todo, claims in leases.items()})


def _claimed_twice(found: Found, said: Sequence[Said]) -> list[str]:
    """Return the todos that two agents held at one time or have finished, and the claims without an answer.

    The creator of a todo may set it to done at any time.
    """
    problems = []
    leases = _leases(found, said)
    for todo, claims in leases.items():
        for at, one in enumerate(claims):
            for other in claims[at + 1 :]:
                if one.agent != other.agent and other.begin < one.end:
                    problems.append(f"claimed twice: todo {todo}: {one}, {other}")
    creators = found.creators
    doers: dict[int, set[str]] = defaultdict(set)
    begun: Counter[tuple[int, str]] = Counter()
    for event in found.updates:
        todo, agent = event["data"]["target_event_id"], event["persona"]
        if event["data"]["status"] != "done":
            begun[todo, agent] += 1
        elif agent != creators[todo]:
            doers[todo].add(agent)
    answered = Counter((todo, one.agent) for todo, claims in leases.items() for one in claims)
    problems += [f"claimed without an answer: todo {todo} by {agent}" for todo, agent in begun - answered]
    return problems + [
        f"done twice: todo {todo}: {agents}" for todo, agents in doers.items() if len(agents) > 1
    ]


def _feed(read: Read, room: int) -> Iterator[Any]:
    """Return the events of a room, page by page, with a cursor."""
    cursor = 0
    while True:
        page = read("chat_get_feed", room_id=room, since=cursor, limit=1000)
        yield from page["items"]
        if not page["items"]:
            return
        cursor = page["cursor"]


def _pages(read: Read, tool: str, **arguments: Any) -> Iterator[Any]:
    """Return the entries of a list."""
    offset = 0
    while True:
        page = read(tool, **arguments, limit=1000, offset=offset)
        yield from page["items"]
        offset += len(page["items"])
        if not page["items"] or offset >= page["total"]:
            return


def _number(revision: Any) -> int:
    return int(revision["revision_num"])
