r"""Ranking of sections by relevance.

The order follows a rank value: BM25F over heading, path and body (:mod:`~npl_index.ranking.bm25f`); gains by
page or title, parent and word order; the covered share of the query, in all and in one window; and the place
on the page (:mod:`~npl_index.ranking.evidence`). The sum is scaled to the weights of name and content, and
the gains by topics are added. All of this depends only on the question, the section, its document and counts
over the collection, so that an edit elsewhere changes only the counts.

The reported score keeps that order and lies between 0 and 1. The score of the best hit is the weighted sum of
its parts, ``name``, ``content`` and ``topic``; the score of another hit is proportional to its rank value.
The parts are reported unchanged.

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

"green" and "tea" occur in one section each, "water" in two, so it weighs less::

    >>> concepts = concepts_in(collection, query)
    >>> [round(concept.weight, 2) for concept in concepts]
    [2.81, 2.81, 2.13]

By their own words "Tea" leads with two of the three. "Water" has one in its heading, where it counts more
than in the body of "Coffee", and "tea" in its path. A heading that the query covers completely adds a
quarter::

    >>> passages = collection.passages(["green", "tea", "water"])
    >>> matches = match(passages, concepts, DEFAULT_WEIGHTS)
    >>> own = matches.scores
    >>> own.round(2).tolist()
    [0.0, 3.63, 2.74, 0.82]

The page of "Tea" and "Water" has all three words, and a word in a heading or path counts one and a half
times; the page of "Coffee" has one. The best page adds a quarter of the best section's score::

    >>> matches.pages.round(2).tolist()
    [0.0, 10.22, 10.22, 2.13]
    >>> values = own + evidence.from_page(matches, own.max(), matches.pages.max())
    >>> values.round(2).tolist()
    [0.0, 4.53, 3.64, 1.01]

The best sections, here all that match, are read word by word. The pair "green tea" is in the body of "Tea";
the pair "tea water" is in none::

    >>> green, tea, water = (collection.vocabulary.row(term) for term in ("green", "tea", "water"))
    >>> sought = Sought.of(concepts, [(green, tea), (tea, water)])
    >>> texts = read(passages.postings, evidence.highest(values, evidence.DEPTH), sought)
    >>> values[texts.numbers] += evidence.from_word_pairs(passages, texts)
    >>> values.round(2).tolist()
    [0.0, 4.66, 3.64, 1.01]

"Water" is the part of "Tea" that the query is about, and gets 35 % of its parent's score::

    >>> values = values + evidence.from_parent(evidence.above(passages), values)
    >>> values.round(2).tolist()
    [0.0, 4.66, 5.28, 1.01]

Now the values are divided by the best one. The share of the query that a section and the headings above it
cover adds up to 20 %, the share in one window up to 10 %. (With a single page, titles would have added to the
values before the parents, and windows would not count.)::

    >>> matches.covered.round(2).tolist()
    [0.0, 0.73, 0.64, 0.27]
    >>> evidence.from_nearness(texts).round(2).tolist()
    [0.73, 0.0, 0.27]
    >>> values = values / values.max() + evidence.COVERED_SHARE * matches.covered
    >>> values[texts.numbers] += evidence.NEAR_SHARE * evidence.from_nearness(texts)
    >>> values.round(2).tolist()
    [0.0, 1.1, 1.13, 0.27]

A question that is the name of a page would add up to ``TITLED_SHARE`` to the page's first text; this one
names no page::

    >>> named = evidence.named_pages(passages, concepts, 3)
    >>> named.round(2).tolist()
    [0.0, 0.0, 0.0, 0.0]

"Tea" loses a little for its subsection, and "Water" for its place at the end of the page::

    >>> evidence.from_place(passages, named).round(2).tolist()
    [0.92, 0.96, 0.96, 1.0]
    >>> (values * evidence.from_place(passages, named)).round(2).tolist()
    [0.0, 1.06, 1.08, 0.27]

"Water" covers 64 % of the query with heading and path, and its text adds no word; without topics, its score
is 4/7 of its name plus 3/7 of its content. The others follow in proportion::

    >>> ranking = rank(collection, query)
    >>> for hit in ranking.hits:
    ...     print(hit.section, [round(part, 2) for part in hit.score])
    2 [0.64, 0.64, 0.64, 0.0]
    1 [0.62, 0.36, 0.73, 0.0]
    3 [0.16, 0.0, 0.27, 0.0]

Of three words, 58 % are enough for an answer (:mod:`~npl_index.ranking.coverage`)::

    >>> from npl_index.ranking import coverage
    >>> coverage.evidence(ranking.coverage)
    Evidence(absent=(), held=('tea', 'water'), verdict='held')

With the topic "water", 30 % of the score is the fit of the heading. No other heading fits, so "Water" has the
maximum gain::

    >>> evidence.topic_fit(collection, [["water"]], ["water"])
    {(0, 2): (1.0, 1.0)}
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from npl_index.choices import Weights
from npl_index.ranking import evidence
from npl_index.ranking.analysis import RARE, Keywords, identifier_parts, terms
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Concept, Passages, idf, match, spread
from npl_index.ranking.coverage import Coverage, cover
from npl_index.ranking.indexing import Collection
from npl_index.ranking.reading import Sought, Texts, read
from npl_index.selectors.names import Node

logger = logging.getLogger(__name__)

SCORE_CUTOFF = 0.1
"""Minimum share of the best total. A fixed total would not do: a section has little of a long task with many
aspects."""

LIMIT = evidence.DEPTH
"""Maximum number of hits: the sections that are read word by word."""

DEFAULT_WEIGHTS = Weights()

PART_WEIGHT = 0.2
"""Weight of a part of an identifier if the collection has the identifier: ``py_modules`` is not any module.
"""

TOPIC_GAIN = 2.0
"""Weight in the order of a topic that is exactly one heading, as a multiple of its weight in the score:
nearly the maximum of name and content. Other topics gain far less (``topic_fit``)."""

TOPIC_WORD = 0.5
"""Weight in a query of a word from topics only, because topics are guesses."""

MAX_FITTING = 200
"""Maximum sections that are candidates for their headings alone; a common heading says little."""

_NEGLIGIBLE = 1e-6


class Score(NamedTuple):
    """Relevance of a section; every number lies between 0 and 1.

    :param total: the score, which falls with the rank.
    :param name: share of the query, by weight of its terms, in heading and path.
    :param content: share of the question, by weight of its words, in heading, path and text
        (:mod:`~npl_index.ranking.coverage`).
    :param topic: fit of the best topic for the heading; 1 if they are equal.
    """

    total: float
    name: float
    content: float
    topic: float

    def rounded(self) -> dict[str, Any]:
        """Return the numbers to four places by their names in answers, where the total is ``score``."""
        names = ("score", *self._fields[1:])
        return {name: round(part, 4) for name, part in zip(names, self, strict=True)}


class Hit(NamedTuple):
    """A matching section.

    :param document: position in ``Collection.documents``.
    :param section: index in that document's tree.
    """

    document: int
    section: int
    score: Score

    @property
    def place(self) -> Node:
        """The document, and the section in its tree."""
        return self.document, self.section


@dataclass(frozen=True, slots=True)
class Query:
    """A question for the ranking.

    :param topics: names of concepts, as the caller wrote them.
    :param together: groups of index terms; documents with all terms of a group are always ranked.
    """

    keywords: Keywords
    topics: tuple[str, ...] = ()
    together: tuple[tuple[str, ...], ...] = ()


class Ranking(NamedTuple):
    """The result of a query.

    :param query: the query.
    :param hits: matching sections, best first.
    :param concepts: the weighted terms of the query.
    :param passages: the sections that were scored.
    :param texts: the sections that were read; ``None`` without a match.
    :param coverage: coverage of the question by the hits.
    """

    query: Query
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
) -> Ranking:
    """Rank the matching sections, best first; of equal ones, the first in document order.

    :param score_cutoff: minimum share of the best total.
    :param limit: maximum number of hits.
    """
    topics = topic_terms(query.topics)
    weights = shares_of(weights, with_topics=bool(topics))
    with collection.reading():
        concepts = concepts_in(collection, query)
        fitting = evidence.topic_fit(collection, topics, query.topics) if topics else {}
        asked = [[term for term, _ in query.keywords.weights], *topics]
        # ``topic_fit`` finds the headings of topics.
        named = evidence.headed_by(collection, asked[0], query.keywords.words)
        also = {document for document, _ in (*_gaining(fitting), *named)}
        also.update(document for terms in query.together for document in collection.holders(terms))
        passages = collection.passages(list(dict.fromkeys(chain(*asked))), also)
        numbers = [passages.number(*node) for node in named]
        matches = match(passages, concepts, weights)
        own, names = matches[:2]
        fits, gains = np.zeros((2, passages.postings.size))
        for node in _gaining(fitting):
            number = passages.number(*node)
            fits[number], gains[number] = fitting[node]
        best, best_page = own.max(initial=0.0), matches.pages.max(initial=0.0)
        values, texts, near = own, None, np.zeros(passages.postings.size)
        if best:
            parents = evidence.above(passages)
            values = values + evidence.from_page(matches, best, best_page)
            first = evidence.highest(values + evidence.from_parent(parents, values), evidence.DEPTH)
            texts = read(passages.postings, first, _sought(collection, concepts, query))
            values[texts.numbers] += evidence.from_word_pairs(passages, texts)
            if not best_page:
                values = values + evidence.from_titles(passages, texts, weights.name * best)
            values = values + evidence.from_parent(parents, values)
            values = values / values.max() + np.where(values > 0, evidence.COVERED_SHARE * matches.covered, 0)
            values[numbers] += evidence.HEADED_SHARE * weights.name
            pages_named = evidence.named_pages(passages, concepts, len(set(chain(*asked))))
            values += evidence.TITLED_SHARE * weights.name * pages_named
            near[texts.numbers] = evidence.from_nearness(texts)
            if best_page:
                values += evidence.NEAR_SHARE * near
            values *= evidence.from_place(passages, pages_named)
            values *= (weights.name + weights.content) / values.max()
        if topics:
            values = values + TOPIC_GAIN * weights.topic * gains
        order = evidence.highest(values, limit)
        coverage = cover(passages, query.keywords, query.topics, order, names[order] + near[order])
        parts = np.array((names[order], coverage.held(), fits[order]))
        hits = _hits(values[order], passages.locate(order), parts, weights, score_cutoff)
    logger.debug("ranked %d sections of %d for %s: %s", len(hits), len(collection), query, hits[:10])
    return Ranking(query, hits, concepts, passages, texts, coverage)


def _gaining(fitting: Mapping[Node, tuple[float, float]]) -> list[Node]:
    """Return the sections with the highest gains by a topic, at most :data:`MAX_FITTING`."""
    return sorted(fitting, key=lambda node: (-fitting[node][1], node))[:MAX_FITTING]


def _hits(
    values: NDArray[Any],
    places: tuple[list[int], list[int]],
    parts: NDArray[Any],
    weights: Weights,
    score_cutoff: float,
) -> list[Hit]:
    """Return the sections whose totals reach the cutoff, which is also the minimum of a reported total.

    :param values: rank values, in order.
    :param places: the document of each section, and the section's index in the document's tree.
    :param parts: name, content and topic of each section.
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
    """Return the terms to read: the variants of all concepts, and the terms of pairs."""
    pairs = query.keywords.pairs
    row = {term: collection.vocabulary.row(term) for term in chain.from_iterable(pairs)}
    both = ((row[one], row[other]) for one, other in pairs)
    return Sought.of(concepts, [(one, other) for one, other in both if one is not None and other is not None])


