"""The tokens an agent spends until the answer is in its context: its calls and their answers.

Usage: ``python -m benchmarks.tokens_to_answer [--set FOLDER]... [--svg FILE] [--readme FILE]``

Sets are those of :mod:`benchmarks.relevance`; without one, the bundled corpus and its questions. Five ways:

- *file*: the whole file, as ``cat`` prints it;
- *grep*: ``grep -n`` for the question's words, then the lines around the best hits, window after window;
  where none of the first few holds the answer, the whole file as well;
- *outline*: the outline of the file, then the section, which is assumed to be chosen rightly;
- *fts5*: whole sections in the order of SQLite FTS5 (headings weighted 4 times, stemmed, words joined by OR),
  as many as fit into 1,000 tokens and at least one; if the answer is not in them, the whole file too;
- *tailored*: one tailored load with a budget of 1,000 tokens; if the answer is not in it, the whole file too.

The file that holds the answer is known (*page*), or all files are looked through (*folder*); the whole file
then means the right one, which flatters the first two. The answer is there once half of the lines of a
labelled section are. Tokens are counted exactly where the vocabulary is on the machine, else estimated. The
mean over the questions is given, and over all sets the mean of their means.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import settings
from benchmarks.figures import drawing, put_between, text_at
from benchmarks.relevance.__main__ import HERE, Label, Question, read_documents, read_questions
from benchmarks.relevance.plain import PlainSearch
from npl_index.ranking.collection import IndexedDocument, KnownCollection
from npl_index.ranking.keywords import extract_keywords
from npl_index.selectors.writing import qualified
from npl_index.tokens.counting import TokenCounter
from npl_index.tokens.estimated import estimator
from npl_index.tokens.exact import load_vocabulary
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from tests.tools import npl_load_tailored, npl_section_index

BUDGET = 1_000
AROUND = 15
"""Lines before and behind a hit that are read."""

WINDOWS = 3
"""Hits around which is read before the whole file is."""

MAX_LINES = 100
"""Lines of hits that an agent lets itself be shown, as with ``| head -100``."""

MARKS = ("<!-- tokens to answer -->", "<!-- /tokens to answer -->")
WAYS = ("file", "grep", "outline", "fts5", "tailored")
COLORS = {
    "file": "#9aa5b1",
    "grep": "#d9a441",
    "outline": "#7aa874",
    "fts5": "#8a63a8",
    "tailored": "#3b6fb6",
}


@dataclass(frozen=True)
class Page:
    """A file, and the labelled sections in it."""

    name: str
    indexed: IndexedDocument
    units: tuple[int, ...]

    @property
    def text(self) -> str:
        """The whole file."""
        return self.indexed.document.data.decode("utf-8", "replace")

    @property
    def lines(self) -> list[str]:
        """Its lines."""
        return self.text.splitlines()

    def is_in(self, text: str) -> bool:
        """Return whether half of the lines of a labelled section are in a text."""
        there = set(map(str.strip, text.splitlines()))
        tree = self.indexed.tree
        for unit in self.units:
            lines = [one.strip() for one in tree.text(tree.sections[unit].own).splitlines() if one.strip()]
            if lines and 2 * sum(line in there for line in lines) >= len(lines):
                return True
        return False


class Agent:
    """An agent that asks one question in each way and counts its tokens.

    :param folder: of the set's files.
    :param app: serves them.
    :param count: counts tokens.
    """

    def __init__(self, folder: Mapping[str, IndexedDocument], app: App, count: Callable[[str], int]) -> None:
        self._folder, self._app, self._count = folder, app, count
        self._collection = KnownCollection(list(folder.values()))
        self._plain = PlainSearch(self._collection)

    def costs(self, question: Question, page: Page, *, known: bool) -> dict[str, int]:
        """Return the tokens that each way takes.

        :param known: the file that holds the answer is.
        """
        return {
            "file": self.file(page),
            "grep": self._grep(question, page, known=known),
            "outline": self._outline(page, known=known),
            "fts5": self._fts5(question, page, known=known),
            "tailored": self._tailored(question, page, known=known),
        }

    def file(self, page: Page) -> int:
        """Return the tokens of reading a whole file."""
        return self._count(f"cat {page.name}") + self._count(page.text)

    def _grep(self, question: Question, page: Page, *, known: bool) -> int:
        words = [word for word in extract_keywords(question.text).words if " " not in word]
        expression = re.compile("|".join(map(re.escape, words)) or r"\Z", re.IGNORECASE)
        files = {page.name: page.indexed} if known else self._folder
        hits = [
            (len({found.lower() for found in expression.findall(line)}), name, number, line)
            for name, indexed in files.items()
            for number, line in enumerate(indexed.tree.source.splitlines())
            if expression.search(line)
        ][:MAX_LINES]
        shown = "\n".join(
            f"{'' if known else name + ':'}{number + 1}:{line}" for _, name, number, line in hits
        )
        spent = self._count(f'grep -{"" if known else "r"}niE "{expression.pattern}" .') + self._count(shown)
        seen = ""
        read: list[tuple[str, int]] = []
        for _, name, number, _ in sorted(hits, key=lambda hit: -hit[0]):
            if any(name == other and abs(number - at) <= AROUND for other, at in read):
                continue
            if len(read) == WINDOWS:
                break
            read.append((name, number))
            first = max(0, number - AROUND)
            window = "\n".join(files[name].tree.source.splitlines()[first : number + AROUND + 1])
            spent += self._count(f"sed -n {first + 1},{number + AROUND + 1}p {name}") + self._count(window)
            if name == page.name:
                seen += "\n" + window
                if page.is_in(seen):
                    return spent
        return spent + self.file(page)

    def _outline(self, page: Page, *, known: bool) -> int:
        spent = 0
        for file in (page.name,) if known else (".", page.name):
            answer = npl_section_index(self._app, file=file, format="markdown")
            spent += self._call(file=file) + self._count(answer.text)  # type: ignore[union-attr]
        selector = qualified(page.name, page.indexed.steps[page.units[0]])
        answer = npl_load_tailored(self._app, selectors=[selector], file=page.name, format="markdown")
        return spent + self._call(selectors=[selector], file=page.name) + self._count(answer.text)

    def _fts5(self, question: Question, page: Page, *, known: bool) -> int:
        collection = page.indexed.collection if known else self._collection
        plain = PlainSearch(collection) if known else self._plain
        shown: list[str] = []
        room = BUDGET
        for document, number in plain.rank(question.text):
            indexed = collection.documents[document]
            text = indexed.tree.text(indexed.tree.sections[number].own)
            needed = self._count(text)
            if shown and needed > room:
                continue
            shown.append(text)
            room -= needed
        answer = "\n".join(shown)
        spent = self._call(query=question.text) + self._count(answer)
        return spent if page.is_in(answer) else spent + self.file(page)

    def _tailored(self, question: Question, page: Page, *, known: bool) -> int:
        request = {"context": question.text, "file": page.name if known else ".", "token_budget": BUDGET}
        answer = npl_load_tailored(self._app, format="markdown", **request)  # type: ignore[arg-type]
        spent = self._call(**request) + self._count(answer.text)
        return spent if page.is_in(answer.text) else spent + self.file(page)

    def _call(self, **arguments: object) -> int:
        return self._count(str(arguments))


def pages(files: Mapping[str, IndexedDocument], labels: Iterable[Label]) -> Iterator[Page]:
    """Return each file with labelled sections; a section counts with all inside it."""
    for label in labels:
        tree = files[label.file].tree
        units: Sequence[int] = ()
        if label.line is not None:
            at = [
                one.index for one in tree.sections if one.level and one.heading_lines.start == label.line - 1
            ]
            units = tree.subtree(at[0]) if at else ()
        elif label.heading is not None:
            units = [one.index for one in tree.sections if one.name == label.heading]
        if units:
            yield Page(label.file, files[label.file], tuple(units))


Means = Mapping[str, Sequence[float]]
"""By scope, the mean tokens of each way."""


def measure(corpus: Path, questions: Sequence[Question], count: Callable[[str], int]) -> Means:
    """Return the mean tokens of each way with the page known, and over the folder."""
    files = read_documents(corpus)
    sums = {"page": [0.0] * len(WAYS), "folder": [0.0] * len(WAYS)}
    asked = 0
    with TemporaryDirectory() as data:
        app = App(settings(corpus, data_dir=Path(data)))
        agent = Agent(files, app, count)
        for question in questions:
            for page in list(pages(files, question.labels))[:1]:
                asked += 1
                for scope, known in (("page", True), ("folder", False)):
                    costs = agent.costs(question, page, known=known)
                    sums[scope] = [sum(pair) for pair in zip(sums[scope], costs.values(), strict=True)]
        app.close()
    return {scope: [total / max(1, asked) for total in totals] for scope, totals in sums.items()}


def table(results: Mapping[str, Means], scope: str) -> str:
    """Write one scope as a table in Markdown, with the tailored load over the whole file."""
    lines = [f"| {scope} | {' | '.join(WAYS)} | tailored / file |", "|:--|" + "--:|" * (len(WAYS) + 1)]
    rows = {name: row[scope] for name, row in results.items()}
    if len(rows) > 1:
        every = list(zip(*rows.values(), strict=True))
        rows["all sets"] = [sum(column) / len(column) for column in every]
    for name, row in rows.items():
        figures = " | ".join(f"{figure:,.0f}" for figure in row)
        lines.append(f"| {name} | {figures} | {row[-1] / row[0]:.2f} |")
    return "\n".join(lines)


def picture(results: Mapping[str, Means]) -> str:
    """Draw the mean over the sets as bars, one group a scope."""
    parts: list[str] = []
    bar, gap, left, width = 26, 34, 96, 440
    means = {
        scope: [sum(row[scope][at] for row in results.values()) / len(results) for at in range(len(WAYS))]
        for scope in ("page", "folder")
    }
    largest = max(max(row) for row in means.values())
    titles = {"page": "the file is known", "folder": "all files are looked through"}
    y = 36
    for scope, row in means.items():
        parts.append(text_at(left, y, titles[scope], 'font-weight="bold"'))
        y += 10
        for way, figure in zip(WAYS, row, strict=True):
            length = max(1, round(width * figure / largest))
            middle = y + bar // 2 + 1
            parts.append(text_at(left - 8, middle, way, 'text-anchor="end"'))
            parts.append(
                f'<rect x="{left}" y="{y}" width="{length}" height="{bar - 8}" fill="{COLORS[way]}"/>'
            )
            parts.append(text_at(left + length + 6, middle, f"{figure:,.0f}"))
            y += bar
        y += gap
    title = "Tokens until the answer is in context"
    return drawing(title, (640, y - gap + 12), left, parts)


def sets_of(folders: Sequence[Path]) -> list[tuple[str, Path, list[Question]]]:
    """Return name, folder of documents and questions of each set; of the bundled one if none is given."""
    sets = [(path.name, path / "corpus", sorted(path.glob("queries*.jsonl"))) for path in folders]
    if not sets:
        sets = [("corpus", HERE.parents[1] / "corpus", [HERE / "corpus_queries.jsonl"])]
    return [(name, corpus, read_questions(files)) for name, corpus, files in sets]


def best_counter() -> TokenCounter:
    """Return the exact counter if its vocabulary is on the machine, else the estimator."""
    return load_vocabulary("o200k_base", Settings.from_env().vocabulary_folders) or estimator("o200k_base")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and draw the picture."""
    parser = argparse.ArgumentParser(prog="benchmarks.tokens_to_answer", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--set", action="append", default=[], type=Path, help="folder with corpus/ and queries"
    )
    parser.add_argument("--svg", type=Path, help="draw the means to this file")
    parser.add_argument("--readme", type=Path, help="put the tables between the marks in this file")
    given = parser.parse_args(arguments)
    counter = best_counter()
    results = {
        name: measure(corpus, questions, counter.count) for name, corpus, questions in sets_of(given.set)
    }
    text = "\n\n".join(table(results, scope) for scope in ("page", "folder")) + "\n"
    print(f"tokens: {counter.name}\n\n{text}")
    if given.readme:
        put_between(given.readme, MARKS, text)
    if given.svg:
        given.svg.write_text(picture(results), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
