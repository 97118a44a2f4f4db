"""Positions of a query's terms in the best sections: neighbouring terms, and terms close together.

Postings have counts, not positions. Positions come from the terms of a section in order. Reading these for
all sections would cost too much, so only the best sections are read, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Concept
from npl_index.ranking.postings import Postings, begin_runs

MAX_READ = 1 << 16
"""Maximum terms to read from all sections together: ten times the best sections of ordinary documents. A
longer first section is read up to this limit."""


class QueryTerms(NamedTuple):
    """The terms of a query, numbered consecutively.

    :param rows: rows of the variants of concepts, then of terms that occur only in pairs.
    :param concepts: number of the concept of each variant.
    :param shares: share of the concept's weight for each variant.
    :param weights: weights of the concepts.
    :param pairs: pairs of terms, by their numbers.
    """

    rows: NDArray[Any]
    concepts: NDArray[Any]
    shares: NDArray[Any]
    weights: NDArray[Any]
    pairs: NDArray[Any]

    @classmethod
    def of(cls, concepts: Sequence[Concept], pairs: Iterable[tuple[int, int]] = ()) -> QueryTerms:
        """Number the terms of some concepts and pairs.

        A variant of several concepts counts for the one with its largest share, or for the first of these.

        :param pairs: pairs of rows.
        """
        best: dict[int, tuple[int, float]] = {}
        for number, concept in enumerate(concepts):
            for row, share in concept.variants:
                if row not in best or share > best[row][1]:
                    best[row] = number, share
        number_of = {row: number for number, row in enumerate(best)}
        numbered = [
            (number_of.setdefault(first, len(number_of)), number_of.setdefault(second, len(number_of)))
            for first, second in pairs
        ]
        return cls(
            np.array(list(number_of), np.intp),
            np.array([number for number, _ in best.values()], np.intp),
            np.array([share for _, share in best.values()], float),
            np.array([concept.weight for concept in concepts], float),
            np.array(numbered, np.intp).reshape(-1, 2),
        )


class TermPositions(NamedTuple):
    """Positions of sought terms in headings and bodies of some sections.

    Headings come before bodies: of ``n`` sections, the text ``n + 2`` is the body of the third.

    :param numbers: numbers of the sections among the passages.
    :param sought: the terms.
    :param terms: number of the term at each position.
    :param owners: text of each position, ascending.
    :param places: the positions, ascending; neighbours in a text have consecutive ones.
    """

    numbers: NDArray[Any]
    sought: QueryTerms
    terms: NDArray[Any]
    owners: NDArray[Any]
    places: NDArray[Any]


def read_positions(postings: Postings, numbers: NDArray[Any], sought: QueryTerms) -> TermPositions:
    """Read some sections, best first, up to :data:`MAX_READ` terms; the first section in any case."""
    reached = int((postings.lengths[numbers].cumsum(dtype="int64") <= MAX_READ).sum())
    numbers = numbers[: max(1, reached)]
    headings, heading_lengths = postings.terms(numbers, 0, MAX_READ)
    bodies, body_lengths = postings.terms(numbers, 2, MAX_READ)
    marks = np.zeros(max(postings.stop, int(sought.rows.max(initial=0)) + 1), np.int32)
    marks[sought.rows] = np.arange(1, len(sought.rows) + 1)
    numbered = marks.take(np.concatenate((headings, bodies)))
    places = numbered.nonzero()[0]
    ends = np.concatenate((heading_lengths, body_lengths)).cumsum()
    owners = ends.searchsorted(places, side="right")
    return TermPositions(numbers, sought, numbered[places].astype(np.intp) - 1, owners, places)


def pair_counts(texts: TermPositions) -> tuple[NDArray[Any], NDArray[Any]]:
    """Count the pairs in headings and in bodies; one row per pair, one column per section."""
    pairs, size, width = texts.sought.pairs, len(texts.sought.rows), 2 * len(texts.numbers)
    where = texts.places + texts.owners  # so that terms of different texts are not neighbours
    beside = ((where[1:] - where[:-1]) == 1).nonzero()[0]
    codes = texts.terms[beside] * size + texts.terms[beside + 1]
    number_of = np.full(size * size, -1)
    number_of[pairs[:, 0] * size + pairs[:, 1]] = np.arange(len(pairs))
    numbers = number_of[codes]
    cells = (numbers * width + texts.owners[beside])[numbers >= 0]
    counts = np.bincount(cells, minlength=len(pairs) * width).reshape(len(pairs), width).astype(float)
    return counts[:, : width // 2], counts[:, width // 2 :]


def best_windows(texts: TermPositions, width: int) -> NDArray[Any]:
    """Return the weight of the different concepts in the best window of ``width`` terms of each body."""
    sought, size = texts.sought, len(texts.numbers)
    best = np.zeros(size)
    meant = texts.terms < len(sought.concepts)
    meant[: texts.owners.searchsorted(size)] = False
    at = meant.nonzero()[0]
    if not len(at):
        return best
    terms, owners = texts.terms[at], texts.owners[at] - size
    concepts = sought.concepts[terms]
    worth = (sought.weights[sought.concepts] * sought.shares)[terms]
    where = texts.places[at] + owners * width  # so that no window spans two texts
    # A concept counts once in a window, at its first place. So a place counts in windows that begin after the
    # concept's previous place.
    keys = owners * len(sought.weights) + concepts
    order = keys.argsort(kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    before = np.full(len(keys), -1)
    before[order[1:][same]] = order[:-1][same]
    first = np.maximum(before + 1, where.searchsorted(where - width, side="right"))
    numbers = np.arange(len(at))
    sums = worth.copy()
    for step in range(1, int((numbers - first).max()) + 1):
        np.add(sums[:-step], worth[step:], out=sums[:-step], where=first[step:] <= numbers[:-step])
    begins = begin_runs(owners).nonzero()[0]
    best[owners[begins]] = np.maximum.reduceat(sums, begins)
    return best
