r"""BM25F: scores of sections by the words in heading, path and body.

A term counts more in a heading than in a body. BM25F adds the weighted counts of all fields *before* they
saturate; a sum of scores of single fields would count one word in two fields twice (Robertson, Zaragoza
and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004). For each term and section::

    mass  = sum over fields of  weight * count / (1 - b + b * length / average length)
    score = idf * mass / (mass + K1)

A section's score is the sum over the terms of the query. Masses and idf are computed for these terms
(:meth:`Passages.weigh`, :func:`idf`), so that an edit changes no stored numbers of other documents. With one
field the score is that of rank-bm25's ``BM25Plus`` with ``delta = 0``, divided by ``K1 + 1``.

An example with three sections, the file's own included. The idf is ``log((3 + 12 + 1) / (holders + 12 *
share))``, because :data:`BACKGROUND` is 12::

    >>> import numpy as np
    >>> from npl_index.library.documents import Document, Fingerprint
    >>> from npl_index.ranking.indexing import index_document
    >>> text = b"# Tea\n\nKettle, kettle.\n\n# Pot\n\nKettle, teapot.\n"
    >>> state = Fingerprint("/brew.md", 0, len(text))
    >>> collection = index_document(Document("brew", "brew.md", state, text, "", npl=False)).collection
    >>> vocabulary, passages = collection.vocabulary, collection.whole
    >>> [term for _, term in vocabulary.between("", "~")]
    ['brew', 'kettl', 'pot', 'tea', 'teapot']
    >>> idf(vocabulary, [1, 3, 4]).round(2).tolist()
    [2.07, 2.75, 2.75]

"kettl" occurs twice in the body of section 1 and once in that of section 2. Both bodies are longer than the
average, because the file's own body is empty::

    >>> passages.body_norms(np.array([1, 2])).round(3).tolist()
    [1.35, 1.35]
    >>> masses = [round(count / 1.35, 3) for count in (2, 1)]
    >>> [round(2.07 * mass / (mass + K1), 2) for mass in masses]
    [1.0, 0.66]
    >>> kettle = Concept(2.07, ((1, 1.0),))
    >>> (2.07 * match(passages, [kettle]).scores).round(2).tolist()
    [0.0, 1.0, 0.66]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Postings, distinct
from npl_index.ranking.standing import Standing
from npl_index.ranking.vocabulary import Variants, Vocabulary
from npl_index.ranking.wordlists import commonness

K1 = 1.6
"""Saturation: a mass of ``K1`` gives half of a term's maximum."""

FIELD_WEIGHTS = (4.0, 0.5, 1.0)
"""Weight of an occurrence in heading, path and body."""

BODY_NORM = 0.7
"""``b`` of BM25 for the body: 0 ignores its length, 1 divides by it.

A long body repeats its words because it is long. A long heading or path repeats no words, so the lengths of
these do not count."""

BACKGROUND = 12.0
"""Assumed sections of ordinary prose in every collection. In a file of ten sections, chance decides which
word occurs in a single one; the frequencies of English words say more."""

_UNIT = 2.0**40
"""Units of the whole numbers that :func:`sums` adds; below 2**53, these are exact."""


