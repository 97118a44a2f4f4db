"""The HTTP server: warm calls and pages compared with the floor, and many clients at once.

Usage: ``python -m benchmarks.bench_http [--calls N] [--seconds S] [--clients N] [--requests N]``

Fair: one run asks all ways of one server in turn over one connection; ``/healthz`` does nothing and is the
floor. Processor time is the server's alone. The clients are threads on the same machine and use its
processors, so calls per second are a lower bound. ``--requests`` is the number of change requests on the
board.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from benchmarks.common import CONTEXTS
from benchmarks.servers import Caller, callers, processor_ms, shared_megabytes
from benchmarks.times import Table, call_ms, spread
from tests.npl_mcp.http.http_server import Running, serving

CONFIG = '[project]\nname = "Bench"\ncode = "BEN"\nid = "bench"\nticketsPath = "crs"\n'
STATES = ("Proposed", "Approved", "In Progress", "Implemented", "Rejected")
FRONT = "---\ncode: BEN-{0:03d}\nstatus: {1}\ntype: Bug Fix\npriority: High\nassignee: a{2}\n---\n"
TEXT = FRONT + "\n# Title {0}\n\n## Why\n\nSo.\n"
INDEX = {"item": "syntax", "resource_type": "component", "depth": 0}
PROBLEMS = 3
"""Wrong answers that are printed."""


def board(count: int) -> Mapping[str, str]:
    """Return the files of a project with change requests."""
    texts = {
        f"docs/crs/BEN-{number:03d}-x.md": TEXT.format(number, STATES[number % len(STATES)], number % 20)
        for number in range(1, count + 1)
    }
    return {"docs/.mdt-config.toml": CONFIG, **texts}


def ways(caller: Caller) -> Mapping[str, Callable[[int], object]]:
    """Return what is asked; each gets the number of the call, and the first is the floor."""
    pages = ("/changes", "/changes?view=table", "/changes.json", "/changes/BEN-001")
    return {
        "/healthz": lambda _: caller.get("/healthz"),
        "npl_section_index": lambda _: caller.call("npl_section_index", **INDEX),
        "npl_load_tailored": lambda number: caller.call(
            "npl_load_tailored", context=f"{CONTEXTS[number % 8]} {number}", token_budget=500
        ),
        "the page Ask": lambda number: caller.get(
            f"/ask?{urlencode({'context': f'{CONTEXTS[number % 8]} {number}'})}"
        ),
        **{path: lambda _, path=path: caller.get(path) for path in pages},  # type: ignore[misc]
    }


def one_caller(server: Running, calls: int) -> None:
    """Print what single calls cost."""
    table = Table("one caller", Table.SPREAD, "ms above the floor", "processor ms of the server", "first, ms")
    with callers(server) as (caller,):
        asked = ways(caller)
        first = {name: call_ms(partial(way, 0)) for name, way in asked.items()}
        times: dict[str, list[float]] = {name: [] for name in asked}
        for number in range(calls):
            for name, way in asked.items():
                times[name].append(call_ms(partial(way, number)))
        floor = min(times["/healthz"])
        for name, way in asked.items():
            before = processor_ms(server.process.pid)
            for number in range(calls):
                way(number)
            cost = (processor_ms(server.process.pid) - before) / calls
            table.row(name, spread(times[name]), min(times[name]) - floor, cost, first[name])


def many_callers(server: Running, seconds: float, clients: int) -> int:
    """Print the calls per second of many clients; return how many got a wrong answer."""
    end = time.monotonic() + seconds
    counts = [0] * clients
    problems: list[str] = []

    def work(client: int) -> None:
        with callers(server) as (caller,):
            number = 0
            while time.monotonic() < end:
                number += 1
                mark = f"none-{client}-{number}.md"
                try:
                    caller.call("npl_section_index", file=mark)
                    problems.append(f"{mark} was found")
                except RuntimeError as error:
                    if mark not in str(error):
                        problems.append(str(error))
                caller.call("npl_load_tailored", context=f"{CONTEXTS[number % 8]} {mark}", token_budget=500)
                caller.call("npl_section_index", **INDEX)
                caller.call("session_list", limit=5)
                counts[client] += 4

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    before, start = processor_ms(server.process.pid), time.monotonic()
    for thread in threads:
        thread.start()
    memory = [shared_megabytes(server.process.pid)]
    while any(thread.is_alive() for thread in threads):
        time.sleep(seconds / 20)
        memory.append(shared_megabytes(server.process.pid))
    spent, calls = time.monotonic() - start, sum(counts)
    print(
        f"\n{clients} clients, {spent:.0f} s: {calls / spent:.0f} calls/s, {len(problems)} wrong, server's"
        f" processor {(processor_ms(server.process.pid) - before) / max(calls, 1):.2f} ms per call, memory"
        f" {memory[len(memory) // 4]:.0f} MB after a quarter, {memory[-1]:.0f} MB at the end, fewest calls of"
        f" a client {min(counts)}, most {max(counts)}"
    )
    print(*problems[:PROBLEMS], sep="\n", end="")
    return len(problems)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a client got a wrong answer."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_http", description=__doc__.split("\n")[0])
    parser.add_argument("--calls", type=int, default=500, help="of each way")
    parser.add_argument("--seconds", type=float, default=10, help="of many clients")
    parser.add_argument("--clients", type=int, default=64, help="at once")
    parser.add_argument("--requests", type=int, default=1_000, help="change requests on the board")
    given = parser.parse_args(arguments)
    with TemporaryDirectory() as name, serving(Path(name), files=board(given.requests)) as server:
        one_caller(server, given.calls)
        return int(many_callers(server, given.seconds, given.clients) > 0)


if __name__ == "__main__":
    sys.exit(main())
