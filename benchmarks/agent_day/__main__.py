"""A day of an agent: what its tasks cost in tokens and calls, and which answers it holds.

Usage: ``python -m benchmarks.agent_day DOCS [--tasks FILE] [--systems NAMES] [--days NAMES] [--budget N]
[--npl COMMAND] [--json FILE] [--verbose] [--show ID]``, ``… DOCS --absent`` or ``… --titles FOLDER…``

*DOCS* is a folder that holds the documents of the tasks; those of ``day.toml`` are ``fastapi``, ``pydantic`` and
``uv`` below it, which are not shipped. The rule of :mod:`benchmarks.agent_day.player` plays each task on three
days: asked in lay words, with the terms that a good agent adds, and with likely headings as topics besides.
Asked are npl, as a server in a process of its own, FTS5 with excerpts, and grep
(:mod:`benchmarks.agent_day.systems`). Counted are

- tokens of all arguments, as JSON, and of all answers, whole; exactly where the vocabulary is on the machine,
  else estimated;
- calls;
- tasks whose first answer holds what is needed (*first*);
- tasks whose first answer does, or has a right section in its text or among its pointers (*listed*);
- tasks that hold it at the end (*held*).

``--absent`` asks of each folder what none of its documents is about, and counts the answers that have text of
documents. ``--titles`` asks pages of each folder for their own titles, and counts how often the best section
is of such a page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.agent_day.player import Played, Player, System
from benchmarks.agent_day.systems import Count, Fts5, Grep, Npl, marks, pointers
from benchmarks.agent_day.tasks import DAYS, Day, Documents, Phrasing, read_day
from benchmarks.tokens_to_answer import best_counter

HERE = Path(__file__).parent
SYSTEMS = ("npl", "fts5", "grep")
MOST_PAGES = 60
"""Pages of a folder that are asked for their titles."""

Figures = dict[str, Any]


@asynccontextmanager
async def opened(
    name: str, documents: Documents, count: Count, given: argparse.Namespace
) -> AsyncIterator[System]:
    """Open a system over documents."""
    if name == "npl":
        async with Npl.started(shlex.split(given.npl), documents, given.budget) as server:
            yield server
    else:
        yield Fts5(documents, count) if name == "fts5" else Grep(documents)


async def played(
    documents: Documents, day: Day, count: Count, given: argparse.Namespace
) -> dict[str, dict[str, list[Played]]]:
    """Return how each task went, by day and system.

    Each day has a server of its own: it learns from what it was asked.
    """
    player = Player(documents, count)
    tasks = [task for task in day.tasks if given.show in (None, task.id)]
    days: dict[str, dict[str, list[Played]]] = {}
    for name in given.days.split(","):
        days[name] = {}
        for system in given.systems.split(","):
            if name == "topics" and system != "npl":
                continue
            async with opened(system, documents, count, given) as asked:
                days[name][system] = [await player.play(task, name, asked) for task in tasks]
    return days


def figures(tasks: Sequence[Played]) -> Figures:
    """Return the sums over tasks."""
    return {
        "tokens": sum(one.tokens for one in tasks),
        "calls": sum(one.calls for one in tasks),
        "first": sum(one.first for one in tasks),
        "listed": sum(one.listed for one in tasks),
        "held": sum(one.held for one in tasks),
    }


def table(name: str, systems: dict[str, list[Played]]) -> str:
    """Write a day as a table in Markdown."""
    number = max((len(tasks) for tasks in systems.values()), default=0)
    lines = [
        f"| {name}, {number} tasks | tokens | calls | first | listed | held |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for system, tasks in systems.items():
        lines.append(f"| {system} | {' | '.join(f'{one:,}' for one in figures(tasks).values())} |")
    return "\n".join(lines)


def every_task(systems: dict[str, list[Played]]) -> str:
    """Write a line for each task: tokens, calls, and F, L or H if the answer was held first, listed, or held."""
    lines = []
    for row in zip(*systems.values(), strict=True):
        cells = [
            f"{one.tokens:>6}/{one.calls} "
            + "".join(
                mark if is_so else "-"
                for mark, is_so in zip("FLH", (one.first, one.listed, one.held), strict=True)
            )
            for one in row
        ]
        lines.append(f"{row[0].id:<22} {'  '.join(cells)}")
    return "\n".join([f"{'':<22} {'  '.join(f'{name:>12}' for name in systems)}", *lines])


def transcript(systems: dict[str, list[Played]], count: Count) -> str:
    """Write what was sent and what came back."""
    return "\n".join(
        f"=== {name} {count(answer.call)} {answer.call}\n--- {count(answer.text)}\n{answer.text}"
        for name, tasks in systems.items()
        for one in tasks
        for answer in one.answers
    )


async def absent(documents: Path, day: Day, count: Count, given: argparse.Namespace) -> Figures:
    """Return, by system and folder, the tokens of each answer to a topic, and whether it has text."""
    found: Figures = {system: {} for system in given.systems.split(",")}
    for folder, topics in day.absent.items():
        below = Documents.read(documents / folder)
        for system, folders in found.items():
            async with opened(system, below, count, given) as asked:
                folders[folder] = []
                for topic in topics:
                    answer = await asked.ask(Phrasing(topic))
                    cost = count(answer.call) + count(answer.text)
                    folders[folder].append(
                        {"topic": topic, "tokens": cost, "text": bool(asked.passages(answer))}
                    )
    return found


def absent_table(found: Figures) -> str:
    """Write the answers to absent topics as a table in Markdown."""
    lines = ["| absent topics | folder | topics | with text | tokens each |", "|:--|:--|--:|--:|--:|"]
    for system, folders in found.items():
        folders = {**folders, "all": [one for rows in folders.values() for one in rows]}
        for folder, rows in folders.items():
            text, tokens = sum(one["text"] for one in rows), fmean(one["tokens"] for one in rows)
            lines.append(f"| {system} | {folder} | {len(rows)} | {text} | {tokens:,.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.agent_day", description=__doc__.split("\n")[0])
    parser.add_argument("docs", nargs="?", type=Path, help="folder of the documents that the tasks are about")
    parser.add_argument("--tasks", type=Path, default=HERE / "day.toml", help="the tasks")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="by default %(default)s")
    parser.add_argument("--days", default=",".join(DAYS), help="by default %(default)s")
    parser.add_argument(
        "--budget", type=int, help="tokens that each call of npl asks for; by default it says nothing"
    )
    parser.add_argument(
        "--npl", default=f"{sys.executable} -m npl_mcp", help="command that starts the server"
    )
    parser.add_argument("--absent", action="store_true", help="ask what no document is about")
    parser.add_argument("--titles", nargs="+", type=Path, metavar="FOLDER", help="ask pages for their titles")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--verbose", action="store_true", help="print a line for each task or topic")
    parser.add_argument("--show", metavar="ID", help="play one task, and print the whole answers")
    given = parser.parse_args(arguments)
    counter = best_counter()
    day = read_day(given.tasks)
    print(f"tokens: {counter.name}\n")
    results: Figures = {"counter": counter.name, "budget": given.budget}
    if given.docs is None:
        parser.error("DOCS is missing")
    elif given.absent:
        results["absent"] = asyncio.run(absent(given.docs.resolve(), day, counter.count, given))
        if given.verbose:
            for system, folders in results["absent"].items():
                for folder, rows in folders.items():
                    for row in rows:
                        print(
                            f"{system:<5} {folder:<9} {row['tokens']:>6} {'text' if row['text'] else '-':<5} {row['topic']}"
                        )
        print(absent_table(results["absent"]))
    else:
        documents = Documents.read(given.docs.resolve())
        if faults := documents.faults(day.tasks):
            parser.error("\n".join(faults))
        days = asyncio.run(played(documents, day, counter.count, given))
        results["days"] = {
            name: {
                system: {**figures(tasks), "tasks": [_row(one) for one in tasks]}
                for system, tasks in systems.items()
            }
            for name, systems in days.items()
        }
        for name, systems in days.items():
            if given.show:
                print(transcript(systems, counter.count))
            if given.verbose:
                print(every_task(systems))
            print(f"{table(name, systems)}\n")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


def _row(one: Played) -> Figures:
    row = {key: value for key, value in asdict(one).items() if key != "answers"}
    return {**row, "calls": one.calls}


if __name__ == "__main__":
    sys.exit(main())
