"""Evidence for a section besides its own words: page, parent, title, word order, and named topics.

BM25F scores each section alone and each word alone. Each function here returns the gains of sections by one
more observation, in the unit of the scores, so that the rank value is a sum. The constants ranked labelled
sections best (``benchmarks/relevance``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from math import fsum, log
from typing import Any

from npl_index.ranking.analysis import identifier_parts, without_compounds
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import FIELD_WEIGHTS, K1, Concept, Matches, Passages, idf
from npl_index.ranking.indexing import Collection
from npl_index.ranking.reading import Texts, best_windows, counts_of
from npl_index.selectors.labels import fold
from npl_index.selectors.names import Node

PAGE_SHARE = 0.25
"""Gain of sections on the best page, compared with the best section's own score."""

PARENT_SHARE = 0.35
"""Gain of a section as a share of its parent's score."""

PAIR_SHARE = 0.3
"""Gain by two neighbouring words of the query, compared with one word of the same rarity."""

DEPTH = 80
"""Maximum sections, best first, that are read word by word."""

COVERED_SHARE = 0.2
NEAR_SHARE = 0.1
"""Gains of a section that covers the whole query, and of one with all of it in one window, compared with the
best section's value without either."""

TITLE_SHARE = 0.4
"""Gain of the section with the best title, compared with the best section's own score, by weight of names."""

HEADED_SHARE = 1.2
"""Gain of a section whose heading is the query: more than the maximum for similar words."""

TITLED_SHARE = 1.8
"""Gain of a page's first text if the query is the page's name: more than for a heading."""

WINDOW = 12
"""Terms of a window."""

LATE_COST = 0.08
CHILD_COST = 0.3 / 8
MANY_CHILDREN = 8
"""Cost of a place at the end of a page, cost of each subsection, and the maximum of counted subsections, as
shares of a section's value: overviews and last chapters mention much and answer little."""

TOPIC_IN_PART = 0.6
TOPIC_SIMILAR = 0.5
"""Maximum fit of a topic that shares words with a heading, and of one with a similar spelling."""

OTHER_FORM = 0.95
"""Fit of a topic that is a different form of a heading's words, such as Testing and Test."""

TOPIC_POWER = 8
"""Power of a fit: a heading that is the topic gains much; the words of the other headings are in the query.
"""

_SIMILARITY_CUTOFF = 80.0
_MAX_TITLES = 2  # one in the front matter and one in the text
_TINY = 1e-9
_COMPLETENESS_POWER = 8
_MARKS = frozenset("._#+")


def from_page(matches: Matches, best: float, best_page: float) -> NDArray[Any]:
    """Return the gains of matching sections by their page.

    Headings such as "Usage" are on every page, and the text of the page distinguishes them. Evidence from the
    whole document helps to choose among its passages (Callan, "Passage-level evidence in document retrieval",
    SIGIR 1994).

    :param best: the highest score, above 0.
    :param best_page: the weight of the best page.
    """
    scores = matches.scores
    if not best_page:
        return np.zeros(len(scores))
    return np.where(scores > 0, PAGE_SHARE * best / best_page * matches.pages, 0)


def above(passages: Passages) -> NDArray[Any]:
    """Return the number of each section's parent; -1 without one."""
    parents = passages.postings.parents
    return np.where(parents == np.arange(len(parents)), -1, parents)


