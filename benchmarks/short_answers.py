"""Whether short questions about these documents are answered within few tokens.

Usage: ``python -m benchmarks.short_answers [--root FOLDER] [--budget TOKENS] [--show WORDS]``

Each question is asked of one page that holds the answer (*page*), of all pages at the top of the repository
(*folder*), and of all Markdown in it (*all*), with answers as JSON and as Markdown. A question counts as
answered if a line that answers it stands in the content. The cost is that of the whole answer as it is sent,
envelope, rows and suggestions included. Pages and lines are looked for, so that documents may be rewritten;
a question without a page is reported.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import settings
from npl_mcp.app.app import App
from tests.tools import npl_load_tailored

HERE = Path(__file__).parent
BUDGET = 300
FORMS = ("json", "markdown")
HISTORY = ("CHANGELOG.md", "MIGRATION.md")


@dataclass(frozen=True)
class Case:
    """A question, and a pattern of the lines that answer it."""

    question: str
    answer: re.Pattern[str]

    def page(self, root: Path) -> str | None:
        """Return the name of a page that holds the answer: of those that do, what changed comes last."""
        pages = sorted(root.glob("*.md"), key=lambda path: (path.name in HISTORY, path.name))
        found = (path.name for path in pages if self.answer.search(path.read_text(encoding="utf-8")))
        return next(found, None)


def cases() -> list[Case]:
    """Read the questions."""
    rows = map(json.loads, (HERE / "short_answers.jsonl").read_text(encoding="utf-8").splitlines())
    return [Case(row["question"], re.compile(row["answer"])) for row in rows]


def asked(app: App, case: Case, file: str, budget: int, form: str) -> tuple[bool, int, str]:
    """Return whether a question is answered, what the answer costs, and the answer."""
    written = npl_load_tailored(app, context=case.question, file=file, token_budget=budget, format=form)
    answered = case.answer.search(written.value.content) is not None
    return answered, app.counter.count(written.text), written.text


def rows(app: App, root: Path, budget: int, shown: str | None) -> Iterator[tuple[str, str, list[bool]]]:
    """Yield each question, a line about it, and whether it was answered in each way."""
    for case in cases():
        page = case.page(root)
        if page is None:
            yield case.question, "no page says it", []
            continue
        cells, found = [], []
        for file in (page, "*.md", "."):
            for form in FORMS:
                answered, cost, text = asked(app, case, file, budget, form)
                found.append(answered)
                cells.append(f"{cost:>5}{' ' if answered else '!'}")
                if shown is not None and shown in case.question:
                    print(f"--- {file} {form} {cost}\n{text}")
        yield case.question, f"{page:<17} {' '.join(cells)}", found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each question."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--root", type=Path, default=HERE.parent, help="a copy of this repository")
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens of an answer")
    parser.add_argument("--show", metavar="WORDS", help="print the answers to questions with these words")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    app = App(settings(root, cache_mode="memory"))
    try:
        found = list(rows(app, root, given.budget, given.show))
    finally:
        app.close()
    print(f"{'':<54} {'page':<17} page, folder, all: JSON and Markdown each; ! is not answered")
    for question, line, _ in found:
        print(f"{question:<54} {line}")
    every = [one for _, _, answers in found for one in answers]
    print(f"{sum(every)} of {len(every)} answered within {given.budget} tokens")
    return 0


if __name__ == "__main__":
    sys.exit(main())
