"""A team's calls on one, two and three servers that share PostgreSQL, compared with one server on SQLite.

Fair: servers, PostgreSQL and clients share one machine, so each takes processor time from the others; each
row shows the shares. Both engines sync every write. ``noop`` runs on the same servers over the same
protocol. The clients are threads of this process, each with a connection of its own to one of the servers,
and call one after the other without a pause: four writes and six reads in turn, in rooms that they share.
Fifty times a second, PostgreSQL is asked which connection holds the writers' lock and what that connection
waits for: its server's next statement, the disk, or PostgreSQL itself.

    python -m benchmarks.bench_teams [--rows N…] [--clients N…] [--replicas N…] [--seconds S] [--readme FILE]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.common import percentile
from benchmarks.figures import put_between
from benchmarks.team import Caller, Replica, cpu, family, machine, replicas
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.stores.base.postgres import WRITERS
from npl_mcp.tools.artifact import artifact_create
from npl_mcp.tools.chat import chat_create_room
from npl_mcp.tools.worklog import worklog_init
from tests.postgres_server import Server, serving

ROOMS = 20
PERSONAS = 64
CHUNK = 100_000
"""Rows of one transaction: the server ends a statement that says nothing for a minute."""

MOMENT = "2026-01-31T12:00:00.000000Z"
MARKS = ("<!-- teams -->", "<!-- /teams -->")
FULL = 0.85
"""Share of its time from which on something counts as busy: what is left is between two calls."""

SAMPLE_SECONDS = 0.02

Call = tuple[str, dict[str, Any]]
Mix = Callable[[int, int], Call]


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

    def line(self) -> str:
        """Return a row of the table."""
        calls = len(self.times)
        spent = [1000 * one / calls for one in (sum(self.servers), self.database, self.callers)]
        times = [percentile(self.times, share) for share in (0.5, 0.95, 0.99)]
        turn = f"{self.turn_taken:.0%}{self.holder}" if self.turns else "–"
        columns = [
            self.what,
            str(self.clients),
            *(f"{one:.1f}" for one in times),
            f"{self.rate:.0f}",
            " / ".join(f"{one:.2f}" for one in spent),
            f"{self.busy:.0%} / {self.interpreter:.0%} / {turn}",
            self.bottleneck + (f"; {len(self.failed)} failed: {self.failed[0]}" if self.failed else ""),
        ]
        return f"| {' | '.join(columns)} |"


HEAD = """\
| | clients | p50 ms | p95 | p99 | calls/s | processor ms a call: servers / PostgreSQL / clients | \
busy: all cores / busiest server / writers' turn | bottleneck |
|:--|--:|--:|--:|--:|--:|--:|:--|:--|
"""


def fill(app: App, rows: int) -> None:
    """Insert messages into the rooms, and a tenth as many notifications and artifacts."""
    personas = [f"p{number}" for number in range(PERSONAS)]
    for number in range(ROOMS):
        chat_create_room(app, f"room {number}", personas)
    worklog_init(app, "bench")
    artifact_create(app, "first", "document", "note.md", "# Note\n")
    for first in range(0, rows, CHUNK):
        last = min(rows, first + CHUNK) - 1
        with app.stores.database.write() as tx:
            tx.run(
                "WITH RECURSIVE numbers (n) AS (SELECT CAST(:first AS BIGINT) UNION ALL"
                " SELECT n + 1 FROM numbers WHERE n < :last)"
                " INSERT INTO event (room_id, position, event_type, persona, timestamp, data)"
                f" SELECT 1 + n % {ROOMS}, {PERSONAS} + 1 + n / {ROOMS}, 'message', 'p' || (n % {PERSONAS}),"
                ' :moment, \'{"message":"Somebody wrote, \' || n || \'","mentions":[]}\' FROM numbers',
                first=first,
                last=last,
                moment=MOMENT,
            )
    tenth = rows // 10
    with app.stores.database.write() as tx:
        tx.run(
            "UPDATE room SET event_count = (SELECT max(position) FROM event WHERE event.room_id = room.id)"
        )
        tx.run(
            "INSERT INTO mailbox (persona, total, unread)"
            " SELECT DISTINCT persona, 0, 0 FROM member WHERE true"
        )
        tx.run(
            "INSERT INTO notification (persona, event_id, notification_type, created_at)"
            " SELECT persona, id, 'mention', :moment FROM event WHERE event_type = 'message'"
            " ORDER BY id LIMIT :tenth",
            moment=MOMENT,
            tenth=tenth,
        )
        counted = "(SELECT count(*) FROM notification WHERE notification.persona = mailbox.persona)"
        tx.run(f"UPDATE mailbox SET total = {counted}, unread = {counted}")
        tx.run(
            "INSERT INTO artifact (name, type, created_at, revision_count)"
            " SELECT 'artifact ' || id, 'document', :moment, 1 FROM event ORDER BY id LIMIT :tenth",
            moment=MOMENT,
            tenth=tenth,
        )
        tx.run(
            "INSERT INTO revision (artifact_id, revision_num, created_at, filename, size, digest, purpose)"
            " SELECT artifact.id, 0, :moment, first.filename, first.size, first.digest, 'p'"
            " FROM artifact JOIN revision AS first ON first.artifact_id = 1 WHERE artifact.id > 1",
            moment=MOMENT,
        )


def mixed(client: int, number: int) -> Call:
    """Return one of a client's calls: four writes and six reads in turn."""
    who, room = f"p{client % PERSONAS}", 1 + client % ROOMS
    other = f"p{(client + number) % PERSONAS}"
    calls: tuple[Call, ...] = (
        ("chat_send_message", {"room_id": room, "persona": who, "message": f"Message {number} of {client}"}),
        ("chat_get_feed", {"room_id": room, "limit": 10}),
        ("chat_get_notifications", {"persona": who, "limit": 20}),
        (
            "worklog_log",
            {"agent_id": who, "action": "found", "summary": f"number {number}", "session_id": "bench"},
        ),
        ("worklog_read", {"agent_id": who, "peek": True, "limit": 20, "session_id": "bench"}),
        (
            "chat_send_message",
            {"room_id": room, "persona": who, "message": f"@{other} please look at {number}"},
        ),
        ("chat_get_feed", {"room_id": room, "limit": 50}),
        ("chat_list_rooms", {"persona": who, "limit": 5}),
        ("chat_create_todo", {"room_id": room, "persona": who, "description": f"todo {number}"}),
        ("artifact_list", {"limit": 20}),
    )
    return calls[(client + number) % len(calls)]


