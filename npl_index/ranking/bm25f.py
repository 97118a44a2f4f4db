"""BM25F: what the words in a section's heading, path and body say about a query.

A term counts more in a heading than in a body. BM25F adds the weighted counts of all fields up *before* they
saturate; scores of single fields, added up, would pay twice for one word in two fields (Robertson, Zaragoza
and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004). For each term and section::

    mass  = sum over fields of  weight * count / (1 - b + b * length / average length)
    score = idf * mass / (mass + K1)

A section's score is the sum over the terms of the query. :func:`weigh` works the masses and idf out when
documents are put together; :func:`match` adds scores up for a query. With one field the score is that of
rank-bm25's ``BM25Plus`` with ``delta = 0``, divided by ``K1 + 1``.

Two sections with bodies of equal length; the idf is ``log((2 + 12 + 1) / (holders + 12 * share))``, since
:data:`BACKGROUND` is 12::

    >>> from npl_index.ranking.postings import count
    >>> index = weigh([count([["tea"], []], [[], []], [["kettl", "kettl"], ["kettl", "teapot"]])])
    >>> index.terms
    ('kettl', 'tea', 'teapot')
    >>> [round(float(idf), 2) for idf in index.idf]
    [2.0, 2.68, 2.68]
    >>> begin, end = index.starts[1], index.starts[2]  # "tea": once, in the heading of section 0
    >>> index.ids[begin:end].tolist(), index.masses[begin:end].tolist()
    ([0], [4.0])
    >>> begin, end = index.starts[0], index.starts[1]  # "kettl": twice in body 0, once in body 1
    >>> index.ids[begin:end].tolist(), index.masses[begin:end].tolist()
    ([0, 1], [2.0, 1.0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from npl_index.choices import Weights
from npl_index.ranking.analysis import commonness
from npl_index.ranking.postings import Counts, Joined, id_type, join
from npl_index.ranking.variants import Variants, variant_finder

if TYPE_CHECKING:
    from numpy.typing import NDArray

K1 = 1.6
"""Saturation: a section whose mass is ``K1`` has half of what a term can add."""

FIELD_WEIGHTS = (4.0, 0.5, 1.0)
"""What an occurrence in heading, path and body counts."""

FIELD_NORMS = (0.0, 0.0, 0.7)
"""``b`` of BM25 for heading, path and body: 0 ignores the field's length, 1 divides by it.

A long body repeats its words because it is long; a long heading or path has no words twice."""

BACKGROUND = 12.0
"""Sections of ordinary prose that every collection is thought to hold besides its own. In a file of ten
sections it is chance which word stands in one of them only; what is known about English says more."""

HEADING_SHARE = 0.25
"""What a section gains, as a share of its own score, when the query covers its heading completely."""

NAME_ON_PAGE = 1.5
"""What a word in a heading or the file's name says about a page, compared with one in the text."""

_MAX_CELLS = 1 << 16


class Sequences(NamedTuple):
    """Terms of sections in order.

    :param rows: row of each term, one section after another, int32.
    :param starts: where each section begins, and where the last one ends.
    """

    rows: NDArray[Any]
    starts: NDArray[Any]


@dataclass(frozen=True, slots=True)
class WeightedPostings:
    """Postings of one or many documents with their weights; sections are numbered through all documents.

    Row ``r`` is ``terms[r]``; its postings are those from ``starts[r]`` to ``starts[r + 1]``.

    :param size: sections.
    :param terms: sorted.
    :param row_of: term to row.
    :param idf: one per row: ``log((N + B + 1) / (n + B * p))`` for ``n`` of ``N`` sections that hold the
        term in heading or body, ``B`` sections of background, ``p`` the term's share of those. Without
        background it is the idf of ``BM25Plus``.
    :param starts: one more than there are terms.
    :param ids: section of each posting, ascending within a row.
    :param masses: mass of each posting, float32.
    :param name_masses: the part of the mass that comes from heading and path, float32.
    :param heading_shares: the term's share of the heading, by idf; 0 where the heading lacks it, float32.
    :param headings: the terms of each section's heading in order.
    :param bodies: the terms of each section's body in order.
    :param body_norms: length norm of each section's body.
    :param variants: from a query's term to the rows that stand for it.
    """

    size: int
    terms: Sequence[str]
    row_of: dict[str, int]
    idf: NDArray[Any]
    starts: list[int]
    ids: NDArray[Any]
    masses: NDArray[Any]
    name_masses: NDArray[Any]
    heading_shares: NDArray[Any]
    headings: Sequences
    bodies: Sequences
    body_norms: NDArray[Any]
    variants: Callable[[str], Variants] = field(repr=False, compare=False)


def weigh(parts: Sequence[Counts]) -> WeightedPostings:
    """Join documents' counts, at least one, and weigh them with statistics that hold for all together."""
    import numpy as np  # see postings.count

    joined = join(parts)
    terms, rows, sections = joined.terms, joined.rows, joined.sections
    size = joined.lengths.shape[1]
    norms = [_length_norm(b, lengths) for b, lengths in zip(FIELD_NORMS, joined.lengths, strict=True)]
    in_heading, in_path, in_body = (
        weight * tally / norm[sections]
        for weight, tally, norm in zip(FIELD_WEIGHTS, _telling(joined), norms, strict=True)
    )
    name_mass = in_heading + in_path
    # A term in a path says what a whole branch is about, so it makes the term no more common; a term that
    # stands in paths only is counted there.
    own = np.bincount(rows[(in_heading + in_body) > 0], minlength=len(terms))
    holders = np.where(own > 0, own, np.bincount(rows, minlength=len(terms)))
    common = np.fromiter(map(commonness, terms), dtype=np.float64, count=len(terms))
    idf = np.log((size + BACKGROUND + 1) / (holders + BACKGROUND * common))
    in_this = np.where(in_heading > 0, idf[rows], 0)
    whole = np.bincount(sections, in_this, size)[sections]
    heading_shares = np.divide(in_this, whole, out=np.zeros(len(rows)), where=whole > 0)
    return WeightedPostings(
        size=size,
        terms=terms,
        row_of=joined.row_of,
        idf=idf.astype(np.float32),
        starts=np.searchsorted(rows, np.arange(len(terms) + 1)).tolist(),
        ids=sections.astype(id_type(size)),
        masses=(name_mass + in_body).astype(np.float32),
        name_masses=name_mass.astype(np.float32),
        heading_shares=heading_shares.astype(np.float32),
        headings=Sequences(joined.headings, _starts(joined.lengths[0])),
        bodies=Sequences(joined.bodies, _starts(joined.lengths[2])),
        body_norms=norms[2],
        variants=variant_finder(terms, joined.row_of),
    )