@dataclass(frozen=True, slots=True)
class Passages:
    """Sections of a collection that may answer a question: those of some documents, numbered consecutively.

    :param documents: numbers of these documents in the collection, ascending.
    :param postings: postings of their sections.
    :param vocabulary: vocabulary of the whole collection.
    :param standings: returns the present standing of each document.
    """

    documents: NDArray[Any]
    postings: Postings
    vocabulary: Vocabulary
    standings: Callable[[], Sequence[Standing]] = tuple

    def number(self, document: int, section: int) -> int:
        """Return the number of a section."""
        return int(self.postings.firsts[self.documents.searchsorted(document)]) + section

    def locate(self, numbers: NDArray[Any]) -> tuple[list[int], list[int]]:
        """Return the documents of some numbers, and the sections in them."""
        places = self.postings.firsts.searchsorted(numbers, side="right") - 1
        return self.documents[places].tolist(), (numbers - self.postings.firsts[places]).tolist()

    def body_norms(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """Return the divisors of the counts in the bodies of some sections, which depend on their lengths."""
        mean = self.vocabulary.words / self.vocabulary.sections or 1.0
        return 1 - BODY_NORM + BODY_NORM * self.postings.lengths[numbers] / mean

    def weigh(self, rows: Sequence[int]) -> tuple[NDArray[Any], ...]:
        """Return the weights of the postings of some rows, row by row; rows may be repeated.

        :returns: arrays with one number for each posting: the number of its row; its section; its mass from
            heading and path, and from all fields; the term's share of the section's heading, by idf, or 0 if
            it is not in the heading.
        """
        vocabulary = self.vocabulary
        runs, sections, in_heading, in_path, in_body = self.postings.find(rows)
        # The name of a common folder distinguishes no section, and would make all of them match.
        path_counts = vocabulary.counts(np.array(rows, np.intp)).path
        path_weights = np.where(path_counts == vocabulary.sections, 0.0, FIELD_WEIGHTS[1])
        if vocabulary.pages == 1:  # nor does a page's title distinguish its sections
            in_heading = np.where(self.postings.levels[sections] == 0, 0, in_heading)
        names = FIELD_WEIGHTS[0] * in_heading + path_weights[runs] * in_path
        masses = names + FIELD_WEIGHTS[2] * in_body / self.body_norms(sections)
        headings = np.zeros(len(sections))
        headed = in_heading.nonzero()[0]
        if len(headed):
            headings[headed] = idf(vocabulary, rows)[runs[headed]] / self._heading_weights(sections[headed])
        return runs, sections, names, masses, headings

    def _heading_weights(self, sections: NDArray[Any]) -> NDArray[Any]:
        """Return the sum of the idf of all different terms in the headings of some sections."""
        rows, owners = self.postings.heading_terms(sections)
        return sums(idf(self.vocabulary, rows), owners, len(sections))


def sums(values: NDArray[Any], owners: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the sum of the values of each owner, whatever their order.

    The rows of terms differ from index to index. Whole numbers have the same sum in any order.
    """
    return np.bincount(owners, np.rint(values * _UNIT), size) / _UNIT


def idf(vocabulary: Vocabulary, rows: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """Return the inverse document frequency of terms: ``log((N + B + 1) / (n + B * p))``.

    ``n`` of ``N`` sections have the term in heading or body, ``B`` is :data:`BACKGROUND`, and ``p`` is the
    term's share of the background. Without background it is the idf of ``BM25Plus``. A term in a path
    describes a whole branch, so these occurrences count only for a term without others.
    """
    asked = np.array(rows, np.intp)
    frequencies = vocabulary.frequencies_to(int(asked.max(initial=0)))
    missing = distinct(asked[np.isnan(frequencies[asked])])
    if len(missing):
        counts = vocabulary.counts(missing)
        common = np.array(list(map(commonness, vocabulary.texts(missing.tolist()))))
        frequencies[missing] = np.where(counts.own > 0, counts.own, counts.any) + BACKGROUND * common
    values: NDArray[Any] = np.log((vocabulary.sections + BACKGROUND + 1) / frequencies[asked])
    return values


@dataclass(frozen=True, slots=True)
class Concept:
    """A term of the query with its weight (in the query, times idf) and its variants."""

    weight: float
    variants: Variants


class Matches(NamedTuple):
    """The question's words in sections; arrays have one number for each section, from 0 to 1.

    :param scores: scores by BM25F, as shares of the question's highest possible score.
    :param bodies: the parts of these scores that come from the body.
    :param headings: share of the heading, by idf, that the question covers.
    :param names: share of the question, by weight of its terms, in heading and path.
    :param covered: share of the question in heading, path and body.
    """

    scores: NDArray[Any]
    bodies: NDArray[Any]
    headings: NDArray[Any]
    names: NDArray[Any]
    covered: NDArray[Any]


def match(passages: Passages, concepts: Sequence[Concept]) -> Matches:
    """Find the words of a question in passages.

    The scores of the concepts are added in their order, so that a sum does not depend on other sections.
    """
    size = passages.postings.size
    scores, bodies, names, covered, headed = np.zeros((5, size))
    variants = [(row, at, share) for at, concept in enumerate(concepts) for row, share in concept.variants]
    rows, owners, parts = zip(*variants, strict=True) if variants else ((), (), ())
    runs, holders, name_masses, all_masses, headings = passages.weigh(rows)
    asking, shares = np.array(owners, np.intp)[runs], np.array(parts, float)[runs]
    in_headings = headings.nonzero()[0]
    np.add.at(headed, holders[in_headings], headings[in_headings] * shares[in_headings])
    # A cell is a concept and a section with one of its terms. The masses of a concept's variants are added
    # before they saturate, like counts in several fields.
    cells, cell_of = np.unique(asking * size + holders, return_inverse=True)
    asked, sections = np.divmod(cells, size)
    masses = np.bincount(cell_of, all_masses * shares, len(cells))
    in_names = np.bincount(cell_of, name_masses * shares, len(cells))
    best_shares = np.empty(len(cells))
    best_shares[cell_of[::-1]] = shares[::-1]  # in reverse: the term itself comes before its variants
    weights = np.array([concept.weight for concept in concepts])
    weights = (weights / (sum(weights.tolist()) or 1.0))[asked]
    np.add.at(scores, sections, weights * (masses / (masses + K1)))
    np.add.at(bodies, sections, weights * ((masses - in_names) / (masses + K1)))
    np.add.at(names, sections, weights * (in_names > 0))
    np.add.at(covered, sections, weights * best_shares)
    return Matches(scores, bodies, np.minimum(headed, 1), names, covered)
