"""Tasks of a day, and the documents that answer them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.relevance.indexed import read_documents
from npl_index.errors import NPLError
from npl_index.library.references import document_name, path_ends
from npl_index.markdown.sections import Span
from npl_index.ranking.collection import IndexedDocument
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import select_in
from npl_mcp.config.toml import read_toml

DAYS = ("lay", "terms", "topics")
"""How tasks are asked first: in lay words, with likely terms, with terms and likely headings as topics."""

Place = tuple[str, int]
"""The path of a file, and the index of a section in it."""


@dataclass(frozen=True)
class Phrasing:
    """A question.

    :param topics: likely headings; only npl has a parameter for them.
    """

    text: str
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """A piece of knowledge that an agent needs.

    :param need: the question of a developer who does not know the words of the documents.
    :param add: terms and identifiers that a good agent adds to it.
    :param topics: headings that it thinks likely.
    :param again: its next question, in the words of the documents.
    :param sections: the right ones, each ``PATH > HEADING``, with all nested in it, or ``PATH`` for the
        text before the first heading below the page's title.
    :param holds: expressions; a text in which each matches holds the solution. White space is one blank.
    """

    id: str
    need: str
    add: str
    topics: tuple[str, ...]
    again: str
    sections: tuple[str, ...]
    holds: tuple[str, ...]

    def first(self, day: str) -> Phrasing:
        """Return the first question on a day."""
        if day == "lay":
            return Phrasing(self.need)
        return Phrasing(f"{self.need}; {self.add}", self.topics if day == "topics" else ())

    def is_held(self, text: str) -> bool:
        """Return whether a text holds the solution."""
        flat = " ".join(text.split())
        return all(re.search(pattern, flat) for pattern in self.holds)


@dataclass(frozen=True)
class Day:
    """The tasks of a file.

    :param absent: by folder the topics that none of its documents covers, and expressions that prove it.
    """

    tasks: tuple[Task, ...]
    absent: dict[str, dict[str, str]]


def read_day(file: Path) -> Day:
    """Read tasks and absent topics.

    :raises ValueError: the file is not TOML.
    :raises TypeError: a task has an unknown key, or lacks one.
    """
    said = read_toml(file.read_text(encoding="utf-8"))
    absent = {folder: dict(rows) for folder, rows in said.get("absent", {}).items()}
    return Day(tuple(Task(**_frozen(row)) for row in said["task"]), absent)


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@dataclass(frozen=True)
class Documents:
    """The Markdown files below a folder."""

    folder: Path
    files: dict[str, IndexedDocument] = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> Documents:
        """Read a folder."""
        return cls(folder, read_documents(folder))

    @cached_property
    def _scope(self) -> Scope:
        return Scope(
            [indexed.tree for indexed in self.files.values()],
            [tuple(path_ends(path)) for path in self.files],
            addresses=[(document_name(path), path) for path in self.files],
        )

    def selected(self, selector: str) -> frozenset[Place]:
        """Return the sections whose heading a selector matches; nothing if it is no selector of these."""
        try:
            found = select_in(self._scope, compile_selector(selector))
        except NPLError:
            return frozenset()
        paths = list(self.files)
        return frozenset((paths[one.tree], one.head) for one in found)

    def labelled(self, section: str) -> frozenset[Place]:
        """Return the sections that a label of a task means.

        :raises ValueError: there is no such section.
        """
        path, _, heading = section.partition(" > ")
        if path not in self.files:
            raise ValueError(f"{section}: no such file")
        tree = self.files[path].tree
        if not heading:
            return frozenset((path, one.index) for one in tree.sections[:2] if one.level <= 1)
        at = [one.index for one in tree.sections if one.level and one.name == heading]
        if not at:
            raise ValueError(f"{section}: no such heading")
        return frozenset((path, index) for one in at for index in tree.subtree(one))

    def right(self, task: Task) -> list[frozenset[Place]]:
        """Return the sections that each label of a task means."""
        return [self.labelled(section) for section in task.sections]

    def lines(self, place: Place) -> Span:
        """Return the lines of a section and all nested in it."""
        sections = self.files[place[0]].tree.sections
        last = self.files[place[0]].tree.subtree(place[1])[-1]
        return Span(sections[place[1]].own.start, sections[last].own.stop)

    def text(self, place: Place, *, whole: bool = True) -> str:
        """Return the text of a section.

        :param whole: with all nested in it.
        """
        tree = self.files[place[0]].tree
        return tree.text(self.lines(place) if whole else tree.sections[place[1]].own)

    def faults(self, tasks: Sequence[Task]) -> list[str]:
        """Return the faults of tasks: labels of no section, expressions that match in none."""
        faults = []
        for task in tasks:
            try:
                right = self.right(task)
            except ValueError as error:
                faults.append(f"{task.id}: {error}")
                continue
            text = "\n".join(self.text(place, whole=False) for one in right for place in sorted(one))
            flat = " ".join(text.split())
            faults += [f"{task.id}: no section has {one!r}" for one in task.holds if not re.search(one, flat)]
        return faults

    def present(self, absent: Mapping[str, str]) -> list[str]:
        """Return the topics that are not absent, with a file that has words of theirs."""
        return [
            f"{topic}: {path} has {found[0]!r}"
            for topic, expression in absent.items()
            for path, indexed in self.files.items()
            if (found := re.search(expression, indexed.tree.source, re.IGNORECASE))
        ]
