r"""BM25F: scores of sections by the words in heading, path and body.

A term counts more in a heading than in a body. BM25F adds the weighted counts of all fields *before* they
saturate; a sum of scores of single fields would count one word in two fields twice (Robertson, Zaragoza
and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004). For each term and section::

    mass  = sum over fields of  weight * count / (1 - b + b * length / average length)
    score = idf * mass / (mass + K1)

A section's score is the sum over the terms of the query. Masses and idf are computed for the terms of the
query (:mod:`~npl_index.ranking.weighing`), so that an edit changes no stored numbers of other documents. With
one field the score is that of rank-bm25's ``BM25Plus`` with ``delta = 0``, divided by ``K1 + 1``.

An example with three sections, the file's own included. The idf is ``log((3 + 12 + 1) / (holders + 12 *
share))``, because :data:`~npl_index.ranking.weighing.BACKGROUND` is 12::

    >>> import numpy as np
    >>> from npl_index.library.documents import Document, Fingerprint
    >>> from npl_index.ranking.indexing import index_document
    >>> from npl_index.ranking.weighing import idf
    >>> text = b"# Tea\n\nKettle, kettle.\n\n# Pot\n\nKettle, teapot.\n"
    >>> state = Fingerprint("/brew.md", 0, len(text))
    >>> collection = index_document(Document("brew", "brew.md", "", state, text, "", npl=False)).collection
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
    >>> match(passages, [kettle], Weights()).scores.round(2).tolist()
    [0.0, 1.0, 0.66]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from npl_index.choices import Weights
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import begin_runs
from npl_index.ranking.vocabulary import Variants
from npl_index.ranking.weighing import Passages

K1 = 1.6
"""Saturation: a mass of ``K1`` gives half of a term's maximum."""

HEADING_SHARE = 0.25
"""Gain of a section whose heading the query covers completely, as a share of its own score."""

NAME_ON_PAGE = 1.5
"""Weight for a page of a word in a heading or the file's name, compared with one in the text."""


@dataclass(frozen=True, slots=True)
class Concept:
    """A term of the query with its weight (in the query, times idf) and its variants."""

    weight: float
    variants: Variants


class Matches(NamedTuple):
    """Scores of the fields for a query; arrays have one number for each section.

    :param scores: scores by BM25F, with the gain for a covered heading.
    :param names: share of the query, by weight of its terms, in heading and path.
    :param covered: share of the query in heading, path and body.
    :param pages: weight of the query's terms anywhere on the section's page; 0 if there is one page.
    """

    scores: NDArray[Any]
    names: NDArray[Any]
    covered: NDArray[Any]
    pages: NDArray[Any]


def match(passages: Passages, concepts: Sequence[Concept], weights: Weights) -> Matches:
    """Score passages for a query.

    The scores of the concepts are added in their order, so that a sum does not depend on other sections.

    :param weights: weights of headings and paths (``name``) and of bodies (``content``).
    """
    size = passages.postings.size
    scores, names, covered, headed = np.zeros((4, size))
    asked = [(row, number, share) for number, one in enumerate(concepts) for row, share in one.variants]
    rows, owners, parts = zip(*asked, strict=True) if asked else ((), (), ())
    weighed = passages.weigh(rows)
    asking, shares = np.array(owners, np.intp)[weighed.runs], np.array(parts, float)[weighed.runs]
    in_headings = weighed.headings.nonzero()[0]
    np.add.at(headed, weighed.sections[in_headings], weighed.headings[in_headings] * shares[in_headings])
    # A cell is a concept and a section with one of its terms. The masses of a concept's variants are added
    # before they saturate, like counts in several fields.
    cells, cell = np.unique(asking * size + weighed.sections, return_inverse=True)
    numbers, sections = np.divmod(cells, size)
    name_factor, body_factor = _field_factors(weights)
    masses = body_factor * np.bincount(cell, weighed.masses * shares, len(cells))
    if name_factor != body_factor:
        masses += (name_factor - body_factor) * np.bincount(cell, weighed.names * shares, len(cells))
    named = np.zeros(len(cells), dtype=bool)
    named[cell[weighed.names > 0]] = True
    held = np.empty(len(cells))
    held[cell[::-1]] = shares[::-1]  # in reverse: the term itself comes before its variants
    weight, page_of = np.array([one.weight for one in concepts])[numbers], passages.postings.pages
    on_pages = np.zeros(int(page_of[-1]) + 1)
    if passages.vocabulary.pages > 1 and len(cells):
        # For each concept, a page has the highest worth of its sections.
        pages, worth = page_of[sections], np.where(named, NAME_ON_PAGE, masses > 0)
        begins = (begin_runs(pages) | begin_runs(numbers)).nonzero()[0]
        np.add.at(on_pages, pages[begins], weight[begins] * np.maximum.reduceat(worth, begins))
    np.add.at(scores, sections, weight * (masses / (masses + K1)))
    np.add.at(names, sections, weight * named)
    np.add.at(covered, sections, weight * held)
    scores *= 1 + HEADING_SHARE * np.minimum(headed, 1)
    whole = sum(concept.weight for concept in concepts) or 1.0
    return Matches(scores, names / whole, covered / whole, on_pages[page_of])


def _field_factors(weights: Weights) -> tuple[float, float]:
    """Return the factors of masses from heading and path, and from the body, compared with the default."""
    default = Weights()
    scale = (default.name + default.content) / ((weights.name + weights.content) or 1.0)
    return scale * weights.name / default.name, scale * weights.content / default.content
