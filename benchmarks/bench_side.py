"""Two installations of npl in turn on the same folders: which calls a change made slower.

Usage: ``python -m benchmarks.bench_side OLD NEW [--files N]... [--questions N] [--sets FOLDER]``

``OLD`` and ``NEW`` are programs ``npl-mcp``. ``--sets`` names a folder of sets with ``corpus/*.md`` and
``queries*.jsonl``, as for :mod:`benchmarks.relevance`; without it, the bundled prompts and their questions.

Both servers run at the same time, on the same files and each with its own index, and are asked in turn over
standard streams. First answers and restarts are measured one server after the other. Each question is asked
once of each server and budget. A cell has milliseconds, or seconds of a first answer: p50 and maximum, and of
many questions p50 and p99. The last column is the processor time of the server and its workers (Linux only),
which other load changes little. A ratio below 1 is a gain.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain, cycle, islice, repeat
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import scale_corpus
from benchmarks.bench_scale import edits, private_megabytes
from benchmarks.bench_server import SETTLED, Asked, labelled
from benchmarks.common import long_file, percentile
from benchmarks.relevance.__main__ import HERE

BUDGETS = (500, 2_000)
RESTARTS = 5
AHEAD = 10.0
"""Seconds that a server has before its first question."""

PATIENCE = 600
"""Seconds that other first answers wait for the whole index."""

EDIT_SECONDS = 0.1
"""Pause between two edits of another client."""

MANY = 100
"""Number of times from which the second figure of a cell is p99, not the maximum."""


class Cost(NamedTuple):
    """Milliseconds of a call: elapsed, and of processors."""

    elapsed: float
    processor: float


class Server:
    """A running server of an installation; this process waits for each answer."""

    def __init__(self, program: str, root: Path, data: Path, *flags: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NPL_")}
        command = [program, "--root", str(root), "--data-dir", str(data), *flags]
        pipe, self._data, start = subprocess.PIPE, data, time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, cwd=root, env=environment
        )
        about = {"name": "bench_side", "version": "1"}
        self._request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=about)
        self.start = Cost(1000 * (time.perf_counter() - start), self._processor())
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _request(self, method: str, **parameters: Any) -> Any:
        assert self._process.stdout is not None
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") == 1:
                return answer["result"]
        raise RuntimeError(f"{self._process.args} ended")

    def _processor(self) -> float:
        """Return the milliseconds of processors of its threads and workers, ended threads included."""
        pid, total = self._process.pid, 0.0
        with suppress(OSError):
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
            total = 1000 * sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
            total += 1000 * time.clock_gettime(~pid << 3 | 2)  # Linux's clock of another process
        return total

    def ask(self, question: str, budget: int, file: str = ".") -> Cost:
        """Return the cost of a question."""
        before, start = self._processor(), time.perf_counter()
        request = {"context": question, "file": file, "token_budget": budget}
        result = self._request("tools/call", name="npl_load_tailored", arguments=request)
        elapsed = 1000 * (time.perf_counter() - start)
        assert not result.get("isError"), result
        return Cost(elapsed, self._processor() - before)

    def nothing(self) -> Cost:
        """Return the cost of a request that does nothing."""
        before, start = self._processor(), time.perf_counter()
        self._request("ping")
        return Cost(1000 * (time.perf_counter() - start), self._processor() - before)

    def private(self) -> float:
        """Return its private memory in megabytes."""
        return private_megabytes(self._data)

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.communicate()


class Table:
    """The printed lines: one a measurement, printed when it is complete."""

    def __init__(self) -> None:
        print(
            "| | old | new | ratio | processor: old | new | ratio |\n|:--|--:|--:|--:|--:|--:|--:|",
            flush=True,
        )

    def add(self, what: str, sides: Sequence[Sequence[Cost]], unit: float = 1) -> None:
        """Print the costs of both sides.

        :param unit: milliseconds of the unit.
        """
        share = 0.99 if len(sides[0]) >= MANY else 1
        elapsed = [[cost.elapsed / unit for cost in costs] for costs in sides]
        middle = [median(times) for times in elapsed]
        high = [percentile(times, share) for times in elapsed]
        worked = [median(cost.processor / unit for cost in costs) for costs in sides]
        cells = [f"{one:.1f} / {most:.1f}" for one, most in zip(middle, high, strict=True)]
        ratio = f"{middle[1] / middle[0]:.2f} / {high[1] / high[0]:.2f}"
        shown = [f"{one:.1f}" for one in worked]
        print(
            "|",
            " | ".join((what, *cells, ratio, *shown, f"{worked[1] / (worked[0] or 1):.2f}")),
            "|",
            flush=True,
        )

    def add_memory(self, what: str, old: float, new: float) -> None:
        """Print the private memory of both sides in megabytes."""
        print(f"| {what}, private memory, MB | {old:.0f} | {new:.0f} | {new / old:.2f} | | | |", flush=True)


def data_of(place: Path, root: Path, side: int) -> Path:
    """Return the data folder of an installation for a folder."""
    return place / f"data-{root.name}-{side}"


@contextmanager
def both(programs: Sequence[str], root: Path, place: Path) -> Iterator[list[Server]]:
    """Run a server of each installation for a folder."""
    with ExitStack() as open_servers:
        servers = []
        for number, program in enumerate(programs):
            servers.append(Server(program, root, data_of(place, root, number)))
            open_servers.callback(servers[-1].close)
        yield servers


def in_turn(servers: Sequence[Server], asked: Iterable[tuple[str, int, str]]) -> list[list[Cost]]:
    """Ask both servers each question, the first one first every other time."""
    found: list[list[Cost]] = [[], []]
    for number, question in enumerate(asked):
        for side in (0, 1) if number % 2 else (1, 0):
            found[side].append(servers[side].ask(*question))
    return found


@contextmanager
def edited_meanwhile(folder: Path) -> Iterator[None]:
    """Let another client change files."""
    ended = threading.Event()

    def edit() -> None:
        for _ in chain.from_iterable(edits(folder) for _ in repeat(None)):
            if ended.wait(EDIT_SECONDS):
                break

    client = threading.Thread(target=edit)
    client.start()
    try:
        yield
    finally:
        ended.set()
        client.join()


def first_answers(table: Table, programs: Sequence[str], place: Path, folder: Path, name: str) -> None:
    """Measure first answers of servers without an index, and the memory after them."""
    memory = list[float]()
    cold: list[list[Cost]] = [[], []]
    ahead: list[list[Cost]] = [[], []]
    for side, program in enumerate(programs):
        with closing(Server(program, folder, place / f"ahead-{folder.name}-{side}")) as server:
            time.sleep(AHEAD)
            ahead[side].append(server.ask("anything at all", BUDGETS[0]))
        flags = "--patience", str(PATIENCE)
        with closing(Server(program, folder, data_of(place, folder, side), *flags)) as server:
            cold[side].append(server.ask("anything at all", BUDGETS[0]))
            memory.append(server.private())
    table.add(f"{name}, cold, s", cold, 1000)
    table.add(f"{name}, first answer after {AHEAD:g} s, s", ahead, 1000)
    table.add_memory(f"{name}, after one question", *memory)


def folder_of(table: Table, programs: Sequence[str], place: Path, files: int, asked: Asked) -> None:
    """Measure a folder with a number of files."""
    folder = place / f"files-{files}"
    folder.mkdir()
    scale_corpus.write(folder, files, texts=[path.read_text(encoding="utf-8") for path in files_of(asked)])
    time.sleep(SETTLED)
    questions = [question for question, _ in asked.questions]
    name = f"{files:,} files"
    first_answers(table, programs, place, folder, name)
    with both(programs, folder, place) as servers:
        pings = [[server.nothing() for _ in questions] for server in servers]
        table.add("a ping", pings)
        for budget in BUDGETS:
            costs = in_turn(servers, ((question, budget, ".") for question in questions))
            table.add(f"{name}, budget {budget:,}", costs)
        edited = ((question, BUDGETS[0], ".") for question, _ in zip(reversed(questions), edits(folder)))  # noqa: B905
        table.add(f"{name}, an edit and the question about it", in_turn(servers, edited))
        with edited_meanwhile(folder):
            costs = in_turn(servers, ((question, BUDGETS[0], ".") for question in questions))
        table.add(f"{name}, a question while another client edits", costs)
        table.add_memory(name, *(server.private() for server in servers))
    restarts: list[list[Cost]] = [[], []]
    for question in islice(cycle(questions), RESTARTS):
        # One after the other: whichever was asked first would pay for its warm-up alone.
        for side, program in enumerate(programs):
            server = Server(program, folder, data_of(place, folder, side))
            restarts[side].append(server.ask(question, BUDGETS[0]))
            server.close()
    table.add(f"{name}, first call after a restart", restarts)


def one_file(table: Table, programs: Sequence[str], place: Path, asked: Asked) -> None:
    """Measure a start, and questions about one long file."""
    folder = place / "alone"
    folder.mkdir()
    (folder / "long.md").write_text(long_file(), encoding="utf-8")
    time.sleep(SETTLED)
    starts: list[list[Cost]] = [[], []]
    for _ in range(RESTARTS):
        with both(programs, folder, place) as servers:
            for side, server in enumerate(servers):
                starts[side].append(server.start)
    table.add("start until initialize has an answer", starts)
    with both(programs, folder, place) as servers:
        in_turn(servers, [("anything at all", BUDGETS[0], "long.md")])
        costs = in_turn(servers, ((question, BUDGETS[1], "long.md") for question, _ in asked.questions))
        table.add("one long file", costs)


def labelled_files(table: Table, programs: Sequence[str], place: Path, sets: Sequence[Asked]) -> None:
    """Measure questions about the files that have their answers."""
    found: list[list[Cost]] = [[], []]
    for asked in sets:
        with both(programs, asked.root, place) as servers:
            files = {".", *(file for _, file in asked.questions)}  # the servers have begun to index all
            in_turn(servers, [("zebra", BUDGETS[0], file) for file in files])
            budgets = cycle(BUDGETS)
            every = ((question, next(budgets), file) for question, file in asked.questions)
            for side, costs in enumerate(in_turn(servers, every)):
                found[side] += costs
    table.add("labelled questions in one file", found)


def files_of(asked: Asked) -> list[Path]:
    """Return the documents of all sets of a question's folder."""
    return sorted(asked.root.rglob("*.md"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_side", description=__doc__.split("\n")[0])
    parser.add_argument("old", help="program npl-mcp of the earlier installation")
    parser.add_argument("new", help="program npl-mcp of the later one")
    parser.add_argument("--files", type=int, action="append", help="number of files of a folder")
    parser.add_argument("--questions", type=int, default=100, help="questions about a folder")
    parser.add_argument("--sets", type=Path, help="folder of sets with corpus/ and queries")
    given = parser.parse_args(arguments)
    programs = [os.path.abspath(program) for program in (given.old, given.new)]  # noqa: PTH100 - links stay
    if given.sets is None:
        root = HERE.parents[1] / "corpus"
        sets = [labelled("the bundled prompts", root, [HERE / "corpus_queries.jsonl"])]
    else:
        folders = sorted(path.parent for path in given.sets.glob("*/corpus"))
        every = (labelled(one.name, one / "corpus", sorted(one.glob("queries*.jsonl"))) for one in folders)
        sets = [one for one in every if one.questions]
        root = given.sets
    # Questions of all sets in turn.
    mixed = [one for asked in sets for one in enumerate(asked.questions)]
    questions = [question for _, question in sorted(mixed, key=lambda one: one[0])][: given.questions]
    asked = Asked("all", root, questions)
    with tempfile.TemporaryDirectory() as name:
        place, table = Path(name), Table()
        one_file(table, programs, place, asked)
        labelled_files(table, programs, place, sets)
        for files in given.files or (1_000, 5_000):
            folder_of(table, programs, place, files, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