def from_parent(parents: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return the gains of matching sections by their parents.

    A subsection belongs to its parent's subject and rarely repeats its words (Arvola, Junkkari and
    Kekäläinen, "Generalized contextualization method for XML information retrieval", CIKM 2005).

    :param parents: result of :func:`above`.
    """
    return np.where((values > 0) & (parents >= 0), PARENT_SHARE * values[parents], 0)


def from_word_pairs(passages: Passages, texts: Texts) -> NDArray[Any]:
    """Return the gains of the sections read by words that are neighbours in the query and in the section.

    A "definition list" is not just a definition and a list. A pair counts like a term: its mass is normalized
    and saturated as in BM25F, and it weighs more if fewer of these sections have it (like the ordered pairs
    of Metzler and Croft, "A Markov random field model for term dependencies", SIGIR 2005).
    """
    in_heading, in_body = counts_of(texts)
    mass = in_body / passages.body_norms(texts.numbers) + FIELD_WEIGHTS[0] * in_heading
    holders = np.maximum((mass > 0).sum(axis=1, keepdims=True), 1)
    weight = PAIR_SHARE * np.log((passages.vocabulary.sections + 1) / holders)
    # Pair by pair, because the order of numpy's own sum depends on the number of sections.
    return sum(weight * mass / (mass + K1), np.zeros(len(texts.numbers)))


def from_nearness(texts: Texts) -> NDArray[Any]:
    """Return the share of the query within :data:`WINDOW` terms for each of the sections read.

    The words of a question answer it in one sentence, but not scattered over a long section (Tao and Zhai,
    "An exploration of proximity measures in information retrieval", SIGIR 2007).
    """
    whole = sum(texts.sought.weights.tolist()) or 1.0
    return best_windows(texts, WINDOW) / whole


def from_titles(passages: Passages, texts: Texts, best: float) -> NDArray[Any]:
    """Return the gains of the sections read by their titles, for all sections: scaled scores of ``BM25Plus``.

    A title is a heading with its path and the words of the file's name. The model contains the titles with a
    word of the query. Most of these sections have most words of the query, so a word in few titles counts
    more, and a word of the file's name hardly counts. Short titles have no advantage (``b``), nor do missing
    words (``delta``).

    :param best: the highest score, above 0, by weight of names.
    """
    from rank_bm25 import BM25Plus  # slow to import, see arrays

    rows = texts.sought.rows[: len(texts.sought.concepts)].tolist()
    runs, sections, in_heading, in_path, _ = passages.postings.find(rows)
    is_read = np.zeros(passages.postings.size, bool)
    is_read[texts.numbers] = True
    read = is_read[sections]
    times = in_heading[read] + in_path[read]
    titles: dict[int, list[int]] = {}
    words = texts.sought.concepts[runs[read]].repeat(times).tolist()
    for number, word in zip(sections[read].repeat(times).tolist(), words, strict=True):
        titles.setdefault(number, []).append(word)
    added = np.zeros(passages.postings.size)
    if titles:
        model = BM25Plus(list(titles.values()), b=0, delta=0)
        scores = model.get_scores(list(model.idf))
        added[list(titles)] = TITLE_SHARE * best / scores.max() * scores
    return added


def headed_by(collection: Collection, asked: Sequence[str], written: Sequence[str]) -> list[Node]:
    """Return the sections whose heading is the query.

    The heading has the words as spelt ("Test" is not "Testing"), and all identifiers (``--force`` is not
    "Force").

    :param asked: terms of the context.
    :param written: words of the context.
    """
    found = collection.names.headed(" ".join(without_compounds(asked)))
    if not found:
        return []
    spelt = set(fold(" ".join(written)).split())
    identifiers = {word for word in asked if word.startswith("--") or not _MARKS.isdisjoint(word)}
    return [
        node
        for node, heading in found
        if spelt.issuperset(heading.split()) and identifiers.issubset(collection.heading_terms(*node))
    ]


def named_pages(passages: Passages, concepts: Sequence[Concept], asked: int) -> NDArray[Any]:
    """Return how well the query fits the name of the page for the first text of each page, up to 1.

    A query that names a page is answered by its first text, which explains the name. That is the text below
    the title, or the next text after an empty one.

    :param asked: number of the query's terms, unknown ones included.
    """
    postings = passages.postings
    found = np.zeros(postings.size)
    worth = {row: (share, share * one.weight) for one in concepts for row, share in one.variants}
    held_by = postings.find(list(worth))
    titled = np.unique(held_by.sections[(held_by.in_heading > 0) & (postings.levels[held_by.sections] <= 1)])
    if not len(titled):
        return found
    rows, owners = postings.heading_terms(titled)
    shares, weights = np.array([worth.get(row, (0, 0)) for row in rows.tolist()], float).reshape(-1, 2).T
    rarity = idf(passages.vocabulary, rows)
    held, whole, said = (
        np.bincount(owners, values, len(titled)) for values in (rarity * shares, rarity, weights)
    )
    query = asked * sum(concept.weight for concept in concepts) / (len(concepts) or 1)
    fits = held / np.maximum(whole, _TINY) * np.minimum(1, said / (query or 1)) ** _COMPLETENESS_POWER
    for _ in range(_MAX_TITLES):
        after = np.minimum(titled + 1, postings.size - 1)
        blank = (postings.sizes[titled] == 0) & (postings.pages[after] == postings.pages[titled])
        titled = np.where(blank, after, titled)
    np.maximum.at(found, titled, fits)
    return found


def from_place(passages: Passages, fits: NDArray[Any]) -> NDArray[Any]:
    """Return the factors of sections for their place on the page.

    :param fits: result of :func:`named_pages`; the beginning of a named page is more than an overview.
    """
    postings = passages.postings
    children = np.minimum(postings.children, MANY_CHILDREN) * (1 - fits)
    return 1 - LATE_COST * postings.positions - CHILD_COST * children


def highest(values: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return the positions of the highest values above 0, highest first; of equal values, the first."""
    found = (values > 0).nonzero()[0]
    return found[(-values[found]).argsort(kind="stable")][:limit]


