r"""Ranking of sections by relevance.

The order follows a rank value: the sum of features, each times its weight
(:mod:`~npl_index.ranking.features`). They depend only on the question, the section, its document and counts
over the collection, so that an edit elsewhere changes only the counts.

The reported score keeps that order and lies between 0 and 1. The score of the best hit is the weighted sum of
its parts, ``name``, ``content`` and ``topic``; the score of another hit is proportional to its rank value.
The parts are reported unchanged. The user's weights of the parts are those of their features, too.

A worked example, with three sections on two pages (section 0 stands for the file and has no text)::

    >>> from npl_index.library.documents import Document, Fingerprint
    >>> from npl_index.ranking.keywords import extract_keywords
    >>> from npl_index.ranking.indexing import index_document
    >>> tea = b"# Tea\n\nGreen tea, black tea.\n\n## Water\n\nSoft and not boiling.\n\n"
    >>> text = tea + b"# Coffee\n\nBoiling water.\n"
    >>> state = Fingerprint("/drinks.md", 0, len(text))
    >>> document = Document("drinks", "drinks.md", state, text, digest="", npl=False)
    >>> collection = index_document(document).collection
    >>> [section.name for section in collection.documents[0].tree.sections]
    ['drinks', 'Tea', 'Water', 'Coffee']
    >>> query = Query(extract_keywords("green tea water"))

"green" and "tea" occur in one section each, "water" in two, so it weighs less::

    >>> [round(concept.weight, 2) for concept in concepts_in(collection, query)]
    [2.81, 2.81, 2.13]

"Tea" has two of the three words in its text and one in its heading. "Water" has one in its heading and one in
its path. The text of "Coffee" has one::

    >>> table = find_candidates(collection, query).table
    >>> for feature in FEATURE_WEIGHTS[:9]:
    ...     print(feature.name, feature.weight, feature.of(table).round(2).tolist())
    words 1.25 [0.0, 0.16, 0.0, 0.11]
    covered 1.0 [0.0, 0.73, 0.64, 0.27]
    pairs 0.5 [0.0, 0.06, 0.0, 0.0]
    page 0.5 [0.0, 0.37, 0.37, 0.11]
    parent 0.6 [0.0, 0.0, 0.37, 0.0]
    begins -0.25 [0.0, 0.98, 0.0, 0.0]
    names 1.0 [0.0, 0.21, 0.28, 0.0]
    title 0.25 [0.0, 0.11, 0.4, 0.0]
    heading 0.25 [0.0, 1.0, 1.0, 0.0]

Each feature times its weight, scaled to the score, is a gain. The gains add up to the score::

    >>> ranking = rank(collection, query)
    >>> gains = ranking.gains_of(1)
    >>> gains["covered"], gains["begins"], round(sum(gains.values()), 2)
    (0.2749, -0.0931, 0.53)

"Water" has 64 % of the query in heading and path, and no more with its text; without topics, its score is 4/7
of its name plus 3/7 of its content. The others follow in proportion::

    >>> for hit in ranking.hits:
    ...     print(hit.section, [round(part, 2) for part in hit.score])
    2 [0.64, 0.64, 0.64, 0.0]
    1 [0.53, 0.36, 0.73, 0.0]
    3 [0.17, 0.0, 0.27, 0.0]
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from npl_index.choices import Weights
from npl_index.markdown.traits import LEVEL
from npl_index.ranking.arrays import NDArray, np, top_positions
from npl_index.ranking.bm25f import Concept, Passages, idf
from npl_index.ranking.collection import Collection
from npl_index.ranking.features import FEATURE_WEIGHTS, Feature, Table
from npl_index.ranking.keywords import Keywords, identifier_parts
from npl_index.ranking.naming import FEW, headed_alone, named_by
from npl_index.ranking.positions import best_windows
from npl_index.ranking.standing import other_versions, reasons
from npl_index.ranking.topics import headed_by, topic_fit, topic_terms
from npl_index.ranking.verdict import Coverage, cover, judge
from npl_index.selectors.filters import ANY, SectionFilter, TraitFilter
from npl_index.selectors.names import Place

logger = logging.getLogger(__name__)

SCORE_CUTOFF = 0.1
"""Minimum share of the best total. A fixed total would not do: a section has little of a long task with many
aspects."""

LIMIT = 80
"""Maximum number of hits."""

OTHER_VERSION = 0.25
"""Weight of a candidate of another version: the versions of a few pages must not take all places."""

WINDOW = 12
"""Terms of a window."""

DEFAULT_WEIGHTS = Weights()

TOPIC_WORD = 0.5
"""Weight in a query of a word from topics only, because topics are guesses."""

_NEGLIGIBLE = 1e-6


class Score(NamedTuple):
    """Relevance of a section; every number lies between 0 and 1.

    :param total: the score, which falls with the rank.
    :param name: share of the query, by weight of its terms, in heading and path.
    :param content: share of the question, by weight of its words, in heading, path and text
        (:mod:`~npl_index.ranking.verdict`).
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
    :param size: bytes of its own text; 0 for a bare heading.
    """

    document: int
    section: int
    score: Score
    size: int

    @property
    def place(self) -> Place:
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
    :param gains: by name of the feature, its part of each hit's score; the sums above 0 fall with the rank.
    :param coverage: coverage of the question by the hits.
    :param behind: documents that stand behind others, with the reasons.
    """

    query: Query
    hits: list[Hit]
    gains: Mapping[str, Sequence[float]]
    coverage: Coverage
    behind: Mapping[int, str]

    def gains_of(self, number: int) -> dict[str, float]:
        """Return the gains of a hit by its features, to four places."""
        gains = {name: round(gains[number], 4) for name, gains in self.gains.items()}
        return {name: gain for name, gain in gains.items() if gain}


