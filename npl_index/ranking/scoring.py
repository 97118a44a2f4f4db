"""Ranking of sections by relevance.

The order comes from BM25F over heading, path and body (see ``postings``), with additions that a section's own
words cannot give: words of the query that stand side by side, what the rest of the page says about the query,
a share of the parent's score, and topics that match headings.

The reported score keeps that order and lies between 0 and 1. The best hit's is the weighted sum of its parts,
``name``, ``content`` and ``topic``; every other hit has the share of it that its rank value has of the best
one's. The parts are reported as they are.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

from rapidfuzz import fuzz, process

from npl_index.choices import Weights
from npl_index.ranking.analysis import Keywords, terms, without_compounds
from npl_index.ranking.indexing import Collection
from npl_index.ranking.postings import FIELD_WEIGHTS, K1, Counts, symbol

if TYPE_CHECKING:
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

SCORE_CUTOFF = 0.1
LIMIT = 64
"""Sections that are given at most."""

PAIR_SHARE = 0.3
"""What two words of the query side by side give, compared with a single word of the same rarity."""

PAIR_DEPTH = 32
"""Sections, best first, whose texts are looked through for words side by side; fewer in small collections."""

PAIR_FLOOR = 0.4
"""Share of the best value below which no section is looked through."""

PAGE_SHARE = 0.25
"""What the best page gives to its sections, compared with the best section's own score."""

NAME_ON_PAGE = 2.0
"""What a word in a heading or the file's name says about a page, compared with one in the text."""

HEADING_SHARE = 0.5
"""What a section gains, as a share of its own score, when the query covers its heading completely."""

PARENT_SHARE = 0.35
"""Share of its parent's score that a section gets."""

TOPIC_IN_PART = 0.6
TOPIC_SIMILAR = 0.5
GAP = 0.82
"""Share of the best total that a hit needs to be handed over."""

GENEROUS_GAP = 0.4
"""The same when a budget bounds the answer."""

GENEROUS_MOST = 16
MOST = 3
MOST_NAMED = 5
"""Sections handed over without a budget: those near the best, and those whose heading is a topic."""

_NEGLIGIBLE = 1e-6
_SIMILARITY_CUTOFF = 80.0
_TABLE = 1 << 16


DEFAULT_WEIGHTS = Weights()


class Score(NamedTuple):
    """Relevance of a section; every number lies between 0 and 1.

    :param total: falls with the rank.
    :param name: share of the query, by weight of its terms, that heading and path cover.
    :param content: BM25F relative to the best section.
    :param topic: how well the best matching topic fits the heading; 1 when they are the same.
    """

    total: float
    name: float
    content: float
    topic: float


class Hit(NamedTuple):
    """A section that matches.

    :param document: position in ``Collection.documents``.
    :param section: index in that document's tree.
    """

    document: int
    section: int
    score: Score


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for.

    :param topics: names of concepts, as the caller wrote them.
    """

    keywords: Keywords
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Concept:
    """A term of the query and the rows that stand for it."""

    weight: float
    variants: tuple[tuple[int, float], ...]


def rank(
    collection: Collection,
    query: Query,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    score_cutoff: float = SCORE_CUTOFF,
    limit: int = LIMIT,
) -> list[Hit]:
    """Return the sections that match, best first; of equal ones that which comes first.

    :param score_cutoff: sections with a lower total are left out.
    :param limit: at most so many.
    """
    import numpy as np

    topics = [words for words in map(terms, query.topics) if words]
    weights = _shares(weights, with_topics=bool(topics))
    concepts = _concepts(collection, query.keywords, topics)
    own, names, pages = _own_scores(collection, concepts, weights)
    topical = _topic_scores(collection, topics)
    best = float(own.max(initial=0.0))
    values = own
    if best:
        values = _with_pairs(collection, query.keywords, _with_page(collection, pages, own))
        values = np.where(
            values > 0, values + PARENT_SHARE * values[collection.parents] * collection.inherits, 0
        )
        values *= (weights.name + weights.content) / values.max()
    if topics:
        values = values + weights.topic * topical
    order = _best(values, limit)
    if not len(order):
        return []
    parts = names[order], own[order] / (best or 1.0), topical[order]
    name, content, topic = (float(part[0]) for part in parts)
    top = min(1.0, weights.name * name + weights.content * content + weights.topic * topic)
    totals = values[order] * (top / values[order[0]])
    kept = int(np.count_nonzero(totals >= score_cutoff))
    scores = map(Score._make, zip(*(part[:kept].tolist() for part in (totals, *parts)), strict=True))
    hits = list(map(Hit._make, zip(*collection.locate(order[:kept]), scores, strict=True)))
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("ranked %d sections of %d for %s: %s", len(hits), len(values), query, hits[:10])
    return hits


def _shares(weights: Weights, *, with_topics: bool) -> Weights:
    """Bring weights to a sum of 1 over the factors present; too small ones are 0."""
    given = (weights.name, weights.content, weights.topic if with_topics else 0.0)
    total = sum(given)
    if total < _NEGLIGIBLE:
        return _shares(DEFAULT_WEIGHTS, with_topics=with_topics)
    return Weights(*(part / total if part > _NEGLIGIBLE * total else 0.0 for part in given))


def _best(values: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return the numbers of the highest values above 0, highest first, of equal ones the first."""
    import numpy as np

    found = (values > 0).nonzero()[0]
    chosen = values[found]
    if len(found) > limit:
        least = np.partition(chosen, len(found) - limit)[len(found) - limit]
        found = found[chosen >= least]
        chosen = values[found]
    return found[(-chosen).argsort(kind="stable")][:limit]


