"""What postings weigh: the numbers of BM25F that depend on the whole collection.

See :mod:`npl_index.ranking.bm25f` for what is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from npl_index.ranking.analysis import commonnesses
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Postings, Table
from npl_index.ranking.vocabulary import Vocabulary

FIELD_WEIGHTS = (4.0, 0.5, 1.0)
"""What an occurrence in heading, path and body counts."""

BODY_NORM = 0.7
"""``b`` of BM25 for the body: 0 ignores its length, 1 divides by it.

A long body repeats its words because it is long; a long heading or path has no words twice, so that their
lengths are ignored."""

BACKGROUND = 12.0
"""Sections of ordinary prose that every collection is thought to hold besides its own. In a file of ten
sections it is chance which word stands in one of them only; what is known about English says more."""

OTHER_PAGES = 24
"""Pages without any term, added to every collection: a word on both of two pages is not yet common."""

COMMON = 0.2
"""Sections a page, on average, from which on the pages of a term are counted."""


class Weighed(NamedTuple):
    """Postings with what they weigh.

    :param runs: for each posting which of the rows asked for it belongs to.
    :param sections: section of each.
    :param names: mass from heading and path.
    :param masses: mass from all fields.
    :param headings: share of the section's heading that its term has, by idf; 0 where the heading lacks it.
    """

    runs: NDArray[Any]
    sections: NDArray[Any]
    names: NDArray[Any]
    masses: NDArray[Any]
    headings: NDArray[Any]


class Weighing:
    """Weighs the postings of some documents of a collection.

    :param postings: of those documents.
    :param vocabulary: of the whole collection.
    """

    def __init__(self, postings: Postings, vocabulary: Vocabulary) -> None:
        self.postings, self.vocabulary = postings, vocabulary
        self._kept: tuple[Table, tuple[NDArray[Any], ...]] | None = None

    def body_norms(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return by what the counts in the bodies of some sections are divided for their lengths."""
        mean = self.vocabulary.words / self.vocabulary.sections or 1.0
        norms: NDArray[Any] = 1 - BODY_NORM + BODY_NORM * self.postings.lengths[numbers] / mean
        return norms

    def find(self, rows: Sequence[int]) -> Weighed:
        """Return the postings of some rows, one row after another; a row may be asked for several times."""
        asked = np.array(rows, dtype=np.intp)
        table = self.postings.table(asked)
        kept = self._kept
        if kept is None or kept[0] is not table:
            kept = self._kept = table, self._weighed(table)
        runs, places = table.places(asked)
        return Weighed(runs, *(column[places] for column in kept[1]))

    def _weighed(self, table: Table) -> tuple[NDArray[Any], ...]:
        """Return the columns of :class:`Weighed` behind the first for all postings of a table."""
        known, (sections, in_heading, in_path, in_body) = self.vocabulary, table.columns
        lengths = np.diff(table.bounds)
        # A common folder's name tells no section from another, and would make all of them match.
        path_weights = np.where(known.counts(table.rows).path == known.sections, 0.0, FIELD_WEIGHTS[1])
        if known.pages == 1:  # nor does a page's title tell its sections apart
            in_heading = np.where(self.postings.levels[sections] == 0, 0, in_heading)
        names = FIELD_WEIGHTS[0] * in_heading + path_weights.repeat(lengths) * in_path
        masses = names + FIELD_WEIGHTS[2] * in_body / self.body_norms(sections)
        headings = np.zeros(len(sections))
        headed = in_heading.nonzero()[0]
        if len(headed):
            weights = idf(known, table.rows).repeat(lengths)[headed]
            headings[headed] = weights / self._heading_weights(sections[headed])
        return sections, names, masses, headings

    def _heading_weights(self, sections: NDArray[Any]) -> NDArray[Any]:
        """Return the idf of all different terms of the headings of some sections."""
        rows, owners = self.postings.named(sections)
        weights = idf(self.vocabulary, rows)
        # Sums of the same numbers are equal only in the same order, and rows differ from index to index.
        order = np.lexsort((weights, owners))
        sums: NDArray[Any] = np.bincount(owners[order], weights[order], len(sections))
        return sums


def idf(vocabulary: Vocabulary, rows: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Return how much terms tell: ``log((N + B + 1) / (n + B * p))``.

    ``n`` of ``N`` sections hold the term in heading or body, ``B`` are background, ``p`` is the term's
    share of those. Without background it is the idf of ``BM25Plus``. A term in a path says what a whole
    branch is about, so it makes the term no more common; one that stands in paths only is counted there.
    """
    kept, asked = vocabulary.telling, rows.tolist() if isinstance(rows, np.ndarray) else rows
    if missing := list(set(asked).difference(kept)):
        known = vocabulary.counts(np.array(missing))
        common = np.array(commonnesses(vocabulary.texts(missing)))
        holders = np.where(known.own > 0, known.own, known.any)
        found = np.log((vocabulary.sections + BACKGROUND + 1) / (holders + BACKGROUND * common))
        kept.update(zip(missing, found.tolist(), strict=True))
    return np.array(list(map(kept.__getitem__, asked)))


def spread(vocabulary: Vocabulary, rows: Sequence[int]) -> NDArray[Any]:
    """Return the factors of idf for the pages that hold terms: ``1 - (n / (N + B))**2``.

    ``n`` of ``N`` pages hold the term, ``B`` are :data:`OTHER_PAGES`. A word that stands on nearly every
    page tells no page from another, however few sections of each repeat it.
    """
    known, every = vocabulary.counts(np.array(rows, np.intp)), vocabulary.pages + OTHER_PAGES
    factors: NDArray[Any] = np.where(known.any > COMMON * every, 1 - (known.pages / every) ** 2, 1.0)
    return factors