def rank(
    collection: Collection,
    query: Query,
    *,
    weights: Weights = DEFAULT_WEIGHTS,
    score_cutoff: float = SCORE_CUTOFF,
    limit: int = LIMIT,
    features: Sequence[Feature] = FEATURE_WEIGHTS,
    among: SectionFilter = ANY,
) -> Ranking:
    """Rank the matching sections, best first; of equal ones, the first in document order.

    :param score_cutoff: minimum share of the best total.
    :param limit: maximum number of hits.
    :param features: features that count.
    :param among: conditions of hits; other sections count in the statistics.
    :raises InvalidRequestError: no document has a field that the conditions name.
    """
    weights = shares_of(weights, with_topics=bool(topic_terms(query.topics)))
    with collection.reading():
        documents = collection.meeting(among.fields) if among.fields else None
        candidates = find_candidates(collection, query, documents)
        table, passages = candidates.table, candidates.table.passages
        gains = _gains(table, features, weights, with_topics=weights.topic > 0)
        # What has a word of the question is a hit, whatever stands before it.
        whole = sum(gains.values(), np.zeros(table.size))
        values = np.where(table.is_related, whole.clip(_NEGLIGIBLE), 0)
        # What stands behind others is not left out for it.
        costs = (values - whole + gains.get("behind", 0.0)).clip(max=0)
        allowed = _allowed(passages, among, documents)
        named = {passages.number(*place) for place in query.keywords.places}
        for is_last in (False, True):
            # What the question names stands before what it describes.
            gains["named"] = np.zeros(table.size)
            gains["named"][[*named]] = (values * allowed).max(initial=0) or 1.0
            raised = (values + gains["named"]) * allowed
            order = top_positions(raised, limit, table.copies)
            order = _of_length(collection, passages, order, among.traits)
            order = order[(raised - costs)[order] >= score_cutoff * raised[order[:1]]]
            coverage = _coverage(candidates, query, order)
            if is_last or judge(coverage).state == "held":
                break
            few, bodies = order[:FEW], not (coverage.missing() or query.keywords.shortened)
            further = named_by(query.keywords, collection, passages, few, bodies=bodies)
            before, named = named, named.union(candidates.headed, further)
            if named == before:
                break
        coverage = coverage._replace(named=np.isin(order, [*named]).tolist())
        parts = np.array((table.matches.names[order], coverage.question_share(), candidates.fits[order]))
        scale = _scale(raised[order], parts, weights)
        totals = (scale * raised[order]).clip(min(score_cutoff, SCORE_CUTOFF))
        scores = map(Score._make, zip(totals.tolist(), *parts.tolist(), strict=True))
        hits = list(map(Hit, *passages.locate(order), scores, passages.postings.sizes[order].tolist()))
        of_feature = {name: (gain[order] * scale).tolist() for name, gain in gains.items()}
    logger.debug("ranked %d sections of %d for %s: %s", len(hits), len(collection), query, hits[:10])
    return Ranking(query, hits, of_feature, coverage, candidates.behind)


