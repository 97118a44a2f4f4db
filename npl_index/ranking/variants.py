"""Words of an index that stand for a word of a query: itself, abbreviations, parts, corrected spellings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol

from npl_index.ranking.analysis import RARE, commonness

MIN_PART = 3
MIN_SHARE = 0.3
VARIANT_WEIGHT = 0.5
"""A word can stand for another that begins with it, or that it ends with: it needs at least ``MIN_PART``
letters and ``MIN_SHARE`` of the longer one's, and counts ``VARIANT_WEIGHT`` times the share it has."""

MAX_EXTENSIONS = 24
_CACHED = 4096
_SHORT_WORD = 7
_LAST = chr(sys.maxunicode)

Variants = tuple[tuple[int, float], ...]
"""Rows of terms, each with its share of the weight of the query's term."""


class Vocabulary(Protocol):
    """The terms of an index."""

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` where the index lacks it."""
        ...

    def between(self, low: str, high: str, most: int | None = None) -> Sequence[tuple[int, str]]:
        """Return rows and terms from ``low`` up to ``high``, the first ones, in the order of the terms."""
        ...


def variant_finder(vocabulary: Vocabulary) -> Callable[[str], Variants]:
    """Return a function from a query's term to the terms that stand for it, the term itself first.

    The term itself has share 1. Words that begin with it, and those it begins or ends with, have up to
    ``VARIANT_WEIGHT``, less the more letters one has beyond the other: ``env`` and ``environ``, ``kube`` and
    ``kuberay``. A word that is unknown has the words most like it, too. An identifier with marks or digits
    that is there stands for itself only: who asks for ``zyxw3`` does not mean ``zyxw1``.
    """

    # Queries repeat their words, and looking for a misspelt one reads all words with its first letter.
    @lru_cache(_CACHED)
    def find(term: str) -> Variants:
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

    return find


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
    for row, other in vocabulary.between(term, term + _LAST, MAX_EXTENSIONS):
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

    alike = vocabulary.between(term[0], term[0] + _LAST)
    near = {row: other for row, other in alike if abs(len(other) - len(term)) <= 1}
    allowed = 1 if len(term) <= _SHORT_WORD else 2
    matches = process.extract(term, near, scorer=OSA.distance, score_cutoff=allowed, limit=3)
    return [row for _, distance, row in matches if distance == matches[0][1]]