def shares_of(weights: Weights, *, with_topics: bool) -> Weights:
    """Scale weights to a sum of 1 over the present factors; negligible ones become 0."""
    given = (weights.name, weights.content, weights.topic if with_topics else 0.0)
    total = sum(given)
    if total < _NEGLIGIBLE:
        return shares_of(DEFAULT_WEIGHTS, with_topics=with_topics)
    return Weights(*(part / total if part > _NEGLIGIBLE * total else 0.0 for part in given))


def topic_terms(topics: Sequence[str]) -> list[list[str]]:
    """Return the terms of each topic with terms; a topic of stop words only ("How to") keeps them."""
    found = (terms(topic) or terms(topic, keep_stop_words=True) for topic in topics)
    return [words for words in found if words]


def concepts_in(collection: Collection, query: Query) -> list[Concept]:
    """Weigh the terms of a query and its topics, and find their variants."""
    vocabulary, keywords = collection.vocabulary, query.keywords
    wanted = dict(keywords.weights)
    parts = {part: whole for part, whole in identifier_parts(query.topics).items() if part not in wanted}
    parts |= keywords.parts
    for term in chain.from_iterable(topic_terms(query.topics)):
        wanted.setdefault(term, TOPIC_WORD)
    rows = {whole: vocabulary.row(whole) for whole in parts.values()}
    known = {whole: row for whole, row in rows.items() if row is not None}
    # A question with rare identifiers is about these: all of them weigh alike.
    holders = vocabulary.counts(np.array(list(known.values()))).any if known else np.zeros(1)
    rare = holders.min() <= RARE * len(collection)
    for part, whole in parts.items():
        if whole in known:
            taken = (1 - PART_WEIGHT) * wanted[part]
            wanted[part] -= taken
            if rare:
                wanted[whole] += taken
    # A question about maxRetries is not about maxRetriesPerHost.
    meant = [
        (weight, vocabulary.variants(term)[: 1 if term in known else None]) for term, weight in wanted.items()
    ]
    rows_meant = [row for _, variants in meant for row, _ in variants]
    rarities = idf(vocabulary, rows_meant)
    if vocabulary.pages > 1:
        rarities = rarities * spread(vocabulary, rows_meant)
    rarity = dict(zip(rows_meant, rarities.tolist(), strict=True))
    concepts = []
    for weight, variants in meant:
        if variants:
            # An unknown term is as rare as the commonest of its variants: a guess must not weigh more than a
            # known word.
            itself = variants[:1] if variants[0][1] == 1 else variants
            least = min(rarity[row] for row, _ in itself)
            # Nor may a common variant weigh as much as the rare term.
            variants = tuple((row, share * min(1.0, rarity[row] / least)) for row, share in variants)
            concepts.append(Concept(weight * least, variants))
    return concepts
