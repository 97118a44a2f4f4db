"""How well the ranking finds the sections that people labelled as the answer.

Usage: ``python -m benchmarks.relevance [FILE]... [--set FOLDER]... [--sets FOLDER] [--npl FOLDER] [--json
FILE] [--without FEATURE]... [--fit SET...]``

A *set* is a folder with ``corpus/*.md`` and ``queries*.jsonl``; each line of the latter holds ``query`` and
``relevant``, a list of ``{"file": …, "line": …}`` (line of the heading, from 1; the section counts with all
inside it), ``{"file": …, "heading": …}`` (the section's own text), or ``{"file": …}`` (the whole file).
``--sets`` names a folder of sets; means over families of questions follow then, where sets of one kind (the
part of the name behind the last ``_``, if several share it) are one family. A set with ``tasks.json`` instead
of questions (``q``, and ``gold``: the names of all files that the task needs) is asked over its folder.
A *FILE* is a list of questions that version 0.2.0 saved on the page Ask (``labels/NAME.jsonl`` in the data
folder): lines as above, each with ``corpus``, the folder of the documents. ``--npl`` names a folder of NPL
prompts, to which the questions in ``npl_queries.jsonl`` in this folder belong: tasks of prompt authors,
with the sections they would want to read, written before the ranking was tried on them. Without any of these
the bundled corpus is asked the questions of ``corpus_queries.jsonl``.

Every set is asked three times: ``file`` is the file known to hold the answer, ``folder`` all files as they
are, and ``joined`` all of them as one file. Reported are the mean reciprocal rank, the same with the labelled
section itself (``exact``, which a section inside it does not count for), how often the first section and one
of the first three are right, the mean reciprocal rank of SQLite FTS5 (headings weighted 4 times, Porter
stemmer, words joined by OR), precision, recall and F1 of what is returned without a budget,
and what a budget of 3,000 tokens holds: the recall, and the median of tokens where the file has more than
12 kB. Of tasks the share of the needed files that 1,000, 2,000 and 8,000 tokens touch, and the share of the
tokens that come from these files. ``--without`` drops a feature of the ranking by its name.
``--fit`` learns the weights of the features from sets (:mod:`benchmarks.relevance.fit`).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.relevance.indexed import indexed_collection
from benchmarks.relevance.packing import measure_tasks, pack
from benchmarks.relevance.plain import PlainSearch
from npl_index.answer.steps import related
from npl_index.library.documents import Document, Fingerprint
from npl_index.ranking.collection import IndexedDocument
from npl_index.ranking.features import FEATURE_WEIGHTS, Feature
from npl_index.ranking.indexing import index_document
from npl_index.ranking.keywords import extract_keywords
from npl_index.ranking.scoring import Query, rank
from npl_index.selectors.names import Place

HERE = Path(__file__).parent
BUDGET = 3_000
LARGE_FILE = 12_000
FEWEST_HEADINGS = 4
COMPARED = ("reciprocal_rank", "exact", "fts5")


@dataclass(frozen=True)
class Label:
    """A section that answers a question."""

    file: str
    line: int | None = None
    heading: str | None = None


@dataclass(frozen=True)
class Question:
    """A question and the sections that answer it."""

    text: str
    labels: tuple[Label, ...]


def read_questions(files: Iterable[Path]) -> list[Question]:
    """Read the questions that are about sections."""
    questions = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row.get("scope", "section") == "section":
                questions.append(question_of(row))
    return questions


def read_labelled(file: Path) -> dict[Path, list[Question]]:
    """Read the questions of a list that says for each which folder it is about."""
    asked: dict[Path, list[Question]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        asked.setdefault(Path(json.loads(line)["corpus"]), []).append(question_of(json.loads(line)))
    return asked


def question_of(row: dict[str, Any]) -> Question:
    """Return the question of a line."""
    labels = (Label(one["file"], one.get("line"), one.get("heading")) for one in row["relevant"])
    return Question(row["query"], tuple(labels))


def read_documents(folder: Path) -> dict[str, IndexedDocument]:
    """Index the Markdown files below a folder, by path."""
    paths = sorted(path for path in folder.rglob("*.md") if path.is_file())
    return {
        name: make(name, path.read_bytes())
        for path in paths
        for name in [path.relative_to(folder).as_posix()]
    }


def make(name: str, data: bytes) -> IndexedDocument:
    """Index some bytes as a file of that name."""
    fingerprint = Fingerprint("/" + name, 0, len(data))
    return index_document(Document(Path(name).stem, name, fingerprint, data, "", npl=False))


class Scope:
    """A collection, and the numbers that the sections of the set's files have in it."""

    def __init__(self, files: dict[str, IndexedDocument], *, joined: bool) -> None:
        self.files = files
        if joined:
            whole, first_lines = join(files)
            self.collection = whole.collection
            at_line = {section.heading_lines.start: section.index for section in whole.tree.sections}
            self._places: dict[tuple[str, int], Place | None] = {
                (name, section.index): None if at is None else (0, at)
                for name, indexed in files.items()
                for section in indexed.tree.sections
                for at in [at_line.get(first_lines[name] + section.heading_lines.start)]
            }
        else:
            several = [one.document for one in files.values()]
            self.collection = (
                indexed_collection(several) if len(files) > 1 else next(iter(files.values())).collection
            )
            self._places = {
                (name, number): (document, number)
                for document, (name, indexed) in enumerate(files.items())
                for number in range(len(indexed.tree.sections))
            }
        self.plain = PlainSearch(self.collection)

    def places(self, label: Label, *, exact: bool = False) -> set[Place]:
        """Return the sections that a label stands for.

        :param exact: without those inside a section.
        """
        tree = self.files[label.file].tree
        chosen: Iterable[int] = range(len(tree.sections))
        if label.heading is not None and label.line is None:
            chosen = [section.index for section in tree.sections if section.name == label.heading]
        elif label.line is not None:
            at = [s.index for s in tree.sections if s.level and s.heading_lines.start == label.line - 1]
            if not at:
                raise SystemExit(f"{label.file} has no heading in line {label.line} any more; label it again")
            chosen = at[:1] if exact else tree.subtree(at[0])
        places = {self._places[label.file, index] for index in chosen}
        return {place for place in places if place is not None}