def nothing(client: int, number: int) -> Call:  # noqa: ARG001
    """Return the call that does nothing."""
    return "noop", {}


def messages(client: int, number: int) -> Call:
    """Return a message."""
    return "chat_send_message", {
        "room_id": 1 + client % ROOMS,
        "persona": f"p{client % PERSONAS}",
        "message": f"Message {number}",
    }


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


def measured(
    what: str,
    servers: Sequence[Replica],
    calls: Mix,
    clients: int,
    seconds: float,
    postgres: tuple[Server, str] | None = None,
) -> Figures:
    """Let clients call for some seconds."""
    found = Figures(what, clients)
    lines = [Caller(servers[client % len(servers)].port) for client in range(clients)]
    for client, line in enumerate(lines):  # opens its connection, and those of the server
        line.call("noop")
        if client < len(servers) and calls is not nothing:
            line.call("chat_list_rooms", limit=1)
    parent = 0 if postgres is None else postgres[0].pid
    go = threading.Barrier(clients + 1)

    def work(client: int) -> None:
        line, number = lines[client], 0
        go.wait()
        while time.perf_counter() < end:
            number += 1
            tool, arguments = calls(client, number)
            try:
                found.times.append(line.timed(tool, **arguments))
            except RuntimeError as error:
                found.failed.append(str(error))

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    with watched(postgres and postgres[1], found.turns):
        for thread in threads:
            thread.start()
        took = [cpu(server.pid) for server in servers]
        database = cpu(*family(parent)) if parent else 0.0
        (worked, passed), own = machine(), time.process_time()
        began = time.perf_counter()
        end = began + seconds
        go.wait()
        for thread in threads:
            thread.join()
        found.seconds = time.perf_counter() - began
        found.callers = time.process_time() - own
        found.servers = [cpu(server.pid) - before for server, before in zip(servers, took, strict=True)]
        found.database = cpu(*family(parent)) - database if parent else 0.0
        now_worked, now_passed = machine()
        found.busy = (now_worked - worked) / max(now_passed - passed, 1e-9)
    for line in lines:
        line.close()
    print(found.line(), flush=True)
    return found


