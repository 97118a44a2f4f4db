"""A team's calls on one, two and three servers that share PostgreSQL, compared with one server on SQLite.

Fair: servers, PostgreSQL and clients share one machine, so each takes processor time from the others; each
row shows the shares. Both engines sync every write. ``/healthz`` does nothing on the same servers. The
clients are threads of this process, each with a connection of its own to one of the servers, and call one
after the other without a pause: four writes and six reads in turn, in rooms that they share. Fifty times a
second, PostgreSQL is asked which connection holds the writers' lock and what that connection waits for: its
server's next statement, the disk, or PostgreSQL itself.

    python -m benchmarks.bench_teams [--rows N…] [--clients N…] [--replicas N…] [--seconds S]
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from benchmarks.filling import PERSONAS, ROOMS, SESSION, fill, open_app
from benchmarks.servers import Caller, busy, callers, family, processor_ms
from benchmarks.times import Table, call_ms, percentile
from npl_mcp.stores.base.postgres import WRITERS
from tests.npl_mcp.http.http_server import Running
from tests.npl_mcp.http.http_server import serving as serving_one
from tests.postgres_server import Server, serving
from tests.replicas import replicas

FULL = 0.85
"""Share of its time from which on something counts as busy: what is left is between two calls."""

SAMPLE_SECONDS = 0.02

Mix = Callable[[Caller, int, int], object]
"""Makes one of a client's calls, by the numbers of client and call."""


@dataclass(slots=True)
class Figures:
    """The measurements of one kind of calls.

    :param what: engine, servers, rows.
    :param clients: how many called at once.
    :param times: milliseconds of each call.
    :param seconds: how long it took.
    :param servers: seconds that each server computed.
    :param database: seconds that PostgreSQL computed.
    :param callers: seconds that the clients computed, with what watches.
    :param busy: share of all cores' time in use by any process.
    :param turns: number of samples by the state of the writers' lock: the holder's wait, or ``nobody``.
    :param failed: errors.
    """

    what: str
    clients: int
    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    servers: list[float] = field(default_factory=list)
    database: float = 0.0
    callers: float = 0.0
    busy: float = 0.0
    turns: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.times) / self.seconds

    @property
    def turn_taken(self) -> float:
        """Share of the time in which the writers' lock was held."""
        looks = sum(self.turns.values())
        return 1 - self.turns["nobody"] / looks if looks else 0.0

    @property
    def interpreter(self) -> float:
        """Share of the time in which the busiest server computed; its threads share one interpreter."""
        return max(self.servers) / self.seconds

    @property
    def bottleneck(self) -> str:
        """The saturated resource; a single caller saturates none, because it waits for each answer."""
        shares = {
            "processor": self.busy,
            "interpreter": self.interpreter,
            "writers' turn": self.turn_taken,
        }
        return ", ".join(name for name, share in shares.items() if share >= FULL) or "none"

    @property
    def holder(self) -> str:
        """The shares of what the holder of the writers' lock waited for."""
        taken = sum(self.turns.values()) - self.turns["nobody"]
        parts = [
            f"{name} {count / taken:.0%}" for name, count in self.turns.most_common() if name != "nobody"
        ]
        return f" ({', '.join(parts)})" if parts else ""

    def cells(self) -> Sequence[object]:
        """Return a row of the table."""
        calls = max(1, len(self.times))
        spent = [1000 * one / calls for one in (sum(self.servers), self.database, self.callers)]
        turn = f"{self.turn_taken:.0%}{self.holder}" if self.turns else "–"
        return (
            self.what,
            self.clients,
            *(percentile(self.times, share) for share in (0.5, 0.95, 0.99)),
            f"{self.rate:.0f}",
            " / ".join(f"{one:.2f}" for one in spent),
            f"{self.busy:.0%} / {self.interpreter:.0%} / {turn}",
            self.bottleneck + (f"; {len(self.failed)} failed: {self.failed[0]}" if self.failed else ""),
        )


HEADS = (
    "clients",
    "p50 ms",
    "p95",
    "p99",
    "calls/s",
    "processor ms a call: servers / PostgreSQL / clients",
    "busy: all cores / busiest server / writers' turn",
    "bottleneck",
)


def mixed(caller: Caller, client: int, number: int) -> object:
    """Make one of a client's calls: four writes and six reads in turn."""
    who, room = f"p{client % PERSONAS}", 1 + client % ROOMS
    other = f"p{(client + number) % PERSONAS}"
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("chat_send_message", {"room_id": room, "persona": who, "message": f"Message {number} of {client}"}),
        ("chat_get_feed", {"room_id": room, "limit": 10}),
        ("chat_get_notifications", {"persona": who, "limit": 20}),
        (
            "worklog_log",
            {"agent_id": who, "action": "found", "summary": f"number {number}", "session_id": SESSION},
        ),
        ("worklog_read", {"agent_id": who, "peek": True, "limit": 20, "session_id": SESSION}),
        (
            "chat_send_message",
            {"room_id": room, "persona": who, "message": f"@{other} please look at {number}"},
        ),
        ("chat_get_feed", {"room_id": room, "limit": 50}),
        ("chat_list_rooms", {"persona": who, "limit": 5}),
        ("chat_create_todo", {"room_id": room, "persona": who, "description": f"todo {number}"}),
        ("artifact_list", {"limit": 20}),
    )
    tool, arguments = calls[(client + number) % len(calls)]
    return caller.call(tool, **arguments)


def nothing(caller: Caller, client: int, number: int) -> object:  # noqa: ARG001
    """Make a request that does nothing."""
    return caller.get("/healthz")


