"""What a ranking asks of all sections, where a collection is spread over shards.

A shard ranks its own sections as a whole collection does. It weighs with the statistics of all
(:func:`~npl_index.ranking.parts.with_elsewhere`), and where a number depends on all sections it asks. Every
shard comes to the same places in the same order, so that they meet there. What they exchange are whole
numbers, maxima and sections with their values: nothing whose result depends on who answers first. So scores
and order are those of one collection, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from npl_index.ranking.indexing import Collection

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Best(NamedTuple):
    """The best sections of a shard, highest value first; of equal ones in the order of the documents.

    :param numbers: of the sections in the collection.
    """

    collection: Collection
    numbers: NDArray[Any]
    values: NDArray[Any]


class Ranked(NamedTuple):
    """Sections in the same order, whichever shard they are in.

    :param documents: position of each one's document among all.
    :param sections: index of each in that document's tree.
    :param parts: name, content and topic of each.
    """

    values: NDArray[Any]
    documents: Sequence[int]
    sections: Sequence[int]
    parts: NDArray[Any]


class Together(Protocol):
    """What shards find out together; each says what it knows of its own sections."""

    def most(self, *arrays: NDArray[Any]) -> Sequence[float]:
        """Return the highest number of each array, at least 0."""
        ...

    def total(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return the sums of whole numbers."""
        ...

    def read(self, best: Best) -> int:
        """Return how many of the best, from the first, are among those of all that are read.

        Of all, :data:`~npl_index.ranking.evidence.DEPTH` are, as far as
        :func:`~npl_index.ranking.reading.reach` says.
        """
        ...

    def ranking(self, ranked: Ranked) -> Ranked:
        """Return the best of all."""
        ...


class Alone:
    """What a collection knows that is whole."""

    def most(self, *arrays: NDArray[Any]) -> Sequence[float]:
        """Return the highest number of each array, at least 0."""
        return [float(array.max(initial=0.0)) for array in arrays]

    def total(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return the same."""
        return counts

    def read(self, best: Best) -> int:
        """Return how many there are; :func:`~npl_index.ranking.reading.read` reads as far as it reaches."""
        return len(best.numbers)

    def ranking(self, ranked: Ranked) -> Ranked:
        """Return the same."""
        return ranked


ALONE = Alone()
