"""Whether the documents answer a question: absent topics told apart from true questions.

Usage: ``python -m benchmarks.relevance.absent [FOLDER]... [--sets FOLDER]``

Each line of ``absent.jsonl`` in this folder is a question that no collection answers except those named by
``except``: ``query``, for some with the ``terms`` and ``topics`` that an agent would add, or the ``id``
of a question of a labelled ``set``, which is asked of all the others. A *FOLDER* of Markdown files is asked
these only; each set in ``--sets`` is asked its own labelled questions, too, in its folder and on the page of
the answer alone. Without either the bundled corpus is asked.

The table has one row for each threshold, as a multiple of what supports an answer
(:mod:`npl_index.ranking.verdict`). For each kind of question it says which share has no text because the
verdict is absent, and which is weak; for true questions also in how many of them the labelled section is the
first one, and how many of those become absent and weak. Pointers to the first sections are in every answer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.relevance.indexed import read_documents
from benchmarks.relevance.questions import BUNDLED, FEWEST_HEADINGS, HERE, QuestionSet, Scope, question_of
from npl_index.ranking.collection import Collection
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import Query, rank
from npl_index.ranking.verdict import FIRST
from npl_index.selectors.names import Place

THRESHOLDS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
_NEARLY = 1 - 1e-9


class Asked(NamedTuple):
    """The evidence that a question found.

    :param kind: of the question.
    :param best: the greatest evidence among the first sections, as a multiple of what supports an answer.
    :param first: the evidence of the first one.
    :param rank: of the labelled section among the first ones, from 0; ``None`` if it is not there.
    """

    kind: str
    best: float
    first: float
    rank: int | None = None


def ask(
    kind: str,
    collection: Collection,
    text: str,
    topics: Sequence[str] = (),
    wanted: frozenset[Place] = frozenset(),
) -> Asked:
    """Ask a collection; a section that the question names has more evidence than any threshold."""
    ranking = rank(collection, Query(read(text, collection), tuple(topics)))
    spoken = [*ranking.coverage.support_ratio()[:FIRST].tolist(), 0.0]
    if any(ranking.coverage.named[:1]):
        spoken[0] = inf
    places = [hit[:2] for hit in ranking.hits[:FIRST]]
    right = [rank for rank, place in enumerate(places) if place in wanted]
    return Asked(kind, max(spoken), spoken[0], right[0] if right else None)


def absent(name: str, collection: Collection, sets: Path | None) -> Iterator[Asked]:
    """Ask what the collection does not answer."""
    labelled: dict[str, dict[str, str]] = {}
    for line in (HERE / "absent.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if name in (*row.get("except", ()), row.get("set")):
            continue
        if "set" in row:
            if sets is not None and (sets / row["set"]).is_dir():
                questions = labelled.setdefault(row["set"], _queries(sets / row["set"]))
                yield ask("borrowed", collection, questions[row["id"]])
            continue
        yield ask("invented", collection, row["query"])
        if "terms" in row:
            text = f"{row['query']} {row['terms']}"
            yield ask("with terms", collection, text)
            yield ask("with topics", collection, text, row["topics"])


def _queries(folder: Path) -> dict[str, str]:
    return {row["id"]: row["query"] for row in QuestionSet.of(folder).rows()}


def true(scope: Scope, questions: Sequence[dict[str, Any]]) -> Iterator[Asked]:
    """Ask what a set answers, in its folder and on the page of the answer alone."""
    for row in questions:
        question = question_of(row)
        wanted = frozenset[Place]().union(*map(scope.places, question.labels))
        yield ask("folder", scope.collection, question.text, wanted=wanted)
        page = scope.files[question.labels[0].file]
        if sum(section.level > 0 for section in page.tree.sections) >= FEWEST_HEADINGS:
            alone = Scope({question.labels[0].file: page})
            here = [label for label in question.labels if label.file == question.labels[0].file]
            places = frozenset[Place]().union(*map(alone.places, here))
            yield ask("file", alone.collection, question.text, wanted=places)


def report(asked: Sequence[Asked]) -> None:
    """Print the table."""
    kinds = dict.fromkeys(one.kind for one in asked)
    print("asked:", ", ".join(f"{kind} {sum(one.kind == kind for one in asked)}" for kind in kinds))
    for threshold in THRESHOLDS:
        cells = []
        for kind in kinds:
            of_kind = [one for one in asked if one.kind == kind]
            without = [one for one in of_kind if one.best < threshold * _NEARLY]
            weak = [one for one in of_kind if one.first < threshold * _NEARLY <= one.best]
            cell = f"{kind} {len(without) / len(of_kind):.3f} weak {len(weak) / len(of_kind):.3f}"
            if kind in ("folder", "file"):
                leading = sum(one.rank == 0 for one in of_kind)
                lost = (sum(one.rank == 0 for one in some) for some in (without, weak))
                cell += " first {} + {} of {}".format(*lost, leading)
            cells.append(cell)
        print(f"{threshold:.1f}", *cells, sep="  ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print tables, one a collection and one for all."""
    parser = argparse.ArgumentParser(prog="benchmarks.relevance.absent", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, help="folders of Markdown files")
    parser.add_argument("--sets", type=Path, help="folder of labelled sets")
    given = parser.parse_args(arguments)
    sets = QuestionSet.below(given.sets) if given.sets else []
    sources = {one.name: (one.corpus, list(one.rows())) for one in sets}
    sources |= {path.name: (path, []) for path in given.folders}
    every: list[Asked] = []
    for name, (folder, questions) in (sources or {"npl": (BUNDLED, [])}).items():
        scope = Scope(read_documents(folder))
        asked = [*absent(name, scope.collection, given.sets), *true(scope, questions)]
        print(f"{name}, {len(scope.collection)} sections")
        report(asked)
        every += asked
    print("all")
    report(every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