def _starts(lengths: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.concatenate(([0], lengths.cumsum().astype(np.int64)))


def _length_norm(b: float, lengths: NDArray[Any]) -> NDArray[Any]:
    return 1 - b + b * lengths / (lengths.mean() or 1.0)


def _telling(joined: Joined) -> list[NDArray[Any]]:
    """Return the counts per field without those in paths of a term that every section's path holds.

    A common folder's name tells no section from another, and would make all of them match.
    """
    import numpy as np

    heading, path, body = joined.tallies
    holders = np.bincount(joined.rows[path > 0], minlength=len(joined.terms))
    everywhere = holders == joined.lengths.shape[1]
    return [heading, np.where(everywhere[joined.rows], 0, path), body]


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
    postings: WeightedPostings, page_starts: Sequence[int], concepts: Sequence[Concept], weights: Weights
) -> Matches:
    """Look a query up.

    :param page_starts: first section of each page.
    :param weights: how much headings and paths (``name``) and bodies (``content``) count.
    """
    import numpy as np

    # A long query in a large collection is looked up a few terms at a time, so that the tables stay small
    # enough for the processor's cache.
    step = max(1, _MAX_CELLS // max(1, postings.size))
    parts = [
        _match_few(postings, page_starts, concepts[begin : begin + step], weights)
        for begin in range(0, max(1, len(concepts)), step)
    ]
    scores, names, covered, headings, pages = (reduce(np.add, part) for part in zip(*parts, strict=True))
    scores *= 1 + HEADING_SHARE * np.minimum(headings, 1)
    whole = sum(concept.weight for concept in concepts) or 1.0
    return Matches(scores, names / whole, covered / whole, pages)


def _match_few(
    postings: WeightedPostings, page_starts: Sequence[int], concepts: Sequence[Concept], weights: Weights
) -> tuple[NDArray[Any], ...]:
    """Look some concepts up at once, in tables of concepts (rows) by sections (columns).

    :returns: per section its score, the weight of the concepts in heading or path, the weight of those
        anywhere, and the covered share of the heading; per page the weight of the concepts on it.
    """
    import numpy as np

    shape = (len(concepts), postings.size)
    weight = np.array([concept.weight for concept in concepts]).reshape(-1, 1)
    cells, shares, where = _cells(postings, concepts)
    name_factor, body_factor = _field_factors(weights)
    # Variants of one concept meet in one cell: their masses add up before they saturate, as counts of one
    # term in several fields do.
    mass = body_factor * np.bincount(cells, postings.masses[where] * shares, len(concepts) * postings.size)
    from_names = postings.name_masses[where]
    if name_factor != body_factor:
        mass += (name_factor - body_factor) * np.bincount(cells, from_names * shares, len(mass))
    named = np.zeros(len(mass))
    named[cells[from_names > 0]] = 1.0
    held = np.zeros(len(mass))
    held[cells[::-1]] = shares[::-1]  # from the end, since the term itself comes before its variants
    table, name_table = mass.reshape(shape), named.reshape(shape)
    headings = np.bincount(postings.ids[where], postings.heading_shares[where] * shares, postings.size)
    pages = np.zeros(len(page_starts))
    if len(pages) > 1:
        worth = np.where(name_table > 0, NAME_ON_PAGE, table > 0)
        pages = (weight * np.maximum.reduceat(worth, page_starts, axis=1)).sum(axis=0)
    scores = (weight * (table / (table + K1))).sum(axis=0)
    names, covered = (weight * name_table).sum(axis=0), (weight * held.reshape(shape)).sum(axis=0)
    return scores, names, covered, headings, pages


def _field_factors(weights: Weights) -> tuple[float, float]:
    """Return how much more than by default a mass from heading and path, and one from the body, counts."""
    default = Weights()
    scale = (default.name + default.content) / ((weights.name + weights.content) or 1.0)
    return scale * weights.name / default.name, scale * weights.content / default.content


def _cells(
    postings: WeightedPostings, concepts: Sequence[Concept]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Find the postings of some concepts.

    :returns: for each posting its cell in a table of concepts (rows) by sections (columns), the share of
        the concept's weight that its term has, and its place in the postings.
    """
    import numpy as np

    starts = postings.starts
    runs = [
        (starts[row], starts[row + 1], number * postings.size, share)
        for number, concept in enumerate(concepts)
        for row, share in concept.variants
    ]
    begins, ends, bases, shares = np.array(runs).T if runs else np.zeros((4, 0))
    lengths = (ends - begins).astype(np.intp)
    # All runs as one array: number their postings through, then move each run to where it begins.
    moves = (begins - (lengths.cumsum() - lengths)).astype(np.intp)
    where = np.arange(lengths.sum()) + moves.repeat(lengths)
    return postings.ids[where] + bases.astype(np.intp).repeat(lengths), shares.repeat(lengths), where
