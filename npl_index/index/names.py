"""The names of the requested documents and of their sections, from the index."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from npl_index.cached import cached_property
from npl_index.index.reading import IndexReader
from npl_index.index.writing import AMONG
from npl_index.markdown.traits import LEVEL, bits_of
from npl_index.ranking.vocabulary import LAST
from npl_index.selectors.labels import fold as folded
from npl_index.selectors.names import Place


class IndexNames:
    """The names of sections in the index; see :class:`~npl_index.selectors.names.Names`."""

    def __init__(self, reader: IndexReader) -> None:
        self._rows, self._members = reader.rows, reader.members

    @cached_property
    def _titles(self) -> list[tuple[str, str, int]]:
        """Names of each document and of its first section, and its number of sections."""
        title_of = {document: tuple(titles) for document, *titles in self._rows(self._select)}
        return [title_of.get(number, ("", "", 1)) for number in self._members.documents.tolist()]

    @property
    def _select(self) -> str:
        return f"SELECT document, title, heading, sections FROM file WHERE root {self._members.in_roots}"

    def resume(self, former: IndexNames, changed: Sequence[int]) -> None:
        """Keep the titles that names of the same files knew.

        :param changed: positions of changed documents.
        """
        if "_titles" in vars(former):
            titles, numbers = former._titles.copy(), self._members.documents
            position_of = {int(numbers[position]): position for position in changed}
            paths = json.dumps([self._members.indexed[position][0].path for position in changed])
            for document, *row in self._rows(f"{self._select} AND path {AMONG}", paths):
                if document in position_of:
                    titles[position_of[document]] = tuple(row)
            self._titles = titles

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._titles[tree][:2]

    def size(self, tree: int) -> int:
        """Return the number of a document's sections."""
        return self._titles[tree][2]

    def name(self, place: Place) -> tuple[int, str]:
        """Return the heading level of a section, and the folded form of its name."""
        select = f"SELECT kind & {LEVEL}, fold FROM name WHERE document = ? AND section = ?"
        rows = self._rows(select, int(self._members.documents[place[0]]), place[1])
        return rows[0] if rows else (0, "")

    def called(self, fold: str, *, begins: bool = False) -> list[Place]:
        """Return the sections whose name, visible or as written, has a folded form, or begins with it."""
        if begins:
            return self._places(
                "(fold >= ?1 AND fold < ?2) OR (written > '' AND written >= ?1 AND written < ?2)",
                *(fold, fold + LAST),
            )
        return self._places("fold = ?1 OR (written > '' AND written = ?1)", fold)

    def holding(self, level: int | None, traits: Sequence[str]) -> list[Place]:
        """Return the sections of a level whose own text has some traits, in document order."""
        bits = bits_of(traits)
        if level is None:
            return self._places("kind & ?1 = ?1", bits)
        return self._places(f"kind & ?1 = ?1 AND kind & {LEVEL} = ?2", bits, level)

    @cached_property
    def _spelt(self) -> list[str]:
        rows = self._rows(
            f"SELECT DISTINCT spelt FROM name WHERE spelt > '' AND root {self._members.in_roots}"
        )
        return [spelt for (spelt,) in rows]

    @cached_property
    def _spelt_by_word(self) -> dict[str, list[str]]:
        headings: dict[str, list[str]] = {}
        for spelt in self._spelt:
            for word in dict.fromkeys(spelt.split(" ")):
                headings.setdefault(word, []).append(spelt)
        return headings

    def spelt(self) -> Sequence[str]:
        """Return the different headings of the roots, each as its terms."""
        return self._spelt

    def spelt_with(self, words: Collection[str]) -> Iterable[str]:
        """Return the headings, each as its terms, with one of some words."""
        return dict.fromkeys(spelt for word in sorted(words) for spelt in self._spelt_by_word.get(word, ()))

    def headed(self, spelt: str) -> list[tuple[Place, str]]:
        """Return the sections whose heading has these terms, with the folded forms of their names."""
        rows = self._rows(
            f"SELECT document, section, fold FROM name WHERE root {self._members.in_roots} AND spelt = ?",
            spelt,
        )
        positions = self._members.positions
        return sorted(
            ((positions[number], section), fold) for number, section, fold in rows if number in positions
        )

    def is_unique(self, level: int, label: str) -> bool:
        """Return whether exactly one section has a level and a label."""
        places = self._places(f"fold = ? AND label = ? AND kind & {LEVEL} = ?", folded(label), label, level)
        return len(places) == 1

    def _places(self, condition: str, *parameters: object) -> list[Place]:
        rows = self._rows(f"SELECT document, section FROM name WHERE {condition}", *parameters)
        positions = self._members.positions
        return sorted((positions[number], section) for number, section in rows if number in positions)
