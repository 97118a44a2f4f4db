"""What folders of many files cost, over standard input and output, beside a tool that does nothing.

Usage: ``python -m benchmarks.bench_scale [FILES]...``, by default 1,000 and 5,000.

Fair: both tools are called in turn by one client in one run; every question is asked once of each server; the
restart is of a server that has answered a question about another small file before. Files are older than two
seconds when questions are counted. ``rank`` is measured in this process on the segment that the server kept.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from benchmarks import scale_corpus
from benchmarks.common import percentile, settings
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_mcp.core.app import App
from npl_mcp.tools.npl import DocumentRef

QUESTIONS = 40
EDITS = 20
SETTLED = 2.1


def questions(seed: int) -> list[str]:
    """Return questions made of headings at hand, none twice."""
    headings = sorted({heading for heading, _ in scale_corpus.sections()})
    chance = Random(seed)
    pairs = zip(chance.sample(headings, QUESTIONS), chance.sample(headings, QUESTIONS), strict=True)
    return [f"{one} and {other}" for one, other in pairs]


def private_megabytes(folder: Path) -> float:
    """Return the private dirty memory of the server of a folder."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                str(folder).encode() in (process / "cmdline").read_bytes()
                and int(process.name) != os.getpid()
            ):
                lines = (process / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
        except OSError:
            continue
    return total / 1024


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    """Return the milliseconds of a call."""
    start = time.perf_counter()
    await work()
    return 1000 * (time.perf_counter() - start)


async def measure(folder: Path, data: Path, files: int) -> None:
    """Print the figures of one folder."""
    server = Path(__file__).with_name("noop_server.py")
    environment = {**os.environ, "NPL_MCP_DATA_DIR": str(data)}

    def client() -> Client[Any]:
        return Client(StdioTransport(sys.executable, [str(server), str(folder)], env=environment))

    def asking(running: Client[Any], question: str) -> Callable[[], Awaitable[Any]]:
        return lambda: running.call_tool(
            "npl_load_tailored", {"context": question, "file": ".", "token_budget": 2000}
        )

    async with client() as running:
        print(f"{files} files: cold {await timed(asking(running, 'anything at all')) / 1000:.1f} s", end="")
        floor, new = [], []
        for question in questions(1):
            floor.append(await timed(lambda: running.call_tool("noop", {})))
            new.append(await timed(asking(running, question)))
        noop = statistics.median(floor)
        print(
            f", no-op {noop:.2f} ms; times that: a new question {statistics.median(new) / noop:.1f}", end=""
        )
        paths, edited = sorted(folder.rglob("*.md")), []
        for number, question in zip(range(EDITS), questions(2), strict=False):
            path = paths[number * 7 % len(paths)]
            path.write_text(
                path.read_text(encoding="utf-8") + f"\nOne more line {number}.\n", encoding="utf-8"
            )
            edited.append(await timed(asking(running, question)))
        print(f", after one edit {statistics.median(edited) / noop:.1f}", end="")
        private = private_megabytes(folder)
    async with client() as running:
        await running.call_tool("npl_load_tailored", {"context": "fences", "file": "npl.md"})
        restarted = await timed(asking(running, "how are fences written"))
        print(f", first after a restart {restarted / noop:.0f}", end="")
        print(f"; private {private:.0f} MB, {private_megabytes(folder):.0f} after the restart", end="")
    app = App(settings(folder, data_dir=data))
    collection = app.gather(DocumentRef(file=".")).collection
    ranks = []
    for question in questions(3):
        start = time.perf_counter()
        rank(collection, Query(extract_keywords(question)))
        ranks.append(1000 * (time.perf_counter() - start))
    app.close()
    middle, high = statistics.median(ranks), percentile(ranks, 0.95)
    print(f"; rank of {len(collection)} sections {middle:.1f}/{high:.1f} ms")


def main() -> None:
    """Measure each size that was asked for."""
    for files in map(int, sys.argv[1:] or ("1000", "5000")):
        with tempfile.TemporaryDirectory() as name:
            folder, data = Path(name) / "docs", Path(name) / "data"
            folder.mkdir()
            scale_corpus.write(folder, files)
            time.sleep(SETTLED)
            asyncio.run(measure(folder, data, files))


if __name__ == "__main__":
    main()
