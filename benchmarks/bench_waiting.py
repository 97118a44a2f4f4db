"""Waiting calls: the delay from a commit to a wake, the cost of a thousand waiters, and shares of claims.

Usage: ``python -m benchmarks.bench_waiting [--rounds N] [--waiters N] [--todos N] [--replicas N]``

A server over HTTP on a port of this machine, clients in this process. "Same server" sends the message to the
server that the reader waits at; "another process" writes to the same data folder with the stores alone, so
that only the database tells; "another server" is a replica on one PostgreSQL, which syncs every write.
Measured is from the end of the write to the arrival of the whole answer. ``--replicas 0`` leaves PostgreSQL
out.
"""

from __future__ import annotations

import argparse
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.servers import Caller, callers, processor_ms
from benchmarks.times import Table, call_ms, spread
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.tools.chat import chat_send_message
from tests.npl_mcp.http.http_server import Running, in_flight, serving
from tests.postgres_server import serving as serving_postgres
from tests.replicas import replicas

CLAIMERS = 30
MESSAGE = {"room_id": 1, "persona": "a", "message": "m"}


def wakes(server: Running, say: Callable[[], object], rounds: int) -> list[float]:
    """Return milliseconds from the end of a write to the answer of a reader that waited for it."""
    found = []
    with callers(server) as (reader,):
        cursor = reader.call("chat_get_feed", room_id=1, limit=1)["cursor"]
        for number in range(rounds):
            reader.send("chat_get_feed", room_id=1, since=cursor, wait=60)
            time.sleep(0.05 + number % 10 / 1000)  # not in step with the looks
            done: list[float] = []
            thread = threading.Thread(target=_said, args=(say, done))
            thread.start()
            cursor = reader.receive()["cursor"]
            arrived = time.perf_counter()
            thread.join()
            found.append(max(0.0, arrived - done[0]) * 1000)
    return found


def _said(say: Callable[[], object], done: list[float]) -> None:
    say()
    done.append(time.perf_counter())


def sends(caller: Caller, count: int) -> list[float]:
    """Return milliseconds of messages to a room, one after the other."""
    return [call_ms(lambda: caller.call("chat_send_message", **MESSAGE)) for _ in range(count)]


def claims(server: Running, todos: int) -> None:
    """Let many claimers claim todos until the room has no more."""
    with callers(server) as (caller,):
        members = [f"p{number}" for number in range(CLAIMERS)]
        room = caller.call("chat_create_room", name="work", members=members)["room_id"]
        for number in range(todos):
            caller.call("chat_create_todo", room_id=room, persona="p0", description=f"todo {number}")

    def work(number: int) -> list[int]:
        got = []
        with callers(server) as (mine,):
            while (made := mine.call("chat_claim_todo", persona=f"p{number}", room_id=room))["claimed"]:
                got.append(made["todo"]["event_id"])
                mine.call("chat_update_todo", event_id=got[-1], persona=f"p{number}", status="done")
        return got

    began = time.perf_counter()
    with ThreadPoolExecutor(CLAIMERS) as pool:
        claimed = [event for got in pool.map(work, range(CLAIMERS)) for event in got]
    seconds = time.perf_counter() - began
    twice = sum(count > 1 for count in Counter(claimed).values())
    print(f"\n{todos} todos, {CLAIMERS} claimers: {len(claimed)} claimed, {twice} twice, {seconds:.1f} s")


def share(server: Running, seconds: float) -> str:
    """Return the share of a processor that a server needs."""
    before = processor_ms(server.process.pid)
    time.sleep(seconds)
    return f"{(processor_ms(server.process.pid) - before) / seconds / 1000:.1%}"


def on_sqlite(place: Path, rounds: int, waiters: int, todos: int, seconds: float) -> None:
    """Measure one server on SQLite."""
    with serving(place) as server, callers(server) as (caller,):
        caller.call("chat_create_room", name="r", members=["a", "b"])
        for first in range(0, waiters, 1_000):
            members = [f"p{number}" for number in range(first, min(first + 1_000, waiters))]
            caller.call("chat_create_room", name=f"waiting from {first}", members=members)
        settings = Settings(cwd=place, home=place, data_dir=place / "data", warm_up=False)
        table = Table("SQLite", Table.SPREAD)
        table.row("wakes, same server", spread(wakes(server, lambda: sends(caller, 1), rounds)))
        with closing(App(settings)) as here:
            times = wakes(server, lambda: chat_send_message(here, 1, "a", "m"), rounds)
            table.row("wakes, another process", spread(times))
        table.row("chat_send_message, no waiters", spread(sends(caller, rounds)))
        table.row("processor of the server, no waiters", share(server, seconds))
        crowd = [Caller(server) for _ in range(waiters)]
        for number, one in enumerate(crowd):
            one.send("chat_get_notifications", persona=f"p{number}", wait=60)
            time.sleep(0.005)  # no more at once than are let in
        assert in_flight(server) == waiters
        table.row(f"processor of the server, {waiters:,} wait", share(server, seconds))
        table.row(f"chat_send_message, {waiters:,} wait", spread(sends(caller, rounds)))
        for one in crowd:
            one.close()
        time.sleep(seconds / 5)
        claims(server, todos)


def on_postgres(place: Path, rounds: int, number: int) -> None:
    """Measure a message from one server to a reader at another."""
    with (
        serving_postgres() as postgres,
        replicas(place, postgres.address(), number=number) as servers,
        callers(*servers) as lines,
    ):
        lines[0].call("chat_create_room", name="r", members=["a", "b"])
        table = Table("\nPostgreSQL", Table.SPREAD)
        table.row("chat_send_message", spread(sends(lines[0], rounds)))
        for what, line in (("same server", lines[0]), ("another server", lines[-1])):
            table.row(f"wakes, {what}", spread(wakes(servers[0], lambda line=line: sends(line, 1), rounds)))  # type: ignore[misc]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_waiting", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=200, help="messages of each figure")
    parser.add_argument("--waiters", type=int, default=1_000, help="calls that wait at once")
    parser.add_argument("--todos", type=int, default=1_000, help="todos to claim")
    parser.add_argument("--replicas", type=int, default=3, help="servers on PostgreSQL")
    parser.add_argument("--seconds", type=float, default=5, help="for which the processor is watched")
    given = parser.parse_args(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * given.waiters + 200)), hard))
    with TemporaryDirectory() as name:
        (Path(name) / "one").mkdir()
        on_sqlite(Path(name) / "one", given.rounds, given.waiters, given.todos, given.seconds)
        if given.replicas:
            (Path(name) / "several").mkdir()
            on_postgres(Path(name) / "several", given.rounds, given.replicas)
    return 0


if __name__ == "__main__":
    sys.exit(main())
