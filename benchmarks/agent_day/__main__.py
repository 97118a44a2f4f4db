"""A day of an agent: what its tasks cost in tokens and calls, and which answers it holds.

Usage: ``python -m benchmarks.agent_day DOCS [--tasks FILE] [--systems NAMES] [--peer NAME]... [--days NAMES]
[--budget N] [--read-budget N] [--npl COMMAND] [--json FILE] [--verbose] [--show ID] [--readme [FILE]]``

*DOCS* is a folder that holds the documents of the tasks. Those of ``day.toml`` are ``fastapi``, ``pydantic``
and ``uv`` below it, which are not shipped; those of ``styles.toml`` are in ``documents`` here. The rule of
:mod:`benchmarks.agent_day.player` plays each task on three days: asked in everyday words, with the terms that
a good agent adds, and with likely headings as topics in addition. The systems are npl, as a server in a
process of its own, FTS5 with excerpts, grep (:mod:`benchmarks.agent_day.systems`), and the peers that are
named (:mod:`benchmarks.agent_day.peers`), which are installed from the package index. The figures are

- tokens of all arguments, as JSON, and of all answers, whole; exactly where the vocabulary is on the
  machine, else estimated;
- calls;
- *first*: tasks whose first answer holds what is needed;
- *listed*: tasks whose first answer does, or has a right section in its text or among its pointers;
- *held*: tasks that hold it at the end;
- *cost*: tokens, and a tenth of 50,000 for each call, which sends the conversation again;
- *absent*: topics that no document of a folder covers and whose answer has text.

``--days ''`` asks the absent topics alone. ``--readme`` stores the figures of the tasks in ``day.json`` and
writes README's table from them; without *DOCS* it only writes the table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.agent_day.peers import PEERS, PeerSystem
from benchmarks.agent_day.player import Count, Played, Player, Probed, System
from benchmarks.agent_day.systems import Fts5, Grep, Npl
from benchmarks.agent_day.tasks import DAYS, Day, Documents, read_day
from benchmarks.common import best_counter, put_between

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"
KEPT = HERE / "day.json"
MARKS = ("<!-- agent day -->", "<!-- /agent day -->")
SYSTEMS = {
    "npl": "**npl**",
    **{name: f"{name} {peer.package.rpartition('=')[2]}" for name, peer in PEERS.items()},
    "fts5": "SQLite FTS5",
    "grep": "`grep` and `sed`",
}
OURS = ("npl", "fts5", "grep")
WORDINGS = {"lay": "everyday words", "terms": "the documents' terms"}
FIGURES = ("tokens", "calls", "first", "listed", "held", "cost")

Days = Mapping[str, Mapping[str, list[Played]]]
"""How each task went, by day and system."""

Absent = Mapping[str, list[Probed]]
"""Answers about absent topics by system."""


@asynccontextmanager
async def opened(
    name: str, documents: Documents, count: Count, given: argparse.Namespace
) -> AsyncIterator[System]:
    """Open a system over documents."""
    if name in PEERS:
        async with PeerSystem.started(name, documents) as peer:
            yield peer
    elif name == "npl":
        async with Npl.started(shlex.split(given.npl), documents, given.budget, given.read_budget) as server:
            yield server
    else:
        yield Fts5(documents, count) if name == "fts5" else Grep(documents)


async def play(documents: Documents, day: Day, count: Count, given: argparse.Namespace) -> Days:
    """Play the tasks. Each day has a server of its own: it learns from what it was asked."""
    player = Player(documents, count)
    tasks = [task for task in day.tasks if given.show in (None, task.id)]
    days: dict[str, dict[str, list[Played]]] = {}
    for name in filter(None, given.days.split(",")):
        days[name] = {}
        for system in given.systems:
            if name == "topics" and system != "npl":
                continue  # others have no topics
            async with opened(system, documents, count, given) as asked:
                days[name][system] = [await player.play(task, name, asked) for task in tasks]
    return days


async def ask_absent(docs: Path, day: Day, count: Count, given: argparse.Namespace) -> Absent:
    """Ask each folder about its absent topics.

    :raises ValueError: a folder has a topic that should be absent.
    """
    found: dict[str, list[Probed]] = {system: [] for system in given.systems}
    for folder, topics in day.absent.items():
        documents = Documents.read(docs if docs.name == folder else docs / folder)
        if present := documents.present(topics):
            raise ValueError("\n".join(present))
        for system, rows in found.items():
            async with opened(system, documents, count, given) as asked:
                rows += await Player(documents, count).absent(topics, asked)
    return found


def figures(tasks: Sequence[Played]) -> dict[str, int]:
    """Return the sums over tasks."""
    return {name: sum(getattr(one, name) for one in tasks) for name in FIGURES}


def summary(days: Days, absent: Absent, counter: str) -> dict[str, Any]:
    """Return the sums of all days, and of absent topics."""
    return {
        "counter": counter,
        "tasks": max((len(tasks) for systems in days.values() for tasks in systems.values()), default=0),
        "days": {
            day: {system: figures(tasks) for system, tasks in systems.items()}
            for day, systems in days.items()
        },
        "absent": {
            system: {
                "topics": len(rows),
                "with_text": sum(one.found for one in rows),
                "tokens": sum(one.tokens for one in rows),
            }
            for system, rows in absent.items()
        },
    }


def table(day: str, sums: Mapping[str, Any]) -> str:
    """Write a day as a table in Markdown."""
    absent = sums["absent"]
    topics = max((one["topics"] for one in absent.values()), default=0)
    heads = [f"{day}, {sums['tasks']} tasks", *FIGURES, f"absent, of {topics}"]
    lines = [f"| {' | '.join(heads)} |", f"|:--|{'--:|' * (len(heads) - 1)}"]
    for system, row in sums["days"][day].items():
        with_text = absent[system]["with_text"] if system in absent else "–"
        lines.append(f"| {system} | {' | '.join(f'{row[name]:,}' for name in FIGURES)} | {with_text} |")
    return "\n".join(lines)


def readme_table(sums: Mapping[str, Any]) -> str:
    """Write README's table: a row for each system, each cell in everyday words / in the documents' terms."""
    absent = sums["absent"]
    topics = next(iter(absent.values()))["topics"]
    tokens = "tokens" if sums["counter"].startswith("tiktoken:") else "tokens (estimated)"
    asked = " / ".join(f"in {words}" for words in WORDINGS.values())
    lines = [
        f"| {sums['tasks']} tasks, {asked} | answered at once | {tokens} | calls | cost with turns"
        f" | absent topics with text, of {topics} |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for system, name in SYSTEMS.items():
        rows = [sums["days"][day][system] for day in WORDINGS if system in sums["days"][day]]
        if rows:
            shown = (
                " / ".join(f"{row[key]:,}" for row in rows) for key in ("first", "tokens", "calls", "cost")
            )
            lines.append(f"| {name} | {' | '.join(shown)} | {absent[system]['with_text']} |")
    return "\n".join(lines) + "\n"


def every_task(systems: Mapping[str, list[Played]]) -> str:
    """Write a line for each task: tokens, calls, and F, L and H if it is held first, listed, and held."""
    lines = [f"{'':<22} {'  '.join(f'{system[:12]:>12}' for system in systems)}"]
    for row in zip(*systems.values(), strict=True):
        cells = [f"{one.tokens:>6}/{one.calls} {one.letters}  " for one in row]
        lines.append(f"{row[0].id:<22} {'  '.join(cells)}")
    return "\n".join(lines)


def transcript(systems: Mapping[str, list[Played]], count: Count) -> str:
    """Write all calls and answers."""
    return "\n".join(
        f"=== {system} {count(answer.call)} {answer.call}\n--- {count(answer.text)}\n{answer.text}"
        for system, tasks in systems.items()
        for one in tasks
        for answer in one.answers
    )


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.agent_day", description=__doc__.split("\n")[0])
    parser.add_argument("docs", nargs="?", type=Path, help="folder of the documents that the tasks are about")
    parser.add_argument("--tasks", type=Path, default=HERE / "day.toml", help="tasks and absent topics")
    parser.add_argument("--systems", default=",".join(OURS), help="by default %(default)s")
    parser.add_argument(
        "--peer", action="append", default=[], choices=PEERS, help="one more system; it is installed"
    )
    parser.add_argument("--days", default=",".join(DAYS), help="by default %(default)s")
    parser.add_argument(
        "--budget", type=int, help="tokens of npl's answers to questions; by default none named"
    )
    parser.add_argument(
        "--read-budget", type=int, help="tokens of what npl is told to read; by default none named"
    )
    parser.add_argument("--npl", default=f"{sys.executable} -m npl_mcp", help="command of npl's server")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--verbose", action="store_true", help="print a line for each task and topic")
    parser.add_argument(
        "--readme", nargs="?", const=README, type=Path, metavar="FILE", help="write README's table"
    )
    parser.add_argument("--keep", type=Path, default=KEPT, help="file of the figures of README's table")
    parser.add_argument("--show", metavar="ID", help="play this task alone, and print the whole answers")
    given = parser.parse_args(arguments)
    given.systems = [*given.systems.split(","), *given.peer]
    if given.docs is None and not given.readme:
        parser.error("name the folder of the documents")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and print the tables."""
    given = parse(arguments)
    if given.docs is not None:
        counter, day, docs = best_counter(), read_day(given.tasks), given.docs.resolve()
        documents = Documents.read(docs)
        if faults := documents.faults(day.tasks):
            raise SystemExit("\n".join(faults))
        print(f"tokens: {counter.name}\n")
        days = asyncio.run(play(documents, day, counter.count, given))
        absent = asyncio.run(ask_absent(docs, day, counter.count, given)) if given.show is None else {}
        sums = summary(days, absent, counter.name)
        for name, systems in days.items():
            if given.show:
                print(transcript(systems, counter.count))
            if given.verbose:
                print(every_task(systems))
            print(f"{table(name, sums)}\n")
        for system, rows in absent.items():
            for one in rows if given.verbose else ():
                print(f"{system:<8} {one.tokens:>6} {'with text' if one.found else '-':<10} {one.question}")
            tokens = sum(one.tokens for one in rows) // max(1, len(rows))
            print(f"{system}: {sum(one.found for one in rows)} of {len(rows)} absent, {tokens} tokens each")
        if given.json:
            tasks = {
                day: {system: [one.row for one in played] for system, played in systems.items()}
                for day, systems in days.items()
            }
            rows_of = {system: list(map(asdict, rows)) for system, rows in absent.items()}
            written = {**sums, "played": tasks, "asked": rows_of}
            given.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
        if given.readme:
            given.keep.write_text(json.dumps(sums, indent=1) + "\n", encoding="utf-8")
    if given.readme:
        kept = json.loads(given.keep.read_text(encoding="utf-8"))
        put_between(given.readme, MARKS, readme_table(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
