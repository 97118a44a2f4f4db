"""The terms of a collection: how many of its sections hold each, and which stand for a word of a query.

These are the word itself, abbreviations, parts and corrected spellings.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from npl_index.cached import cached_property
from npl_index.ranking.analysis import RARE, commonness
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts, Sections, counts_in

LAST = chr(sys.maxunicode)
"""The last character: what begins with a text lies before that text and this."""

MIN_PART = 3
MIN_SHARE = 0.3
VARIANT_WEIGHT = 0.5
"""A word can stand for another that begins with it, or that it ends with: it needs at least ``MIN_PART``
letters and ``MIN_SHARE`` of the longer one's, and counts ``VARIANT_WEIGHT`` times the share it has."""

MAX_EXTENSIONS = 24
_VARIANTS_KEPT = 4096
_SHORT_WORD = 7

Variants = tuple[tuple[int, float], ...]
"""Rows of terms, each with its share of the weight of the query's term."""


class Vocabulary(ABC):
    """The terms of a collection; each has a number, its row.

    ``sections`` and ``pages`` are how many the collection has, ``words`` the number of terms of all bodies.
    ``telling`` keeps what :func:`npl_index.ranking.weighing.idf` found out about rows.
    """

    sections: int
    pages: int
    words: int

    def __init__(self) -> None:
        self.telling: dict[int, float] = {}
        self._variants: dict[str, Variants] = {}

    @abstractmethod
    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` where no section holds it."""

    @abstractmethod
    def between(self, low: str, high: str, most: int | None = None) -> Sequence[tuple[int, str]]:
        """Return rows and terms from ``low`` up to ``high``, the first ones, in the order of the terms."""

    @abstractmethod
    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""

    @abstractmethod
    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return how many sections hold the terms of some rows."""

    def variants(self, term: str) -> Variants:
        """Return the rows that stand for a query's term, as :func:`variants_of` does.

        They are kept: queries repeat their words, and the search for a misspelt one reads all words with its
        first letter.
        """
        kept = self._variants
        found = kept.get(term)
        if found is None:
            if len(kept) >= _VARIANTS_KEPT:
                kept = self._variants = {}
            found = kept[term] = variants_of(term, self)
        return found


class KnownVocabulary(Vocabulary):
    """The terms of documents that are in memory.

    :param terms: in ascending order, none twice; the row of one is its position.
    :param documents: their sections.
    """

    def __init__(self, terms: Sequence[str], documents: Sequence[Sections]) -> None:
        super().__init__()
        self._terms, self._documents = terms, documents
        self._row_of = {term: row for row, term in enumerate(terms)}
        self.sections = sum(one.size for one in documents)
        self.pages = sum(one.page_count for one in documents)
        self.words = sum(one.words for one in documents)

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` where no section holds it."""
        return self._row_of.get(term)

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


def variants_of(term: str, vocabulary: Vocabulary) -> Variants:
    """Return the rows of the terms that stand for a query's term, the term itself first.

    The term itself has share 1. Words that begin with it, and those it begins or ends with, have up to
    ``VARIANT_WEIGHT``, less the more letters one has beyond the other: ``env`` and ``environ``, ``kube`` and
    ``kuberay``. A word that is unknown has the words most like it, too. A known identifier with marks or
    digits stands for itself only: ``zyxw3`` is not ``zyxw1``.
    """
    row = vocabulary.row(term)
    found = [] if row is None else [(row, 1.0)]
    if row is not None and not term.isalpha():
        return tuple(found)
    if len(term) >= MIN_PART and term[0].isalpha():
        others = dict(_parts(term, vocabulary))
        others.update(_extensions(term, vocabulary))
        if row is None:
            others.update(dict.fromkeys(_misspelt(term, vocabulary), 1.0))
        found += ((other, VARIANT_WEIGHT * share) for other, share in others.items())
    return tuple(found)


def _parts(term: str, vocabulary: Vocabulary) -> Iterator[tuple[int, float]]:
    """Find the words that a term begins with; and those a rare one ends with, since "network" is no work."""
    length = len(term)
    rare = commonness(term) <= RARE
    for part_length in range(max(MIN_PART, int(length * MIN_SHARE)), length):
        for part in (term[:part_length], term[-part_length:])[: 1 + rare]:
            row = vocabulary.row(part)
            if row is not None:
                yield row, part_length / length


def _extensions(term: str, vocabulary: Vocabulary) -> Iterator[tuple[int, float]]:
    """Find the words that begin with a term."""
    length = len(term)
    for row, other in vocabulary.between(term, term + LAST, MAX_EXTENSIONS):
        if len(other) > length and length >= MIN_SHARE * len(other) and other.isalpha():
            yield row, length / len(other)


def _misspelt(term: str, vocabulary: Vocabulary) -> list[int]:
    """Find the words nearest to an unknown one.

    They have the same first letter and nearly the same length; at most two letters are wrong, left out, added
    or swapped (one in short words), by optimal string alignment. Common English words are no misspellings.
    """
    if len(term) == MIN_PART or commonness(term) > RARE:
        return []
    from rapidfuzz import process  # only unknown words need it, and it is slow to import
    from rapidfuzz.distance import OSA

    alike = vocabulary.between(term[0], term[0] + LAST)
    near = {row: other for row, other in alike if abs(len(other) - len(term)) <= 1}
    allowed = 1 if len(term) <= _SHORT_WORD else 2
    matches = process.extract(term, near, scorer=OSA.distance, score_cutoff=allowed, limit=3)
    return [row for _, distance, row in matches if distance == matches[0][1]]
