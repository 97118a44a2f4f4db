r"""BM25F: what the words in a section's heading, path and body say about a query.

A term counts more in a heading than in a body. BM25F adds the weighted counts of all fields up *before* they
saturate; scores of single fields, added up, would pay twice for one word in two fields (Robertson, Zaragoza
and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004). For each term and section::

    mass  = sum over fields of  weight * count / (1 - b + b * length / average length)
    score = idf * mass / (mass + K1)

A section's score is the sum over the terms of the query. Masses and idf are worked out for the terms that a
query has (:mod:`~npl_index.ranking.weighing`), so that an edit changes nothing that is stored of others.
With one field the score is that of rank-bm25's ``BM25Plus`` with ``delta = 0``, divided by ``K1 + 1``.

Three sections, the file's own among them; the idf is ``log((3 + 12 + 1) / (holders + 12 * share))``, since
:data:`~npl_index.ranking.weighing.BACKGROUND` is 12::

    >>> import numpy as np
    >>> from npl_index.library.documents import Document, Fingerprint
    >>> from npl_index.ranking.indexing import index_document
    >>> from npl_index.ranking.weighing import idf
    >>> text = b"# Tea\n\nKettle, kettle.\n\n# Pot\n\nKettle, teapot.\n"
    >>> state = Fingerprint("/brew.md", 0, len(text))
    >>> collection = index_document(Document("brew", "brew.md", "", state, text, "", npl=False)).collection
    >>> vocabulary, weighing = collection.vocabulary, collection.whole.weighing
    >>> [term for _, term in vocabulary.between("", "~")]
    ['brew', 'kettl', 'pot', 'tea', 'teapot']
    >>> idf(vocabulary, [1, 3, 4]).round(2).tolist()
    [2.07, 2.75, 2.75]

"kettl" stands twice in the body of section 1, once in that of section 2, and "tea" in the heading of 1, where
it counts 4 times as much; bodies are longer than on average, since that of the file is empty::

    >>> weighing.body_norms(np.array([1, 2])).round(3).tolist()
    [1.35, 1.35]
    >>> masses = [round(count / 1.35, 3) for count in (2, 1)]
    >>> [round(2.07 * mass / (mass + K1), 2) for mass in masses]
    [1.0, 0.66]
    >>> kettle = Concept(2.07, ((1, 1.0),))
    >>> match(weighing, [kettle], Weights()).scores.round(2).tolist()
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
from npl_index.ranking.weighing import Weighed, Weighing

K1 = 1.6
"""Saturation: a section whose mass is ``K1`` has half of what a term can add."""

HEADING_SHARE = 0.25
"""What a section gains, as a share of its own score, when the query covers its heading completely."""

NAME_ON_PAGE = 1.5
"""What a word in a heading or the file's name says about a page, compared with one in the text."""


@dataclass(frozen=True, slots=True)
class Concept:
    """A term of the query: its weight there times its idf, and the rows that stand for it."""

    weight: float
    variants: Variants


class Matches(NamedTuple):
    """What the fields say about a query; arrays have one number for each section.

    :param scores: by BM25F, with what a covered heading adds.
    :param names: share of the query, by weight of its terms, that heading and path cover.
    :param covered: share of the query that heading, path and body cover.
    :param pages: weight of the query's terms that stand anywhere on the section's page; 0 where there is one
        page.
    """

    scores: NDArray[Any]
    names: NDArray[Any]
    covered: NDArray[Any]
    pages: NDArray[Any]


def match(weighing: Weighing, concepts: Sequence[Concept], weights: Weights) -> Matches:
    """Look a query up.

    What concepts say of a section is added up one after another, so that sums are the same however many
    sections there are beside it.

    :param weights: how much headings and paths (``name``) and bodies (``content``) count.
    """
    size = weighing.postings.size
    scores, names, covered, headed = np.zeros((4, size))
    several, page_of = weighing.vocabulary.pages > 1, weighing.postings.pages
    on_pages = np.zeros(int(page_of[-1]) + 1)
    weight_of = np.array([concept.weight for concept in concepts])
    asked = [(row, number, share) for number, one in enumerate(concepts) for row, share in one.variants]
    rows, numbers, shares = zip(*asked, strict=True) if asked else ((), (), ())
    weighed = weighing.find(rows)
    cells = _cells(weighed, np.array(numbers, np.intp), np.array(shares, float), size, weights, headed)
    weight = weight_of[cells.concepts]
    if several:
        worth = np.where(cells.named, NAME_ON_PAGE, cells.masses > 0)
        _add_best(on_pages, cells.concepts, page_of[cells.sections], worth, weight)
    np.add.at(scores, cells.sections, weight * (cells.masses / (cells.masses + K1)))
    np.add.at(names, cells.sections, weight * cells.named)
    np.add.at(covered, cells.sections, weight * cells.held)
    scores *= 1 + HEADING_SHARE * np.minimum(headed, 1)
    whole = sum(concept.weight for concept in concepts) or 1.0
    return Matches(scores, names / whole, covered / whole, on_pages[page_of])


def _add_best(
    sums: NDArray[Any],
    concepts: NDArray[Any],
    pages: NDArray[Any],
    worth: NDArray[Any],
    weight: NDArray[Any],
) -> None:
    """Add to each page, for each concept, the highest worth of its sections times the concept's weight."""
    if len(pages):
        begins = (begin_runs(pages) | begin_runs(concepts)).nonzero()[0]
        np.add.at(sums, pages[begins], weight[begins] * np.maximum.reduceat(worth, begins))


class _Cells(NamedTuple):
    """What some concepts say of sections: one entry for a concept and a section, in their order.

    :param masses: of the concept's terms.
    :param named: whether heading or path holds one of them.
    :param held: the share of the concept that the section holds.
    """

    concepts: NDArray[Any]
    sections: NDArray[Any]
    masses: NDArray[Any]
    named: NDArray[Any]
    held: NDArray[Any]


def _cells(
    weighed: Weighed,
    numbers: NDArray[Any],
    row_shares: NDArray[Any],
    size: int,
    weights: Weights,
    headed: NDArray[Any],
) -> _Cells:
    """Add up what the rows of a concept say of a section.

    :param numbers: the concept of each row that was asked for.
    :param row_shares: the share of the concept's weight that each has.
    :param size: number of sections.
    :param headed: what is added to for each term in a section's heading: its share of that.
    """
    shares, sections = row_shares[weighed.runs], weighed.sections
    in_headings = weighed.headings.nonzero()[0]
    np.add.at(headed, sections[in_headings], weighed.headings[in_headings] * shares[in_headings])
    # Variants of one concept meet in one cell: their masses add up before they saturate, as counts of one
    # term in several fields do.
    there, cell = np.unique(numbers[weighed.runs] * size + sections, return_inverse=True)
    name_factor, body_factor = _field_factors(weights)
    masses = body_factor * np.bincount(cell, weighed.masses * shares, len(there))
    if name_factor != body_factor:
        masses += (name_factor - body_factor) * np.bincount(cell, weighed.names * shares, len(there))
    named = np.zeros(len(there), dtype=bool)
    named[cell[weighed.names > 0]] = True
    held = np.empty(len(there))
    held[cell[::-1]] = shares[::-1]  # from the end: the term itself comes before its variants
    return _Cells(*np.divmod(there, size), masses, named, held)


def _field_factors(weights: Weights) -> tuple[float, float]:
    """Return how much more than by default a mass from heading and path, and one from the body, counts."""
    default = Weights()
    scale = (default.name + default.content) / ((weights.name + weights.content) or 1.0)
    return scale * weights.name / default.name, scale * weights.content / default.content
