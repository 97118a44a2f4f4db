r"""Ranking of sections by relevance.

The order comes from a rank value: BM25F over heading, path and body (:mod:`~npl_index.ranking.bm25f`); what
page or title, parent and word order add; how much of the query the section covers, and in one place; where
it stands on its page (:mod:`~npl_index.ranking.evidence`). That is scaled to the weights of name and
content, and what topics gain is added. Each of these depends on the question, the
section, its document and counts over the collection only, so that an edit elsewhere changes nothing but the
counts.

The reported score keeps that order and lies between 0 and 1. The best hit's is the weighted sum of its parts,
``name``, ``content`` and ``topic``; every other hit has the share of it that its rank value has of the best
one's. The parts are reported as they are.

A worked example, with three sections on two pages (section 0 stands for the file and has no text)::

    >>> from npl_index.library.documents import Document, Fingerprint
    >>> from npl_index.ranking.analysis import extract_keywords
    >>> from npl_index.ranking.indexing import index_document
    >>> tea = b"# Tea\n\nGreen tea, black tea.\n\n## Water\n\nSoft and not boiling.\n\n"
    >>> text = tea + b"# Coffee\n\nBoiling water.\n"
    >>> state = Fingerprint("/drinks.md", 0, len(text))
    >>> document = Document("drinks", "drinks.md", "docs", state, text, digest="", npl=False)
    >>> collection = index_document(document).collection
    >>> [section.name for section in collection.documents[0].tree.sections]
    ['drinks', 'Tea', 'Water', 'Coffee']
    >>> query = Query(extract_keywords("green tea water"))
    >>> query.keywords.pairs
    (('green', 'tea'), ('tea', 'water'))

"green" and "tea" stand in one section each, "water" in two, so it weighs less::

    >>> concepts = concepts_in(collection, query)
    >>> [round(concept.weight, 2) for concept in concepts]
    [2.81, 2.81, 2.13]

By their own words "Tea" leads with two of the three. "Water" has one in its heading, where it counts more
than in the body of "Coffee", and "tea" in its path. A heading that the query covers completely adds a
quarter::

    >>> passages = collection.passages(["green", "tea", "water"])
    >>> matches = match(passages.weighing, concepts, DEFAULT_WEIGHTS)
    >>> own = matches.scores
    >>> own.round(2).tolist()
    [0.0, 3.63, 2.74, 0.82]

The page of "Tea" and "Water" speaks of all three words, and a word in a heading or path counts half as much
again; that of "Coffee" speaks of one. The best page adds a quarter of the best section's score::

    >>> matches.pages.round(2).tolist()
    [0.0, 10.22, 10.22, 2.13]
    >>> values = own + from_page(matches, own.max(), matches.pages.max())
    >>> values.round(2).tolist()
    [0.0, 4.53, 3.64, 1.01]

The best sections, here all that match, are read word by word. "green tea" stands in the body of "Tea" as it
does in the query; "tea water" stands nowhere::

    >>> green, tea, water = (collection.vocabulary.row(term) for term in ("green", "tea", "water"))
    >>> sought = Sought.of(concepts, [(green, tea), (tea, water)])
    >>> texts = read(passages.postings, highest(values, DEPTH), sought)
    >>> values[texts.numbers] += from_word_pairs(passages, texts)
    >>> values.round(2).tolist()
    [0.0, 4.66, 3.64, 1.01]

"Water" is the part of "Tea" that the query is about, and gets 35 % of its parent's score::

    >>> values = values + from_parent(above(passages), values)
    >>> values.round(2).tolist()
    [0.0, 4.66, 5.28, 1.01]

Now the values are compared with the best one. What a section and the headings above it cover of the query
adds up to 20 %, what stands in one place up to 10 %. (If there were one page, titles would have added to the
values before those of parents did, and not nearness now.)::

    >>> matches.covered.round(2).tolist()
    [0.0, 0.73, 0.64, 0.27]
    >>> from_nearness(texts).round(2).tolist()
    [0.73, 0.0, 0.27]
    >>> values = values / values.max() + COVERED_SHARE * matches.covered
    >>> values[texts.numbers] += NEAR_SHARE * from_nearness(texts)
    >>> values.round(2).tolist()
    [0.0, 1.1, 1.13, 0.27]

A question that is the name of a page would add up to ``TITLED_SHARE`` to the page's first text; this one is
not::

    >>> named = named_pages(passages, concepts, 3)
    >>> named.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0]

"Tea" loses a little because it has a subsection, and "Water" because it stands late on its page::

    >>> from_place(passages, named).round(2).tolist()
    [0.92, 0.96, 0.96, 1.0]
    >>> (values * from_place(passages, named)).round(2).tolist()
    [0.0, 1.06, 1.08, 0.27]

"Water" covers 64 % of the query with heading and path, and its text adds no further word to what it holds of
the question; its score is 4/7 of the one and 3/7 of the other, since no topic was named. The others follow in
proportion::

    >>> looked = look(collection, query)
    >>> for hit in looked.hits:
    ...     print(hit.section, [round(part, 2) for part in hit.score])
    2 [0.64, 0.64, 0.64, 0.0]
    1 [0.62, 0.36, 0.73, 0.0]
    3 [0.16, 0.0, 0.27, 0.0]

Of three words 58 % speak for an answer (:mod:`~npl_index.ranking.coverage`)::

    >>> from npl_index.ranking.coverage import evidence
    >>> evidence(looked.coverage)
    Evidence(absent=(), held=('tea', 'water'), verdict='held')

With the topic "water" named, 30 % of the score says how well a heading fits it. No other heading does, so
that "Water" gains all that a topic can::

    >>> topic_fit(collection, [["water"]], ["water"])
    {(0, 2): (1.0, 1.0)}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from npl_index.choices import Weights
from npl_index.ranking.analysis import RARE, Keywords, identifier_parts, terms
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Concept, match
from npl_index.ranking.coverage import Coverage, cover
from npl_index.ranking.evidence import (
    COVERED_SHARE,
    DEPTH,
    HEADED_SHARE,
    NEAR_SHARE,
    TITLED_SHARE,
    above,
    from_nearness,
    from_page,
    from_parent,
    from_place,
    from_titles,
    from_word_pairs,
    headed_by,
    highest,
    named_pages,
    topic_fit,
)
from npl_index.ranking.indexing import Collection, Passages
from npl_index.ranking.reading import Sought, Texts, read
from npl_index.ranking.weighing import idf as weigh
from npl_index.ranking.weighing import spread
from npl_index.selectors.names import Node

logger = logging.getLogger(__name__)

SCORE_CUTOFF = 0.1
"""Share of the best total that a section needs. A total says how much of the question a section holds. No
fixed total would do: of a long task with many aspects, each section holds little."""

LIMIT = DEPTH
"""Sections that are returned at most: those that are read word by word."""

DEFAULT_WEIGHTS = Weights()

PART_WEIGHT = 0.2
"""Weight of a part of an identifier where the identifier itself stands: ``py_modules`` is no other module."""

TOPIC_GAIN = 2.0
"""Weight for the order of a topic that is exactly one heading, as a multiple of its weight in the score:
nearly the most that name and content add up to. Other topics gain far less (``topic_fit``)."""

TOPIC_WORD = 0.5
"""Weight in a query of a word that only topics have, since topics are guesses."""

MOST_FITTING = 200
"""Sections that count for their headings alone, the best ones: a common heading says little."""

_NEGLIGIBLE = 1e-6


class Score(NamedTuple):
    """Relevance of a section; every number lies between 0 and 1.

    :param total: falls with the rank.
    :param name: share of the query, by weight of its terms, that heading and path cover.
    :param content: share of the question, by weight of its words, that heading, path and text hold
        (:mod:`~npl_index.ranking.coverage`).
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
    :param together: index terms; documents that hold all terms of one of these groups are ranked in any case.
    """

    keywords: Keywords
    topics: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()


class Looked(NamedTuple):
    """What a query leads to.

    :param hits: best first.
    :param concepts: that it consists of.
    :param passages: that they were chosen from.
    :param texts: the sections read; ``None`` if none matches.
    :param coverage: how much of the question the hits hold.
    """

    hits: list[Hit]
    concepts: Sequence[Concept]
    passages: Passages
    texts: Texts | None
    coverage: Coverage


def rank(
    collection: Collection,
    query: Query,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    score_cutoff: float = SCORE_CUTOFF,
    limit: int = LIMIT,
) -> list[Hit]:
    """Return the sections that match, best first; of equal ones that which comes first.

    :param score_cutoff: sections with less than this share of the best one's total are left out.
    :param limit: at most so many.
    """
    return look(collection, query, weights=weights, score_cutoff=score_cutoff, limit=limit).hits


def look(
    collection: Collection,
    query: Query,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    score_cutoff: float = SCORE_CUTOFF,
    limit: int = LIMIT,
) -> Looked:
    """Return what :func:`rank` does, with what was read to find it."""
    topics = topic_terms(query.topics)
    weights = shares_of(weights, with_topics=bool(topics))
    with collection.reading():
        concepts = concepts_in(collection, query)
        fitting = topic_fit(collection, topics, query.topics) if topics else {}
        asked = [[term for term, _ in query.keywords.weights], *topics]
        named = headed_by(collection, asked[0], query.keywords.words)  # what topics head, ``topic_fit`` finds
        also = {document for document, _ in (*_gaining(fitting), *named)}
        also.update(document for terms in query.together for document in collection.holders(terms))
        passages = collection.passages(list(dict.fromkeys(chain(*asked))), also)
        numbers = [passages.number(*node) for node in named]
        matches = match(passages.weighing, concepts, weights)
        own, names = matches[:2]
        fits, gains = np.zeros((2, passages.postings.size))
        for node in _gaining(fitting):
            number = passages.number(*node)
            fits[number], gains[number] = fitting[node]
        best, best_page = own.max(initial=0.0), matches.pages.max(initial=0.0)
        values, texts, near = own, None, np.zeros(passages.postings.size)
        if best:
            parents = above(passages)
            values = values + from_page(matches, best, best_page)
            first_look = values + from_parent(parents, values)
            texts = read(passages.postings, highest(first_look, DEPTH), _sought(collection, concepts, query))
            values[texts.numbers] += from_word_pairs(passages, texts)
            if not best_page:
                values = values + from_titles(passages, texts, weights.name * best)
            values = values + from_parent(parents, values)
            values = values / values.max() + np.where(values > 0, COVERED_SHARE * matches.covered, 0)
            values[numbers] += HEADED_SHARE * weights.name
            pages_named = named_pages(passages, concepts, len(set(chain(*asked))))
            values += TITLED_SHARE * weights.name * pages_named
            near[texts.numbers] = from_nearness(texts)
            if best_page:
                values += NEAR_SHARE * near
            values *= from_place(passages, pages_named)
            values *= (weights.name + weights.content) / values.max()
        if topics:
            values = values + TOPIC_GAIN * weights.topic * gains
        order = highest(values, limit)
        coverage = cover(passages, query.keywords, query.topics, order, names[order] + near[order])
        parts = np.array((names[order], coverage.held(), fits[order]))
        hits = _hits(values[order], passages.locate(order), parts, weights, score_cutoff)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("ranked %d sections of %d for %s: %s", len(hits), len(collection), query, hits[:10])
    return Looked(hits, concepts, passages, texts, coverage)


def _gaining(fitting: Mapping[Node, tuple[float, float]]) -> list[Node]:
    """Return the sections that gain most by a topic: those of :data:`MOST_FITTING` documents at most."""
    if len(fitting) <= MOST_FITTING:
        return list(fitting)
    return sorted(fitting, key=lambda node: (-fitting[node][1], node))[:MOST_FITTING]


def _hits(
    values: NDArray[Any],
    places: tuple[list[int], list[int]],
    parts: NDArray[Any],
    weights: Weights,
    score_cutoff: float,
) -> list[Hit]:
    """Return the sections whose totals reach the cutoff, a share of the first one's.

    No reported total is below it.

    :param values: of sections in their order.
    :param places: the document of each, and its index in that document's tree.
    :param parts: name, content and topic of each.
    """
    if not len(values):
        return []
    name, content, topic = parts[:, 0].tolist()
    top = min(1.0, weights.name * name + weights.content * content + weights.topic * topic)
    totals = (values * (top / values[0])).clip(min(score_cutoff, SCORE_CUTOFF))
    kept = int((values >= score_cutoff * values[0]).sum())
    scores = map(Score._make, zip(totals[:kept].tolist(), *parts[:, :kept].tolist(), strict=True))
    return list(map(Hit._make, zip(*(place[:kept] for place in places), scores, strict=True)))


def _sought(collection: Collection, concepts: Sequence[Concept], query: Query) -> Sought:
    """Return the terms that are read for: all that stand for a concept or in a pair."""
    pairs = query.keywords.pairs
    row = {term: collection.vocabulary.row(term) for term in chain.from_iterable(pairs)}
    both = ((row[one], row[other]) for one, other in pairs)
    return Sought.of(concepts, [(one, other) for one, other in both if one is not None and other is not None])


def shares_of(weights: Weights, *, with_topics: bool) -> Weights:
    """Bring weights to a sum of 1 over the factors present; too small ones are 0."""
    given = (weights.name, weights.content, weights.topic if with_topics else 0.0)
    total = sum(given)
    if total < _NEGLIGIBLE:
        return shares_of(DEFAULT_WEIGHTS, with_topics=with_topics)
    return Weights(*(part / total if part > _NEGLIGIBLE * total else 0.0 for part in given))


def topic_terms(topics: Sequence[str]) -> list[list[str]]:
    """Return the terms of each topic that has any; one of stop words only ("How to") keeps them."""
    found = (terms(topic) or terms(topic, keep_stop_words=True) for topic in topics)
    return [words for words in found if words]


def concepts_in(collection: Collection, query: Query) -> list[Concept]:
    """Weigh the terms of a query, those of topics included, and find the terms that stand for them."""
    vocabulary, keywords = collection.vocabulary, query.keywords
    wanted = dict(keywords.weights)
    parts = {part: whole for part, whole in identifier_parts(query.topics).items() if part not in wanted}
    parts |= keywords.parts
    for term in chain.from_iterable(topic_terms(query.topics)):
        wanted.setdefault(term, TOPIC_WORD)
    rows = {whole: vocabulary.row(whole) for whole in parts.values()}
    known = {whole: row for whole, row in rows.items() if row is not None}
    # The question is about its identifiers that hardly any section holds: all of them weigh alike.
    holders = vocabulary.counts(np.array(list(known.values()))).any if known else np.zeros(1)
    rare = holders.min() <= RARE * len(collection)
    for part, whole in parts.items():
        if whole in known:
            taken = (1 - PART_WEIGHT) * wanted[part]
            wanted[part] -= taken
            if rare:
                wanted[whole] += taken
    # Who asks for maxRetries does not mean maxRetriesPerHost.
    meant = [
        (weight, vocabulary.variants(term)[: 1 if term in known else None]) for term, weight in wanted.items()
    ]
    every = [row for _, variants in meant for row, _ in variants]
    telling = weigh(vocabulary, every)
    if vocabulary.pages > 1:
        telling = telling * spread(vocabulary, every)
    idf = dict(zip(every, telling.tolist(), strict=True))
    concepts = []
    for weight, variants in meant:
        if variants:
            # A term that the collection lacks is as rare as the commonest of its variants: a guess must not
            # weigh more than a word that is there.
            itself = variants[:1] if variants[0][1] == 1 else variants
            least = min(idf[row] for row, _ in itself)
            # Nor may a word that is everywhere weigh as much as the rare one that it stands for.
            variants = tuple((row, share * min(1.0, idf[row] / least)) for row, share in variants)
            concepts.append(Concept(weight * least, variants))
    return concepts
