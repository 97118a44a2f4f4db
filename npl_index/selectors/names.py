"""What sections are called, and what topics and selectors find by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, Protocol

from npl_index.cached import cached_property
from npl_index.markdown.sections import Section, SectionTree
from npl_index.markdown.traits import FLAGS
from npl_index.selectors.labels import fold, heading_label

Node = tuple[int, int]
"""Position of a tree among those searched, and index of a section in it."""

LEVEL = 7
"""Bits of a section's kind that hold its level; each bit above says that its text has a trait."""


class Name(NamedTuple):
    """What a section is called, and what it holds.

    :param kind: its level, and above that what its own text holds.
    :param label: its name as readers see it.
    :param fold: that, compared loosely (:func:`npl_index.selectors.labels.fold`).
    :param written: the same of its heading as it is written, empty where that is the same.
    :param spelt: the terms of its heading, compounds left out, joined by spaces.
    """

    kind: int
    label: str
    fold: str
    written: str
    spelt: str

    @property
    def level(self) -> int:
        """The heading's level."""
        return self.kind & LEVEL


def held(section: Section) -> int:
    """Return the bits that say what a section's own text holds."""
    return bits_of(name for name in FLAGS if getattr(section.own_traits, name))


def bits_of(traits: Iterable[str]) -> int:
    """Return the bits that say that a section has some traits."""
    return sum((LEVEL + 1) << FLAGS.index(name) for name in set(traits))


def names_of(tree: SectionTree, spelt: Iterable[str] = repeat("")) -> list[Name]:
    """Return what the sections of a document are called.

    :param spelt: the terms of each heading, where they are needed.
    """
    found = []
    for section, terms in zip(tree.sections, spelt, strict=False):
        label = heading_label(section.name)
        same = section.heading == section.name or not section.index
        written = "" if same else fold(heading_label(section.heading))
        found.append(Name(section.level | held(section), label, fold(label), written, terms))
    return found


class Names(Protocol):
    """What the sections of some documents are called, without reading a thousand documents."""

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""

    def size(self, tree: int) -> int:
        """Return how many sections a document has."""

    def level(self, node: Node) -> int:
        """Return the heading level of a section."""

    def fold(self, node: Node) -> str:
        """Return the loose form of a section's name."""

    def called(self, fold: str) -> Iterable[Node]:
        """Return the sections whose name, seen or written, has a loose form."""

    def beginning(self, fold: str) -> Iterable[Node]:
        """Return those whose name, seen or written, begins with it."""

    def holding(self, level: int | None, traits: Sequence[str]) -> Iterable[Node]:
        """Return the sections of a level whose own text has some traits, in document order."""

    def spelt(self) -> Sequence[str]:
        """Return the different headings, spelt in terms."""

    def headed(self, spelt: str) -> Sequence[tuple[Node, str]]:
        """Return the sections whose heading has these terms, and the loose forms of their names."""

    def spelt_with(self, words: Collection[str]) -> Iterable[str]:
        """Return the headings, spelt in terms, that hold one of some words."""

    def is_unique(self, level: int, label: str) -> bool:
        """Tell whether one section alone has a label, at its level."""


class KnownNames:
    """The names of a few documents' sections.

    :param titles: name of each document and of its first section.
    :param names: of the sections of each document.
    """

    def __init__(self, titles: Sequence[tuple[str, str]], names: Sequence[Sequence[Name]]) -> None:
        self._titles, self._names = titles, names

    @classmethod
    def of(cls, trees: Sequence[SectionTree]) -> KnownNames:
        """Return the names in some documents, without the terms of headings."""
        return cls([(tree.name, tree.sections[0].name) for tree in trees], list(map(names_of, trees)))

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._titles[tree]

    def size(self, tree: int) -> int:
        """Return how many sections a document has."""
        return len(self._names[tree])

    def level(self, node: Node) -> int:
        """Return the heading level of a section."""
        return self._names[node[0]][node[1]].level

    def fold(self, node: Node) -> str:
        """Return the loose form of a section's name."""
        return self._names[node[0]][node[1]].fold

    def called(self, fold: str) -> Iterator[Node]:
        """Return the sections whose name, seen or written, has a loose form."""
        return (node for node, name in self._every() if name.fold == fold or (fold and name.written == fold))

    def beginning(self, fold: str) -> Iterator[Node]:
        """Return those whose name, seen or written, begins with it."""
        return (
            node
            for node, name in self._every()
            if name.fold.startswith(fold) or (name.written and name.written.startswith(fold))
        )

    def holding(self, level: int | None, traits: Sequence[str]) -> Iterator[Node]:
        """Return the sections of a level whose own text has some traits, in document order."""
        bits = bits_of(traits)
        return (
            node for node, name in self._every() if name.kind & bits == bits and level in (None, name.level)
        )

    def spelt(self) -> Sequence[str]:
        """Return the different headings, spelt in terms."""
        return list(self._spelt)

    def headed(self, spelt: str) -> Sequence[tuple[Node, str]]:
        """Return the sections whose heading has these terms, and the loose forms of their names."""
        return [(node, self.fold(node)) for node in self._spelt.get(spelt, ())]

    def spelt_with(self, words: Collection[str]) -> Iterator[str]:
        """Return the headings, spelt in terms, that hold one of some words."""
        return (spelt for spelt in self._spelt if not set(words).isdisjoint(spelt.split(" ")))

    def is_unique(self, level: int, label: str) -> bool:
        """Tell whether one section alone has a label, at its level."""
        return sum((name.level, name.label) == (level, label) for _, name in self._every()) == 1

    def _every(self) -> Iterator[tuple[Node, Name]]:
        for document, names in enumerate(self._names):
            yield from (((document, section), name) for section, name in enumerate(names))

    @cached_property
    def _spelt(self) -> dict[str, list[Node]]:
        found: dict[str, list[Node]] = defaultdict(list)
        for node, name in self._every():
            if name.spelt:
                found[name.spelt].append(node)
        return found