def on_sqlite(place: Path, rows: int, clients: Sequence[int], seconds: float) -> Iterator[Figures]:
    """Measure one server on SQLite."""
    folder = place / f"sqlite{rows}"
    (folder / "work").mkdir(parents=True)
    _filled(folder, rows, None)
    with replicas(folder) as servers:
        name = f"SQLite, {rows:,} rows"
        yield measured("no-op, 1 server", servers, nothing, 1, seconds / 2)
        for number in clients:
            yield measured(name, servers, mixed, number, seconds)
        yield measured(f"{name}, messages only", servers, messages, 1, seconds)


def on_postgres(
    place: Path, server: Server, rows: int, numbers: Sequence[int], clients: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """Measure servers that share a database of PostgreSQL."""
    name = f"rows{rows}"
    with psycopg.connect(server.address(), autocommit=True) as raw:
        raw.execute(f"CREATE DATABASE {name}")
    address = server.address(name)
    folder = place / name
    (folder / "work").mkdir(parents=True)
    _filled(folder, rows, address)
    with psycopg.connect(address, autocommit=True) as raw:
        raw.execute("VACUUM ANALYZE")
        raw.execute("CHECKPOINT")
    for number in numbers:
        with replicas(folder, number, NPL_DATABASE_URL=address) as servers:
            title = f"{number} server{'s' * (number > 1)}"
            take = partial(measured, servers=servers, postgres=(server, address))
            yield take(f"no-op, {title}", calls=nothing, clients=max(clients), seconds=seconds / 2)
            for many in clients:
                yield take(f"PostgreSQL, {rows:,} rows, {title}", calls=mixed, clients=many, seconds=seconds)
            many = 1 if number == 1 else min(32, max(clients))
            what = f"PostgreSQL, {rows:,} rows, {title}, messages only"
            yield take(what, calls=messages, clients=many, seconds=seconds)


def _filled(folder: Path, rows: int, address: str | None) -> None:
    began = time.perf_counter()
    settings = Settings(
        cwd=folder / "work", home=folder, data_dir=folder / "data0", database_url=address, warm_up=False
    )
    app = App(settings)
    fill(app, rows)
    app.close()
    print(f"filled with {rows:,} rows in {time.perf_counter() - began:.0f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the number of calls that failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--replicas", type=int, nargs="*", default=[1, 2, 3], help="none: SQLite alone")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--readme", type=Path, help="write the table between its marks in this file")
    given = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores\n{HEAD}", end="")
    found: list[Figures] = []
    with tempfile.TemporaryDirectory() as name, serving() if given.replicas else nullcontext() as server:
        for rows in given.rows:
            found += on_sqlite(Path(name), rows, given.clients, given.seconds)
            if server is None:
                continue
            found += on_postgres(Path(name), server, rows, given.replicas, given.clients, given.seconds)
    if given.readme is not None:
        put_between(given.readme, MARKS, HEAD + "".join(f"{one.line()}\n" for one in found))
    return sum(len(one.failed) for one in found)


if __name__ == "__main__":
    raise SystemExit(main() != 0)
