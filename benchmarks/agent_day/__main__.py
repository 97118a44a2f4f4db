"""A day of an agent: what its tasks cost in tokens and calls, and which answers it holds.

Usage: ``python -m benchmarks.agent_day DOCS [--absent] [--tasks FILE] [--systems NAMES] [--days NAMES]
[--budget N] [--read-budget N] [--npl COMMAND] [--json FILE] [--verbose] [--show ID] [--readme [FILE]]``, or
``… --titles FOLDER…``

*DOCS* is a folder that holds the documents of the tasks. Those of ``day.toml`` are ``fastapi``, ``pydantic``
and ``uv`` below it, which are not shipped; those of ``styles.toml`` are in ``documents`` here. The rule of
:mod:`benchmarks.agent_day.player` plays each task on three days: asked in lay words, with the terms that a
good agent adds, and with likely headings as topics in addition. The systems are npl, as a server in a process
of its own, FTS5 with excerpts, and grep (:mod:`benchmarks.agent_day.systems`). The figures are

- tokens of all arguments, as JSON, and of all answers, whole; exactly where the vocabulary is on the
  machine, else estimated;
- calls;
- *first*: tasks whose first answer holds what is needed;
- *listed*: tasks whose first answer does, or has a right section in its text or among its pointers;
- *held*: tasks that hold it at the end.

``--absent`` asks each folder about topics that none of its documents covers, and counts the answers with
text. ``--titles`` asks pages of each folder for their own titles, and counts how often the best section
is of such a page. ``--readme`` plays the tasks and asks the absent topics, keeps the sums in ``day.json`` by
the name of the tasks' file, and writes README's first table from all that are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.agent_day import probes
from benchmarks.agent_day.player import Count, Played, Player, System
from benchmarks.agent_day.probes import Probed
from benchmarks.agent_day.systems import Fts5, Grep, Npl
from benchmarks.agent_day.tasks import DAYS, Day, Documents, read_day
from benchmarks.figures import put_between
from benchmarks.tokens_to_answer import best_counter
from npl_index.tokens.counting import TokenCounter

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"
KEPT = HERE / "day.json"
MARKS = ("<!-- agent day -->", "<!-- /agent day -->")
SYSTEMS = {
    "npl": "**npl**",
    "fts5": "FTS5",
    "grep": "`grep` and `sed`",
}
ASKED = {
    "lay": "in lay words",
    "terms": "with added terms",
    "topics": "with likely headings, too",
}

Days = Mapping[str, Mapping[str, list[Played]]]
"""How each task went, by day and system."""

Probes = Mapping[str, Mapping[str, list[Probed]]]
"""Answers by system and folder."""


@asynccontextmanager
async def opened(
    name: str, documents: Documents, count: Count, given: argparse.Namespace
) -> AsyncIterator[System]:
    """Open a system over documents."""
    if name == "npl":
        async with Npl.started(shlex.split(given.npl), documents, given.budget, given.read_budget) as server:
            yield server
    else:
        yield Fts5(documents, count) if name == "fts5" else Grep(documents)


async def play(documents: Documents, day: Day, count: Count, given: argparse.Namespace) -> Days:
    """Play the tasks. Each day has a server of its own: it learns from what it was asked."""
    player = Player(documents, count)
    tasks = [task for task in day.tasks if given.show in (None, task.id)]
    days: dict[str, dict[str, list[Played]]] = {}
    for name in given.days.split(","):
        days[name] = {}
        for system in given.systems.split(","):
            if name == "topics" and system != "npl":
                continue  # others have no topics
            async with opened(system, documents, count, given) as asked:
                days[name][system] = [await player.play(task, name, asked) for task in tasks]
    return days


async def probe(
    folders: Sequence[Path], absent: Mapping[str, Mapping[str, str]], count: Count, given: argparse.Namespace
) -> Probes:
    """Ask folders about absent topics, or without any, pages for their titles.

    :raises ValueError: a folder has a topic that should be absent.
    """
    found: dict[str, dict[str, list[Probed]]] = {system: {} for system in given.systems.split(",")}
    for folder in folders:
        documents = Documents.read(folder.resolve())
        topics = absent.get(folder.name, {})
        if present := documents.present(topics):
            raise ValueError("\n".join(present))
        for system, rows in found.items():
            async with opened(system, documents, count, given) as asked:
                asking = (
                    probes.absent(asked, topics, count) if topics else probes.titles(asked, documents, count)
                )
                rows["/".join(documents.folder.parts[-2:])] = await asking
    return found


def figures(tasks: Sequence[Played]) -> dict[str, int]:
    """Return the sums over tasks."""
    return {
        "tokens": sum(one.tokens for one in tasks),
        "calls": sum(one.calls for one in tasks),
        "first": sum(one.first for one in tasks),
        "listed": sum(one.listed for one in tasks),
        "held": sum(one.held for one in tasks),
    }


def table(day: str, systems: Mapping[str, list[Played]]) -> str:
    """Write a day as a table in Markdown."""
    number = max((len(tasks) for tasks in systems.values()), default=0)
    lines = [
        f"| {day}, {number} tasks | tokens | calls | first | listed | held |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for system, tasks in systems.items():
        lines.append(f"| {system} | {' | '.join(f'{one:,}' for one in figures(tasks).values())} |")
    return "\n".join(lines)


def kept_figures(days: Days, absent: Probes, counter: TokenCounter) -> dict[str, Any]:
    """Return the figures of README's table."""
    asked = {system: [one for rows in found.values() for one in rows] for system, found in absent.items()}
    return {
        "counter": counter.name,
        "tasks": max(len(tasks) for systems in days.values() for tasks in systems.values()),
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
            for system, rows in asked.items()
        },
    }