def topic_fit(
    collection: Collection, topics: Sequence[list[str]], written: Sequence[str]
) -> dict[Node, tuple[float, float]]:
    """Return the fit of the best topic for the headings of sections, and the gain by it, both up to 1.

    A heading that is the topic has a fit of 1, and a different form of it ``OTHER_FORM``. A heading with all
    words of the topic begins at ``TOPIC_IN_PART``, a heading within the topic at ``TOPIC_SIMILAR``, and a
    similar spelling has at most that. A topic names a section, even if its words are common, so the fit is
    separate from BM25F. A topic that fits many sections ("Troubleshooting") gains them less, and the context
    chooses. Besides a heading that is the topic, a different form gains no more than a part.

    :param topics: terms of each topic.
    :param written: the topics.
    """
    best: dict[Node, tuple[float, float]] = {}
    spelt, parts = set(fold(" ".join(written)).split()), identifier_parts(written).keys()
    for words in topics:
        fits: dict[Node, float] = {}
        for heading, fit in _headings_like(collection, without_compounds(words), parts):
            for node, name in collection.names.headed(heading):
                if fit == 1 and not spelt.issuperset(name.split()):
                    fits[node] = OTHER_FORM
                else:
                    fits[node] = max(fit, fits.get(node, 0.0))
        other = TOPIC_IN_PART if 1.0 in fits.values() else OTHER_FORM
        gains = {node: (other if fit == OTHER_FORM else fit) ** TOPIC_POWER for node, fit in fits.items()}
        rarity = (1 + log(max(1.0, fsum(gains.values())))) ** -2
        for node, fit in fits.items():
            before = best.get(node, (0.0, 0.0))
            best[node] = max(fit, before[0]), max(rarity * gains[node], before[1])
    return best


def _headings_like(collection: Collection, words: list[str], parts: Set[str]) -> Iterator[tuple[str, float]]:
    """Yield the headings that a topic fits; sharing only a part of an identifier does not count.

    :param parts: terms that occur in topics only as parts of identifiers.
    """
    from rapidfuzz import fuzz, process  # only topics need it, and it is slow to import

    topic = " ".join(words)
    wanted = set(words)
    for heading, similarity, _ in process.extract(
        topic, collection.names.spelt(), scorer=fuzz.ratio, score_cutoff=_SIMILARITY_CUTOFF, limit=None
    ):
        yield heading, TOPIC_SIMILAR * similarity / 100
    for heading in collection.names.spelt_with(wanted):
        held = heading.split(" ")
        common = wanted.intersection(held)
        if len(common) == len(wanted) or (len(common) == len(held) and not parts >= common):
            share = 2 * len(common) / (len(words) + len(held))  # Dice's coefficient
            part = TOPIC_IN_PART if len(common) == len(wanted) else TOPIC_SIMILAR
            yield heading, 1.0 if heading == topic else part + (0.9 - TOPIC_IN_PART) * share
