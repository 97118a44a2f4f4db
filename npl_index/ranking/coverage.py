"""How much of a question sections hold, word by word, and whether they speak for an answer.

The rank value compares sections with each other, which says nothing about the best one: the best of nothing
looks like an answer. Here sections are compared with the words of the question. A word weighs much if it is
rare in these documents, or missing there and rare in English. An identifier counts as spelt or not at all.
The right spelling holds a misspelt word; a part or an extension of a word holds at most half of it.

Some section holds a few words of any question by chance, the more so the more sections there are. A long
question has many more words than its answer repeats. So the weight that speaks for an answer falls with the
number of words, and the faster the fewer sections there are (:meth:`Coverage.spoken`). Words in a heading and
words in one place support each other: chance strews them. A word that no section has counts twice against an
answer, since documents about a subject have most of its words somewhere. :data:`PLENTY` always is enough. The
constants separated questions best (``benchmarks/relevance/absent.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import Any, Literal, NamedTuple

from npl_index.ranking.analysis import RARE, Keywords, Word, commonness, extract_keywords
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.indexing import Passages
from npl_index.ranking.vocabulary import VARIANT_WEIGHT, Vocabulary
from npl_index.ranking.weighing import BACKGROUND, idf

MANY = 1_000
"""Sections that are many; what chance finds grows with the logarithm of their number."""

PLENTY = 35.0
"""Weight that is enough for any question, however long: that of five rare words."""

MISSING_WEIGHT = 2.0
"""Weight of a word that no section has, compared with one that only other sections have: documents about a
subject have most of its words somewhere."""

LENGTH_POWER = 0.6
NEEDED = 1.46
"""Power of a question's length, and the weight that speaks for an answer, with support counted."""

IDENTIFIER_WEIGHT = 2.0
"""Weight of an identifier, compared with a word of the same rarity."""

FIRST = 3
"""Sections, best first, one of which has to speak for an answer; a lower one that does is mostly chance."""

SHOWN = 6
"""Most words to name."""

_MISSPELT = 6
"""Fewest letters of a term that may be misspelt; every short word is like some other one."""

_ALL = 1 - 1e-9
"""Sums of weights are not exact."""


class Coverage(NamedTuple):
    """How much of a question sections hold.

    :param words: of the question and its topics, each once.
    :param weights: of the words.
    :param found: numbers of the words that some section of the collection holds.
    :param sections: of the collection.
    :param shares: of each word (row) that each section (column) holds in heading, path or body, 0 to 1.
    :param support: of each section: the share of the question in its headings plus the share in one place,
        0 to 2.
    """

    words: Sequence[Word]
    weights: NDArray[Any]
    found: frozenset[int]
    sections: int
    shares: NDArray[Any]
    support: NDArray[Any]

    def held(self) -> NDArray[Any]:
        """Return the share of the question's weight that each section holds, 0 to 1."""
        return self._mass() / (self.weights.sum() or 1.0)

    def spoken(self) -> NDArray[Any]:
        """Return the weight that each section holds as a multiple of that which speaks for an answer."""
        found_by_chance = log(self.sections + BACKGROUND) / log(MANY)
        words = sum(word.size for word in self.words)
        most = (1 + max(0, words - 1) / found_by_chance**2) ** LENGTH_POWER
        missing = [number for number in range(len(self.words)) if number not in self.found]
        asked = self.weights.sum() + (MISSING_WEIGHT - 1) * self.weights[missing].sum()
        needed = NEEDED * min(asked / most or 1.0, PLENTY)
        spoken: NDArray[Any] = self._mass() * (1 + self.support) / needed
        return spoken

    def _mass(self) -> NDArray[Any]:
        mass: NDArray[Any] = self.weights @ self.shares
        return mass


class Evidence(NamedTuple):
    """Whether the documents answer a question, by its words as the caller wrote them.

    :param absent: words that no section has, the most telling first; ordinary words are not among them.
    :param held: words that the best section has, the most telling first.
    :param verdict: ``absent`` if none of the first sections speaks for an answer; ``weak`` if one of them
        does, but not the best one.
    """

    absent: tuple[str, ...]
    held: tuple[str, ...]
    verdict: Literal["held", "weak", "absent"]


