"""Costs of folders with many files over standard streams, compared with a tool that does nothing.

Usage: ``python -m benchmarks.bench_scale [FILES]... [--keep FILE] [--svg FILE] [--readme FILE]``, by default
1,000 and 5,000 files. ``--keep`` adds the figures to those of earlier runs, one for each number of files.

Fair: both tools are called in turn by one client in one run; every question is asked once of each server; the
restart is of a server that has answered a question about another small file before. Files are older than two
seconds when questions are counted. ``rank``, and how long it takes to know that nothing changed, are measured
in this process on the index that the server kept. Memory is that of the server and of all processes that it
started. One file alone is measured in a run of its own, times the no-op of that run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from benchmarks import scale_corpus
from benchmarks.common import long_file, median_ms, percentile, settings
from benchmarks.figures import LogPlot, put_between
from npl_index.library.documents import DocumentRef
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_mcp.app.app import App

QUESTIONS = 40
EDITS = 20
ALONE = 8
"""Files that are asked about one by one."""

SETTLED = 2.1
LOOK_SECONDS = 0.25
"""Time between two looks at the memory of a server that indexes."""

MARKS = ("<!-- scale -->", "<!-- /scale -->")


@dataclass(frozen=True)
class Figures:
    """The figures of one number of files; times are in milliseconds, memory and disk in megabytes."""

    files: int
    sections: int
    megabytes: float
    noop: float
    new: float
    rank: float
    rank_high: float
    edited: float
    restarted: float
    private: float
    private_cold: float
    disk: float
    cold: float
    fresh: float
    one_warm: float
    one_cold: float


@dataclass(frozen=True)
class Row:
    """A line of the table.

    :param must: what is asked for, and ``strive`` what is striven for; with 1,000, 5,000 and 75,000 files
        where that differs.
    :param shown: writes the figures of one run.
    """

    what: str
    must: str
    strive: str
    shown: Callable[[Figures], str]


def _times(name: str) -> Callable[[Figures], str]:
    return lambda run: f"{getattr(run, name) / run.noop:.1f} ({getattr(run, name):.1f} ms)"


ROWS = (
    Row("bare no-op call, ms", "", "", lambda run: f"{run.noop:.2f}"),
    Row("a question not asked before, times a no-op", "8 / 25 / 300 ms", "4 / 10 / 40 ms", _times("new")),
    Row(
        "rank alone, p50 / p95 ms",
        "12 / 25 (68,000 sections)",
        "2 / 4",
        lambda run: f"{run.rank:.1f} / {run.rank_high:.1f}",
    ),
    Row("call after one edit, times a no-op", "25 / 40", "15 / 25", _times("edited")),
    Row("first call after a restart, times a no-op", "150 / 300", "60 / 120", _times("restarted")),
    Row(
        "private memory, MB (most while indexing)",
        "130 / 170 / 400",
        "110 / 140 / 300",
        lambda run: f"{run.private:.0f} ({run.private_cold:.0f})",
    ),
    Row(
        "cold, s (MB a second)",
        "– / 15 (5) / 360",
        "– / 8 (9.4) / 180",
        lambda run: f"{run.cold / 1000:.1f} ({run.megabytes / run.cold * 1000:.1f})",
    ),
    Row("freshness, nothing changed, ms", "0.1", "0.01", lambda run: f"{run.fresh:.3f}"),
    Row("one file of 225 sections, warm, times a no-op", "as before", "", _times("one_warm")),
    Row("one file of 225 sections, cold, times a no-op", "as before", "", _times("one_cold")),
    Row("index on disk, MB", "", "", lambda run: f"{run.disk:.0f}"),
)

LINES = {
    "cold": ("cold", "#9aa5b1"),
    "first after a restart": ("restarted", "#d9a441"),
    "after one edit": ("edited", "#7aa874"),
    "a new question": ("new", "#3b6fb6"),
    "rank alone": ("rank", "#8a63a8"),
    "freshness": ("fresh", "#c0605a"),
}


def questions(seed: int) -> list[str]:
    """Return different questions, each made of headings."""
    headings = sorted({heading for heading, _ in scale_corpus.sections()})
    chance = Random(seed)
    pairs = zip(chance.sample(headings, QUESTIONS), chance.sample(headings, QUESTIONS), strict=True)
    return [f"{one} and {other}" for one, other in pairs]


def private_megabytes(folder: Path) -> float:
    """Return the private dirty memory of the server of a folder, and of all processes below it."""
    parents, found = {}, set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            number = int(process.name)
            parents[number] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if number != os.getpid() and str(folder).encode() in (process / "cmdline").read_bytes():
                found.add(number)
    while more := {number for number, parent in parents.items() if parent in found} - found:
        found |= more
    return sum(map(_private_kilobytes, found)) / 1024


def _private_kilobytes(process: int) -> int:
    with suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
    return 0  # it has ended


async def timed(work: Awaitable[Any]) -> float:
    """Return the milliseconds of a call."""
    start = time.perf_counter()
    await work
    return 1000 * (time.perf_counter() - start)


class Server:
    """A server in a process of its own, as a client sees it.

    :param folder: its root.
    """

    def __init__(self, client: Client[Any], folder: Path) -> None:
        self._client, self._folder = client, folder

    @classmethod
    @asynccontextmanager
    async def started(cls, folder: Path, data: Path) -> AsyncIterator[Server]:
        """Start one, which keeps its index in a data folder."""
        script = Path(__file__).with_name("noop_server.py")
        environment = {**os.environ, "NPL_MCP_DATA_DIR": str(data)}
        transport = StdioTransport(sys.executable, [str(script), str(folder)], env=environment)
        async with Client(transport) as client:
            yield cls(client, folder)

    async def ask(self, question: str, file: str = ".") -> float:
        """Return the milliseconds of a question."""
        request = {"context": question, "file": file, "token_budget": 2000}
        return await timed(self._client.call_tool("npl_load_tailored", request))

    async def noop(self) -> float:
        """Return the milliseconds of a call that does nothing."""
        return await timed(self._client.call_tool("noop", {}))

    async def watched(self, work: Awaitable[float]) -> tuple[float, float]:
        """Return the milliseconds of a call, and the peak memory during it."""
        running, most = asyncio.ensure_future(work), 0.0
        while not (await asyncio.wait({running}, timeout=LOOK_SECONDS))[0]:
            most = max(most, private_megabytes(self._folder))
        return await running, max(most, private_megabytes(self._folder))

    def private(self) -> float:
        """Return its private memory in megabytes."""
        return private_megabytes(self._folder)


def edits(folder: Path) -> Iterator[None]:
    """Change a file before each step."""
    paths = sorted(folder.rglob("*.md"))
    for number in range(EDITS):
        path = paths[number * 7 % len(paths)]
        path.write_text(path.read_text(encoding="utf-8") + f"\nOne more line {number}.\n", encoding="utf-8")
        yield


async def over_stdio(folder: Path, data: Path) -> dict[str, float]:
    """Measure calls about a whole folder."""
    found: dict[str, float] = {}
    async with Server.started(folder, data) as server:
        found["cold"], found["private_cold"] = await server.watched(server.ask("anything at all"))
        pairs = [(await server.noop(), await server.ask(question)) for question in questions(1)]
        found["noop"], found["new"] = (statistics.median(column) for column in zip(*pairs, strict=True))
        changing = zip(edits(folder), questions(2), strict=False)
        found["edited"] = statistics.median([await server.ask(question) for _, question in changing])
        found["private"] = server.private()
    async with Server.started(folder, data) as server:
        await server.ask("fences", "npl.md")
        found["restarted"] = await server.ask("how are fences written")
    return found


async def one_file(place: Path) -> dict[str, float]:
    """Measure calls about one file of usual length, in a folder of its own, times the no-op of this run."""
    folder = place / "alone"
    folder.mkdir()
    text = long_file()
    names = [f"page-{number}.md" for number in range(ALONE + 1)]
    for name in names:
        (folder / name).write_text(f"{text}\n\nThis is {name}.\n", encoding="utf-8")
    time.sleep(SETTLED)
    async with Server.started(folder, place / "data-alone") as server:
        await server.ask("anything at all", names[-1])
        cold = [await server.ask("how are fences written", name) for name in names[:-1]]
        warm = [(await server.noop(), await server.ask(question, names[0])) for question in questions(4)]
    noop, median = (statistics.median(column) for column in zip(*warm, strict=True))
    return {"one_warm": median / noop, "one_cold": statistics.median(cold) / noop}


def in_process(folder: Path, data: Path) -> dict[str, float]:
    """Measure the steps of a call on the index that the server stored."""
    app = App(settings(folder, data_dir=data))
    try:
        # What has just been edited is compared by content until its time stamps are old enough.
        time.sleep(SETTLED)
        collection = app.gather(DocumentRef(file=".")).collection
        app.gather(DocumentRef(file="."))
        fresh = median_ms(lambda _: app.gather(DocumentRef(file=".")), QUESTIONS)
        ranks = []
        for question in questions(3):
            start = time.perf_counter()
            rank(collection, Query(extract_keywords(question)))
            ranks.append(1000 * (time.perf_counter() - start))
        return {
            "sections": len(collection),
            "fresh": fresh,
            "rank": statistics.median(ranks),
            "rank_high": percentile(ranks, 0.95),
        }
    finally:
        app.close()


def measure(files: int) -> Figures:
    """Return the figures of one number of files, in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder, data = place / "docs", place / "data"
        folder.mkdir()
        scale_corpus.write(folder, files)
        megabytes = sum(path.stat().st_size for path in folder.rglob("*.md")) / 1e6
        time.sleep(SETTLED)
        found = asyncio.run(over_stdio(folder, data))
        alone = {key: value * found["noop"] for key, value in asyncio.run(one_file(place)).items()}
        inside = in_process(folder, data)
        disk = sum(path.stat().st_size for path in data.glob("index-*")) / 1e6
        sections = int(inside.pop("sections"))
        return Figures(
            files=files, sections=sections, megabytes=megabytes, disk=disk, **found, **alone, **inside
        )


