"""What speaks for a section besides its own words: its page, parent, title, word order, and named topics.

BM25F looks at a section alone and at words one by one. Each function here returns what one further
observation adds to the sections' scores, in the unit of those scores, so that the rank value is a sum.
The constants are those that found labelled sections best (``benchmarks/relevance``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from math import fsum, log
from typing import Any

from npl_index.ranking.analysis import identifier_parts, without_compounds
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import K1, Concept, Matches
from npl_index.ranking.indexing import Collection, Passages
from npl_index.ranking.reading import Texts, best_windows, counts_of
from npl_index.ranking.weighing import FIELD_WEIGHTS, idf
from npl_index.selectors.labels import fold
from npl_index.selectors.names import Node

PAGE_SHARE = 0.25
"""What the best page adds to its sections, compared with the best section's own score."""

PARENT_SHARE = 0.35
"""Share of its parent's score that a section gets."""

PAIR_SHARE = 0.3
"""What two words of the query side by side add, compared with a single word of the same rarity."""

DEPTH = 80
"""Sections, best first, that are read word by word."""

COVERED_SHARE = 0.2
NEAR_SHARE = 0.1
"""What a section gains that covers the whole query, and one that has all of it in one place, compared with
what the best section has without either."""

TITLE_SHARE = 0.4
"""What the best title adds to its section, compared with the best section's own score, by weight of names."""

HEADED_SHARE = 1.2
"""What a section gains whose heading is the query: more than what words that are only alike can gain it."""

TITLED_SHARE = 1.8
"""Gain of a page's first text where the query is the page's name: more than where it is a heading."""

WINDOW = 12
"""Terms that count as one place."""

LATE_COST = 0.08
CHILD_COST = 0.3 / 8
MANY_CHILDREN = 8
"""What the end of a page costs, and each subsection up to so many, as a share of a section's value: overviews
and last chapters mention much and answer little."""

TOPIC_IN_PART = 0.6
TOPIC_SIMILAR = 0.5
"""Fit of a topic that shares its words with a heading, and of one that is merely spelt alike, at most."""

OTHER_FORM = 0.95
"""Fit of a topic that is another form of a heading's words: who asks for Testing does not mean Test."""

TOPIC_POWER = 8
"""Power of a fit: a heading that is the topic gains much, others hardly more than by their words, which the
query has anyway."""

_SIMILARITY_CUTOFF = 80.0
_ABOVE_FIRST = 2  # a title in the front matter and one in the text
_TINY = 1e-9
_WHOLLY = 8
_MARKS = frozenset("._#+")


def from_page(matches: Matches, best: float, best_page: float) -> NDArray[Any]:
    """Return what their page adds to sections that match.

    Headings such as "Usage" stand on every page; which one is meant is said elsewhere on the page. The whole
    document's evidence helps to choose among its passages (Callan, "Passage-level evidence in document
    retrieval", SIGIR 1994).

    :param best: the highest score, above 0.
    :param best_page: the weight of the best page.
    """
    scores = matches.scores
    if not best_page:
        return np.zeros(len(scores))
    return np.where(scores > 0, PAGE_SHARE * best / best_page * matches.pages, 0)


def above(passages: Passages) -> NDArray[Any]:
    """Return the number of each section's parent; -1 for those without."""
    parents = passages.postings.parents
    return np.where(parents == np.arange(len(parents)), -1, parents)


