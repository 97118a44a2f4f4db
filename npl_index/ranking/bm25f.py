r"""BM25F: what the words in a section's heading, path and body say about a query.

A term counts more in a heading than in a body. BM25F adds the weighted counts of all fields up *before* they
saturate; scores of single fields, added up, would pay twice for one word in two fields (Robertson, Zaragoza
and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004). For each term and section::

    mass  = sum over fields of  weight * count / (1 - b + b * length / average length)
    score = idf * mass / (mass + K1)

A section's score is the sum over the terms of the query. Segments hold counts alone; masses and idf are
worked out for the terms that a query has (:mod:`~npl_index.ranking.weighing`), so that an edit changes
nothing that is stored.
With one field the score is that of rank-bm25's ``BM25Plus`` with ``delta = 0``, divided by ``K1 + 1``.

Three sections, the file's own among them; the idf is ``log((3 + 12 + 1) / (holders + 12 * share))``, since
:data:`~npl_index.ranking.weighing.BACKGROUND` is 12::

    >>> import numpy as np
    >>> from npl_index.library.documents import Document, Fingerprint
    >>> from npl_index.ranking.indexing import index_document
    >>> text = b"# Tea\n\nKettle, kettle.\n\n# Pot\n\nKettle, teapot.\n"
    >>> state = Fingerprint("/brew.md", 0, len(text))
    >>> collection = index_document(Document("brew", "brew.md", "", state, text, "", npl=False)).collection
    >>> postings = collection.postings
    >>> [term for _, term in postings.terms.all()]
    ['brew', 'kettl', 'pot', 'tea', 'teapot']
    >>> collection.weighing.idf([1, 3, 4]).round(2).tolist()
    [2.07, 2.75, 2.75]

"kettl" stands twice in the body of section 1, once in that of section 2, and "tea" in the heading of 1, where
it counts 4 times as much; bodies are longer than on average, since that of the file is empty::

    >>> collection.weighing.body_norms(np.array([1, 2])).round(3).tolist()
    [1.35, 1.35]
    >>> masses = [round(count / 1.35, 3) for count in (2, 1)]
    >>> [round(2.07 * mass / (mass + K1), 2) for mass in masses]
    [1.0, 0.66]
    >>> kettle = Concept(2.07, ((1, 1.0),))
    >>> match(collection.weighing, collection.page_starts, [kettle], Weights()).scores.round(2).tolist()
    [0.0, 1.0, 0.66]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from npl_index.choices import Weights
from npl_index.ranking.variants import Variants
from npl_index.ranking.weighing import Weighed, Weighing

if TYPE_CHECKING:
    from numpy.typing import NDArray

K1 = 1.6
"""Saturation: a section whose mass is ``K1`` has half of what a term can add."""

HEADING_SHARE = 0.25
"""What a section gains, as a share of its own score, when the query covers its heading completely."""

NAME_ON_PAGE = 1.5
"""What a word in a heading or the file's name says about a page, compared with one in the text."""

_MAX_CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class Concept:
    """A term of the query: its weight there times its idf, and the rows that stand for it."""

    weight: float
    variants: Variants


class Matches(NamedTuple):
    """What the fields say about a query.

    :param scores: of each section, by BM25F, with what a covered heading adds.
    :param names: share of the query, by weight of its terms, that each section's heading and path cover.
    :param covered: share of the query that each section covers with heading, path and body.
    :param pages: weight of the query's terms that stand anywhere on each page; 0 where there is one page.
    """

    scores: NDArray[Any]
    names: NDArray[Any]
    covered: NDArray[Any]
    pages: NDArray[Any]


