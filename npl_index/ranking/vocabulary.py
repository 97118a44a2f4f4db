"""The terms of a collection, the numbers of sections with each, and the variants of a query's words.

Variants are abbreviations, parts and corrected spellings.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from npl_index.cached import cached_property
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts, Sections, counts_in
from npl_index.ranking.wordlists import RARE, commonness, respelt

LAST = chr(sys.maxunicode)
"""The last character: texts with a prefix sort before the prefix followed by this character."""

MIN_PART = 3
VARIANT_WEIGHT = 0.5
"""Minimum letters of a variant that is a part or an extension of a word; and the weight of a variant, times
the ratio of the lengths."""

MAX_EXTENSIONS = 24
_SHORT_WORD = 7
_ENDINGS = range(4, 7)  # a shorter ending may be any letters

MAX_KNOWN = 40_000
"""Maximum results that a vocabulary keeps: about 6 MB."""

T = TypeVar("T")

Variants = tuple[tuple[int, float], ...]
"""Rows of terms with their shares of the weight of the query's term."""


class Vocabulary(ABC):
    """The terms of a collection; each has a number, its row.

    ``sections``, ``pages`` and ``words`` are the numbers of sections, pages and terms of all bodies in the
    collection. ``known`` has some results by key, because questions repeat their words, and a collection its
    headings. ``frequencies`` has a number for each row, NaN if it is not known.
    """

    sections: int
    pages: int
    words: int

    def __init__(self) -> None:
        self.known: dict[Hashable, Any] = {}
        self.frequencies: NDArray[Any] = np.empty(0)

    def frequencies_to(self, last: int) -> NDArray[Any]:
        """Return the frequencies of the terms up to a row, with room for those that are not known."""
        if last >= len(self.frequencies):
            room = np.full(last + 1 + last // 4 - len(self.frequencies), np.nan)
            self.frequencies = np.append(self.frequencies, room)
        return self.frequencies

    def remember(self, results: Mapping[Any, Any]) -> None:
        """Keep some results; at the maximum, the earlier ones are forgotten."""
        if len(self.known) + len(results) > MAX_KNOWN:
            self.known = {}  # another thread may read the former
        self.known.update(results)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of some work, kept by a key."""
        result = self.known.get(key, self)
        if result is self:
            result = make()
            self.remember({key: result})
        return cast("T", result)

    @abstractmethod
    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` if no section has it."""

    def learn(self, terms: Iterable[str], *, parts: bool = True) -> None:  # noqa: B027 - memory needs no preparation
        """Look up terms, and their parts, at once, before each is asked for."""

    @abstractmethod
    def alike(self, first: str, lengths: range) -> Sequence[str]:
        """Return the terms of some lengths with a first character.

        Some may be terms of other documents, which have no sections here.
        """

    @abstractmethod
    def between(self, low: str, high: str, limit: int | None = None) -> Sequence[tuple[int, str]]:
        """Return the first rows and terms from ``low`` (included) to ``high`` (excluded), sorted by term."""

    @abstractmethod
    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""

    @abstractmethod
    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return the numbers of sections with the terms of some rows."""

    def variants(self, term: str) -> Variants:
        """Return the result of :func:`variants_of`, cached.

        Queries repeat their words, and a misspelt one is compared with all words with its first letter.
        """
        return self.once(("variants", term), lambda: variants_of(term, self))


class KnownVocabulary(Vocabulary):
    """The terms of documents in memory.

    :param terms: different terms in ascending order; the row of a term is its position.
    :param documents: sections of the documents.
    """

    def __init__(self, terms: Sequence[str], documents: Sequence[Sections]) -> None:
        super().__init__()
        self._terms, self._documents = terms, documents
        self._row_of = {term: row for row, term in enumerate(terms)}
        self.sections = sum(sections.size for sections in documents)
        self.pages = sum(sections.page_count for sections in documents)
        self.words = sum(sections.words for sections in documents)

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` if no section has it."""
        return self._row_of.get(term)

    def alike(self, first: str, lengths: range) -> list[str]:
        """Return the terms of some lengths with a first character."""
        return [term for _, term in self.between(first, first + LAST) if len(term) in lengths]

    def between(self, low: str, high: str, limit: int | None = None) -> list[tuple[int, str]]:
        """Return the first rows and terms from ``low`` (included) to ``high`` (excluded), sorted by term."""
        begin, end = bisect_left(self._terms, low), bisect_left(self._terms, high)
        return list(enumerate(self._terms[begin:end][:limit], begin))

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""
        return list(map(self._terms.__getitem__, rows))

    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return the numbers of sections with the terms of some rows."""
        return Counts(*(column[rows] for column in self._counts))

    @cached_property
    def _counts(self) -> Counts:
        totals = Counts(*np.zeros((len(Counts._fields), len(self._terms)), np.int64))
        for sections in self._documents:
            rows, counts = counts_in(sections)
            for total, count in zip(totals, counts, strict=True):
                total[rows] += count
        return totals


def variants_of(term: str, vocabulary: Vocabulary) -> Variants:
    """Return the rows of a query's term and of its variants, the term itself first.

    The term itself has share 1. Words with the term as a prefix, and prefixes and suffixes of the term, have
    up to ``VARIANT_WEIGHT``, in proportion to the ratio of the lengths: ``env`` and ``environ``, ``kube`` and
    ``kuberay``. Variants of an unknown word are also the most similar words. A known identifier with marks or
    digits has no variants: ``zyxw3`` is not ``zyxw1``.
    """
    row = vocabulary.row(term)
    if row is not None and not term.isalpha():
        return ((row, 1.0),)
    others: dict[int, float] = {}
    for part in parts_of(term):
        if (at := vocabulary.row(part)) is not None:
            others[at] = len(part) / len(term)
    if len(term) >= MIN_PART and term[0].isalpha():
        longer = vocabulary.between(term, term + LAST, MAX_EXTENSIONS)
        others |= {at: len(term) / len(other) for at, other in longer if other.isalpha() and other != term}
        if row is None:
            others |= dict.fromkeys(_misspelt(term, vocabulary), 1.0)
    variants = ((other, VARIANT_WEIGHT * share) for other, share in others.items())
    return (*variants,) if row is None else ((row, 1.0), *variants)


def parts_of(term: str) -> list[str]:
    """Return the prefixes of a term that may stand for it; for rare terms, suffixes too ("network" is not
    "work").
    """
    if not term[:1].isalpha():
        return []
    rare, sizes = commonness(term) <= RARE, range(MIN_PART, len(term))
    return [part for size in sizes for part in (term[:size], term[-size:])[: 1 + rare]]


def _misspelt(term: str, vocabulary: Vocabulary) -> list[int]:
    """Return the words most similar to an unknown one.

    They have the same first letter and nearly the same length; at most two letters (one in short words) are
    wrong, missing, added or swapped, by optimal string alignment. A wrong letter in an ending, which no stem
    has, counts as well ("editabel" and "edit"). Common English words and identifiers count as correct.
    """
    size = len(term)
    if size == MIN_PART or commonness(term) > RARE or not term.isalpha():
        return []
    from rapidfuzz import process  # only unknown words need it, and it is slow to import
    from rapidfuzz.distance import OSA

    near = vocabulary.alike(term[0], range(max(MIN_PART, size - _ENDINGS[-1]), size + 2))
    allowed = 1 if size <= _SHORT_WORD else 2
    matches = process.extract(term, near, scorer=OSA.distance, score_cutoff=allowed, limit=None)
    wrong = {text: distance for text, distance, _ in matches}
    stems = respelt(term) if size > _ENDINGS[-1] else frozenset[str]()
    wrong |= {text: 1 for text in stems.intersection(near) if size - len(text) in _ENDINGS}
    vocabulary.learn(wrong, parts=False)
    found = sorted((distance, text) for text, distance in wrong.items())
    rows = ((distance, vocabulary.row(text)) for distance, text in found)
    best = [(distance, row) for distance, row in rows if row is not None]
    return [row for distance, row in best if distance == best[0][0]]
