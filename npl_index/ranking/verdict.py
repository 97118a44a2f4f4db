"""Coverage of a question by sections, word by word, and the verdict on an answer.

The rank value compares sections with each other, so even the best of irrelevant sections looks like an
answer. Here sections are compared with the words of the question. A word weighs much if it is rare in these
documents, or missing there and rare in English. A word that is rare in English and common in these documents
is their subject, and keeps a part of its weight. An identifier counts only as spelt. The correct spelling
covers a misspelt word; a part or an extension of a word covers at most half of it.

In any collection, some section has a few words of a question by chance; the larger the collection, the more.
A long question has many more words than its answer. So the weight needed for an answer falls with the number
of words, and faster for few sections (:attr:`Coverage._needed`). Words in a heading and words close together
support each other. A rare word without any section counts twice against an answer, because documents about a
subject have most of its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import log
from typing import Any, Literal, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import BACKGROUND, Passages, idf
from npl_index.ranking.keywords import Keywords, Word, extract_keywords, shapes
from npl_index.ranking.vocabulary import VARIANT_WEIGHT, Vocabulary
from npl_index.ranking.wordlists import RARE, commonness

MAX_WORDS = 6
"""Maximum words to name."""

_MIN_MISSPELT = 6
"""Minimum letters of a misspelt term; every short word resembles another."""


FIRST = 3
"""Number of first sections, one of which must have the needed weight; later ones mostly have it by chance."""

# These constants separated answerable questions best (``benchmarks/relevance/absent.py``).
# Weight that a question of one word needs, support included, as a multiple of the question's weight.
_MINIMUM = 1.5
# Weight that is enough for a question of any length: that of five rare words.
_PLENTY = 35.0
# Power of a question's length, and sections of a large collection: chance matches grow with the logarithm of
# their number.
_LENGTH_POWER = 0.6
_LARGE_COLLECTION = 1_000
# Weight of a rare word that no section contains, and of an identifier, compared with other words.
_MISSING, _IDENTIFIER = 2.0, 2.0
# Least weight of a word that is common in these documents, as a share of its weight if it were missing.
_SUBJECT = 0.3
# Words of a long task for each section that may have a part of the needed weight.
_PART = 8
# A complete weight, up to rounding.
_ALL = 1 - 1e-9


class Coverage(NamedTuple):
    """Coverage of a question by sections.

    :param words: different words of the question and its topics.
    :param weights: weights of the words.
    :param judged_weights: weights for the verdict, in which the subject of the documents keeps a part.
    :param present: numbers of the words in any section of the collection.
    :param sections: number of sections in the collection.
    :param shares: share of each word (row) in heading, path or body of each section (column), 0 to 1.
    :param support: the share of the question in each section's headings plus the share in one window, 0 to 2.
    :param named: whether the question names each section.
    :param shortened: identifiers of which the documents have only the last parts.
    """

    words: Sequence[Word]
    weights: NDArray[Any]
    judged_weights: NDArray[Any]
    present: frozenset[int]
    sections: int
    shares: NDArray[Any]
    support: NDArray[Any]
    named: Sequence[bool] = ()
    shortened: tuple[str, ...] = ()

    def question_share(self) -> NDArray[Any]:
        """Return the share of the question's weight in each section, 0 to 1."""
        return self.weights @ self.shares / (self.weights.sum() or 1.0)

    def support_ratio(self) -> NDArray[Any]:
        """Return the question's weight in each section as a multiple of the weight needed for an answer."""
        return self.judged_weights @ self.shares * (1 + self.support) / self._needed

    def is_certain(self) -> bool:
        """Return whether the first section has the weight that a question of any length needs."""
        first = self.judged_weights @ self.shares[:, :1] * (1 + self.support[:1])
        return bool((first >= _MINIMUM * _PLENTY).any())

    def joint_ratio(self) -> float:
        """Return the ratio for the best section, or for a long task the first sections together."""
        size = max(1, int(sum(word.size for word in self.words) / _PART))
        joint = self.shares[:, :size].max(axis=1)
        return float(self.judged_weights @ joint * (1 + self.support[:size].max()) / self._needed)

    def missing(self) -> list[int]:
        """Return the numbers of the rare words and identifiers that no section contains."""
        numbers = (number for number in range(len(self.words)) if number not in self.present)
        return [number for number in numbers if is_rare(self.words[number])]

    @property
    def _needed(self) -> float:
        """The weight that a section needs to be an answer."""
        weight = self.judged_weights.sum() + (_MISSING - 1) * self.judged_weights[self.missing()].sum()
        chance = log(self.sections + BACKGROUND) / log(_LARGE_COLLECTION)
        words = max(1, sum(word.size for word in self.words))
        length = (1 + (words - 1) / chance**2) ** _LENGTH_POWER
        return float(_MINIMUM * min(weight / length or 1.0, _PLENTY))


class Verdict(NamedTuple):
    """The verdict on an answer, with words as the caller wrote them.

    :param absent: words that no section contains, heaviest first, without ordinary words.
    :param held: words in the best section, heaviest first.
    :param state: ``held`` if the best section has the needed weight, or for a long task the first sections
        together; ``weak`` if another of the first sections has it; else ``absent``.
    """

    absent: tuple[str, ...]
    held: tuple[str, ...]
    state: Literal["held", "weak", "absent"]


