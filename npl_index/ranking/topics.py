"""Topics and queries that are headings.

A topic names a section, even if its words are common, so its fit for headings is separate from BM25F.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from math import fsum, log

from npl_index.ranking.analysis import terms
from npl_index.ranking.collection import Collection
from npl_index.ranking.keywords import Keywords, identifier_parts
from npl_index.ranking.spelling import without_compounds
from npl_index.selectors.labels import fold
from npl_index.selectors.names import Place

TOPIC_IN_PART = 0.6
TOPIC_SIMILAR = 0.5
"""Maximum fit of a topic that shares words with a heading, and of one with a similar spelling."""

OTHER_FORM = 0.95
"""Fit of a topic that is a different form of a heading's words, such as Testing and Test."""

TOPIC_POWER = 8
"""Power of a fit: a heading that is the topic gains much; the words of the other headings are in the query.
"""

_SIMILARITY_CUTOFF = 80.0


def topic_terms(topics: Sequence[str]) -> list[list[str]]:
    """Return the terms of each topic with terms; a topic of stop words only ("How to") keeps them."""
    words_of = (terms(topic) or terms(topic, keep_stop_words=True) for topic in topics)
    return [words for words in words_of if words]


def headed_by(collection: Collection, keywords: Keywords) -> list[Place]:
    """Return the sections whose heading is the query.

    The heading has the words as spelt ("Test" is not "Testing"), and all identifiers (``--force`` is not
    "Force").
    """
    headed = collection.names.headed(keywords.said)
    if not headed:
        return []
    spelt = set(fold(" ".join(keywords.words)).split())
    # Without spaces, a word has several keywords.
    spelt.update(word for word in fold(keywords.text).split() if not word.isascii())
    identifiers = {word.terms[-1] for word in keywords.written if word.is_name}
    return [
        place
        for place, heading in headed
        if spelt.issuperset(heading.split()) and identifiers.issubset(collection.heading_terms(*place))
    ]


def topic_fit(
    collection: Collection, topics: Sequence[list[str]], written: Sequence[str]
) -> dict[Place, tuple[float, float]]:
    """Return the fit of the best topic for the headings of sections, and the gain by it, both up to 1.

    A heading that is the topic has a fit of 1, and a different form of it ``OTHER_FORM``. A heading with all
    words of the topic begins at ``TOPIC_IN_PART``, a heading within the topic at ``TOPIC_SIMILAR``, and a
    similar spelling has at most that. A topic names a section, even if its words are common, so the fit is
    separate from BM25F. A topic that fits many sections ("Troubleshooting") gains them less, and the context
    chooses. Besides a heading that is the topic, a different form gains no more than a part.

    :param topics: terms of each topic.
    :param written: the topics.
    """
    best: dict[Place, tuple[float, float]] = {}
    spelt, parts = set(fold(" ".join(written)).split()), identifier_parts(written).keys()
    for words in topics:
        fits: dict[Place, float] = {}
        for heading, fit in _headings_like(collection, without_compounds(words), parts):
            for place, name in collection.names.headed(heading):
                if fit == 1 and not spelt.issuperset(name.split()):
                    fits[place] = OTHER_FORM
                else:
                    fits[place] = max(fit, fits.get(place, 0.0))
        other = TOPIC_IN_PART if 1.0 in fits.values() else OTHER_FORM
        gains = {place: (other if fit == OTHER_FORM else fit) ** TOPIC_POWER for place, fit in fits.items()}
        rarity = (1 + log(max(1.0, fsum(gains.values())))) ** -2
        for place, fit in fits.items():
            before = best.get(place, (0.0, 0.0))
            best[place] = max(fit, before[0]), max(rarity * gains[place], before[1])
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
        heading_words = heading.split(" ")
        common = wanted.intersection(heading_words)
        if len(common) == len(wanted) or (len(common) == len(heading_words) and not parts >= common):
            share = 2 * len(common) / (len(words) + len(heading_words))  # Dice's coefficient
            part = TOPIC_IN_PART if len(common) == len(wanted) else TOPIC_SIMILAR
            yield heading, 1.0 if heading == topic else part + (0.9 - TOPIC_IN_PART) * share