def _scale(values: NDArray[Any], parts: NDArray[Any], weights: Weights) -> float:
    """Return the score for each unit of rank value: the best hit has the weighted sum of its parts."""
    name, content, topic = parts[:, :1]
    tops = np.minimum(1, weights.name * name + weights.content * content + weights.topic * topic)
    return float((tops / values[:1]).sum())


def _coverage(candidates: Candidates, query: Query, numbers: NDArray[Any]) -> Coverage:
    """Return the coverage of a question by some sections."""
    table = candidates.table
    near = best_windows(table.passages.postings, table.concepts, numbers, WINDOW) / table.weight
    support = table.matches.names[numbers] + near
    return cover(table.passages, query.keywords, query.topics, numbers, support)


class Candidates(NamedTuple):
    """Sections that may answer a question.

    :param headed: numbers of the sections whose heading is the question, and of those whose heading alone is
        a topic.
    :param fits: fit of the best topic for each section, 0 to 1.
    :param behind: documents that stand behind others, with the reasons.
    """

    table: Table
    headed: Set[int]
    fits: NDArray[Any]
    behind: Mapping[int, str]


def find_candidates(
    collection: Collection, query: Query, documents: NDArray[Any] | None = None
) -> Candidates:
    """Find the sections that may answer a question, with all that their features need.

    :param documents: whether each document meets the conditions on front matter; ``None`` without conditions.
    """
    topics, keywords = topic_terms(query.topics), query.keywords
    concepts, headings = concepts_in(collection, query), headed_by(collection, keywords)
    # A common heading says little.
    fits = sorted(topic_fit(collection, topics, query.topics).items(), key=lambda fit: (-fit[1][1], fit[0]))
    fitting = dict(fits[:LIMIT])
    also = {document for document, _ in (*fitting, *headings, *keywords.places)}
    also.update(document for terms in query.together for document in collection.holders(terms))
    asked = dict.fromkeys(chain((term for term, _ in keywords.weights), *topics))
    wanted = np.ones(len(collection.documents)) if documents is None else documents.astype(float)
    wanted[other_versions(keywords.text, collection.versions)] *= OTHER_VERSION
    passages = collection.passages(list(asked), also, wanted)
    postings = passages.postings

    def numbers(places: Iterable[Place]) -> list[int]:
        return [passages.number(*place) for place in places]

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        """Give the first text of a page what its title has."""
        np.maximum.at(values, postings.first_texts, values.copy())
        return values

    headed, topic, gain = np.zeros((3, postings.size))
    headed[numbers(headings)] = 1
    topic[numbers(fitting)], gain[numbers(fitting)] = np.array([*fitting.values()]).reshape(-1, 2).T
    alone = np.zeros(postings.size)
    alone[numbers(headed_alone(fitting, collection))] = 1
    # A condition on front matter names the documents that are wanted.
    behind = {} if documents is not None else _behind(collection, query, passages)
    is_behind = np.isin(passages.documents, [*behind]).astype(float).repeat(postings.counts)
    rows = dict.fromkeys(tuple(map(collection.vocabulary.row, pair)) for pair in keywords.pairs)
    pairs = [(first, second) for first, second in rows if first is not None and second is not None]
    table = Table(passages, concepts, pairs, spread(headed), spread(gain), is_behind)
    named = (table.headed + spread(alone)).nonzero()[0]
    return Candidates(table, {*named.tolist()}, spread(topic), behind)