def cover(
    passages: Passages,
    keywords: Keywords,
    topics: Sequence[str],
    numbers: NDArray[Any],
    support: NDArray[Any],
) -> Coverage:
    """Return the coverage of a question and its topics by some sections.

    :param numbers: numbers of the sections, best first.
    :param support: their support, see :class:`Coverage`.
    """
    terms_of = _asked_words(keywords, topics)
    words, terms = list(terms_of), list(chain.from_iterable(terms_of.values()))
    owners = [number for number, word in enumerate(words) for _ in terms_of[word]]
    of_terms, present = _term_shares(passages, terms, numbers)
    shares = np.zeros((len(words), len(numbers)))
    np.add.at(shares, owners, of_terms / np.bincount(owners)[owners].reshape(-1, 1) if owners else of_terms)
    weight_of, weights = dict(keywords.weights), np.zeros((len(words), 2))
    asked_for = np.minimum(1.0, [weight_of.get(term, 1.0) for term in terms])
    np.maximum.at(weights, owners, (asked_for * _rarities(passages.vocabulary, terms)).T)
    plain, judged = weights.T * [_IDENTIFIER if word.identifier else word.size for word in words]
    present_words = frozenset(owners[number] for number in present)
    return Coverage(
        words,
        plain,
        judged,
        present_words,
        passages.vocabulary.sections,
        shares,
        support,
        shortened=keywords.shortened,
    )


def _term_shares(
    passages: Passages, terms: Sequence[str], numbers: NDArray[Any]
) -> tuple[NDArray[Any], set[int]]:
    """Return how well some sections have some terms, and which terms any section of the collection has.

    :param numbers: numbers of the sections.
    :returns: the share of each term (row) in each section (column), 0 to 1; numbers of the present terms.
    """
    variants = [
        (number, row, share)
        for number, term in enumerate(terms)
        for row, share in _variants_for(passages.vocabulary, term)
    ]
    asked, rows, shares = zip(*variants, strict=True) if variants else ((), (), ())
    columns = np.full(passages.postings.size, -1)
    columns[numbers] = np.arange(len(numbers))
    runs, sections, *_ = passages.postings.find(rows)
    here = (columns[sections] >= 0).nonzero()[0]
    cells = np.array(asked, np.intp)[runs[here]], columns[sections[here]]
    best = np.zeros((len(terms), len(numbers)))
    np.maximum.at(best, cells, np.array(shares)[runs[here]])
    return best, {number for number, _, share in variants if share == 1}


def judge(coverage: Coverage) -> Verdict:
    """Return the verdict on an answer from the covered sections."""
    words, weights, shares = coverage.words, coverage.weights, coverage.shares
    heaviest = sorted(range(len(words)), key=lambda number: -weights[number])
    missing = frozenset(coverage.missing())
    missed = (words[number].shown for number in heaviest if number in missing)
    absent = tuple(dict.fromkeys((*coverage.shortened, *missed)))[:MAX_WORDS]
    if not shares.shape[1]:
        return Verdict(absent, (), "absent")
    held = [words[number] for number in heaviest if shares[number, 0] > VARIANT_WEIGHT]
    state: Literal["held", "weak", "absent"] = "held"
    if not any(coverage.named[:1]) and coverage.joint_ratio() < _ALL:
        state = "absent" if coverage.support_ratio()[:FIRST].max() < _ALL else "weak"
    return Verdict(absent, _texts_of(held), state)


def _asked_words(keywords: Keywords, topics: Sequence[str]) -> dict[Word, list[str]]:
    """Return the different words of a question and its topics, each with its terms that are in a query."""
    words: dict[tuple[str, ...], Word] = {}
    kept: set[str] = set()
    for part in (keywords, *map(extract_keywords, topics)):
        terms = dict(part.weights).keys()
        kept |= terms
        words |= {word.terms: word for word in part.written if not terms.isdisjoint(word.meant)}
    return {word: [term for term in dict.fromkeys(word.meant) if term in kept] for word in words.values()}


def _variants_for(vocabulary: Vocabulary, term: str) -> list[tuple[int, float]]:
    """Return the variants of a term with their shares: 1 for the term or its correct spelling."""
    misspelt = len(term) >= _MIN_MISSPELT and vocabulary.row(term) is None
    full = VARIANT_WEIGHT if misspelt else 1.0
    return [(row, 1.0 if share >= full else share) for row, share in vocabulary.variants(term)]


def _rarities(vocabulary: Vocabulary, terms: Sequence[str]) -> NDArray[Any]:
    """Return the idf of terms in these documents, else in English; then their weights in the verdict."""
    rows, most = list(map(vocabulary.row, terms)), vocabulary.sections + BACKGROUND + 1
    english = np.array([log(most / (BACKGROUND * commonness(term))) for term in terms])
    has_row, local = [row is not None for row in rows], english.copy()
    local[has_row] = idf(vocabulary, [row for row in rows if row is not None])
    return np.array((local, np.maximum(local, _SUBJECT * english)))


def is_rare(word: Word) -> bool:
    """Return whether a word is rare or an identifier, so that its absence is worth a remark."""
    is_rare = min(map(commonness, word.terms)) <= RARE and not any(map(shapes, word.terms))
    return word.is_certain and (word.identifier or is_rare)


def _texts_of(words: Iterable[Word]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.shown for word in words))[:MAX_WORDS]
