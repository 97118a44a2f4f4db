"""Labelled questions, and the sections that their labels stand for in a file and in its folder."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.fulltext import FullText
from benchmarks.relevance.indexed import indexed_collection
from npl_index.markdown.sections import Span
from npl_index.ranking.collection import Collection, IndexedDocument
from npl_index.selectors.names import Place

HERE = Path(__file__).parent
BUNDLED = HERE.parents[1] / "corpus"
FEWEST_HEADINGS = 4
FTS5_WEIGHTS = {"heading": 4.0, "body": 1.0}
FTS5_LIMIT = 80


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


@dataclass(frozen=True)
class QuestionSet:
    """The documents of a folder, and the files with the questions about them."""

    name: str
    corpus: Path
    files: Sequence[Path]

    @classmethod
    def of(cls, folder: Path) -> QuestionSet:
        """Return the set of a folder with ``corpus`` and ``queries*.jsonl``."""
        return cls(folder.name, folder / "corpus", sorted(folder.glob("queries*.jsonl")))

    @classmethod
    def bundled(cls) -> QuestionSet:
        """Return the questions about the bundled prompts."""
        return cls("corpus", BUNDLED, [HERE / "corpus_queries.jsonl"])

    @classmethod
    def below(cls, folder: Path | None) -> list[QuestionSet]:
        """Return the sets in the folders of a folder; the bundled one if none is named."""
        if folder is None:
            return [cls.bundled()]
        found = (cls.of(path.parent) for path in sorted(folder.glob("*/corpus")))
        return [one for one in found if one.files]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Read the lines that are about sections."""
        for file in self.files:
            for line in file.read_text(encoding="utf-8").splitlines():
                row: dict[str, Any] = json.loads(line)
                if row.get("scope", "section") == "section":
                    yield row

    def questions(self) -> list[Question]:
        """Read the questions about sections."""
        return list(map(question_of, self.rows()))


def read_labelled(file: Path) -> dict[Path, list[Question]]:
    """Read the questions of a list that says for each which folder it is about."""
    asked: dict[Path, list[Question]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        asked.setdefault(Path(json.loads(line)["corpus"]), []).append(question_of(json.loads(line)))
    return asked


def question_of(row: Mapping[str, Any]) -> Question:
    """Return the question of a line."""
    labels = (Label(one["file"], one.get("line"), one.get("heading")) for one in row["relevant"])
    return Question(row["query"], tuple(labels))


class Scope:
    """The collection of some files, and the places of their sections in it."""

    def __init__(self, files: Mapping[str, IndexedDocument]) -> None:
        self.files = files
        documents = list(files.values())
        self.collection: Collection = (
            indexed_collection(one.document for one in documents)
            if len(files) > 1
            else documents[0].collection
        )
        self._numbers = {name: number for number, name in enumerate(files)}
        sections = [
            (number, section, one.tree)
            for number, one in enumerate(self.collection.documents)
            for section in one.tree.sections
        ]
        self._fts5_places = [(number, section.index) for number, section, _ in sections]
        self._fts5 = FullText(
            FTS5_WEIGHTS,
            (
                (
                    section.name if section.level else "",
                    tree.text(Span(section.heading_lines.stop, section.own.stop)),
                )
                for _, section, tree in sections
            ),
        )

    def fts5(self, question: str) -> list[Place]:
        """Return the best sections as SQLite FTS5 ranks them."""
        return [self._fts5_places[number] for number, _ in self._fts5.find(question, FTS5_LIMIT)]

    def places(self, label: Label, *, exact: bool = False) -> set[Place]:
        """Return the sections that a label stands for.

        :param exact: without those inside a section.
        """
        tree = self.files[label.file].tree
        chosen: Iterable[int] = range(len(tree.sections))
        if label.line is not None:
            at = [s.index for s in tree.sections if s.level and s.heading_lines.start == label.line - 1]
            if not at:
                raise SystemExit(f"{label.file} has no heading in line {label.line} any more; label it again")
            chosen = at[:1] if exact else tree.subtree(at[0])
        elif label.heading is not None:
            chosen = [section.index for section in tree.sections if section.name == label.heading]
        return {(self._numbers[label.file], index) for index in chosen}


def reciprocal_rank(right: Sequence[bool]) -> float:
    """Return 1 divided by the position of the first right answer, 0 without one."""
    return 1 / (right.index(True) + 1) if any(right) else 0.0


def asked_in(
    files: Mapping[str, IndexedDocument], questions: Sequence[Question]
) -> Iterator[tuple[str, Scope, Question, Sequence[Label]]]:
    """Yield every question in its file and in the folder, with its labels there."""
    folder = Scope(files) if len(files) > 1 else None
    for question in questions:
        for name in dict.fromkeys(label.file for label in question.labels):
            if sum(section.level > 0 for section in files[name].tree.sections) >= FEWEST_HEADINGS:
                here = [label for label in question.labels if label.file == name]
                if any(label.line or label.heading for label in here):
                    yield "file", Scope({name: files[name]}), question, here
        if folder is not None:
            yield "folder", folder, question, question.labels


def family_of(names: Iterable[str]) -> dict[str, str]:
    """Return the family of each set."""
    kinds = {name: name.rpartition("_")[2] for name in names}
    sizes = Counter(kinds.values())
    return {name: kind if sizes[kind] > 2 else name for name, kind in kinds.items()}
