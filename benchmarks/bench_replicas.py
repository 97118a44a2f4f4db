"""Servers on one PostgreSQL database: time to start, memory and connections, time to recover.

The server of the database is one of its own, and loses nothing either: its settings are the default ones.

    python -m benchmarks.bench_replicas [FILES] [--calls N] [--restarts N] [--replicas N]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psycopg

from benchmarks import scale_corpus
from benchmarks.common import CONTEXTS
from benchmarks.servers import shared_megabytes
from benchmarks.times import Table, until
from tests.npl_mcp.http.http_server import Running, call, request
from tests.postgres_server import Server, serving
from tests.replicas import Balancer, replica, replicas

CALLERS = 32


def is_ready(server: Running) -> bool:
    return request(server, "GET", "/readyz").status == 200


def connections(postgres: Server) -> int:
    with psycopg.connect(postgres.address()) as connection:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'npl'"
        row = connection.execute(statement).fetchone()
    return 0 if row is None else int(row[0])


def starts(table: Table, folder: Path, postgres: Server, restarts: int) -> None:
    """Print the milliseconds until one server is ready, on a new database and on one with tables."""
    found: list[float] = []
    for _ in range(restarts + 1):
        begun = time.perf_counter()
        with replica(folder, postgres.address(), 0) as server:
            until(lambda server=server: is_ready(server))  # type: ignore[misc]
            found.append(1000 * (time.perf_counter() - begun))
            empty = shared_megabytes(server.process.pid)
    table.row("start to ready, tables to be made, ms", found[0], found[0])
    table.row("start to ready, ms", median(found[1:]), max(found[1:]))
    table.row("memory of a server without work, MB", empty, empty)


def under_load(table: Table, servers: list[Running], postgres: Server, calls: int) -> None:
    """Print connections and memory while many callers read, write and ask."""
    team = Balancer(servers)
    team.do("chat_create_room", name="den", members=["ann", "bo"])

    def work(number: int) -> int:
        if number % 3 == 0:
            team.do("chat_send_message", room_id=1, persona="ann", message="m")
        elif number % 3 == 1:
            team.do("chat_get_feed", room_id=1, limit=20)
        else:
            context = f"{CONTEXTS[number % len(CONTEXTS)]} {number}"
            team.do("npl_load_tailored", context=context, token_budget=2000)
        return connections(postgres) if number % 50 == 0 else 0

    wait = {"room_id": 1, "since": 10**9, "wait": 2}
    with ThreadPoolExecutor(CALLERS) as pool:
        waiting = [pool.submit(call, one, "chat_get_feed", wait) for one in servers]
        found = list(pool.map(work, range(calls)))
        table.row(f"connections of {len(servers)} servers, {CALLERS} callers", "", max(found))
        megabytes = [shared_megabytes(one.process.pid) for one in servers]
        table.row("memory of a server under load, MB", median(megabytes), max(megabytes))
        for one in waiting:
            one.result()


def recoveries(table: Table, servers: list[Running], postgres: Server, restarts: int) -> None:
    """Print the milliseconds until servers answer after PostgreSQL accepts connections again."""
    ready: list[float] = []
    answers: list[float] = []
    message = {"room_id": 1, "persona": "ann", "message": "m"}
    for _ in range(restarts):
        postgres.ask("stop")
        for server in servers:
            until(lambda server=server: not is_ready(server))  # type: ignore[misc]
        postgres.ask("start")
        answers.append(until(lambda: call(servers[0], "chat_send_message", message).status == 200))
        ready.append(until(lambda: all(map(is_ready, servers))))
    what = "PostgreSQL takes connections again to the first write answered, ms"
    table.row(what, median(answers), max(answers))
    table.row("and from there until all are ready, ms", median(ready), max(ready))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_replicas", description=__doc__.split("\n")[0])
    parser.add_argument("files", type=int, nargs="?", default=5_000, help="files that are asked about")
    parser.add_argument("--calls", type=int, default=1_000, help="under load")
    parser.add_argument("--restarts", type=int, default=5, help="of a server, and of PostgreSQL")
    parser.add_argument("--replicas", type=int, default=3, help="number of servers")
    given = parser.parse_args(arguments)
    with TemporaryDirectory() as name, serving() as postgres:
        folder, table = Path(name), Table("", "median", "most")
        starts(table, folder, postgres, given.restarts)
        (folder / "docs").mkdir()
        scale_corpus.write(folder / "docs", given.files)
        flags = ("--root", str(folder / "docs"))
        with replicas(folder, postgres.address(), *flags, number=given.replicas) as servers:
            question = {"context": CONTEXTS[0], "token_budget": 2000}
            took = [
                until(lambda server=server: call(server, "npl_load_tailored", question).status == 200)  # type: ignore[misc]
                for server in servers
            ]
            table.row(f"first question about {given.files:,} files, ms", median(took), max(took))
            under_load(table, servers, postgres, given.calls)
            recoveries(table, servers, postgres, given.restarts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
