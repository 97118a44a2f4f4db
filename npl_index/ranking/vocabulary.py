"""The terms of a collection, and how many of its sections hold each."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts, Sections, counts_in
from npl_index.ranking.variants import Variants, variant_finder


class Vocabulary(Protocol):
    """The terms of a collection; each has a number, its row.

    ``telling`` keeps what :func:`npl_index.ranking.weighing.idf` found out about rows.
    """

    telling: dict[int, float]

    @property
    def sections(self) -> int:
        """How many sections the collection has."""
        ...

    @property
    def pages(self) -> int:
        """How many pages it has."""
        ...

    @property
    def words(self) -> int:
        """How many terms all its bodies have."""
        ...

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` where no section holds it."""
        ...

    def between(self, low: str, high: str, most: int | None = None) -> Sequence[tuple[int, str]]:
        """Return rows and terms from ``low`` up to ``high``, the first ones, in the order of the terms."""
        ...

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""
        ...

    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return how many sections hold the terms of some rows."""
        ...

    def variants(self, term: str) -> Variants:
        """Return the rows that stand for a query's term."""
        ...


class KnownVocabulary:
    """The terms of documents that are in memory.

    :param terms: in ascending order, none twice; the row of one is its position.
    :param documents: their sections.
    """

    def __init__(self, terms: Sequence[str], documents: Sequence[Sections]) -> None:
        self._terms, self._documents = terms, documents
        self._row_of = {term: row for row, term in enumerate(terms)}
        self.row = self._row_of.get
        self.variants = variant_finder(self)
        self.telling: dict[int, float] = {}
        self.sections = sum(one.size for one in documents)
        self.pages = sum(one.page_count for one in documents)
        self.words = sum(one.words for one in documents)

    def between(self, low: str, high: str, most: int | None = None) -> list[tuple[int, str]]:
        """Return rows and terms from ``low`` up to ``high``, the first ones, in the order of the terms."""
        begin, end = bisect_left(self._terms, low), bisect_left(self._terms, high)
        return list(enumerate(self._terms[begin:end][:most], begin))

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""
        return list(map(self._terms.__getitem__, rows))

    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return how many sections hold the terms of some rows."""
        return Counts(*(one[rows] for one in self._counts))

    @cached_property
    def _counts(self) -> Counts:
        totals = Counts(*np.zeros((len(Counts._fields), len(self._terms)), np.int64))
        for one in self._documents:
            rows, counts = counts_in(one)
            for total, more in zip(totals, counts, strict=True):
                total[rows] += more
        return totals


LAST = chr(sys.maxunicode)
"""The last character: what begins with a text lies before that text and this."""
