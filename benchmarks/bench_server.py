"""Warm calls through a spawned server, beside a tool of the same server that does nothing.

Fair: both tools are called in turn by one client in one run; the file is indexed and the vocabulary
loaded before the first counted call; contexts change from call to call, so no answer repeats at once.

    python benchmarks/bench_server.py [rounds]
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import CONTEXTS, long_file, median_ms, percentile, settings
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from npl_mcp.core.app import App
from npl_mcp.tools.npl import npl_load_tailored

BUDGET = 2000


async def over_stdio(root: Path, rounds: int) -> None:
    """Print what a call costs over standard input and output."""
    script = str(Path(__file__).with_name("noop_server.py"))
    async with Client(StdioTransport(sys.executable, [script, str(root)], keep_alive=False)) as client:
        await client.call_tool("npl_load_tailored", request(0))
        await asyncio.sleep(2)
        times: dict[str, list[float]] = {"noop": [], "npl_load_tailored": []}
        for number in range(rounds):
            for tool, arguments in (("noop", {}), ("npl_load_tailored", request(number))):
                start = time.perf_counter()
                await client.call_tool(tool, arguments)
                if number >= rounds // 10:
                    times[tool].append(1000 * (time.perf_counter() - start))
        floor = statistics.median(times["noop"])
        for tool, values in times.items():
            middle, tail = statistics.median(values), percentile(values, 0.95)
            print(f"stdio {tool}: p50 {middle:.2f} ms, p95 {tail:.2f} ms, ratio {middle / floor:.2f}")
        for flight in (1, 8):
            rate = await throughput(client, rounds, flight)
            print(f"stdio, {flight} in flight: {rate:.0f} calls/s")


async def throughput(client: Client[Any], calls: int, flight: int) -> float:
    """Return calls per second with so many under way at once."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await client.call_tool("npl_load_tailored", request(number))

    start = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(flight)))
    return calls / (time.perf_counter() - start)


def request(number: int) -> dict[str, Any]:
    """Return the arguments of a call."""
    return {"context": CONTEXTS[number % len(CONTEXTS)], "file": "long.md", "token_budget": BUDGET}


def in_process(root: Path, rounds: int) -> None:
    """Print what the same function costs when called directly."""
    app = App(settings(root))
    for number in range(50):
        npl_load_tailored(app, **request(number))
    middle = median_ms(lambda number: npl_load_tailored(app, **request(number)), rounds)
    print(f"in process: p50 {middle:.3f} ms")


def main() -> None:
    """Run both."""
    logging.disable(logging.INFO)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "long.md").write_text(long_file(), encoding="utf-8")
        time.sleep(2.1)  # until then a fresh file is compared by content on every call
        in_process(root, rounds)
        asyncio.run(over_stdio(root, rounds))


if __name__ == "__main__":
    main()