def _gains(
    table: Table, features: Sequence[Feature], weights: Weights, *, with_topics: bool
) -> dict[str, NDArray[Any]]:
    """Return the features times their weights, and times those of their factors compared with the default."""
    default = shares_of(DEFAULT_WEIGHTS, with_topics=with_topics)
    pairs = ((name, getattr(weights, name), getattr(default, name)) for name in ("name", "content", "topic"))
    factors = {name: part / (usual or 1.0) for name, part, usual in pairs} | {"": 1.0}
    return {
        feature.name: feature.weight * factors[feature.factor] * feature.of(table) * table.is_related
        for feature in features
    }


def _behind(collection: Collection, query: Query, passages: Passages) -> dict[int, str]:
    """Return the ranked documents that stand behind others, with the reasons."""
    documents = passages.documents.tolist()
    if len(documents) < 2:
        return {}
    return reasons(query.keywords.text, documents, passages.standings(), collection.versions)


def _allowed(passages: Passages, among: SectionFilter, documents: NDArray[Any] | None) -> NDArray[Any]:
    """Return whether each section meets conditions.

    :param documents: whether each document of the collection meets the conditions on front matter.
    """
    kinds, level = passages.postings.kinds, among.traits.heading_level
    allowed: NDArray[Any] = (kinds & among.bits(True) == among.bits(True)) & (kinds & among.bits(False) == 0)
    if level is not None:
        allowed &= kinds & LEVEL == level
    if documents is not None:
        allowed &= documents[passages.documents].repeat(passages.postings.counts)
    return allowed


def _of_length(
    collection: Collection, passages: Passages, order: NDArray[Any], conditions: TraitFilter
) -> NDArray[Any]:
    """Return the sections whose own text meets conditions, its number of words included."""
    if not conditions.min_word_count and conditions.max_word_count is None:
        return order
    places = zip(*passages.locate(order), strict=True)
    sections = (collection.documents[document].tree.sections[index] for document, index in places)
    return order[[conditions.matches(section.own_traits, section.level) for section in sections]]


def shares_of(weights: Weights, *, with_topics: bool) -> Weights:
    """Scale weights to a sum of 1 over the present factors; without any, the defaults."""
    factors = (weights.name, weights.content, weights.topic if with_topics else 0.0)
    if sum(factors) < _NEGLIGIBLE:
        return shares_of(DEFAULT_WEIGHTS, with_topics=with_topics)
    return Weights(*(part / sum(factors) for part in factors))


def _term_weights(collection: Collection, query: Query) -> tuple[dict[str, float], set[str]]:
    """Return the weights of the terms of a query and its topics, and the identifiers that documents have.

    Such an identifier takes the weight of its parts: ``py_modules`` is not any module.
    """
    vocabulary, keywords = collection.vocabulary, query.keywords
    wanted = dict(keywords.weights)
    parts = {part: whole for part, whole in identifier_parts(query.topics).items() if part not in wanted}
    parts |= keywords.parts
    for term in chain.from_iterable(topic_terms(query.topics)):
        wanted.setdefault(term, TOPIC_WORD)
    vocabulary.learn((*wanted, *parts.values()))
    present = {whole for whole in parts.values() if vocabulary.row(whole) is not None}
    for part, whole in parts.items():
        if whole in present and part in wanted:
            wanted[whole] += wanted.pop(part)
    return wanted, present


def concepts_in(collection: Collection, query: Query) -> list[Concept]:
    """Weigh the terms of a query and its topics, and find their variants."""
    vocabulary = collection.vocabulary
    wanted, identifiers = _term_weights(collection, query)
    # A question about maxRetries is not about maxRetriesPerHost.
    variants_of = {term: vocabulary.variants(term)[: 1 if term in identifiers else None] for term in wanted}
    variant_rows = [row for variants in variants_of.values() for row, _ in variants]
    rarity = dict(zip(variant_rows, idf(vocabulary, variant_rows).tolist(), strict=True))
    concepts = []
    for term, variants in variants_of.items():
        if variants:
            # An unknown term is as rare as the commonest of its variants: a guess must not weigh more than a
            # known word.
            itself = variants[:1] if variants[0][1] == 1 else variants
            least = min(rarity[row] for row, _ in itself)
            # Nor may a common variant weigh as much as the rare term.
            variants = tuple((row, share * min(1.0, rarity[row] / least)) for row, share in variants)
            concepts.append(Concept(wanted[term] * least, variants))
    return concepts
