"""What calls cost over standard streams: of one file, and of folders with many files.

Usage: ``python -m benchmarks.bench_scale [FILES]... [--against PROGRAM] [--sets FOLDER] [--questions N]``, by
default 1,000 and 5,000 files. ``--sets`` names a folder of sets with ``corpus/*.md`` and ``queries*.jsonl``,
as for :mod:`benchmarks.relevance`; without it, the bundled prompts and their questions. ``--against`` names
the program ``npl-mcp`` of another installation: which calls did a change make slower?

Two installations run at the same time, on the same files and each with its own index, and are asked in turn.
First answers and restarts are measured one server after the other. Each question is asked once of each server
and budget. A cell has milliseconds, or seconds of a first answer: p50 and maximum, and of many questions p50
and p99. *Processor* is the time of the server and its workers (Linux only), which other load changes little.
A ping does nothing: it is the floor of a call. ``cuts`` are questions about sections of ten thousand blocks.
A ratio below 1 is a gain.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain, cycle, islice, repeat
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import scale_corpus
from benchmarks.common import OLD_ENOUGH, long_file
from benchmarks.relevance.questions import QuestionSet
from benchmarks.servers import Cost, PipeServer
from benchmarks.times import Table, percentile

BUDGETS = (500, 2_000)
CUT_BUDGETS = (50, 300, 1_000, 3_000)
RESTARTS = 5
PATIENCE = 600
"""Seconds that first answers wait for the whole index."""

EDITS = 20
EDIT_SECONDS = 0.1
"""Pause between two edits of another client."""

LOOK_SECONDS = 0.25
"""Time between two looks at the memory of a server that indexes."""

MANY = 100
"""Number of times from which the second figure of a cell is p99, not the maximum."""

Costs = list[list[Cost]]
"""By installation."""


@dataclass(frozen=True)
class Asked:
    """Questions about the files of a folder, each with the file that holds its answer."""

    root: Path
    questions: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, one: QuestionSet) -> Asked:
        """Return the questions of a set, each about the file of its first label."""
        return cls(one.corpus, [(question.text, question.labels[0].file) for question in one.questions()])


class Bench:
    """The installations, their data folders, and the table.

    :param ahead: seconds that a server has before its first question.
    """

    def __init__(self, programs: Sequence[Sequence[str]], place: Path, ahead: float) -> None:
        self._programs, self._place, self._ahead = programs, place, ahead
        names = ("old", "new")[-len(programs) :]
        columns = [*names, *(f"processor: {name}" for name in names)]
        ratios = ["ratio", "ratio of processor"] if len(programs) > 1 else []
        self._table = Table("ms", *columns, *ratios)

    def _add(self, what: str, sides: Costs, unit: float = 1) -> None:
        share = 0.99 if len(sides[0]) >= MANY else 1
        elapsed = [[cost.elapsed / unit for cost in costs] for costs in sides]
        middle = [median(times) for times in elapsed]
        high = [percentile(times, share) for times in elapsed]
        cells = [f"{one:.1f} / {most:.1f}" for one, most in zip(middle, high, strict=True)]
        worked = [median(cost.processor / unit for cost in costs) for costs in sides]
        ratios = [f"{new / (old or 1):.2f}" for old, new in (middle, worked)] if len(sides) > 1 else []
        self._table.row(what, *cells, *worked, *ratios)

    def _add_memory(self, what: str, megabytes: Sequence[float]) -> None:
        blank = ["" for _ in megabytes]
        ratios = [f"{megabytes[1] / (megabytes[0] or 1):.2f}", ""] if len(megabytes) > 1 else []
        self._table.row(f"{what}, private memory, MB", *(f"{one:.0f}" for one in megabytes), *blank, *ratios)

    def _data(self, root: Path, side: int) -> Path:
        return self._place / f"data-{root.name}-{side}"

    @contextmanager
    def _servers(self, root: Path) -> Iterator[list[PipeServer]]:
        with ExitStack() as stack:
            yield [
                stack.enter_context(closing(PipeServer(program, root, self._data(root, side))))
                for side, program in enumerate(self._programs)
            ]

    def one_file(self, asked: Asked) -> None:
        """Measure starts, and questions about one long file."""
        folder = self._place / "alone"
        folder.mkdir()
        (folder / "long.md").write_text(long_file(), encoding="utf-8")
        time.sleep(OLD_ENOUGH)
        starts: Costs = [[] for _ in self._programs]
        for _ in range(RESTARTS):
            with self._servers(folder) as servers:
                for side, server in enumerate(servers):
                    starts[side].append(server.start)
        self._add("start until initialize has an answer", starts)
        with self._servers(folder) as servers:
            self._add("one long file, cold", in_turn(servers, [("anything at all", BUDGETS[0], "long.md")]))
            questions = ((question, BUDGETS[1], "long.md") for question, _ in asked.questions)
            self._add("one long file", in_turn(servers, questions))

    def files(self, what: str, sets: Sequence[Asked], budgets: Sequence[int]) -> None:
        """Measure questions about the files that have their answers."""
        found: Costs = [[] for _ in self._programs]
        for asked in sets:
            with self._servers(asked.root) as servers:
                names = {".", *(file for _, file in asked.questions)}  # the servers have begun to index all
                in_turn(servers, [("zebra", budgets[0], file) for file in names])
                turns = cycle(budgets)
                every = ((question, next(turns), file) for question, file in asked.questions)
                for side, costs in enumerate(in_turn(servers, every)):
                    found[side] += costs
        self._add(what, found)

    def folder(self, files: int, asked: Asked) -> None:
        """Measure a folder with a number of files."""
        folder = self._place / f"files-{files}"
        folder.mkdir()
        texts = [path.read_text(encoding="utf-8") for path in sorted(asked.root.rglob("*.md"))]
        scale_corpus.write(folder, files, texts=texts)
        time.sleep(OLD_ENOUGH)
        questions = [question for question, _ in asked.questions]
        name = f"{files:,} files"
        megabytes = sum(path.stat().st_size for path in folder.rglob("*.md")) / 1e6
        self._first_answers(folder, f"{name} of {megabytes:.1f} MB")
        with self._servers(folder) as servers:
            self._add("a ping", [[server.ping() for _ in questions] for server in servers])
            for budget in BUDGETS:
                costs = in_turn(servers, ((question, budget, ".") for question in questions))
                self._add(f"{name}, budget {budget:,}", costs)
            pairs = zip(questions, edits(folder), strict=False)
            costs = in_turn(servers, ((question, BUDGETS[0], ".") for question, _ in pairs))
            self._add(f"{name}, an edit and the question about it", costs)
            with other_edits(folder):
                costs = in_turn(servers, ((question, BUDGETS[0], ".") for question in questions))
            self._add(f"{name}, a question while another client edits", costs)
            self._add_memory(name, [server.private() for server in servers])
        restarts: Costs = [[] for _ in self._programs]
        for question in islice(cycle(questions), RESTARTS):
            # One after the other: whichever was asked first would pay for its warm-up alone.
            for side, program in enumerate(self._programs):
                with closing(PipeServer(program, folder, self._data(folder, side))) as server:
                    restarts[side].append(server.ask(question, BUDGETS[0]))
        self._add(f"{name}, first call after a restart", restarts)

    def _first_answers(self, folder: Path, name: str) -> None:
        cold: Costs = []
        ahead: Costs = []
        memory: list[float] = []
        indexing: list[float] = []
        for side, program in enumerate(self._programs):
            with closing(PipeServer(program, folder, self._place / f"ahead-{folder.name}-{side}")) as server:
                time.sleep(self._ahead)
                ahead.append([server.ask("anything at all", BUDGETS[0])])
            flags = "--patience", str(PATIENCE)
            with closing(PipeServer(program, folder, self._data(folder, side), *flags)) as server:
                with most_memory(server, indexing):
                    cold.append([server.ask("anything at all", BUDGETS[0])])
                memory.append(server.private())
        self._add(f"{name}, cold, s", cold, 1000)
        self._add(f"{name}, first answer after {self._ahead:g} s, s", ahead, 1000)
        self._add_memory(f"{name}, most while indexing", indexing)
        self._add_memory(f"{name}, after one question", memory)
        sizes = [
            sum(path.stat().st_size for path in self._data(folder, side).rglob("index-*")) / 1e6
            for side in range(len(self._programs))
        ]
        self._table.row(f"{name}, index on disk, MB", *sizes)


def in_turn(servers: Sequence[PipeServer], asked: Iterable[tuple[str, int, str]]) -> Costs:
    """Ask all servers each question, in another order every other time."""
    found: Costs = [[] for _ in servers]
    for number, question in enumerate(asked):
        for side in range(len(servers)) if number % 2 else reversed(range(len(servers))):
            found[side].append(servers[side].ask(*question))
    return found


def edits(folder: Path) -> Iterator[None]:
    """Change a file before each step."""
    paths = sorted(folder.rglob("*.md"))
    for number in range(EDITS):
        path = paths[number * 7 % len(paths)]
        path.write_text(path.read_text(encoding="utf-8") + f"\nOne more line {number}.\n", encoding="utf-8")
        yield


@contextmanager
def other_edits(folder: Path) -> Iterator[None]:
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


@contextmanager
def most_memory(server: PipeServer, most: list[float]) -> Iterator[None]:
    """Add the most private memory that a server has during the block, in megabytes."""
    ended, found = threading.Event(), [0.0]

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            found.append(server.private())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
        most.append(max(*found, server.private()))


def cuts(folder: Path, rows: int) -> Asked:
    """Write pages whose sections fit into no budget, with questions about rows of them."""
    kinds = {
        "paragraphs": "Row {} of the garden bears {}.\n\n",
        "items": "- row {} of the garden bears {}\n",
        "table": "| row {} | {} |\n",
        "lines": "Row {} of the garden bears {}. It is watered in the evening by hand.\n",
    }
    for kind, line in kinds.items():
        head = "| row | plant |\n|--|--|\n" if kind == "table" else ""
        text = "".join(line.format(number, f"plant{number}") for number in range(rows))
        (folder / f"{kind}.md").write_text(f"# Garden\n\n## Rows\n\n{head}{text}", encoding="utf-8")
    numbers = range(rows // 1_000, rows, max(1, rows // 9))
    return Asked(folder, [(f"which row bears plant{at}", f"{kind}.md") for at in numbers for kind in kinds])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_scale", description=__doc__.split("\n")[0])
    parser.add_argument("files", type=int, nargs="*", help="numbers of files of a folder")
    parser.add_argument("--against", metavar="PROGRAM", help="npl-mcp of another installation")
    parser.add_argument("--sets", type=Path, help="folder of sets with corpus/ and queries")
    parser.add_argument("--questions", type=int, default=100, help="questions about a folder")
    parser.add_argument("--rows", type=int, default=10_000, help="blocks of a section that is hard to cut")
    parser.add_argument("--ahead", type=float, default=10, help="seconds before a server's first question")
    given = parser.parse_args(arguments)
    programs = [[given.against]] if given.against else []
    programs.append([sys.executable, "-m", "npl_mcp"])
    sets = list(map(Asked.of, QuestionSet.below(given.sets)))
    # Questions of all sets in turn.
    turns = [one for asked in sets for one in enumerate(asked.questions)]
    questions = [question for _, question in sorted(turns, key=lambda one: one[0])][: given.questions]
    every = Asked(given.sets or sets[0].root, questions)
    with TemporaryDirectory() as name, TemporaryDirectory() as garden:
        bench = Bench(programs, Path(name), given.ahead)
        bench.one_file(every)
        bench.files("labelled questions in one file", sets, BUDGETS)
        bench.files("cuts", [cuts(Path(garden), given.rows)], CUT_BUDGETS)
        for files in given.files or (1_000, 5_000):
            bench.folder(files, every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
