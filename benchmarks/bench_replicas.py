"""Servers on one PostgreSQL database: time to start, memory and connections, time to recover.

The server of the database is one of its own, and loses nothing either: its settings are the default ones.

    python -m benchmarks.bench_replicas [files]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from benchmarks import scale_corpus
from benchmarks.common import CONTEXTS
from tests.npl_mcp.http.http_server import Running, call, request
from tests.postgres_server import Server, serving
from tests.replicas import Balancer, replica, replicas

CALLERS = 32
CALLS = 1_000
RESTARTS = 5


def until(what: Callable[[], bool]) -> float:
    """Poll until a condition holds; return the milliseconds it took."""
    begun = time.perf_counter()
    while not what():
        time.sleep(0.005)
    return 1000 * (time.perf_counter() - begun)


def is_ready(server: Running) -> bool:
    return request(server, "GET", "/readyz").status == 200


def memory(server: Running) -> float:
    """Return the private and the proportional part of shared memory in MB."""
    text = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text(encoding="ascii")
    kilobytes = next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:"))
    return int(kilobytes) / 1000


def connections(postgres: Server) -> int:
    with psycopg.connect(postgres.address()) as connection:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'npl'"
        row = connection.execute(statement).fetchone()
    return 0 if row is None else int(row[0])


def show(what: str, values: list[float], unit: str) -> None:
    print(f"{what:<66} {statistics.median(values):>9.1f} {unit:<3} most {max(values):>9.1f}")


def starts(folder: Path, postgres: Server) -> None:
    """Print the milliseconds until one server is ready, on a new database and on one with tables."""
    found: list[float] = []
    for _ in range(RESTARTS + 1):
        begun = time.perf_counter()
        with replica(folder, postgres.address(), 0) as server:
            until(lambda: is_ready(server))
            found.append(1000 * (time.perf_counter() - begun))
            empty = memory(server)
    show("start to ready, tables to be made", found[:1], "ms")
    show("start to ready", found[1:], "ms")
    show("memory of a server without work", [empty], "MB")


def under_load(servers: list[Running], postgres: Server) -> None:
    """Print connections and memory while many callers read and write and a thousand questions are asked."""
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

    with ThreadPoolExecutor(CALLERS) as pool:
        waiting = [
            pool.submit(call, one, "chat_get_feed", {"room_id": 1, "since": 10**9, "wait": 20})
            for one in servers
        ]
        most = max(pool.map(work, range(CALLS)))
        print(f"{f'connections of {len(servers)} servers, {CALLERS} callers, at most':<66} {most:>9}")
        show("memory of a server under load", [memory(one) for one in servers], "MB")
        for one in waiting:
            one.result()


def restarts(servers: list[Running], postgres: Server) -> None:
    """Print the milliseconds until servers answer after PostgreSQL accepts connections again."""
    one_is_ready: list[float] = []
    answers: list[float] = []
    message = {"room_id": 1, "persona": "ann", "message": "m"}
    for _ in range(RESTARTS):
        postgres.ask("stop")
        for server in servers:
            until(lambda server=server: not is_ready(server))  # type: ignore[misc]
        postgres.ask("start")
        answers.append(until(lambda: call(servers[0], "chat_send_message", message).status == 200))
        one_is_ready.append(until(lambda: all(map(is_ready, servers))))
    show("PostgreSQL takes connections again to the first write answered", answers, "ms")
    show("and from there until all are ready", one_is_ready, "ms")


def main() -> None:
    """Print all figures."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    with tempfile.TemporaryDirectory() as name, serving() as postgres:
        folder = Path(name)
        starts(folder, postgres)
        (folder / "docs").mkdir()
        scale_corpus.write(folder / "docs", files)
        with replicas(folder, postgres.address(), "--root", str(folder / "docs")) as servers:
            question = {"context": CONTEXTS[0], "token_budget": 2000}
            for number, server in enumerate(servers):
                took = until(lambda server=server: call(server, "npl_load_tailored", question).status == 200)  # type: ignore[misc]
                print(f"{f'first question about {files:,} files, server {number + 1}':<66} {took:>9.1f} ms")
            under_load(servers, postgres)
            restarts(servers, postgres)


if __name__ == "__main__":
    main()
