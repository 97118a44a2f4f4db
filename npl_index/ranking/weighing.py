"""What postings weigh: the numbers of BM25F that depend on the whole collection.

Segments hold counts alone; see :mod:`npl_index.ranking.bm25f` for what is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.parts import Postings, Runs
from npl_index.ranking.segments import ranges

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

_SMALL = 1 << 16
"""Postings that are weighed all at once: those of a file of ten thousand lines. It takes a millisecond."""


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
    """Weighs postings: those of a file once, those of a large set as they are asked for."""

    def __init__(self, postings: Postings) -> None:
        self.postings = postings
        self._spread: dict[int, float] = {}  # common words come again

    def idf(self, rows: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
        """Return how much terms tell: ``log((N + B + 1) / (n + B * p))``.

        ``n`` of ``N`` sections hold the term in heading or body, ``B`` are background, ``p`` is the term's
        share of those. Without background it is the idf of ``BM25Plus``. A term in a path says what a whole
        branch is about, so it makes the term no more common; one that stands in paths only is counted there.
        """
        return self._idf[np.array(rows, dtype=np.intp)]

    def spread(self, rows: Sequence[int], pages: NDArray[Any]) -> list[float]:
        """Return the factors of idf for the pages that hold terms: ``1 - (n / (N + B))**2``.

        ``n`` of ``N`` pages hold the term, ``B`` are :data:`OTHER_PAGES`. A word that stands on nearly every
        page tells no page from another, however few sections of each repeat it.

        :param pages: page of each section.
        """
        known = self.postings.statistics
        every = known.pages + OTHER_PAGES
        new = {row for row in rows if row not in self._spread and known.any[row] > COMMON * every}
        if new:
            found = self.postings.find(list(new))
            page_of = pages[found.sections]
            first = np.ones(len(page_of), bool)
            first[1:] = (found.runs[1:] != found.runs[:-1]) | (page_of[1:] != page_of[:-1])
            holders = np.bincount(found.runs[first], minlength=len(new))
            self._spread.update(zip(new, (1 - (holders / every) ** 2).tolist(), strict=True))
        return [self._spread.get(row, 1.0) for row in rows]

    def body_norms(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return by what the counts in the bodies of some sections are divided for their lengths."""
        known = self.postings.statistics
        mean = known.words / known.sections or 1.0
        norms: NDArray[Any] = 1 - BODY_NORM + BODY_NORM * self.postings.lengths[numbers] / mean
        return norms

    def find(self, rows: Sequence[int]) -> Weighed:
        """Return the postings of some rows, one row after another; a row may be asked for several times."""
        if self._every is None:
            return self._weighed(rows, self.postings.find(rows))
        asked = np.array(rows, dtype=np.intp)
        starts = self.postings.parts[0].segment.starts
        begins = starts[asked]
        lengths = starts[asked + 1] - begins
        where = ranges(begins, lengths)
        return Weighed(np.arange(len(asked)).repeat(lengths), *(array[where] for array in self._every[1:]))

    @cached_property
    def _every(self) -> Weighed | None:
        """All postings of a small collection; ``None`` for others."""
        alone = self.postings.alone
        if alone is None or len(alone.sections) > _SMALL:
            return None
        rows = np.arange(len(alone.terms))
        counts = alone.in_heading, alone.in_path, alone.in_body
        runs = Runs(rows.repeat(np.diff(alone.starts)), alone.sections.astype(np.int64), *counts)
        return self._weighed(rows, runs)

    @cached_property
    def _idf(self) -> NDArray[Any]:
        """That of all terms: the headings of what a common word finds have most of them."""
        known = self.postings.statistics
        holders = np.where(known.own > 0, known.own, known.any)
        idf: NDArray[Any] = np.log((known.sections + BACKGROUND + 1) / (holders + BACKGROUND * known.common))
        return idf

    def _weighed(self, rows: Sequence[int] | NDArray[Any], found: Runs) -> Weighed:
        runs, sections, in_heading, in_path, in_body = found
        every = np.array(rows, dtype=np.intp)
        known = self.postings.statistics
        # A common folder's name tells no section from another, and would make all of them match.
        path_weights = np.where(known.path[every] == known.sections, 0.0, FIELD_WEIGHTS[1])
        if known.pages == 1:  # nor does a page's title tell its sections apart
            in_heading = np.where(self.postings.levels[sections] == 0, 0, in_heading)
        names = FIELD_WEIGHTS[0] * in_heading + path_weights[runs] * in_path
        masses = names + FIELD_WEIGHTS[2] * in_body / self.body_norms(sections)
        headings = np.zeros(len(sections))
        headed = in_heading.nonzero()[0]
        if len(headed):
            idf = self._idf[every][runs[headed]]
            headings[headed] = idf / self._heading_weights(sections[headed])
        return Weighed(runs, sections, names, masses, headings)

    def _heading_weights(self, sections: NDArray[Any]) -> NDArray[Any]:
        """Return the idf of all different terms of the headings of some sections."""
        marks = np.zeros(self.postings.size, dtype=bool)
        marks[sections] = True
        numbers = marks.nonzero()[0]
        terms, lengths = self.postings.named(numbers)
        weights = np.bincount(np.arange(len(numbers)).repeat(lengths), self._idf[terms], len(numbers))
        places = np.empty(len(marks), np.int32)
        places[numbers] = np.arange(len(numbers), dtype=np.int32)
        every: NDArray[Any] = weights[places[sections]]
        return every