def _concepts(collection: Collection, keywords: Keywords, topics: Sequence[list[str]]) -> list[_Concept]:
    postings = collection.postings
    wanted = dict(keywords.weights)
    for words in topics:
        for term in words:
            wanted.setdefault(term, 1.0)
    concepts = []
    for term, weight in wanted.items():
        variants = postings.variants(term)
        if variants:
            exact = variants[0][1] == 1.0
            idf = (
                float(postings.idf[variants[0][0]])
                if exact
                else min(float(postings.idf[row]) for row, _ in variants)
            )
            concepts.append(_Concept(weight * idf, variants))
    return concepts


def _own_scores(
    collection: Collection, concepts: Sequence[_Concept], weights: Weights
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Score each section by its own fields; say what share of the query its heading and path cover, and how
    much of the query each page holds.
    """
    import numpy as np

    size = collection.postings.size
    totals: list[NDArray[Any]] = [
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
        np.zeros(len(collection.page_starts)),
    ]
    step = max(1, _TABLE // max(1, size))
    for begin in range(0, len(concepts), step):
        for total, part in zip(
            totals, _block(collection, concepts[begin : begin + step], weights), strict=True
        ):
            total += part
    own, names, headings, pages = totals
    own *= 1 + HEADING_SHARE * np.minimum(headings, 1)
    return own, names / (sum(concept.weight for concept in concepts) or 1.0), pages


def _block(
    collection: Collection, concepts: Sequence[_Concept], weights: Weights
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Evaluate some concepts at once, in tables of concepts (rows) by sections (columns).

    :returns: per section its score, the weight of the concepts in heading or path, and the covered share of
        the heading; per page the weight of the concepts on it.
    """
    import numpy as np

    postings = collection.postings
    size = postings.size
    shape = (len(concepts), size)
    importance = np.array([[concept.weight] for concept in concepts])
    name_factor, body_factor = _field_factors(weights)
    cells, shares, where = _cells(concepts, size, postings.starts, postings.ids)
    mass = body_factor * np.bincount(cells, postings.masses[where] * shares, len(concepts) * size)
    cells, shares, where = _cells(concepts, size, postings.name_starts, postings.name_ids)
    if name_factor != body_factor:
        from_name = np.bincount(cells, postings.name_masses[where] * shares, len(mass))
        mass += (name_factor - body_factor) * from_name
    named = np.zeros(len(mass))
    named[cells] = 1.0
    table, name_table = mass.reshape(shape), named.reshape(shape)
    headings = np.bincount(postings.name_ids[where], postings.heading_shares[where] * shares, size)
    pages = np.zeros(len(collection.page_starts))
    if len(pages) > 1:
        worth = np.where(name_table > 0, NAME_ON_PAGE, table > 0)
        pages = (importance * np.maximum.reduceat(worth, collection.page_starts, axis=1)).sum(axis=0)
    scores = (importance * (table / (table + K1))).sum(axis=0)
    return scores, (importance * name_table).sum(axis=0), headings, pages


def _field_factors(weights: Weights) -> tuple[float, float]:
    """Say how much more than by default a mass from heading and path, and one from the body, counts."""
    default = DEFAULT_WEIGHTS
    scale = (default.name + default.content) / ((weights.name + weights.content) or 1.0)
    return scale * weights.name / default.name, scale * weights.content / default.content


def _cells(
    block: Sequence[_Concept], size: int, starts: Sequence[int], ids: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Find the postings of a block of concepts.

    :returns: for each posting its cell in a table of concepts (rows) by sections (columns), the share of
        the concept's weight that its term has, and its place in the postings.
    """
    import numpy as np

    runs = [
        (starts[row], starts[row + 1], number * size, share)
        for number, concept in enumerate(block)
        for row, share in concept.variants
    ]
    begins, ends, bases, shares = np.array(runs).T if runs else np.zeros((4, 0))
    lengths = (ends - begins).astype(np.intp)
    where = np.arange(lengths.sum()) + ((begins - lengths.cumsum() + lengths).astype(np.intp).repeat(lengths))
    return ids[where] + bases.astype(np.intp).repeat(lengths), shares.repeat(lengths), where


def _with_page(collection: Collection, pages: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
    """Add to sections that match what their page as a whole says about the query."""
    import numpy as np

    if len(pages) == 1:
        return own
    gift = PAGE_SHARE * own.max() / pages.max() * pages[collection.pages]
    return np.where(own > 0, own + gift, 0)


def _with_pairs(collection: Collection, keywords: Keywords, values: NDArray[Any]) -> NDArray[Any]:
    """Add to the best sections what words of the query that stand side by side in them are worth."""
    import numpy as np

    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    spelt: dict[int, list[tuple[tuple[str, str], str]]] = {}
    norms = collection.postings.body_norms
    depth = min(PAIR_DEPTH, PAIR_DEPTH // 4 + len(values) // PAIR_DEPTH)
    candidates = _best(np.where(values > PAIR_FLOOR * values.max(), values, 0), depth)
    for i, document, section in zip(candidates.tolist(), *collection.locate(candidates), strict=True):
        counts = collection.documents[document].counts
        if document not in spelt:
            spelt[document] = list(_spell(counts, keywords.pairs))
        body, heading = counts.bodies[section], counts.headings[section]
        for pair, text in spelt[document]:
            times = body.count(text)
            named = heading.count(text) if len(heading) > 1 else 0
            if times or named:
                found.setdefault(pair, []).append((i, times / norms[i] + FIELD_WEIGHTS[0] * named))
    values = values.copy()
    for holders in found.values():
        weight = PAIR_SHARE * log((len(values) + 1) / len(holders))
        for i, mass in holders:
            values[i] += weight * mass / (mass + K1)
    return values


def _spell(counts: Counts, pairs: Iterable[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], str]]:
    known: dict[str, str] = {}
    for pair in pairs:
        for term in pair:
            if term not in known:
                row = bisect_left(counts.terms, term)
                known[term] = symbol(row) if row < len(counts.terms) and counts.terms[row] == term else ""
        first, second = known[pair[0]], known[pair[1]]
        if first and second:
            yield pair, first + second


def _topic_scores(collection: Collection, topics: Sequence[list[str]]) -> NDArray[Any]:
    """Say for each section how well the best topic fits its heading.

    A heading that is the topic has 1; one that holds all its words, or is held by it, from
    ``TOPIC_IN_PART`` up; one that is merely spelt alike at most ``TOPIC_SIMILAR``.
    """
    import numpy as np

    scores = np.zeros(collection.postings.size)
    for words in topics:
        for heading, score in _topic_matches(collection, words):
            places = collection.headings[heading]
            scores[places] = np.maximum(scores[places], score)
    return scores


def _topic_matches(collection: Collection, words: list[str]) -> Iterable[tuple[str, float]]:
    words = without_compounds(words)
    topic = " ".join(words)
    wanted = set(words)
    for heading, similarity, _ in process.extract(
        topic, collection.headings.keys(), scorer=fuzz.ratio, score_cutoff=_SIMILARITY_CUTOFF, limit=None
    ):
        yield heading, TOPIC_SIMILAR * similarity / 100
    for heading in {heading for word in wanted for heading in collection.headings_with.get(word, ())}:
        held = heading.split(" ")
        common = wanted.intersection(held)
        if len(common) in (len(wanted), len(held)):
            share = 2 * len(common) / (len(words) + len(held))
            yield heading, 1.0 if heading == topic else TOPIC_IN_PART + 0.3 * share


def cut(hits: Sequence[Hit], collection: Collection, *, generous: bool = False) -> list[Hit]:
    """Keep the hits that are nearly as good as the best, and some whose heading is a topic the caller named.

    Headings without text of their own are left out; what stands below them has part of their score.

    :param hits: best first.
    :param generous: keep all that may be of use, because a budget will bound them.
    """
    kept: list[Hit] = []
    gap, most = (GENEROUS_GAP, GENEROUS_MOST) if generous else (GAP, MOST)
    near = named = 0
    for hit in hits:
        if not _has_text(collection, hit):
            continue
        if near < most and (not kept or hit.score.total >= gap * kept[0].score.total):
            near += 1
            kept.append(hit)
        elif hit.score.topic == 1 and named < MOST_NAMED:
            named += 1
            kept.append(hit)
    return kept


def _has_text(collection: Collection, hit: Hit) -> bool:
    counts = collection.documents[hit.document].counts
    return bool(counts.bodies[hit.section])
