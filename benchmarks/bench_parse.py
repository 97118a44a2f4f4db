"""The cost of parsing Markdown, compared with unmodified markdown-it-py.

Usage: ``python benchmarks/bench_parse.py [FOLDER ...]``; without folders, the bundled corpus and the case
documents are parsed. Figures are processor time, the best of interleaved rounds, so that other load on
the machine affects all parsers alike.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

from common import corpus_texts
from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin

from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.sections import parse_sections

ROUNDS = 7
CASES = Path(__file__).parents[1] / "tests" / "cases" / "sections"
PROSE = "The harbour master keeps a book of every ship that berths, its depth, its cargo and its\n" * 4 + "\n"
SIZE = 200_000
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


def texts(folders: Sequence[str]) -> list[str]:
    """Read the documents to parse."""
    if not folders:
        return corpus_texts() + [path.read_text(encoding="utf-8") for path in sorted(CASES.glob("*.md"))]
    paths = [path for folder in folders for path in sorted(Path(folder).rglob("*.md"))]
    return [path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n") for path in paths]


def compare(works: dict[str, Callable[[], object]], megabytes: float) -> None:
    """Print MB/s of each parser, and its speed relative to the first."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - start)
    first = next(iter(best.values()))
    for name, seconds in best.items():
        print(f"  {name:34} {megabytes / seconds:7.1f} MB/s {first / seconds:6.1f} x")


def stock(*disabled: str) -> MarkdownIt:
    """Create a markdown-it-py parser with the same extensions."""
    return MarkdownIt("commonmark").enable("table").use(deflist_plugin).disable(list(disabled))


def parsers(documents: list[str]) -> dict[str, Callable[[], object]]:
    """Return the ways to parse all documents."""
    full, blocks = stock(), stock("inline", "text_join")
    data = [text.encode() for text in documents]
    return {
        "markdown-it-py": lambda: [full.parse(text) for text in documents],
        "markdown-it-py, blocks only": lambda: [blocks.parse(text) for text in documents],
        "our blocks": lambda: [read_blocks(text) for text in documents],
        "our tree of sections": lambda: [parse_sections(one, "x") for one in data],
    }


def main(folders: Sequence[str]) -> None:
    """Print the tables."""
    documents = texts(folders)
    size = sum(len(text.encode()) for text in documents) / 1e6
    print(f"{len(documents)} documents, {size:.2f} MB")
    compare(parsers(documents), size)
    prose = ("## Tides\n\n" + PROSE * 3) * (SIZE // 1100)
    print(f"prose with a heading every 1.1 kB, {len(prose) / 1e6:.2f} MB")
    compare(parsers([prose]), len(prose) / 1e6)
    print(f"hostile documents of {SIZE / 1e6} MB, microseconds per byte")
    for name, piece in HOSTILE.items():
        data = (piece * (SIZE // len(piece))).encode()
        start = time.process_time()
        parse_sections(data, name)
        print(f"  {name:34} {(time.process_time() - start) / len(data) * 1e6:7.2f}")
    tracemalloc.start()
    trees = [parse_sections(text.encode(), "x") for text in documents]
    kept, peak = tracemalloc.get_traced_memory()
    sections = sum(len(tree.sections) for tree in trees)
    print(f"{sections} sections kept: {kept / size / 1e6:.1f} bytes per byte, peak {peak / size / 1e6:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
