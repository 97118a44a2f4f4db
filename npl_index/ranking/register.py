"""What the sections of a collection are called, known from its segments: no document is read for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npl_index.ranking.indexing import Collection
from npl_index.selectors.matching import Node


class CollectionRegister:
    """The names of a collection's sections; see :class:`npl_index.selectors.matching.Register`."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._postings = collection.postings

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._postings.title(int(self._collection.firsts[tree]))

    def size(self, tree: int) -> int:
        """Return how many sections a document has."""
        return int(self._collection.sizes[tree])

    def level(self, node: Node) -> int:
        """Return the heading level of a section."""
        return self._postings.level_of(self._collection.number(*node))

    def fold(self, node: Node) -> str:
        """Return the loose form of a section's name."""
        return self._postings.fold_of(self._collection.number(*node))

    def called(self, fold: str) -> Iterator[Node]:
        """Return the sections whose name, seen or written, has a loose form."""
        for table in ("folds", "written"):
            yield from zip(*self._collection.locate(self._postings.listed(table, fold)), strict=True)

    def beginning(self, fold: str) -> Iterator[Node]:
        """Return those whose name, seen or written, begins with it."""
        for table in ("folds", "written"):
            yield from zip(*self._collection.locate(self._postings.beginning(table, fold)), strict=True)

    def holding(self, level: int | None, traits: Sequence[str]) -> Iterator[Node]:
        """Return the sections of a level whose own text has some traits, in document order."""
        numbers = self._postings.holding(level, traits)
        numbers = numbers[self._collection.order_of(numbers)]
        return zip(*self._collection.locate(numbers), strict=True)
