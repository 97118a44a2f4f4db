"""Waiting calls: the delay from a commit to a wake, the cost of a thousand waiters, and shares of claims.

A server over HTTP on a port of this machine, clients in this process. "Same server" sends the message to the
server that the reader waits at; "another process" writes to the same data folder with the stores alone, so
that only the database tells. Measured is from the end of the write to the arrival of the whole answer.

    python -m benchmarks.bench_waiting [rounds] [waiters] [todos]
"""

from __future__ import annotations

import http.client
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.team import Caller, cpu, replicas
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings

CLAIMERS = 30


def waiting(port: int) -> int:
    """Return the number of calls in flight, all of which wait."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return int(float(text.partition("\nnpl_calls_in_flight ")[2].partition("\n")[0]))


def wakes(port: int, say: Any, rounds: int) -> list[float]:
    """Return milliseconds from the end of a write to the answer of a reader that waited for it."""
    reader, found = Caller(port), []
    cursor = reader.call("chat_get_feed", room_id=1, limit=1)["cursor"]
    for number in range(rounds):
        reader.send("chat_get_feed", room_id=1, since=cursor, wait=60)
        time.sleep(0.05 + number % 10 / 1000)  # not in step with the looks
        done: list[float] = []
        thread = threading.Thread(target=lambda done=done: (say(), done.append(time.perf_counter())))
        thread.start()
        cursor = reader.receive()["cursor"]
        arrived = time.perf_counter()
        thread.join()
        found.append(max(0.0, arrived - done[0]) * 1000)
    reader.close()
    return found


def sends(port: int, count: int) -> list[float]:
    """Return milliseconds of messages to a room, one after the other."""
    caller, found = Caller(port), []
    for _ in range(count):
        found.append(caller.timed("chat_send_message", room_id=1, persona="a", message="m"))
    caller.close()
    return found


def shown(what: str, values: list[float]) -> None:
    """Print the median and the 95th percentile."""
    print(f"{what:48} p50 {median(values):7.1f} ms   p95 {quantiles(values, n=20)[-1]:7.1f} ms")


def claims(port: int, todos: int) -> None:
    """Let many claimers claim todos until the room has no more."""
    caller = Caller(port)
    caller.call("chat_create_room", name="work", members=[f"p{number}" for number in range(CLAIMERS)])
    for number in range(todos):
        caller.call("chat_create_todo", room_id=2, persona="p0", description=f"todo {number}")

    def work(number: int) -> list[int]:
        mine, got = Caller(port), []
        while (made := mine.call("chat_claim_todo", persona=f"p{number}", room_id=2))["claimed"]:
            got.append(made["todo"]["event_id"])
        mine.close()
        return got

    began = time.perf_counter()
    with ThreadPoolExecutor(CLAIMERS) as pool:
        claimed = [event for got in pool.map(work, range(CLAIMERS)) for event in got]
    seconds = time.perf_counter() - began
    twice = sum(count > 1 for count in Counter(claimed).values())
    print(f"{todos} todos, {CLAIMERS} claimers: {len(claimed)} claimed, {twice} twice, {seconds:.1f} s")


def main(rounds: int = 200, waiters: int = 1_000, todos: int = 1_000) -> None:
    """Measure and print."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * waiters + 200)), hard))
    with tempfile.TemporaryDirectory() as place, replicas(Path(place)) as (server,):
        port, process = server.port, server.pid
        caller = Caller(port)
        caller.call("chat_create_room", name="r", members=["a", "b"])
        for first in range(0, waiters, 1_000):
            members = [f"p{number}" for number in range(first, min(first + 1_000, waiters))]
            caller.call("chat_create_room", name=f"waiting from {first}", members=members)
        settings = Settings(cwd=Path(place), home=Path(place), data_dir=Path(place) / "data0", warm_up=False)
        here = App(settings)
        shown("wakes, same server", wakes(port, lambda: sends(port, 1), rounds))
        chat = here.stores.chat
        shown("wakes, another process", wakes(port, lambda: chat.send_message(1, "a", "m"), rounds))
        shown("chat_send_message, no waiters", sends(port, rounds))
        before = cpu(process)
        time.sleep(5)
        print(f"{'processor of the server, no waiters':48} {(cpu(process) - before) / 5:6.1%}")
        crowd = [Caller(port) for _ in range(waiters)]
        for number, one in enumerate(crowd):
            one.send("chat_get_notifications", persona=f"p{number}", wait=60)
            time.sleep(0.005)  # no more at once than are let in
        assert waiting(port) == waiters
        before = cpu(process)
        time.sleep(5)
        print(f"{f'processor of the server, {waiters:,} wait':48} {(cpu(process) - before) / 5:6.1%}")
        shown(f"chat_send_message, {waiters:,} wait", sends(port, rounds))
        for one in crowd:
            one.close()
        time.sleep(1)
        claims(port, todos)
        here.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
