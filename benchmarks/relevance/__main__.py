"""How well the ranking finds the sections that people labelled as the answer.

Usage: ``python -m benchmarks.relevance [FILE]... [--set FOLDER]... [--sets FOLDER] [--npl FOLDER] [--json
FILE] [--without FEATURE]... [--fit SET...]``

A *set* is a folder with ``corpus/*.md`` and ``queries*.jsonl``; each line of the latter holds ``query`` and
``relevant``, a list of ``{"file": …, "line": …}`` (line of the heading, from 1; the section counts with all
inside it), ``{"file": …, "heading": …}`` (the section's own text), or ``{"file": …}`` (the whole file).
``--sets`` names a folder of sets; means over families of questions follow then, where sets of one kind (the
part of the name behind the last ``_``, if several share it) are one family.
A *FILE* is a list of questions that version 0.2.0 saved on the page Ask (``labels/NAME.jsonl`` in the data
folder): lines as above, each with ``corpus``, the folder of the documents. ``--npl`` names a folder of NPL
prompts, to which the questions in ``npl_queries.jsonl`` in this folder belong: tasks of prompt authors,
with the sections they would want to read, written before the ranking was tried on them. Without any of these
the bundled corpus is asked the questions of ``corpus_queries.jsonl``.

Every set is asked twice: in the ``file`` known to hold the answer, and in its ``folder``. Reported are the
mean reciprocal rank, the same with the labelled section itself (``exact``, which a section inside it does not
count for), how often the first section and one of the first three are right, and the mean reciprocal rank
of SQLite FTS5 (headings weighted 4 times, Porter stemmer, words joined by OR). ``--without`` drops a feature
of the ranking by its name. ``--fit`` learns the weights of the features (:mod:`benchmarks.relevance.fit`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.relevance.fit import fit
from benchmarks.relevance.indexed import read_documents
from benchmarks.relevance.questions import (
    HERE,
    Label,
    Question,
    QuestionSet,
    Scope,
    asked_in,
    family_of,
    read_labelled,
    reciprocal_rank,
)
from npl_index.ranking.collection import IndexedDocument
from npl_index.ranking.features import FEATURE_WEIGHTS, Feature
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import Query, rank
from npl_index.selectors.names import Place

COMPARED = ("reciprocal_rank", "exact", "fts5")

Rows = dict[str, dict[str, float]]
"""Figures by scope."""


def judge(
    scope: Scope, question: Question, labels: Sequence[Label], features: Sequence[Feature]
) -> dict[str, float]:
    """Return the figures of a question in a scope."""
    wanted, exactly = (
        set[Place]().union(*(scope.places(label, exact=exact) for label in labels)) for exact in (False, True)
    )
    query = Query(read(question.text, scope.collection))
    places = [hit[:2] for hit in rank(scope.collection, query, features=features).hits]
    right = [place in wanted for place in places]
    return {
        "reciprocal_rank": reciprocal_rank(right),
        "exact": reciprocal_rank([place in exactly for place in places]),
        "first": float(any(right[:1])),
        "first_three": float(any(right[:3])),
        "fts5": reciprocal_rank([place in wanted for place in scope.fts5(question.text)]),
    }


def measure(
    files: Mapping[str, IndexedDocument], questions: Sequence[Question], features: Sequence[Feature]
) -> Rows:
    """Ask every question in every scope, and return the means."""
    asked: dict[str, list[dict[str, float]]] = {}
    for name, scope, question, labels in asked_in(files, questions):
        asked.setdefault(name, []).append(judge(scope, question, labels, features))
    return {
        name: {
            "questions": len(rows),
            **{key: round(fmean(row[key] for row in rows), 3) for key in rows[0]},
        }
        for name, rows in asked.items()
    }


def families(results: Mapping[str, Rows]) -> Rows:
    """Return for each way of asking the mean reciprocal ranks over families of questions."""
    family = family_of(results)
    means: Rows = {}
    for scope in dict.fromkeys(scope for rows in results.values() for scope in rows):
        groups: dict[str, list[dict[str, float]]] = {}
        for name, rows in results.items():
            if scope in rows:
                groups.setdefault(family[name], []).append(rows[scope])
        means[scope] = {
            "families": len(groups),
            **{
                key: round(fmean(fmean(row[key] for row in rows) for rows in groups.values()), 3)
                for key in COMPARED
            },
        }
    return means


def measured(given: argparse.Namespace) -> Iterator[tuple[str, Rows]]:
    """Ask what the command line names."""
    features = [one for one in FEATURE_WEIGHTS if one.name not in given.without]
    for file in given.labelled:
        for folder, questions in read_labelled(file).items():
            yield f"{file.stem} {folder}", measure(read_documents(folder), questions, features)
    sets = [*map(QuestionSet.of, given.set), *(QuestionSet.below(given.sets) if given.sets else ())]
    if given.npl:
        sets.append(QuestionSet("npl", given.npl, [HERE / "npl_queries.jsonl"]))
    if not sets and not given.labelled:
        sets = QuestionSet.below(None)
    for one in sets:
        yield one.name, measure(read_documents(one.corpus), one.questions(), features)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.relevance", description=__doc__.split("\n")[0])
    parser.add_argument("labelled", nargs="*", type=Path, help="questions labelled on the page Ask")
    parser.add_argument(
        "--set", action="append", default=[], type=Path, help="folder with corpus/ and queries*.jsonl"
    )
    parser.add_argument("--sets", type=Path, help="folder of such folders")
    parser.add_argument("--npl", type=Path, help="folder of NPL prompts")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=[one.name for one in FEATURE_WEIGHTS],
        help="drop a feature",
    )
    parser.add_argument(
        "--fit", nargs="+", metavar="SET", type=Path, help="learn the weights of the features"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    given = parser.parse_args(arguments)
    if given.fit:
        print(*fit(list(map(QuestionSet.of, given.fit))), sep="\n")
        return 0
    results: dict[str, Rows] = {}
    for name, rows in measured(given):
        results[name] = rows
        show(name, rows)
    if len(results) > 1:
        results["all"] = families(results)
        show("all", results["all"])
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


def show(name: str, rows: Rows) -> None:
    """Print a line for each scope."""
    for scope, row in rows.items():
        print(f"{name:16} {scope:7}", *(f"{key} {value}" for key, value in row.items()), sep="  ")


if __name__ == "__main__":
    sys.exit(main())