def messages(caller: Caller, client: int, number: int) -> object:
    """Send a message."""
    who, room = f"p{client % PERSONAS}", 1 + client % ROOMS
    return caller.call("chat_send_message", room_id=room, persona=who, message=f"Message {number}")


@contextmanager
def watched(address: str | None, turns: Counter[str]) -> Iterator[None]:
    """Count, during the block, what the holder of the writers' lock waits for."""
    if address is None:
        yield
        return
    over = threading.Event()

    def watch() -> None:
        with psycopg.connect(address, autocommit=True) as raw:
            while not over.wait(SAMPLE_SECONDS):
                row = raw.execute(
                    "SELECT state, wait_event FROM pg_locks JOIN pg_stat_activity USING (pid)"
                    f" WHERE locktype = 'advisory' AND granted AND objid = {WRITERS}"
                ).fetchone()
                turns[_doing(row)] += 1

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _doing(row: tuple[str, str | None] | None) -> str:
    if row is None:
        return "nobody"
    state, event = row
    if event == "ClientRead":
        return "its server"
    if event is not None and event.startswith("WAL"):
        return "disk"
    return "PostgreSQL" if event is None else event if state == "active" else "its server"


class Bench:
    """Prints a row for each kind of calls.

    :param clients: numbers of clients.
    :param seconds: for which they call.
    """

    def __init__(self, clients: Sequence[int], seconds: float) -> None:
        self._clients, self._seconds = clients, seconds
        self._table = Table("", *HEADS)
        self.failed = 0

    def measure(
        self,
        what: str,
        servers: Sequence[Running],
        calls: Mix,
        clients: int,
        postgres: tuple[Server, str] | None = None,
    ) -> None:
        """Let clients call for some seconds, and print a row."""
        found = Figures(what, clients)
        with callers(*(servers[client % len(servers)] for client in range(clients))) as lines:
            for client, line in enumerate(lines):  # opens its connection, and those of the server
                line.get("/healthz")
                if client < len(servers) and calls is not nothing:
                    line.call("chat_list_rooms", limit=1)
            go = threading.Barrier(clients + 1)

            def work(client: int) -> None:
                number = 0
                go.wait()
                while time.perf_counter() < end:
                    number += 1
                    try:
                        call = partial(calls, lines[client], client, number)
                        found.times.append(call_ms(call))
                    except RuntimeError as error:
                        found.failed.append(str(error))

            threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
            with watched(postgres and postgres[1], found.turns):
                for thread in threads:
                    thread.start()
                pids = [server.process.pid for server in servers]
                took, database = list(map(_seconds, pids)), _database(postgres)
                (worked, passed), own = busy(), time.process_time()
                began = time.perf_counter()
                end = began + self._seconds
                go.wait()
                for thread in threads:
                    thread.join()
                found.seconds = time.perf_counter() - began
                found.callers = time.process_time() - own
                found.servers = [_seconds(pid) - before for pid, before in zip(pids, took, strict=True)]
                found.database = _database(postgres) - database
                now_worked, now_passed = busy()
                found.busy = (now_worked - worked) / max(now_passed - passed, 1e-9)
        self._table.row(*found.cells())
        self.failed += len(found.failed)

    def on_sqlite(self, folder: Path, rows: int) -> None:
        """Measure one server on SQLite."""
        with closing(open_app(folder)) as app:
            fill(app, rows)
        with serving_one(folder) as server:
            name = f"SQLite, {rows:,} rows"
            self.measure("nothing, 1 server", [server], nothing, 1)
            for number in self._clients:
                self.measure(name, [server], mixed, number)
            self.measure(f"{name}, messages only", [server], messages, 1)

    def on_postgres(self, folder: Path, server: Server, rows: int, numbers: Sequence[int]) -> None:
        """Measure servers that share a database of PostgreSQL."""
        name = f"rows{rows}"
        with psycopg.connect(server.address(), autocommit=True) as raw:
            raw.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        address = server.address(name)
        with closing(open_app(folder, address)) as app:
            fill(app, rows)
        with psycopg.connect(address, autocommit=True) as raw:
            raw.execute("VACUUM ANALYZE")
            raw.execute("CHECKPOINT")
        for number in numbers:
            with replicas(folder, address, number=number) as servers:
                title = f"{number} server{'s' * (number > 1)}"
                take = partial(self.measure, servers=servers, postgres=(server, address))
                take(f"nothing, {title}", calls=nothing, clients=max(self._clients))
                for many in self._clients:
                    take(f"PostgreSQL, {rows:,} rows, {title}", calls=mixed, clients=many)
                many = 1 if number == 1 else min(32, max(self._clients))
                what = f"PostgreSQL, {rows:,} rows, {title}, messages only"
                take(what, calls=messages, clients=many)


def _seconds(*pids: int) -> float:
    return sum(map(processor_ms, pids)) / 1000


def _database(postgres: tuple[Server, str] | None) -> float:
    """Return the seconds that PostgreSQL computed."""
    return _seconds(*family(postgres[0].pid)) if postgres else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a call failed."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_teams", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--replicas", type=int, nargs="*", default=[1, 2, 3], help="none: SQLite alone")
    parser.add_argument("--seconds", type=float, default=3.0)
    given = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores")
    bench = Bench(given.clients, given.seconds)
    with TemporaryDirectory() as name, serving() if given.replicas else nullcontext() as server:
        for rows in given.rows:
            bench.on_sqlite(Path(name) / f"sqlite{rows}", rows)
            if server is not None:
                bench.on_postgres(Path(name) / f"postgres{rows}", server, rows, given.replicas)
    return int(bench.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