def join(files: dict[str, IndexedDocument]) -> tuple[IndexedDocument, dict[str, int]]:
    """Put files behind one another; each begins with a heading of level 1.

    :returns: the joined file, and the line in it where each file's first line stands.
    """
    lines: list[str] = []
    first_lines = {}
    for name, indexed in files.items():
        tree = indexed.tree
        titled = (
            len(tree.sections) > 1 and tree.sections[1].level == 1 and not tree.text(tree.sections[0].own)
        )
        if not titled:
            lines += [f"# {Path(name).stem}", ""]
        first_lines[name] = len(lines)
        lines += [*(tree.line(number) for number in range(len(tree.line_starts) - 1)), ""]
    return make("joined.md", "\n".join(lines).encode()), first_lines


@dataclass
class Tally:
    """Sums over the questions asked in one way."""

    questions: int = 0
    reciprocal_rank: float = 0.0
    exact: float = 0.0
    first: float = 0.0
    first_three: float = 0.0
    fts5: float = 0.0
    precision: float = 0.0
    recall: float = 0.0
    f1: float = 0.0
    in_budget: float = 0.0
    tokens: list[int] = field(default_factory=list)

    def add(
        self, scope: Scope, question: Question, labels: Sequence[Label], features: Sequence[Feature]
    ) -> None:
        """Ask a question and count."""
        collection = scope.collection
        wanted = [scope.places(label) for label in labels]
        union = set().union(*wanted)
        query = Query(extract_keywords(question.text))
        ranking = rank(collection, query, features=features)
        hits = ranking.hits
        right = [hit[:2] in union for hit in hits]
        labelled = set().union(*(scope.places(label, exact=True) for label in labels))
        self.questions += 1
        self.reciprocal_rank += reciprocal_rank(right)
        self.exact += reciprocal_rank([hit[:2] in labelled for hit in hits])
        self.first += any(right[:1])
        self.first_three += any(right[:3])
        self.fts5 += reciprocal_rank([number in union for number in scope.plain.rank(question.text)])
        about = list(related(ranking))
        kept = {hit[:2] for hit, is_answer in about if is_answer}
        precision = len(kept & union) / len(kept) if kept else 0.0
        recall = sum(bool(numbers & kept) for numbers in wanted) / len(wanted)
        self.precision += precision
        self.recall += recall
        self.f1 += 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        packed = pack(collection, [hit for hit, _ in about], BUDGET)
        held = {hit[:2] for hit, _ in packed}
        self.in_budget += sum(bool(numbers & held) for numbers in wanted) / len(wanted)
        if sum(one.document.fingerprint.size for one in collection.documents) > LARGE_FILE:
            self.tokens.append(sum(tokens for _, tokens in packed))

    def row(self) -> dict[str, float]:
        """Return the means, and the median of tokens."""
        sums = {name: value for name, value in vars(self).items() if name not in ("questions", "tokens")}
        return {
            "questions": self.questions,
            **{name: round(v / (self.questions or 1), 3) for name, v in sums.items()},
            "tokens": median(self.tokens) if self.tokens else 0,
        }


