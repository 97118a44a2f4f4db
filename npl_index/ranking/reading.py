"""Reading the best sections word by word: what stands side by side in them, and what stands close together.

Postings say how often a section holds a term, not where. The terms of a section in order do; to read them for
every section would cost too much, so that only the best ones are read, all of them in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from npl_index.ranking.bm25f import Concept
from npl_index.ranking.parts import Postings

if TYPE_CHECKING:
    from numpy.typing import NDArray


MAX_READ = 1 << 16
"""Terms that are read at most, all sections together: ten times what the best sections of ordinary documents
have. Of a first section that is longer, so many are."""


class Words(NamedTuple):
    """The terms of one field of some sections, one section after another.

    :param rows: of the terms.
    :param owners: for each term which of the sections it belongs to, ascending from 0.
    :param places: of the terms; those that stand side by side have neighbours.
    :param sections: how many sections there are.
    :param vocabulary: how many terms the collection has.
    """

    rows: NDArray[Any]
    owners: NDArray[Any]
    places: NDArray[Any]
    sections: int
    vocabulary: int


class Texts(NamedTuple):
    """Headings and bodies of some sections.

    :param numbers: of the sections in the collection.
    """

    numbers: NDArray[Any]
    headings: Words
    bodies: Words


def read(postings: Postings, numbers: NDArray[Any]) -> Texts:
    """Fetch the words of some sections, best first, as far as :data:`MAX_READ` reaches."""
    read = postings.lengths[numbers].cumsum(dtype="int64") <= MAX_READ
    numbers = numbers[: max(1, int(read.sum()))]
    vocabulary = len(postings.statistics.any)
    return Texts(
        numbers,
        _words(*postings.headings(numbers, MAX_READ), vocabulary),
        _words(*postings.bodies(numbers, MAX_READ), vocabulary),
    )


def _words(rows: NDArray[Any], lengths: NDArray[Any], vocabulary: int) -> Words:
    import numpy as np

    places, owners = np.arange(len(rows)), np.arange(len(lengths)).repeat(lengths)
    return Words(rows, owners, places, len(lengths), vocabulary)


def only(texts: Texts, wanted: Sequence[int]) -> Texts:
    """Leave out all terms but some, where they stand: the rest of a long section is then read once only."""
    return texts._replace(headings=_only(texts.headings, wanted), bodies=_only(texts.bodies, wanted))


def _only(words: Words, wanted: Sequence[int]) -> Words:
    _, at = _found(words, wanted)
    return words._replace(rows=words.rows[at], owners=words.owners[at], places=words.places[at])


def counts_of(words: Words, pairs: Sequence[tuple[int, int]]) -> NDArray[Any]:
    """Count pairs of terms that stand side by side; one row a pair, one column a section."""
    import numpy as np

    counts = np.zeros((len(pairs), words.sections))
    if not pairs:
        return counts
    wanted = list(dict.fromkeys(row for pair in pairs for row in pair))
    place_of = {row: place for place, row in enumerate(wanted)}
    places, at = _found(words, wanted)
    where = words.places[at] + words.owners[at]  # those of different sections are no neighbours
    beside = ((where[1:] - where[:-1]) == 1).nonzero()[0]
    if not len(beside):
        return counts
    codes = places[beside] * len(wanted) + places[beside + 1]
    number_of = np.full(len(wanted) ** 2, -1)
    number_of[[place_of[one] * len(wanted) + place_of[other] for one, other in pairs]] = range(len(pairs))
    numbers = number_of[codes]
    cells = numbers * words.sections + words.owners[at[beside]]
    return np.bincount(cells[numbers >= 0], minlength=counts.size).reshape(counts.shape).astype(float)


def best_windows(words: Words, concepts: Sequence[Concept], width: int) -> NDArray[Any]:
    """Return for each section the weight of different concepts in the best stretch of ``width`` terms."""
    import numpy as np

    best = np.zeros(words.sections)
    claims = _claims(concepts)
    if not claims:
        return best
    places, at = _found(words, [row for row, _, _ in claims])
    if not len(at):
        return best
    concept_of = np.array([number for _, number, _ in claims])[places]
    worth = np.array([concepts[number].weight * share for _, number, share in claims])[places]
    owners, numbers = words.owners[at], np.arange(len(at))
    where = words.places[at] + owners * width  # those of different sections are never in one window
    before = _before(owners * len(concepts) + concept_of)
    # A concept counts at the first place where a window meets it: the place before lies outside.
    sums = worth.copy()
    for step in range(1, min(width, len(at))):
        inside = where[step:] - where[:-step] < width
        if not inside.any():
            break
        first = before[step:] < numbers[:-step]
        sums[:-step] += worth[step:] * (inside & first)
    begins = np.concatenate(([0], (owners[1:] != owners[:-1]).nonzero()[0] + 1))
    best[owners[begins]] = np.maximum.reduceat(sums, begins)
    return best


def held(texts: Texts, concepts: Sequence[Concept]) -> NDArray[Any]:
    """Return the share of each concept (row) that each section (column) holds in heading or body."""
    import numpy as np

    shares = np.zeros((len(concepts), len(texts.numbers)))
    claims = _claims(concepts)
    for words in (texts.headings, texts.bodies):
        if claims:
            places, at = _found(words, [row for row, _, _ in claims])
            order = places.argsort(kind="stable")  # claims ascend by share: the best one is written last
            concept_of = np.array([number for _, number, _ in claims])[places[order]]
            worth = np.array([share for _, _, share in claims])[places[order]]
            cells = concept_of, words.owners[at[order]]
            shares[cells] = np.maximum(shares[cells], worth)
    return shares


def _claims(concepts: Sequence[Concept]) -> list[tuple[int, int, float]]:
    """List the rows that stand for concepts, each with the number of the concept and its share, by share.

    Where a row stands for several concepts the last one has it: that with the larger share, or the first.
    """
    claims = [
        (row, number, share)
        for number, concept in reversed(list(enumerate(concepts)))
        for row, share in concept.variants
    ]
    claims.sort(key=lambda claim: claim[2])
    return claims


def _found(words: Words, wanted: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Find some terms: for each term among them its position in ``wanted``, and which it is."""
    import numpy as np

    table = np.zeros(words.vocabulary, dtype=np.int32)
    table[list(wanted)] = range(1, len(wanted) + 1)
    marks = table[words.rows]
    at = marks.nonzero()[0]
    return marks[at].astype(np.intp) - 1, at


def _before(keys: NDArray[Any]) -> NDArray[Any]:
    """Return for each position the last one before it with the same key, or -1."""
    import numpy as np

    order = keys.argsort(kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    before = np.full(len(keys), -1)
    before[order[1:][same]] = order[:-1][same]
    return before