def cover(
    passages: Passages,
    keywords: Keywords,
    topics: Sequence[str],
    numbers: NDArray[Any],
    support: NDArray[Any],
) -> Coverage:
    """Return how much of a question and its topics some sections hold, best first.

    :param support: of each of these sections, see :class:`Coverage`.
    """
    words = _asked(keywords, topics)
    terms = [(number, term) for number, word in enumerate(words) for term in word.meant]
    standing = [
        (place, row, worth)
        for place, (_, term) in enumerate(terms)
        for row, worth in _standing_for(passages.vocabulary, term)
    ]
    asked, rows, worths = zip(*standing, strict=True) if standing else ((), (), ())
    places = np.full(passages.postings.size, -1)
    places[numbers] = np.arange(len(numbers))
    runs, sections, *_ = passages.postings.find(rows)
    here = (places[sections] >= 0).nonzero()[0]
    there = np.array(asked, np.intp)[runs[here]], places[sections[here]]
    held = np.zeros((len(terms), len(numbers)))
    np.maximum.at(held, there, np.array(worths)[runs[here]])
    shares, owners = np.zeros((len(words), len(numbers))), [number for number, _ in terms]
    np.add.at(shares, owners, held / np.array([len(words[number].meant) for number in owners]).reshape(-1, 1))
    weight_of, weights = dict(keywords.weights), np.zeros(len(words))
    rarities = _rarities(passages.vocabulary, [term for _, term in terms])
    np.maximum.at(
        weights,
        owners,
        [
            min(1.0, weight_of.get(term, 1.0)) * rarity
            for (_, term), rarity in zip(terms, rarities, strict=True)
        ],
    )
    weights *= [IDENTIFIER_WEIGHT if word.identifier else 1.0 for word in words]
    found = frozenset(terms[place][0] for place, _, worth in standing if worth == 1)
    return Coverage(words, weights, found, passages.vocabulary.sections, shares, support)


def evidence(coverage: Coverage) -> Evidence:
    """Judge by the words of a question whether the sections speak for an answer."""
    words, weights, shares = coverage.words, coverage.weights, coverage.shares
    telling = sorted(range(len(words)), key=lambda number: -weights[number])
    absent = [words[number] for number in telling if number not in coverage.found and _names(words[number])]
    if not shares.shape[1]:
        return Evidence(_shown(absent), (), "absent" if words else "held")
    held = [words[number] for number in telling if shares[number, 0] > VARIANT_WEIGHT]
    spoken = coverage.spoken()[:FIRST]
    verdict: Literal["held", "weak", "absent"] = "held"
    if words and spoken.max() < _ALL:
        verdict = "absent"
    elif words and spoken[0] < _ALL:
        verdict = "weak"
    return Evidence(_shown(absent), _shown(held), verdict)


def _asked(keywords: Keywords, topics: Sequence[str]) -> list[Word]:
    """Return the words of a question that its query has, and those of the topics, each once."""
    kept = dict(keywords.weights).keys()
    words = [word for word in keywords.written if not kept.isdisjoint(word.terms)]
    words += (word for topic in topics for word in extract_keywords(topic).written)
    return list({word.terms: word for word in words}.values())


def _standing_for(vocabulary: Vocabulary, term: str) -> list[tuple[int, float]]:
    """Return the rows that stand for a term and their worth: 1 for the term or its right spelling."""
    misspelt = len(term) >= _MISSPELT and vocabulary.row(term) is None
    full = VARIANT_WEIGHT if misspelt else 1.0
    return [(row, 1.0 if share >= full else share) for row, share in vocabulary.variants(term)]


def _rarities(vocabulary: Vocabulary, terms: Sequence[str]) -> list[float]:
    """Return how rare terms are in the documents, or in English if they do not have them."""
    rows = [vocabulary.row(term) for term in terms]
    known = iter(idf(vocabulary, [row for row in rows if row is not None]).tolist())
    most = vocabulary.sections + BACKGROUND + 1
    return [
        log(most / (BACKGROUND * commonness(term))) if row is None else next(known)
        for term, row in zip(terms, rows, strict=True)
    ]


def _names(word: Word) -> bool:
    """Say whether a word names something, so that its absence is worth a mention."""
    return word.identifier or min(map(commonness, word.terms)) <= RARE


def _shown(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.shown for word in words))[:SHOWN]
