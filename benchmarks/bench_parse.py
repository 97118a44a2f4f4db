"""Parsing in this process, compared with a peer, and of hostile documents.

Usage: ``python -m benchmarks.bench_parse [FOLDER]... [--rounds N]``; FOLDERs hold documents to parse. Figures
are processor time, the best of several rounds. markdown-it-py has the same extensions as ours.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin

from benchmarks.common import corpus_texts
from benchmarks.times import Table, best_ms
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.sections import parse_sections

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.bench_parse", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="folders of more documents to parse")
    parser.add_argument("--rounds", type=int, default=7, help="of which the best counts")
    parser.add_argument("--size", type=int, default=SIZE, help="bytes of a hostile document")
    given = parser.parse_args(arguments)
    documents = texts_in(given.folders)
    compare(f"{len(documents)} documents", parsers(documents), given.rounds)
    prose = ("## Tides\n\n" + PROSE * 3) * (given.size // 1100)
    compare("prose with a heading every 1.1 kB", parsers([prose]), given.rounds)
    table = Table(f"hostile document of {given.size:,} bytes", "microseconds a byte")
    for name, piece in HOSTILE.items():
        data = (piece * (given.size // len(piece) or 1)).encode()
        table.row(name, 1000 * best_ms(lambda data=data: parse_sections(data, "x"), 1) / len(data))  # type: ignore[misc]
    return 0


if __name__ == "__main__":
    sys.exit(main())