def table(runs: Sequence[Figures]) -> str:
    """Write runs as a table in Markdown, one column each."""
    heads = [f"{run.files:,} files, {run.sections:,} sections, {run.megabytes:.0f} MB" for run in runs]
    lines = [f"| | must | strive for | {' | '.join(heads)} |", "|:--|--:|--:|" + "--:|" * len(runs)]
    for row in ROWS:
        cells = " | ".join(row.shown(run) for run in runs)
        lines.append(f"| {row.what} | {row.must} | {row.strive} | {cells} |")
    return "\n".join(lines) + "\n"


def picture(runs: Sequence[Figures]) -> str:
    """Draw how costs grow with the number of sections."""
    lines = {
        name: [(float(run.sections), float(getattr(run, field))) for run in runs]
        for name, (field, _) in LINES.items()
    }
    colors = {name: color for name, (_, color) in LINES.items()}
    return LogPlot("What a call costs as a folder grows", "sections", "milliseconds", lines, colors).svg()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure each requested size, print the table, and draw the picture."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_scale", description=__doc__.split("\n")[0])
    parser.add_argument("files", type=int, nargs="*", help="numbers of files")
    parser.add_argument("--keep", type=Path, help="a JSON file with the figures of earlier runs")
    parser.add_argument("--svg", type=Path, help="draw the figures to this file")
    parser.add_argument("--readme", type=Path, help="put the table between the marks in this file")
    given = parser.parse_args(arguments)
    known = {}
    if given.keep and given.keep.exists():
        known = {one["files"]: Figures(**one) for one in json.loads(given.keep.read_text(encoding="utf-8"))}
    for files in given.files or (() if known else (1_000, 5_000)):
        known[files] = measure(files)
        print(table([known[files]]), flush=True)
        if given.keep:
            kept = [asdict(known[one]) for one in sorted(known)]
            given.keep.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    runs = [known[one] for one in sorted(known)]
    text = table(runs)
    print(text)
    if given.readme:
        put_between(given.readme, MARKS, text)
    if given.svg:
        given.svg.write_text(picture(runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
