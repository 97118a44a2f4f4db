"""Warm calls through a spawned server, compared with a tool of the same server that does nothing.

Usage: ``python -m benchmarks.bench_server [--set FOLDER]... [--rounds N]``

Sets of labelled questions are those of :mod:`benchmarks.relevance`; without one, the bundled corpus and its
questions. Each question is asked once of each server, about the file that holds its answer, and with each
budget once; so no answer repeats, and no earlier question has computed a part of it. ``cuts``
are questions about pages that are hard to cut: sections of ten thousand blocks.

Fair: both tools are called in turn by one client in one run; the files are indexed and the vocabulary is
loaded before the first counted call. A second run asks about one long file repeatedly, over standard streams
and in process.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from benchmarks.common import CONTEXTS, long_file, median_ms, percentile, settings
from benchmarks.relevance.__main__ import HERE, read_questions
from npl_mcp.app.app import App
from tests.tools import npl_load_tailored

BUDGET = 2000
BUDGETS = (300, 1_000, 3_000, None)
CUT_BUDGETS = (50, 300, 1_000, 3_000)
SETTLED = 2.1
"""Seconds after which a fresh file is no longer compared by content on every call."""


@dataclass(frozen=True)
class Asked:
    """Questions about the files of a folder.

    :param questions: each with the file that holds its answer.
    """

    name: str
    root: Path
    questions: Sequence[tuple[str, str]]
    budgets: Sequence[int | None] = BUDGETS


class Times:
    """Milliseconds of the tool that does nothing, and of the tool measured in turn with it."""

    def __init__(self) -> None:
        self._noop: list[float] = []
        self._calls: list[float] = []

    def __iadd__(self, other: Times) -> Times:
        self._noop += other._noop
        self._calls += other._calls
        return self

    async def add(self, client: Client[Any], arguments: dict[str, Any]) -> None:
        """Take the time of one call of each."""
        self._noop.append(await _timed(client, "noop", {}))
        self._calls.append(await _timed(client, "npl_load_tailored", arguments))

    def __str__(self) -> str:
        floor = statistics.median(self._noop)
        parts = [f"no-op p50 {floor:.2f} ms"]
        for share in (0.5, 0.99):
            value = percentile(self._calls, share)
            parts.append(f"p{100 * share:.0f} {value:.2f} ms, {value / floor:.2f} times that")
        return f"{'; '.join(parts)} ({len(self._calls)} calls)"


async def _timed(client: Client[Any], tool: str, arguments: dict[str, Any]) -> float:
    start = time.perf_counter()
    await client.call_tool(tool, arguments)
    return 1000 * (time.perf_counter() - start)


def server(root: Path) -> Client[Any]:
    """Return a client that spawns a server of one folder, with a tool that does nothing."""
    script = str(Path(__file__).with_name("noop_server.py"))
    return Client(StdioTransport(sys.executable, [script, str(root)], keep_alive=False))


async def ask(asked: Asked) -> dict[int | None, Times]:
    """Ask each question once with each budget; no server gets a question twice."""
    times: dict[int | None, Times] = {budget: Times() for budget in asked.budgets}
    for turn in range(len(asked.budgets)):
        async with server(asked.root) as client:
            for file in dict.fromkeys(file for _, file in asked.questions):
                await client.call_tool("npl_section_index", {"file": file, "depth": 0})
                await client.call_tool("npl_load_tailored", {"file": file, "context": "zebra"})
            for number, (question, file) in enumerate(asked.questions):
                budget = asked.budgets[(number + turn) % len(asked.budgets)]
                arguments = {"context": question, "file": file}
                await times[budget].add(client, arguments | {"token_budget": budget or 0})
    return times


async def ask_all(sets: Iterable[Asked]) -> None:
    """Print the cost of fresh questions over standard streams: all together, and by budget."""
    times: dict[int | None, Times] = {}
    whole = Times()
    for asked in sets:
        here = Times()
        for budget, some in (await ask(asked)).items():
            here += some
            whole += some
            times.setdefault(budget, Times()).__iadd__(some)
        print(f"stdio, questions of {asked.name}: {here}")
    for budget, some in times.items():
        print(f"stdio, all with budget {budget or 'none'}: {some}")
    print(f"stdio, all questions: {whole}")


async def over_stdio(root: Path, rounds: int) -> None:
    """Print the cost of a call over standard streams."""
    async with server(root) as client:
        await client.call_tool("npl_load_tailored", request(0))
        times = Times()
        for number in range(rounds + rounds // 10):
            warm = Times() if number < rounds // 10 else times
            await warm.add(client, request(number))
        print(f"stdio, one long file: {times}")
        for flight in (1, 8):
            rate = await throughput(client, rounds, flight)
            print(f"stdio, {flight} in flight: {rate:.0f} calls/s")


async def throughput(client: Client[Any], calls: int, flight: int) -> float:
    """Return the calls per second at a given number of concurrent calls."""
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
    """Print the cost of the same function called directly."""
    app = App(settings(root))
    for number in range(50):
        npl_load_tailored(app, **request(number))
    middle = median_ms(lambda number: npl_load_tailored(app, **request(number)), rounds)
    print(f"in process, one long file: p50 {middle:.3f} ms")


def read_set(folder: Path) -> Asked:
    """Return the labelled questions of a folder with ``corpus`` and ``queries*.jsonl``."""
    return labelled(folder.name, folder / "corpus", sorted(folder.glob("queries*.jsonl")))


def labelled(name: str, root: Path, files: Sequence[Path]) -> Asked:
    """Return the questions of some files, each about the file of its first label."""
    return Asked(name, root, [(one.text, one.labels[0].file) for one in read_questions(files)])


def cuts(folder: Path) -> Asked:
    """Write pages whose sections fit into no budget."""
    kinds = {
        "paragraphs": "Row {} of the garden bears {}.\n\n",
        "items": "- row {} of the garden bears {}\n",
        "table": "| row {} | {} |\n",
        "lines": "Row {} of the garden bears {}. It is watered in the evening by hand.\n" * 2 + "\n",
    }
    plants = [f"plant{number}" for number in range(10_000)]
    for kind, line in kinds.items():
        head = "| row | plant |\n|--|--|\n" if kind == "table" else ""
        text = "".join(
            line.replace("{}", f"{number}", 1).replace("{}", plants[number]) for number in range(10_000)
        )
        (folder / f"{kind}.md").write_text(f"# Garden\n\n## Rows\n\n{head}{text}", encoding="utf-8")
    asked = [
        (f"which row bears {plants[at]}", f"{kind}.md") for at in range(7, 10_000, 1_111) for kind in kinds
    ]
    return Asked("cuts", folder, asked, CUT_BUDGETS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_server", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--set", action="append", default=[], type=Path, help="folder with corpus/ and queries"
    )
    parser.add_argument("--rounds", type=int, default=400, help="calls about the long file")
    given = parser.parse_args(arguments)
    logging.disable(logging.INFO)
    bundled = labelled("the bundled prompts", HERE.parents[1] / "corpus", [HERE / "corpus_queries.jsonl"])
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as garden:
        root = Path(folder)
        (root / "long.md").write_text(long_file(), encoding="utf-8")
        hard = cuts(Path(garden))
        time.sleep(SETTLED)
        in_process(root, given.rounds)
        asyncio.run(over_stdio(root, given.rounds))
        asyncio.run(ask_all([read_set(path) for path in given.set] or [bundled]))
        asyncio.run(ask_all([hard]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