def readme_table(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Write README's table and the sentences below it from the kept figures."""
    is_exact = all(sums["counter"].startswith("tiktoken:") for sums in kept.values())
    lines = [
        f"| asked | answered by | {'tokens' if is_exact else 'tokens (estimated)'} | calls "
        "| first answer suffices | section listed | solved |",
        "|:--|:--|--:|--:|--:|--:|--:|",
    ]
    sentences = []
    for sums in kept.values():
        for day, systems in sums["days"].items():
            asked = f"{sums['tasks']} tasks {ASKED[day]}"
            for system, row in systems.items():
                cells = " | ".join(f"{one:,}" for one in row.values())
                lines.append(f"| {asked} | {SYSTEMS[system]} | {cells} |")
                asked = ""
        topics = max(one["topics"] for one in sums["absent"].values())
        said = ", ".join(
            f"{SYSTEMS[system]} {one['with_text']} ({one['tokens'] / one['topics']:,.0f})"
            for system, one in sums["absent"].items()
        )
        sentences.append(f"of {topics}, {said}")
    absent = f"Absent topics answered with text (tokens each): {'; '.join(sentences)}."
    return "\n".join([*lines, "", absent]) + "\n"


def every_task(systems: Mapping[str, list[Played]]) -> str:
    """Write a line for each task: tokens, calls, and F, L and H if it is held first, listed, and held."""
    lines = [f"{'':<22} {'  '.join(f'{system:>12}' for system in systems)}"]
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, and print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.agent_day", description=__doc__.split("\n")[0])
    parser.add_argument("docs", nargs="?", type=Path, help="folder of the documents that the tasks are about")
    parser.add_argument("--tasks", type=Path, default=HERE / "day.toml", help="tasks and absent topics")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="by default %(default)s")
    parser.add_argument("--days", default=",".join(DAYS), help="by default %(default)s")
    parser.add_argument(
        "--budget", type=int, help="tokens of npl's answers to questions; by default none named"
    )
    parser.add_argument(
        "--read-budget", type=int, help="tokens of what npl is told to read; by default none named"
    )
    parser.add_argument("--npl", default=f"{sys.executable} -m npl_mcp", help="command of npl's server")
    parser.add_argument("--absent", action="store_true", help="ask about absent topics")
    parser.add_argument("--titles", nargs="+", default=[], type=Path, metavar="FOLDER", help="ask for titles")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--verbose", action="store_true", help="print a line for each task or question")
    parser.add_argument(
        "--readme",
        nargs="?",
        const=README,
        type=Path,
        metavar="FILE",
        help="write the first table of this file, by default README.md",
    )
    parser.add_argument("--keep", type=Path, default=KEPT, help="file of the figures that --readme keeps")
    parser.add_argument("--show", metavar="ID", help="play this task alone, and print the whole answers")
    given = parser.parse_args(arguments)
    if (given.docs is None) != bool(given.titles):
        parser.error("name either DOCS or --titles")
    if given.readme and (given.absent or given.titles or given.show):
        parser.error("--readme plays all tasks: leave out --absent, --titles and --show")
    counter = best_counter()
    day = read_day(given.tasks)
    print(f"tokens: {counter.name}\n")
    if given.absent or given.titles:
        absent = day.absent if given.absent else {}
        try:
            found = asyncio.run(probe(_folders(given, absent), absent, counter.count, given))
        except ValueError as error:
            parser.error(str(error))
        results = _print_probes("with text" if given.absent else "page first", found, verbose=given.verbose)
    else:
        documents = Documents.read(given.docs.resolve())
        if faults := documents.faults(day.tasks):
            parser.error("\n".join(faults))
        days = asyncio.run(play(documents, day, counter.count, given))
        results = _print_days(days, counter.count, given)
        if given.readme:
            found = asyncio.run(probe(_folders(given, day.absent), day.absent, counter.count, given))
            kept = json.loads(given.keep.read_text(encoding="utf-8")) if given.keep.exists() else {}
            kept[given.tasks.stem] = kept_figures(days, found, counter)
            given.keep.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            put_between(given.readme, MARKS, readme_table(kept))
    if given.json:
        written = {
            "counter": counter.name,
            "budget": given.budget,
            "read_budget": given.read_budget,
            **results,
        }
        given.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


def _folders(given: argparse.Namespace, absent: Mapping[str, Any]) -> Sequence[Path]:
    """Return the folders that are asked: those of the absent topics, else those named."""
    docs = given.docs and given.docs.resolve()
    return [docs if docs.name == folder else docs / folder for folder in absent] or given.titles


def _print_days(days: Days, count: Count, given: argparse.Namespace) -> dict[str, Any]:
    for name, systems in days.items():
        if given.show:
            print(transcript(systems, count))
        if given.verbose:
            print(every_task(systems))
        print(f"{table(name, systems)}\n")
    return {
        name: {
            system: {**figures(tasks), "tasks": [one.row for one in tasks]}
            for system, tasks in systems.items()
        }
        for name, systems in days.items()
    }


def _print_probes(what: str, found: Probes, *, verbose: bool) -> dict[str, Any]:
    if verbose:
        for system, folders in found.items():
            for folder, rows in folders.items():
                for one in rows:
                    mark = what if one.found else "-"
                    print(f"{system:<5} {folder:<12} {one.tokens:>6} {mark:<10} {one.question}")
    print(probes.table(what, found))
    return {
        system: {folder: [one.row for one in rows] for folder, rows in folders.items()}
        for system, folders in found.items()
    }


if __name__ == "__main__":
    sys.exit(main())
