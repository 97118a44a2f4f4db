"""Parts of a call in this process: ranking, writing, parsing and indexing, compared with peers.

Usage: ``python -m benchmarks.bench_parts [FOLDER]... [--rounds N] [--files N]``; FOLDERs hold documents to
parse. Figures are processor time, the best of several rounds. A request over the files costs 200 ms at most,
or the exit code is 1.

Fair: the peers get the same documents. ``BM25Okapi`` scores words split at blanks, with one field, no stems
and no keywords: the lowest cost of ranking sections with rank-bm25 alone. markdown-it-py has the same
extensions as ours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from rank_bm25 import BM25Okapi

from benchmarks.common import CONTEXTS, corpus_texts, document, long_file, settings, write_folder
from benchmarks.times import Table, best_ms
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Json
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import write
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.sections import parse_sections
from npl_index.ranking.documents import dump_sections, restore_sections
from npl_index.ranking.indexing import index_document
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_index.tokens.estimated import estimator
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.app import App
from tests.tools import npl_load_tailored

MOST_MS = 200
"""Limit of a request over all files."""

SIZE = 200_000
PROSE = "The harbour master keeps a book of every ship that berths, its depth, its cargo and its\n" * 4 + "\n"
HOSTILE = {
    "headings": "# h\n\ntext\n\n\n",
    "nested items on a line": "- ",
    "quote marks": ">",
    "list items": "- a\n",
    "quoted lines": "> a\n",
    "table": "| a | b |\n|---|---|\n" + "| a | b |\n" * 400 + "\n",
    "open brackets": "[",
    "headings of brackets": "# " + "[" * 400 + "\n\n" + "text " * 400 + "\n",
    "link definitions": "[a]: /b (\n",
    "definitions": "a\n: b\n",
    "tags": "<a b\n",
    "emphasis in headings": "# " + "*a_ " * 20 + "\n\n" + "text " * 100 + "\n",
    "blank lines": "\n",
}

Works = Mapping[str, Callable[[], object]]


def warm() -> Works:
    """Return the steps of eight requests for an indexed file; the first is a peer's."""
    indexed, counter = index_document(document(long_file().encode(), "long.md")), estimator()
    counts = TokenCounts(indexed.tree, counter)
    counts.stored()  # as of an indexed document
    sections = indexed.tree.sections
    okapi = BM25Okapi([indexed.tree.text(one.own).lower().split() or [""] for one in sections])
    requests = [TailorRequest.parse(context=context, token_budget=2000) for context in CONTEXTS]
    keywords = [extract_keywords(context) for context in CONTEXTS]
    documents = DocumentSet(
        collection=indexed.collection,
        several=False,
        file="long.md",
        counts=lambda _: counts,
        count_with=lambda: counter,
    )
    return {
        "rank-bm25, get_scores": lambda: [okapi.get_scores(one.lower().split()) for one in CONTEXTS],
        "keywords": lambda: list(map(extract_keywords, CONTEXTS)),
        "rank": lambda: [rank(indexed.collection, Query(one)) for one in keywords],
        "answer": lambda: [write(request, documents, Json()) for request in requests],
    }


def cold() -> Works:
    """Return the steps of the first request for a file; the first is a peer's."""
    long, counter = document(long_file().encode(), "long.md"), estimator()
    indexed = index_document(long)
    stored = dump_sections(indexed)
    return {
        "markdown-it-py": lambda: MarkdownIt("commonmark").enable("table").parse(long.data.decode()),
        "parse": lambda: parse_sections(long.data, long.name),
        "index": lambda: index_document(long),
        "count tokens": lambda: TokenCounts(indexed.tree, counter).stored(),
        "restore": lambda: restore_sections(stored, lambda _: long, lambda: long.data),
    }


def parsers(documents: Sequence[str]) -> Works:
    """Return the ways to parse documents; the first is a peer's."""
    full = MarkdownIt("commonmark").enable("table").use(deflist_plugin)
    return {
        "markdown-it-py": lambda: [full.parse(text) for text in documents],
        "our blocks": lambda: [read_blocks(text) for text in documents],
        "our tree of sections": lambda: [parse_sections(text.encode(), "x") for text in documents],
    }


def compare(title: str, works: Works, rounds: int) -> None:
    """Print the time of each step, and how many times the peer's it is."""
    table = Table(title, "ms", "times the first")
    best = {name: best_ms(work, rounds) for name, work in works.items()}
    for name, spent in best.items():
        table.compared(name, next(iter(best.values())), spent)
    print()


def texts_in(folders: Sequence[Path]) -> list[str]:
    """Return the bundled documents, and those of folders."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.md"))]
    return [*corpus_texts(), *(path.read_text("utf-8-sig", "replace") for path in paths)]


def request_ms(files: int, rounds: int) -> float:
    """Return the best processor time of a request over a number of files."""
    with TemporaryDirectory() as name:
        write_folder(Path(name), files)
        app, contexts = App(settings(Path(name))), cycle(CONTEXTS)

        def ask() -> object:
            return npl_load_tailored(app, context=next(contexts), token_budget=2000)

        ask()
        best = best_ms(ask, rounds * len(CONTEXTS))
        app.close()
        return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_parts", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="folders of more documents to parse")
    parser.add_argument("--rounds", type=int, default=7, help="of which the best counts")
    parser.add_argument("--files", type=int, default=100, help="files of a request over a folder")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of a hostile document")
    given = parser.parse_args(arguments)
    compare("warm: eight contexts, one file of 225 headings", warm(), given.rounds)
    compare("cold: one file of 225 headings", cold(), given.rounds)
    documents = texts_in(given.folders)
    compare(f"{len(documents)} documents", parsers(documents), given.rounds)
    prose = ("## Tides\n\n" + PROSE * 3) * (given.size // 1100)
    compare("prose with a heading every 1.1 kB", parsers([prose]), given.rounds)
    table = Table(f"hostile document of {given.size:,} bytes", "microseconds a byte")
    for name, piece in HOSTILE.items():
        data = (piece * (given.size // len(piece) or 1)).encode()
        table.row(name, 1000 * best_ms(lambda data=data: parse_sections(data, "x"), 1) / len(data))  # type: ignore[misc]
    spent = request_ms(given.files, given.rounds)
    print(f"\na request over {given.files} files: {spent:.1f} ms of {MOST_MS} allowed")
    return int(spent > MOST_MS)


if __name__ == "__main__":
    sys.exit(main())