def from_parent(parents: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Return what its parent adds to a section that matches.

    A subsection answers in the frame of its parent and rarely repeats the parent's words (as in Arvola,
    Junkkari and Kekäläinen, "Generalized contextualization method for XML information retrieval", CIKM 2005).

    :param parents: number of each parent, -1 where there is none.
    """
    return np.where((values > 0) & (parents >= 0), PARENT_SHARE * values[parents], 0)


def from_word_pairs(passages: Passages, texts: Texts) -> NDArray[Any]:
    """Return what words that stand side by side in the query and in a section add to the sections read.

    "definition list" is another thing than a definition and a list. A pair counts like a term: its mass is
    normalised and saturated as in BM25F, and the fewer of the sections read hold it, the more it says
    (Metzler and Croft, "A Markov random field model for term dependencies", SIGIR 2005, add ordered pairs to
    single words in the same way). Only the best sections are read, since postings have no positions.
    """
    in_heading, in_body = counts_of(texts)
    mass = in_body / passages.weighing.body_norms(texts.numbers) + FIELD_WEIGHTS[0] * in_heading
    holders = np.maximum((mass > 0).sum(axis=1, keepdims=True), 1)
    weight = PAIR_SHARE * np.log((passages.vocabulary.sections + 1) / holders)
    # One pair after another: numpy's own sum takes another order where one section is read alone.
    return sum(weight * mass / (mass + K1), np.zeros(len(texts.numbers)))


def from_nearness(texts: Texts) -> NDArray[Any]:
    """Return for the sections read which share of the query stands together, within :data:`WINDOW` terms.

    Words of a question that stand in one sentence answer it; strewn over a long section they do not (Tao and
    Zhai, "An exploration of proximity measures in information retrieval", SIGIR 2007).
    """
    whole = sum(texts.sought.weights.tolist()) or 1.0
    shares: NDArray[Any] = best_windows(texts, WINDOW) / whole
    return shares


def from_titles(passages: Passages, texts: Texts, best: float) -> NDArray[Any]:
    """Return for all sections what titles add to those that are read: scores of ``BM25Plus``, scaled.

    A title is a heading and its path, words of the file's name included. The model holds the titles that name
    something of the query. Most sections that are read have most words of it, so a word is worth more the
    fewer of these titles have it, and a word of the file's name is worth hardly anything. A title is not
    better for being short (``b``), nor for words that it lacks (``delta``).

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
    """Return the sections whose heading is what is asked for: who names a section wants that one.

    "Test" is not called "Testing", and ``--force`` not "Force": where identifiers are asked for, the heading
    has them.

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
    """Return for sections how well the query fits the name of the page that they begin, up to 1.

    A query that names a page is answered by its first text, which says what the name means. That is the text
    below its title, or without one the next text.

    :param asked: number of the query's terms, with those that no section has.
    """
    postings = passages.postings
    found = np.zeros(postings.size)
    worth = {row: (share, share * one.weight) for one in concepts for row, share in one.variants}
    held_by = postings.find(list(worth))
    titled = np.unique(held_by.sections[(held_by.in_heading > 0) & (postings.levels[held_by.sections] <= 1)])
    if not len(titled):
        return found
    rows, owners = postings.named(titled)
    shares, weights = np.array([worth.get(row, (0, 0)) for row in rows.tolist()], float).reshape(-1, 2).T
    rarity = idf(passages.vocabulary, rows)
    held, whole, said = (
        np.bincount(owners, values, len(titled)) for values in (rarity * shares, rarity, weights)
    )
    query = asked * sum(concept.weight for concept in concepts) / (len(concepts) or 1)
    fits = held / np.maximum(whole, _TINY) * np.minimum(1, said / (query or 1)) ** _WHOLLY
    for _ in range(_ABOVE_FIRST):
        behind = np.minimum(titled + 1, postings.size - 1)
        blank = (postings.sizes[titled] == 0) & (postings.pages[behind] == postings.pages[titled])
        titled = np.where(blank, behind, titled)
    np.maximum.at(found, titled, fits)
    return found


def from_place(passages: Passages, fits: NDArray[Any]) -> NDArray[Any]:
    """Return the factors of sections for their place on the page.

    :param fits: from :func:`named_pages`; the beginning of a page that is asked for is more than an overview.
    """
    postings = passages.postings
    children = np.minimum(postings.children, MANY_CHILDREN) * (1 - fits)
    factors: NDArray[Any] = 1 - LATE_COST * postings.positions - CHILD_COST * children
    return factors


def highest(values: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return the positions of the highest values above 0, highest first, of equal ones the first."""
    found = (values > 0).nonzero()[0]
    ordered: NDArray[Any] = found[(-values[found]).argsort(kind="stable")][:limit]
    return ordered


def topic_fit(
    collection: Collection, topics: Sequence[list[str]], written: Sequence[str]
) -> dict[Node, tuple[float, float]]:
    """Return for sections how well the best topic fits their headings, and their gain by it, up to 1.

    A heading that is the topic has 1, one that is another form of it ``OTHER_FORM``; one that holds all its
    words from ``TOPIC_IN_PART`` up, one that is held by it from ``TOPIC_SIMILAR``; one that is merely spelt
    alike at most that. Who names a topic means a section that is called so, however rare its words are, so
    the fit is a number of its own and not part of BM25F. The more sections a topic fits, the less it says
    which one is meant ("Troubleshooting"): the context chooses then. Another form of a heading that is the
    topic gains no more than a part.

    :param topics: terms of each.
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
    """Find the headings that a topic fits; a heading that shares only part of an identifier does not fit.

    :param parts: terms that stand in topics only as parts of identifiers.
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