def reciprocal_rank(right: Sequence[bool]) -> float:
    """Return 1 divided by the position of the first right answer, 0 without one."""
    return 1 / (right.index(True) + 1) if any(right) else 0.0


def asked_in(
    files: dict[str, IndexedDocument], questions: Sequence[Question], *, joined: bool = True
) -> Iterator[tuple[str, Scope, Question, Sequence[Label]]]:
    """Yield every question in every scope, with its labels there.

    :param joined: also in all files as one.
    """
    scopes = {"folder": Scope(files, joined=False)} if len(files) > 1 else {}
    if joined and scopes:
        scopes["joined"] = Scope(files, joined=True)
    for question in questions:
        for name in dict.fromkeys(label.file for label in question.labels):
            if sum(section.level > 0 for section in files[name].tree.sections) >= FEWEST_HEADINGS:
                here = [label for label in question.labels if label.file == name]
                if any(label.line or label.heading for label in here):
                    yield "file", Scope({name: files[name]}, joined=False), question, here
        for name, scope in scopes.items():
            yield name, scope, question, question.labels


def measure(
    files: dict[str, IndexedDocument], questions: Sequence[Question], features: Sequence[Feature]
) -> dict[str, dict[str, float]]:
    """Ask every question in every scope."""
    tallies = {"file": Tally(), "folder": Tally(), "joined": Tally()}
    for name, scope, question, labels in asked_in(files, questions):
        tallies[name].add(scope, question, labels, features)
    return {name: tally.row() for name, tally in tallies.items() if tally.questions}


def family_of(names: Iterable[str]) -> dict[str, str]:
    """Return the family of each set."""
    kinds = {name: name.rpartition("_")[2] for name in names}
    sizes = Counter(kinds.values())
    return {name: kind if sizes[kind] > 2 else name for name, kind in kinds.items()}


def families(results: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return for each way of asking the mean reciprocal ranks over families of questions."""
    families = family_of(results)
    ranks: dict[str, dict[str, list[tuple[float, ...]]]] = {}
    for name, rows in results.items():
        family = families[name]
        for scope, row in rows.items():
            if "exact" in row:
                figures = tuple(row[name] for name in COMPARED)
                ranks.setdefault(scope, {}).setdefault(family, []).append(figures)
    means = {
        scope: [tuple(map(fmean, zip(*figures, strict=True))) for figures in groups.values()]
        for scope, groups in ranks.items()
    }
    return {
        scope: {
            "families": len(rows),
            **{
                name: round(fmean(column), 3)
                for name, column in zip(COMPARED, zip(*rows, strict=True), strict=True)
            },
        }
        for scope, rows in means.items()
    }


def files_of(folder: Path) -> tuple[str, Path, list[Path]]:
    """Return the name of a set, the folder of its documents, and the files with its questions."""
    return folder.name, folder / "corpus", sorted(folder.glob("queries*.jsonl"))


def measured(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, dict[str, float]]]]:
    """Ask what the command line names."""
    features = [one for one in FEATURE_WEIGHTS if one.name not in given.without]
    for file in given.labelled:
        for folder, questions in read_labelled(file).items():
            yield f"{file.stem} {folder}", measure(read_documents(folder), questions, features)
    folders = [
        *given.set,
        *(sorted(path.parent for path in given.sets.glob("*/corpus")) if given.sets else ()),
    ]
    sets = list(map(files_of, folders))
    if given.npl:
        sets.append(("npl", given.npl, [HERE / "npl_queries.jsonl"]))
    if not sets and not given.labelled:
        sets.append(("corpus", HERE.parents[1] / "corpus", [HERE / "corpus_queries.jsonl"]))
    for name, corpus, files in sets:
        documents, tasks = read_documents(corpus), corpus.parent / "tasks.json"
        if files:
            yield name, measure(documents, read_questions(files), features)
        else:
            yield name, measure_tasks(documents, tasks, features)


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
        from benchmarks.relevance.fit import fit  # which needs this module

        print(*fit(list(map(files_of, given.fit))), sep="\n")
        return 0
    results = {}
    for name, rows in measured(given):
        results[name] = rows
        for scope, row in rows.items():
            print(f"{name:16} {scope:7}", *(f"{key} {value}" for key, value in row.items()), sep="  ")
    if len(results) > 1:
        results["all"] = families(results)
        for scope, row in results["all"].items():
            print(f"{'all':16} {scope:7}", *(f"{key} {value}" for key, value in row.items()), sep="  ")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
