"""A hostile day of a team: agents work through replicas, while servers are killed and connections are cut.

``python -m tests.npl_mcp.stores.team_day --seconds 300`` starts a PostgreSQL server and three replicas with
different clocks. Each call that writes has a ``request_id`` and is repeated until it is answered. At the end,
:mod:`tests.npl_mcp.stores.team_checks` checks the answers against what the tools show.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg

from npl_mcp.stores.access import add_token
from npl_mcp.stores.base.paging import moment_of
from npl_mcp.stores.data_folder import Stores
from tests.clocks import shifted
from tests.npl_mcp.http.http_server import Running
from tests.npl_mcp.stores.team_agents import AGENTS, ANSWER_SECONDS, ROOMS, Agent, Team
from tests.npl_mcp.stores.team_checks import differences, late, missed
from tests.npl_mcp.stores.writer import miscounted
from tests.postgres_server import Server, serving
from tests.replicas import kill, replica

CLOCKS = (-15, 0, 15)
"""Minutes by which the clock of each replica is ahead."""

_DEFECT = re.compile(r"Traceback|INTERNAL_ERROR")


class Chaos:
    """Kills, pauses and restarts replicas and PostgreSQL, and cuts connections, each in a thread.

    :param start: starts a replica and returns it.
    """

    def __init__(
        self, team: Team, postgres: Server, start: Callable[[int], Running], seconds: float, seed: int
    ) -> None:
        self._team, self._postgres, self._start = team, postgres, start
        self._random = random.Random(seed)
        self._over = threading.Event()
        self._pauses = {
            self._replica: 8.0,
            self._stand_still: 20.0,
            self._backends: 5.0,
            self._server: min(60.0, seconds / 3),
        }
        self._ends = cycle(("kill", "stop"))
        self.kills: Counter[str] = Counter()

    @contextmanager
    def running(self) -> Any:
        """Run the threads; at the end all servers run."""
        with ThreadPoolExecutor(len(self._pauses)) as pool:
            threads = [pool.submit(self._repeat, act, pause) for act, pause in self._pauses.items()]
            try:
                yield
            finally:
                self._over.set()
            for thread in threads:
                thread.result()

    def _repeat(self, act: Callable[[], None], pause: float) -> None:
        last = time.monotonic()
        while not self._over.wait(last + pause * self._random.uniform(0.5, 1.5) - time.monotonic()):
            last = time.monotonic()
            act()

    def _replica(self) -> None:
        number = self._random.randrange(len(CLOCKS))
        kill(self._team.servers[number])
        self._team.defects += in_log(self._team.servers[number])
        self.kills["replicas killed"] += 1
        self._team.servers[number] = self._start(number)

    def _stand_still(self) -> None:
        """Stop a replica in the middle of its calls; it goes on after others have repeated them."""
        process = self._random.choice(self._team.servers).process
        process.send_signal(signal.SIGSTOP)
        self.kills["replicas paused"] += 1
        time.sleep(self._random.uniform(1, 2 * ANSWER_SECONDS))
        process.send_signal(signal.SIGCONT)

    def _backends(self) -> None:
        cut = """
            SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
            WHERE application_name = 'npl' ORDER BY random() LIMIT 3) AS found"""
        try:
            with psycopg.connect(self._postgres.address(), autocommit=True) as connection:
                row = connection.execute(cut).fetchone()
                self.kills["connections cut"] += row[0] if row else 0
        except psycopg.OperationalError:  # the server is killed at this moment
            self.kills["connections not cut"] += 1

    def _server(self) -> None:
        how = next(self._ends)
        self._postgres.ask(how)
        self.kills[f"PostgreSQL: {how}"] += 1
        time.sleep(self._random.uniform(0, 2))
        self._postgres.ask("start")


def in_log(server: Running) -> list[str]:
    """Return the defects that a replica has logged, with the lines after them."""
    lines = server.log.splitlines()
    found = [at for at, line in enumerate(lines) if _DEFECT.search(line)]
    return ["log: " + " | ".join(lines[max(0, at - 1) : at + 40])[:3_000] for at in found[:3]]


@contextmanager
def gathered(folder: Path) -> Iterator[tuple[Team, Server, Stores, Callable[[int], Running]]]:
    """Start PostgreSQL and the replicas; give each agent a token.

    :returns: the team, PostgreSQL, the stores without a server, and a function that starts a replica.
    """
    with serving() as postgres, ExitStack() as stack:
        stores = Stores(folder / "own", postgres.address())
        stack.callback(stores.close)
        tokens = {f"a{number}": stores.database.writing(add_token, f"a{number}") for number in range(AGENTS)}

        def start(number: int) -> Running:
            clock = shifted(folder / f"clock{number}", CLOCKS[number])
            one = replica(folder, postgres.address(), number, NPL_LOG_CALLS="on", **clock)
            return stack.enter_context(one)

        yield Team([start(number) for number in range(len(CLOCKS))], tokens), postgres, stores, start


def spend(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Let the team work, and check what is there; return the report."""
    with gathered(folder) as (team, postgres, stores, start):
        made = [
            team.read(
                "a0", "chat_create_room", name=f"r{one}", members=list(team.tokens), request_id=f"r{one}"
            )
            for one in range(ROOMS)
        ]
        rooms = [room["room_id"] for room in made]
        artifacts: dict[int, tuple[int, int]] = {}
        agents = [Agent(team, name, rooms, artifacts, seed) for name in team.tokens]
        for agent in agents[:ROOMS]:
            agent.store()
        clocks = [round((one.state.since - time.time()) / 60) for one in team.servers]
        chaos = Chaos(team, postgres, start, seconds, seed)
        until = time.monotonic() + seconds
        with chaos.running(), ThreadPoolExecutor(AGENTS) as pool:
            list(pool.map(lambda agent: agent.work(until), agents))
        calls = Counter(team.calls)
        for server in team.servers:
            team.defects += in_log(server)
        found, problems = differences(partial(team.read, "a0"), team.said, rooms)
        for agent in agents:
            problems += missed(found, agent.name, agent.seen)
        with stores.database.read() as tx:
            problems += [f"damaged: {one}" for one in stores.database.check()]
            problems += [f"miscounted: {one}" for one in miscounted(stores.database)]
            newest = moment_of(tx.value("SELECT max(created_at) FROM tool_call"))
            ahead = (newest - moment_of(tx.now)).total_seconds() / 60
        if clocks != list(CLOCKS) or round(ahead) != max(CLOCKS):
            problems.append(f"clocks: the replicas are ahead by {clocks} minutes, the newest call by {ahead}")
    return {
        "seconds": seconds,
        "seed": seed,
        "agents": len(agents),
        "clocks": clocks,
        "calls": calls.total(),
        "writes": len(team.said),
        "acknowledged": sum(one.data is not None for one in team.said),
        "claims": sum(bool(one.data and one.data.get("claimed")) for one in team.said),
        "done after the claim": late(found, team.said),
        "by tool": dict(sorted(calls.items())),
        "kills": dict(sorted(chaos.kills.items())),
        "retries": dict(sorted(team.retries.items())),
        "kept answers": team.kept,
        "longest": round(team.longest, 1),
        "problems": len(team.defects) + len(problems),
        "first": [*team.defects[:20], *problems[:40]],
    }


def main() -> int:
    """Spend a day."""
    parser = argparse.ArgumentParser(description="Lets a team work while its servers are killed.")
    parser.add_argument("--seconds", type=float, default=300.0, help="of work")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="of the calls and the kills"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = spend(Path(folder), given.seconds, given.seed)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
