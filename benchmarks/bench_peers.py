"""npl compared with its alternatives, and the token cost of its tool lists.

Usage: ``python -m benchmarks.bench_peers [--set FOLDER]... [--folder] [--lists] [--peer EXECUTABLE]
[--readme]``

Sets are those of :mod:`benchmarks.relevance`, the peer is that of :mod:`benchmarks.peer`. Measured are

- the tokens of :mod:`benchmarks.tokens_to_answer`; of the peer, those of one search for three sections,
  which are read one by one until the answer is there;
- how high the first right section is ranked, as :mod:`benchmarks.relevance` counts it: mean reciprocal rank;
- how long a question takes that was not asked before, about a folder of 1,000 files that is indexed: the
  median, servers over standard input and output, FTS5 in this process's memory, ``grep`` as a process;
- the tokens of the list of tools, which every conversation pays.

All are means of the sets' means. The sets, the folder and npl's lists can be measured one after the other:
the figures are stored in ``bench_peers.json``, and the texts are made from them. ``--readme`` writes
the sentence about lists of tools into the project's README.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from benchmarks import scale_corpus
from benchmarks.bench_scale import SETTLED, questions, timed
from benchmarks.common import median_ms, settings
from benchmarks.figures import put_between
from benchmarks.peer import Peer, Place
from benchmarks.relevance import __main__ as relevance
from benchmarks.relevance.__main__ import FEWEST_HEADINGS, Label, Question, Scope, reciprocal_rank
from benchmarks.relevance.plain import PlainSearch
from benchmarks.tokens_to_answer import BUDGET, WAYS, best_counter, measure, pages, sets_of
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.indexing import KnownCollection
from npl_mcp.server.server import create_server

KEPT = Path(__file__).with_suffix(".json")
README = KEPT.parent.parent / "README.md"
LIST_MARKS = ("<!-- tool lists -->", "<!-- /tool lists -->")
FILES = 1_000

ROWS = {
    "file": "the whole file",
    "grep": "`grep -n`, reading around hits",
    "outline": "an outline, then the section",
    "fts5": "SQLite FTS5",
    "peer": "jDocMunch {version} over MCP",
    "tailored": "**npl**",
}

LISTS: dict[str, dict[str, object]] = {
    "reading": {"domains": ("reading",)},
    "all": {},
    "small": {"small_list": True},
}
"""Settings that list other tools."""

Figures = dict[str, Any]


async def of_set(corpus: Path, asked: Sequence[Question], count: Callable[[str], int], peer: str) -> Figures:
    """Return tokens and ranks of one set, by scope and way."""
    means = measure(corpus, asked, count)
    tokens = {scope: dict(zip(WAYS, row, strict=True)) for scope, row in means.items()}
    documents = relevance.read_documents(corpus)
    rows = relevance.measure(documents, asked)
    ranks = {
        scope: {"tailored": rows[name]["reciprocal_rank"], "fts5": rows[name]["fts5"]}
        for scope, name in (("page", "file"), ("folder", "folder"))
    }
    scope = Scope(documents, joined=False)
    async with Peer.started(peer, corpus) as server:
        for name, known in (("page", True), ("folder", False)):
            tokens[name]["peer"] = fmean(
                [
                    await server.cost(question, page, count, known=known)
                    for question in asked
                    for page in list(pages(documents, question.labels))[:1]
                ]
            )
        ranks["page"]["peer"] = fmean(
            [
                await _reciprocal(server, scope, question, name)
                for question in asked
                for name in {label.file: None for label in question.labels if label.line or label.heading}
                if sum(one.level > 0 for one in documents[name].tree.sections) >= FEWEST_HEADINGS
            ]
        )
        ranks["folder"]["peer"] = fmean([await _reciprocal(server, scope, question) for question in asked])
    return {"questions": len(asked), "tokens": tokens, "ranks": ranks}


async def _reciprocal(server: Peer, scope: Scope, question: Question, file: str | None = None) -> float:
    labels = [label for label in question.labels if file in (None, label.file)]
    wanted = set(places(scope, labels))
    return reciprocal_rank([place in wanted for place in await server.ranked(question, file)])


def places(scope: Scope, labels: Iterable[Label]) -> Iterable[Place]:
    """Return the headings of the sections that labels stand for."""
    for label in labels:
        for document, section in map(scope.collection.place, scope.numbers(label)):
            indexed = scope.collection.documents[document]
            yield Place(indexed.document.path, indexed.tree.sections[section].heading_lines.start)


async def of_folder(count: Callable[[str], int], peer: str) -> Figures:
    """Return milliseconds of a question about a large folder, and tokens of the peer's list of tools."""
    with TemporaryDirectory() as name:
        folder, data = Path(name) / "documents", Path(name) / "data"
        folder.mkdir()
        scale_corpus.write(folder, FILES)
        command = ["-m", "npl_mcp", "--root", str(folder), "--data-dir", str(data)]
        plain = PlainSearch(KnownCollection(list(relevance.read_documents(folder).values())))
        times: dict[str, list[float]] = {"tailored": [], "peer": [], "fts5": [], "grep": []}
        async with (
            Client(StdioTransport(sys.executable, command, keep_alive=False)) as client,
            Peer.started(peer, folder) as server,
        ):
            request = {"file": ".", "token_budget": BUDGET}
            await client.call_tool("npl_load_tailored", {"context": "anything at all", **request})
            await server.call("search_sections", query="anything at all")
            time.sleep(SETTLED)
            for question in questions(1):
                asking = client.call_tool("npl_load_tailored", {"context": question, **request})
                times["tailored"].append(await timed(asking))
                times["peer"].append(await timed(server.call("search_sections", query=question)))
                times["fts5"].append(median_ms(lambda _, asked=question: plain.rank(asked), 1))  # type: ignore[misc]
                times["grep"].append(median_ms(lambda _, asked=question: _grep(asked, folder), 1))  # type: ignore[misc]
            costs = {"peer": tokens_of(await server.tools(), count)}
            version = server.version()
    medians = {way: statistics.median(taken) for way, taken in times.items()}
    return {"milliseconds": medians, "lists": costs, "version": version}