def match(
    weighing: Weighing, page_starts: NDArray[Any], concepts: Sequence[Concept], weights: Weights
) -> Matches:
    """Look a query up.

    What concepts say of a section is added up one after another, so that sums are the same however many
    sections there are beside it.

    :param page_starts: first section of each page.
    :param weights: how much headings and paths (``name``) and bodies (``content``) count.
    """
    import numpy as np

    size, several = weighing.postings.size, weighing.postings.statistics.pages > 1
    scores, names, covered = np.zeros((3, size))
    pages = np.zeros(len(page_starts))
    headings: list[tuple[NDArray[Any], NDArray[Any]]] = []
    # A long query in a large collection is looked up a few terms at a time, so that the tables stay small
    # enough for the processor's cache.
    step = max(1, _MAX_CELLS // max(1, size))
    for begin in range(0, len(concepts), step):
        some = concepts[begin : begin + step]
        found = _find(weighing, some)
        mass, named, held = _tables(found, (len(some), size), weights)
        weight = np.array([[concept.weight] for concept in some])
        if several:
            worth = np.where(named, NAME_ON_PAGE, mass > 0)
            pages = _added(pages, weight * np.maximum.reduceat(worth, page_starts, axis=1))
        scores = _added(scores, weight * (mass / (mass + K1)))
        names, covered = _added(names, weight * named), _added(covered, weight * held)
        headed = found.weighed.headings.nonzero()[0]
        headings.append((found.weighed.sections[headed], (found.weighed.headings * found.shares)[headed]))
    if headings:
        # Added up in one go, so that sums are the same however many concepts were looked up at a time.
        sections, shares = map(np.concatenate, zip(*headings, strict=True))
        scores *= 1 + HEADING_SHARE * np.minimum(np.bincount(sections, shares, size), 1)
    whole = sum(concept.weight for concept in concepts) or 1.0
    return Matches(scores, names / whole, covered / whole, pages)


def _added(sums: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    """Return sums after the rows of a table were added, one after the other."""
    import numpy as np

    rows[0] += sums
    # A single column would be added in pairs.
    total: NDArray[Any] = np.add.reduce(rows, axis=0) if rows.shape[1] > 1 else rows.cumsum(axis=0)[-1]
    return total


class _Found(NamedTuple):
    """Postings of some concepts.

    :param cells: place of each in a table of concepts (rows) by sections (columns).
    :param shares: share of the concept's weight that its term has.
    """

    cells: NDArray[Any]
    shares: NDArray[Any]
    weighed: Weighed


def _find(weighing: Weighing, concepts: Sequence[Concept]) -> _Found:
    import numpy as np

    size = weighing.postings.size
    asked = [
        (row, number * size, share)
        for number, concept in enumerate(concepts)
        for row, share in concept.variants
    ]
    rows, bases, shares = zip(*asked, strict=True) if asked else ((), (), ())
    weighed = weighing.find(rows)
    cells = weighed.sections + np.array(bases, dtype=np.intp)[weighed.runs]
    return _Found(cells, np.array(shares)[weighed.runs], weighed)


def _tables(
    found: _Found, shape: tuple[int, int], weights: Weights
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return tables of concepts by sections: masses, whether heading or path has it, and the share held."""
    import numpy as np

    (cells, shares, weighed), size = found, shape[0] * shape[1]
    name_factor, body_factor = _field_factors(weights)
    # Variants of one concept meet in one cell: their masses add up before they saturate, as counts of one
    # term in several fields do.
    mass = body_factor * np.bincount(cells, weighed.masses * shares, size)
    if name_factor != body_factor:
        mass += (name_factor - body_factor) * np.bincount(cells, weighed.names * shares, size)
    named = np.zeros(size, dtype=bool)
    named[cells[weighed.names > 0]] = True
    held = np.zeros(size)
    held[cells[::-1]] = shares[::-1]  # from the end: the term itself comes before its variants
    return mass.reshape(shape), named.reshape(shape), held.reshape(shape)


def _field_factors(weights: Weights) -> tuple[float, float]:
    """Return how much more than by default a mass from heading and path, and one from the body, counts."""
    default = Weights()
    scale = (default.name + default.content) / ((weights.name + weights.content) or 1.0)
    return scale * weights.name / default.name, scale * weights.content / default.content
