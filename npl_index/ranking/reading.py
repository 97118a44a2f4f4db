"""Reading the best sections word by word: what stands side by side in them, and what stands close together.

Postings say how often a section holds a term, not where. The terms of a section in order do; to read them for
every section would cost too much, so that only the best ones are read, all of them in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Concept
from npl_index.ranking.postings import Postings, begin_runs

MAX_READ = 1 << 16
"""Terms that are read at most, all sections together: ten times what the best sections of ordinary documents
have. Of a first section that is longer, so many are."""


class Sought(NamedTuple):
    """The terms of a query, numbered through.

    :param rows: of those that stand for a concept, then of those that only stand in a pair.
    :param concepts: the number of the concept that each of the former stands for.
    :param shares: the share of its weight that each has.
    :param weights: of the concepts.
    :param pairs: of terms, by their numbers.
    """

    rows: NDArray[Any]
    concepts: NDArray[Any]
    shares: NDArray[Any]
    weights: NDArray[Any]
    pairs: NDArray[Any]

    @classmethod
    def of(cls, concepts: Sequence[Concept], pairs: Iterable[tuple[int, int]] = ()) -> Sought:
        """Number the terms of some concepts and pairs.

        What stands for several concepts stands for that where its share is largest, or for the first one.

        :param pairs: of rows.
        """
        best: dict[int, tuple[int, float]] = {}
        for number, concept in enumerate(concepts):
            for row, share in concept.variants:
                if row not in best or share > best[row][1]:
                    best[row] = number, share
        number_of = {row: number for number, row in enumerate(best)}
        numbered = [
            (number_of.setdefault(one, len(number_of)), number_of.setdefault(other, len(number_of)))
            for one, other in pairs
        ]
        return cls(
            np.array(list(number_of), np.intp),
            np.array([number for number, _ in best.values()], np.intp),
            np.array([share for _, share in best.values()], float),
            np.array([concept.weight for concept in concepts], float),
            np.array(numbered, np.intp).reshape(-1, 2),
        )


class Texts(NamedTuple):
    """Where headings and bodies of some sections hold what is sought.

    Headings come first, then bodies, so that of ``n`` sections the text ``n + 2`` is the body of the third.

    :param numbers: of the sections in the collection.
    :param sought: the terms.
    :param terms: for each place which of them stands there.
    :param owners: the text that it is in, ascending.
    :param places: ascending; those that stand side by side in a text have neighbours.
    """

    numbers: NDArray[Any]
    sought: Sought
    terms: NDArray[Any]
    owners: NDArray[Any]
    places: NDArray[Any]


def reach(lengths: NDArray[Any]) -> int:
    """Return how many sections of these lengths are read, best first: as far as :data:`MAX_READ` reaches."""
    return max(1, int((lengths.cumsum(dtype="int64") <= MAX_READ).sum()))


def read(postings: Postings, numbers: NDArray[Any], sought: Sought) -> Texts:
    """Read some sections, best first, as far as :func:`reach` says."""
    numbers = numbers[: reach(postings.lengths[numbers])]
    headings, heading_lengths = postings.headings(numbers, MAX_READ)
    bodies, body_lengths = postings.bodies(numbers, MAX_READ)
    marks = np.zeros(max(postings.stop, int(sought.rows.max(initial=0)) + 1), np.int32)
    marks[sought.rows] = np.arange(1, len(sought.rows) + 1)
    found = marks.take(np.concatenate((headings, bodies)))
    places = found.nonzero()[0]
    ends = np.concatenate((heading_lengths, body_lengths)).cumsum()
    owners = ends.searchsorted(places, side="right")
    return Texts(numbers, sought, found[places].astype(np.intp) - 1, owners, places)


def counts_of(texts: Texts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Count the pairs in headings and in bodies; one row a pair, one column a section."""
    pairs, size, width = texts.sought.pairs, len(texts.sought.rows), 2 * len(texts.numbers)
    where = texts.places + texts.owners  # those of different texts are no neighbours
    beside = ((where[1:] - where[:-1]) == 1).nonzero()[0]
    codes = texts.terms[beside] * size + texts.terms[beside + 1]
    number_of = np.full(size * size, -1)
    number_of[pairs[:, 0] * size + pairs[:, 1]] = np.arange(len(pairs))
    numbers = number_of[codes]
    cells = (numbers * width + texts.owners[beside])[numbers >= 0]
    counts = np.bincount(cells, minlength=len(pairs) * width).reshape(len(pairs), width).astype(float)
    return counts[:, : width // 2], counts[:, width // 2 :]


def best_windows(texts: Texts, width: int) -> NDArray[Any]:
    """Return for each body the weight of different concepts in the best stretch of ``width`` terms."""
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
    where = texts.places[at] + owners * width  # those of different texts are never in one window
    # A concept counts at the first place where a window meets it: the place before lies outside. So each
    # place counts for windows that begin behind that one, and near enough.
    before = _before(owners * len(sought.weights) + concepts)
    first = np.maximum(before + 1, where.searchsorted(where - width, side="right"))
    numbers = np.arange(len(at))
    sums = worth.copy()
    for step in range(1, int((numbers - first).max()) + 1):
        np.add(sums[:-step], worth[step:], out=sums[:-step], where=first[step:] <= numbers[:-step])
    begins = begin_runs(owners).nonzero()[0]
    best[owners[begins]] = np.maximum.reduceat(sums, begins)
    return best


def held(texts: Texts) -> NDArray[Any]:
    """Return the share of each concept (row) that each section (column) holds in heading or body."""
    sought, size = texts.sought, len(texts.numbers)
    shares = np.zeros((len(sought.weights), size))
    at = (texts.terms < len(sought.concepts)).nonzero()[0]
    worth = sought.shares[texts.terms[at]]
    order = worth.argsort(kind="stable")  # the best one is written last
    at = at[order]
    shares[sought.concepts[texts.terms[at]], texts.owners[at] % size] = worth[order]
    return shares


def _before(keys: NDArray[Any]) -> NDArray[Any]:
    """Return for each position the last one before it with the same key, or -1."""
    order = keys.argsort(kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    before = np.full(len(keys), -1)
    before[order[1:][same]] = order[:-1][same]
    return before
