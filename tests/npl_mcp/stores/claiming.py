"""Many claim todos at once, through replicas on one PostgreSQL.

``python -m tests.npl_mcp.stores.claiming`` lets thirty claim a thousand, in a database at NPL_DATABASE_URL.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.npl_mcp.http.http_server import Running
from tests.replicas import Balancer, replicas


@dataclass(slots=True)
class Claims:
    """The result of claiming.

    :param todos: number of todos.
    :param claimed: number of claims of each.
    :param by_claimer: number of todos that each claimer has claimed.
    :param seconds: from the first claim to the last answer.
    """

    todos: int
    claimed: Counter[int] = field(default_factory=Counter)
    by_claimer: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def problems(self) -> list[str]:
        """Return the todos that were claimed twice, and the number of unclaimed ones."""
        twice = [f"todo {todo} {times} times" for todo, times in self.claimed.items() if times > 1]
        lost = self.todos - len(self.claimed)
        return [*twice, *([f"{lost} by nobody"] if lost else [])]


def claim_all(servers: Sequence[Running], todos: int, claimers: int) -> Claims:
    """Let claimers, each on one of the replicas, claim what is ready until nothing is."""
    everywhere, names = Balancer(servers), [f"c{number}" for number in range(claimers)]
    room = everywhere.do("chat_create_room", name="work", members=names)["room_id"]
    outcome = Claims(todos)

    def claim(number: int) -> list[int]:
        own, found = Balancer(servers[number % len(servers) :][:1]), []
        while "todo" in (made := own.do("chat_claim_todo", room_id=room, persona=names[number])):
            found.append(made["todo"]["event_id"])
            own.do("chat_update_todo", event_id=found[-1], persona=names[number], status="done")
        return found

    with ThreadPoolExecutor(claimers) as pool:
        todo = {"room_id": room, "persona": names[0], "description": "do it"}
        list(pool.map(lambda _: everywhere.do("chat_create_todo", **todo), range(todos)))
        began = time.monotonic()
        outcome.by_claimer = dict(zip(names, pool.map(claim, range(claimers)), strict=True))
        outcome.seconds = time.monotonic() - began
    outcome.claimed.update(todo for found in outcome.by_claimer.values() for todo in found)
    return outcome


def main() -> int:
    """Let many claim many."""
    parser = argparse.ArgumentParser(description="Claims todos through replicas on one database.")
    parser.add_argument("--todos", type=int, default=1_000)
    parser.add_argument("--claimers", type=int, default=30)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        replicas(Path(folder), os.environ["NPL_DATABASE_URL"]) as servers,
    ):
        outcome = claim_all(servers, given.todos, given.claimers)
    shares = sorted(len(found) for found in outcome.by_claimer.values())
    report = {
        "todos": outcome.todos,
        "claimers": given.claimers,
        "replicas": len(servers),
        "claims": sum(shares),
        "fewest and most of a claimer": [shares[0], shares[-1]],
        "seconds": round(outcome.seconds, 1),
        "problems": outcome.problems,
    }
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
