"""News from one server to another through PostgreSQL: a message to a waiting reader.

Fair: three servers and PostgreSQL, which syncs every write, on this machine; a reader waits at one server
over HTTP, and a wake is measured from the writer's answer to the reader's answer.

    python -m benchmarks.bench_news [rounds]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.common import percentile
from benchmarks.team import Caller, callers, replicas
from tests.postgres_server import serving

REPLICAS = 3


def shown(what: str, times: Sequence[float]) -> None:
    """Print the median and the 95th percentile."""
    print(f"{what:52} p50 {median(times):7.1f} ms   p95 {percentile(times, 0.95):7.1f} ms", flush=True)


def sends(lines: Sequence[Caller], reader: Caller, rounds: int) -> None:
    """Print the cost of a message to its sender, and the delay until the waiting reader has it.

    :param lines: to each server.
    :param reader: one more to the first.
    """
    lines[0].call("chat_create_room", name="r", members=["a", "b"])
    message = {"room_id": 1, "persona": "a", "message": "m"}
    for line in lines:
        line.call("chat_send_message", **message)
    nothing = [lines[0].timed("noop") for _ in range(rounds)]
    shown("a call that does nothing", nothing)
    shown(
        "chat_send_message, one caller",
        [lines[0].timed("chat_send_message", **message) for _ in range(rounds)],
    )
    for name, writer in (("the same server", lines[0]), ("another server", lines[1])):
        cursor = reader.call("chat_get_feed", room_id=1, limit=1)["cursor"]
        times = []
        for number in range(rounds):
            reader.send("chat_get_feed", room_id=1, since=cursor, wait=60)
            time.sleep(0.05 + number % 10 / 1000)  # not in step with the looks
            writer.call("chat_send_message", **message)
            written = time.perf_counter()
            cursor = reader.receive()["cursor"]
            times.append(1000 * (time.perf_counter() - written))
        shown(f"a reader wakes, {name}", times)


def main(rounds: int = 60) -> None:
    """Measure and print."""
    with (
        tempfile.TemporaryDirectory() as name,
        serving() as server,
        replicas(Path(name), REPLICAS, NPL_DATABASE_URL=server.address()) as servers,
        callers(*(one.port for one in (servers[0], *servers))) as (reader, *lines),
    ):
        sends(lines, reader, rounds)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