def tokens_of(tools: Sequence[Figures], count: Callable[[str], int]) -> int:
    """Return the tokens of a list of tools as it is sent."""
    return count(json.dumps({"tools": tools}, separators=(",", ":"), ensure_ascii=False))


async def own_lists(count: Callable[[str], int]) -> dict[str, dict[str, int]]:
    """Return how many tools npl lists and their tokens: those for reading, all, and the small list."""
    found = {}
    for name, changes in LISTS.items():
        with TemporaryDirectory() as folder:
            served = settings(Path(folder), data_dir=Path(folder), **changes)
            async with Client(create_server(served)) as client:
                tools = [
                    tool.model_dump(mode="json", by_alias=True, exclude_none=True)
                    for tool in await client.list_tools()
                ]
        found[name] = {"tools": len(tools), "tokens": tokens_of(tools, count)}
    return found


def _grep(question: str, folder: Path) -> None:
    words = [word for word in extract_keywords(question).words if " " not in word]
    pattern = "|".join(map(re.escape, words))
    subprocess.run(["grep", "-rniE", pattern, str(folder)], capture_output=True, check=False)


def table(measured: Figures) -> str:
    """Write the table in Markdown."""
    sets, folder, own = list(measured["sets"].values()), measured["folder"], measured["lists"]

    def means(kind: str, way: str, form: str) -> str:
        if way not in sets[0][kind]["page"]:
            return "–"
        return " / ".join(
            format(fmean(one[kind][scope][way] for one in sets), form) for scope in ("page", "folder")
        )

    lists = {
        "peer": f"{folder['lists']['peer']:,}",
        "tailored": f"{own['reading']['tokens']:,} or {own['all']['tokens']:,}",
    }
    lines = [
        "| | tokens until the answer is read | right section first (MRR) "
        "| a question over 1,000 files | tokens of the tool list |",
        "|:--|--:|--:|--:|--:|",
    ]
    for way, name in ROWS.items():
        taken = folder["milliseconds"].get(way)
        cells = [
            means("tokens", way, ",.0f"),
            means("ranks", way, ".2f"),
            "–" if taken is None else f"{taken:,.0f} ms",
            lists.get(way, "–"),
        ]
        lines.append(f"| {name.format(version=folder['version'])} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def sentence(measured: Figures) -> str:
    """Return the sentence about the token cost of tool lists."""
    reading, every, small = (measured["lists"][name] for name in LISTS)
    return (
        f"`--domains reading` lists {reading['tools']} tools in {reading['tokens']:,} tokens; "
        f"without it all {every['tools']} take {every['tokens']:,}.\n"
        f"`--small-list` has {small['tools']} tools in {small['tokens']:,} tokens: `search`, the two section "
        "tools, one that finds the others, and one that calls them.\n"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the requested parts, and write the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_peers", description=__doc__.split("\n")[0])
    parser.add_argument("--set", action="append", default=[], type=Path, help="folder of labelled questions")
    parser.add_argument("--folder", action="store_true", help="measure a folder of 1,000 files")
    parser.add_argument(
        "--lists", action="store_true", help="measure npl's own lists of tools; takes seconds"
    )
    parser.add_argument("--peer", default="jdocmunch-mcp", help="executable of the peer")
    parser.add_argument("--keep", type=Path, default=KEPT, help="file of what was measured")
    parser.add_argument("--readme", action="store_true", help="write the table and the sentence")
    given = parser.parse_args(arguments)
    measured: Figures = json.loads(given.keep.read_text(encoding="utf-8")) if given.keep.exists() else {}
    counter = best_counter()
    if given.set:
        measured["counter"] = counter.name
        measured["sets"] = {
            name: asyncio.run(of_set(corpus, asked, counter.count, given.peer))
            for name, corpus, asked in sets_of(given.set)
        }
    if given.folder:
        measured["folder"] = asyncio.run(of_folder(counter.count, given.peer))
    if given.lists:
        measured["lists"] = asyncio.run(own_lists(counter.count))
    if given.set or given.folder or given.lists:
        given.keep.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if missing := {"sets", "folder", "lists"} - measured.keys():
        print(f"still to be measured: {', '.join(sorted(missing))}")
        return 1
    print(table(measured), sentence(measured), sep="\n")
    if given.readme:
        put_between(README, LIST_MARKS, sentence(measured))
    return 0


if __name__ == "__main__":
    sys.exit(main())
