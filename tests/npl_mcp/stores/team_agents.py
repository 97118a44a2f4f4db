"""Agents of a team: each makes random calls through replicas, and repeats a call until it is answered.

See :mod:`tests.npl_mcp.stores.team_day`.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4

from npl_mcp.stores.base.paging import now
from tests.npl_mcp.http.http_server import JSON, Running

AGENTS = 12
ROOMS = 3

ANSWER_SECONDS = 6.0
"""Seconds after which a call without an answer is repeated."""

LOSS = 0.1
"""Share of the calls whose caller hangs up after some milliseconds, and of those whose answer is lost."""

BOUND = 60.0
"""Seconds for which a call is repeated."""

EXPECTED = {
    "artifact_add_revision": "is at revision",
    "chat_update_todo": "'s until |is done, by",
    "worklog_log": " is closed",
    "worklog_close": "No active session",
}
"""Patterns of the refusals that belong to the work: stale revisions, expired claims, closed worklogs."""


class Said(NamedTuple):
    """The answer to a call that writes.

    :param data: data of the answer; ``None`` if the call was refused or not answered.
    :param asked: time of the first try.
    :param answered: time of the answer.
    """

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    data: Any
    asked: str
    answered: str


@dataclass
class Team:
    """The servers, the tokens of the agents, and all answers.

    :param servers: the replicas; a restart replaces one.
    :param tokens: token of each agent.
    :param said: answers to calls that write.
    :param calls: number of answered calls.
    :param retries: repeated calls by reason.
    :param longest: maximum seconds from a call to its answer.
    :param kept: number of answers, among those with a time, to an earlier call with the same ``request_id``.
    :param defects: problems of the day.
    """

    servers: list[Running]
    tokens: Mapping[str, str]
    said: list[Said] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    kept: int = 0
    defects: list[str] = field(default_factory=list)
    turns: Any = field(default_factory=count)

    def read(self, agent: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool until it answers; return the data of its answer."""
        body = self._answer(agent, tool, arguments)
        if not body["success"]:
            raise RuntimeError(f"{tool} {arguments}: {body['error']}")
        return body["data"]

    def write(self, agent: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool with a ``request_id`` until it answers.

        :returns: the data of its answer; ``None`` if the call was refused.
        """
        asked = now()
        body = self._answer(agent, tool, {**arguments, "request_id": str(uuid4())})
        self.said.append(Said(agent, tool, arguments, body.get("data"), asked, now()))
        if not body["success"] and not re.search(EXPECTED.get(tool, "$^"), body["error"]):
            self.defects.append(f"{tool} of {agent} was refused: {body['error'][:300]}")
        return body.get("data")

    def _answer(self, agent: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        began = time.monotonic()
        while True:
            asked = now()
            reason, body = self._tried(agent, tool, arguments)
            seconds = time.monotonic() - began
            if reason is None or seconds > BOUND:
                break
            self.retries[reason] += 1
            time.sleep(0.01 if reason == "ConnectionRefusedError" else 0.1)
        self.calls[tool] += 1
        self.longest = max(self.longest, seconds)
        done = (body.get("data") or {}).get("ts" if tool == "worklog_log" else "created_at", asked)
        self.kept += "request_id" in arguments and done < asked
        return {"success": False, "error": f"no answer within {BOUND} s: {reason}"} if reason else body

    def _tried(self, agent: str, tool: str, arguments: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        """Call a tool on the next replica.

        :returns: the reason to repeat the call, and the envelope.
        """
        server = self.servers[next(self.turns) % len(self.servers)]
        chance = random.random()
        timeout = random.uniform(0.002, 0.1) if chance < LOSS else ANSWER_SECONDS
        headers = {**JSON, "Authorization": f"Bearer {self.tokens[agent]}"}
        try:
            with closing(HTTPConnection("127.0.0.1", server.port, timeout=timeout)) as line:
                line.request("POST", f"/mcp/tools/{tool}", json.dumps(arguments), headers)
                answer = line.getresponse()
                body: dict[str, Any] = json.loads(answer.read())
        except (OSError, HTTPException, ValueError) as error:
            return "hung up" if chance < LOSS else type(error).__name__, {}
        if 1 - chance < LOSS:
            return "lost", {}
        if answer.status == 503 or body.get("error_code") == "DATABASE_ERROR":
            return f"{answer.status} {body.get('error_code')}", body
        return None, body


class Agent:
    """An agent: it makes random calls and remembers what it needs for later ones.

    :param team: shared with the other agents.
    :param artifacts: newest known revision of each artifact, number and row id; shared with the others.
    """

    def __init__(
        self, team: Team, name: str, rooms: list[int], artifacts: dict[int, tuple[int, int]], seed: int
    ) -> None:
        self._team, self.name, self._rooms, self._artifacts = team, name, rooms, artifacts
        self._random = random.Random(f"{name} {seed}")
        self._number = count()
        self._held: list[int] = []
        self._reviews: list[int] = []
        self.seen: dict[int, list[int]] = {room: [] for room in rooms}
        """Ids of the events that the agent has read with a cursor, by room."""

    def work(self, until: float) -> None:
        """Make calls until a moment of the monotonic clock."""
        self.begin_worklog()
        acts: dict[Callable[[], None], int] = {
            self.say: 5,
            self.ask: 3,
            self.claim: 5,
            self.finish: 3,
            self.open_session: 1,
            self.begin_worklog: 1,
            self.log: 5,
            self.close_worklog: 1,
            self.store: 1,
            self.revise: 5,
            self.review: 2,
            self.comment: 3,
            self.listen: 3,
        }
        while time.monotonic() < until:
            self._random.choices(list(acts), list(acts.values()))[0]()
            time.sleep(self._random.uniform(0, 0.1))

    def say(self) -> None:
        text = f"{self._mark()} @a{self._random.randrange(AGENTS)}"
        self._write("chat_send_message", room_id=self._room(), message=text)

    def ask(self) -> None:
        self._write("chat_create_todo", room_id=self._room(), description=self._mark())

    def claim(self) -> None:
        lease, wait = self._random.randint(1, 6), self._random.choice((0, 0, 2))
        made = self._write("chat_claim_todo", room_id=self._room(), lease=lease, wait=wait)
        if made and made["claimed"] and made["todo"]["event_id"] not in self._held:
            self._held.append(made["todo"]["event_id"])

    def finish(self) -> None:
        if self._held:
            self._write("chat_update_todo", event_id=self._held.pop(), status="done")

    def open_session(self) -> None:
        self._write("session_create", title=self._mark())

    def begin_worklog(self) -> None:
        self._write("worklog_init", session_id=self._mark())

    def log(self) -> None:
        self._write("worklog_log", action="did", summary=self._mark())

    def close_worklog(self) -> None:
        self._write("worklog_close")

    def store(self) -> None:
        name = self._mark()
        made = self._write("artifact_create", name=name, artifact_type="note", **_file(name))
        if made:
            self._artifacts[made["artifact_id"]] = (made["revision_num"], made["revision_id"])

    def revise(self) -> None:
        # Most agents revise the first artifacts, and some send the number of an older revision.
        known = list(self._artifacts)
        artifact = self._random.choice(known[:ROOMS] if self._random.random() < 0.8 else known)
        number, name = self._artifacts[artifact][0], self._mark()
        stale = self._random.random() < 0.1
        made = self._write(
            "artifact_add_revision",
            artifact_id=artifact,
            notes=name,
            expect=max(0, number - stale),
            **_file(name),
        )
        if made:
            found = (made["revision_num"], made["revision_id"])
        else:
            newest = self._read("artifact_history", artifact_id=artifact, limit=1)["items"][0]
            found = (newest["revision_num"], newest["id"])
        self._artifacts[artifact] = max(found, self._artifacts[artifact])

    def review(self) -> None:
        artifact, (_, revision) = self._random.choice(list(self._artifacts.items()))
        made = self._write("review_create", artifact_id=artifact, revision_id=revision)
        if made:
            self._reviews.append(made["review_id"])

    def comment(self) -> None:
        if self._reviews:
            review = self._random.choice(self._reviews)
            self._write("review_add_comment", review_id=review, location="line:1", comment=self._mark())

    def listen(self) -> None:
        room = self._room()
        since = self.seen[room][-1] if self.seen[room] else 0
        page = self._read("chat_get_feed", room_id=room, since=since, limit=200)
        self.seen[room] += [event["id"] for event in page["items"]]

    def _mark(self) -> str:
        return f"{self.name}-{next(self._number)}"

    def _room(self) -> int:
        return self._random.choice(self._rooms)

    def _write(self, tool: str, /, **arguments: Any) -> Any:
        return self._team.write(self.name, tool, **arguments)

    def _read(self, tool: str, /, **arguments: Any) -> Any:
        return self._team.read(self.name, tool, **arguments)


def _file(mark: str) -> dict[str, str]:
    return {"filename": "note.md", "content": f"# {mark}\n"}
