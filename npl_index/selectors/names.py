"""Names of sections, and lookups by name for topics and selectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple, Protocol

from npl_index.cached import cached_property
from npl_index.markdown.copies import SIMILAR, copy_digest
from npl_index.markdown.sections import SectionTree
from npl_index.markdown.traits import LEVEL, bits_of
from npl_index.selectors.labels import fold, heading_label

Place = tuple[int, int]
"""A section: position of its document among the searched ones, and its index in the document."""


class Name(NamedTuple):
    """The name and the kind of a section.

    :param kind: its level, and bits for the traits of its own text.
    :param label: its visible name.
    :param fold: the folded form of the label (:func:`npl_index.selectors.labels.fold`).
    :param written: the folded form of the heading's source, empty if equal.
    :param spelt: the terms of its heading without compounds, joined by spaces.
    :param copy: digest of its own text (:func:`copy_digest`); 0 for a short one.
    """

    kind: int
    label: str
    fold: str
    written: str
    spelt: str
    copy: int = 0

    @property
    def level(self) -> int:
        """The heading's level."""
        return self.kind & LEVEL


def names_of(tree: SectionTree, spelt: Iterable[str] = repeat("")) -> list[Name]:
    """Return the names of a document's sections.

    :param spelt: the terms of each heading, if needed.
    """
    names = []
    for section, terms in zip(tree.sections, spelt, strict=False):
        label = heading_label(section.name)
        same = section.heading == section.name or not section.index
        written = "" if same else fold(heading_label(section.heading))
        title = "" if section.index else section.heading  # it stands in the front matter
        copy = copy_digest(f"{title}\n{tree.text(section.own)}", is_code=section.own_traits.has_code)
        names.append(Name(section.kind, label, fold(label), written, terms, copy))
    return names


class Names(Protocol):
    """The names of documents' sections, available without reading the documents."""

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""

    def size(self, tree: int) -> int:
        """Return the number of a document's sections."""

    def name(self, place: Place) -> tuple[int, str]:
        """Return the heading level of a section, and the folded form of its name."""

    def called(self, fold: str, *, begins: bool = False) -> Iterable[Place]:
        """Return the sections whose name, visible or as written, has a folded form, or begins with it."""

    def holding(self, level: int | None, traits: Sequence[str]) -> Iterable[Place]:
        """Return the sections of a level whose own text has all given traits, in document order."""

    def spelt(self) -> Iterable[str]:
        """Return the different headings, each as its terms."""

    def headed(self, spelt: str) -> Sequence[tuple[Place, str]]:
        """Return the sections whose heading has these terms, with the folded forms of their names."""

    def spelt_with(self, words: Collection[str]) -> Iterable[str]:
        """Return the headings, each as its terms, with any of the words."""

    def is_unique(self, level: int, label: str) -> bool:
        """Return whether exactly one section has a level and a label."""


class KnownNames:
    """The names of sections in memory; see :class:`Names`.

    :param titles: name of each document and of its first section.
    :param names: names of each document's sections.
    """

    def __init__(self, titles: Sequence[tuple[str, str]], names: Sequence[Sequence[Name]]) -> None:
        self._titles, self._names = titles, names

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._titles[tree]

    def size(self, tree: int) -> int:
        """Return the number of a document's sections."""
        return len(self._names[tree])

    def name(self, place: Place) -> tuple[int, str]:
        """Return the heading level of a section, and the folded form of its name."""
        name = self._names[place[0]][place[1]]
        return name.level, name.fold

    def copies(self, place: Place) -> tuple[list[Place], list[Place]]:
        """Return the sections of other documents with the text of a section, and those with a similar one."""
        own = self._names[place[0]][place[1]].copy
        alike = self._alike.get(own >> SIMILAR, ()) if own else ()
        others = [(other, copy) for other, copy in alike if other[0] != place[0]]
        equal = [other for other, copy in others if copy == own]
        return equal, [other for other, copy in others if copy != own]

    @cached_property
    def _alike(self) -> dict[int, list[tuple[Place, int]]]:
        """The sections by what similar texts share."""
        alike = defaultdict[int, list[tuple[Place, int]]](list)
        for document, names in enumerate(self._names):
            for section, name in enumerate(names):
                if name.copy:
                    alike[name.copy >> SIMILAR].append(((document, section), name.copy))
        return alike

    def called(self, fold: str, *, begins: bool = False) -> Iterator[Place]:
        """Return the sections whose name, visible or as written, has a folded form, or begins with it."""
        fits = str.startswith if begins else str.__eq__
        return self._matching(
            lambda name: fits(name.fold, fold) or bool(name.written and fits(name.written, fold))
        )

    def holding(self, level: int | None, traits: Sequence[str]) -> Iterator[Place]:
        """Return the sections of a level whose own text has all given traits, in document order."""
        bits = bits_of(traits)
        return self._matching(lambda name: name.kind & bits == bits and level in (None, name.level))

    def spelt(self) -> Iterable[str]:
        """Return the different headings, each as its terms."""
        return self._spelt.keys()

    def headed(self, spelt: str) -> Sequence[tuple[Place, str]]:
        """Return the sections whose heading has these terms, with the folded forms of their names."""
        return [(place, self.name(place)[1]) for place in self._spelt.get(spelt, ())]

    def spelt_with(self, words: Collection[str]) -> Iterator[str]:
        """Return the headings, each as its terms, with any of the words."""
        return (spelt for spelt in self._spelt if not set(words).isdisjoint(spelt.split(" ")))

    def is_unique(self, level: int, label: str) -> bool:
        """Return whether exactly one section has a level and a label."""
        return sum(1 for _ in self._matching(lambda name: (name.level, name.label) == (level, label))) == 1

    def _matching(self, condition: Callable[[Name], bool]) -> Iterator[Place]:
        for document, names in enumerate(self._names):
            yield from ((document, section) for section, name in enumerate(names) if condition(name))

    @cached_property
    def _spelt(self) -> dict[str, list[Place]]:
        places: dict[str, list[Place]] = defaultdict(list)
        for document, section in self._matching(lambda name: bool(name.spelt)):
            places[self._names[document][section].spelt].append((document, section))
        return places
