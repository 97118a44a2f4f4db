"""The relevance cut: the number of ranked sections to return.

No fixed number of hits suits all questions, and neither does a fixed score, because scores of different
questions are not comparable. The worth of a further section depends on three comparable quantities:

- its score, as a share of the best one;
- the uncovered part of the query, and the number of its words. One section answers a short question; in a
  task with many aspects, each section answers a few;
- its size, because a long section costs as much as several short ones.

The list ends at the first section below the demand, so that no lesser section takes the place of a better
one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp, log
from typing import Any

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.indexing import Collection
from npl_index.ranking.scoring import Hit, Ranking
from npl_index.ranking.topics import OTHER_FORM

ORDINARY = 800
"""Bytes of an ordinary section; longer ones need a higher score, shorter ones a lower one."""

BRIEF = 16
"""Words of a short question; a task with many aspects has several times as many. For a question of this
length, the first section settles a third, even if it covers no word of it; of a longer one, less."""

SAME_DOCUMENT = 0.25
"""Reduction of the worth of a section for each better one of the same document, in a task of many aspects: it
needs several documents. For a short question it is smaller."""

HARDNESS = 4
"""Power of the covered share: half the words of a question answer hardly any of it."""

AS_GOOD = 0.91
"""Share of the best score for a second answer to the question."""

OPEN, ANSWERED, LONG = 0.4, 0.6, 0.2
"""Share of the best score that a welcome section needs while no part of the query is settled, and when all of
it is; relative increase for a section e times as long as an ordinary one. These kept the labelled sections
with the fewest tokens (``benchmarks/relevance``)."""

OTHER_SUBJECT = 0.4
RELATED = 0.4
FURTHER = 0.6
"""Share of the question that makes another subject; share of the best score that its section needs, and that
of a further section of the same subject after short ones, in a search of a few documents."""

FEW_DOCUMENTS = 4

_MAX_SUBJECT_HITS = 20
_MIN_SIZE = ORDINARY / 4


def cut(ranking: Ranking, *, generous: bool = False) -> list[Hit]:
    """Keep the hits that are worth their tokens, best first, with later ones of one document moved down.

    Bare headings are omitted; their subsections have a part of their score. A section whose heading is a
    topic of the caller is always kept.

    :param generous: a budget shows the welcome size, so further sections are welcome. Without one, only
        sections nearly as good as the best are kept.
    """
    uncovered = UncoveredQuery(ranking)
    factor = 1 - SAME_DOCUMENT * uncovered.aspects
    kept: list[Hit] = []
    for hit, shares in zip(ranking.hits, ranking.coverage.shares.T, strict=False):
        if not hit.size:
            continue
        if kept and hit.score.topic < OTHER_FORM:
            least = _required_share(uncovered.settled, hit.size) if generous else AS_GOOD
            if hit.score.total < least * kept[0].score.total:
                break
        kept.append(hit)
        uncovered.take(shares)
    return _by_worth(kept, factor)


def _required_share(settled: float, size: int) -> float:
    """Return the share of the best score that a welcome section needs, at most 1.

    :param settled: share of the query that the previous sections settle.
    :param size: bytes of the section.
    """
    share = OPEN + (ANSWERED - OPEN) * settled
    return min(1.0, share * (1 + LONG * log(max(size, _MIN_SIZE) / ORDINARY)))


def best_of_each_subject(ranking: Ranking, collection: Collection) -> list[Hit]:
    """Keep the best hit, equally good ones, and the best hit of each further subject of the question.

    In a search of a few documents, each document is a subject, and further sections follow a short one.
    """
    uncovered = UncoveredQuery(ranking)
    kept: list[Hit] = []
    size = 0
    few = len(collection.paths) <= FEW_DOCUMENTS
    for hit, shares in zip(ranking.hits[:_MAX_SUBJECT_HITS], ranking.coverage.shares.T, strict=False):
        if not hit.size:
            continue
        score = hit.score.total / kept[0].score.total if kept else 1.0
        other = few and all(hit.document != earlier.document for earlier in kept)
        other = other or uncovered.gain(shares) >= OTHER_SUBJECT
        if score >= (RELATED if other else FURTHER if few and size < ORDINARY else AS_GOOD):
            kept.append(hit)
            size += hit.size
            uncovered.take(shares)
    return kept


def _by_worth(hits: Sequence[Hit], factor: float) -> list[Hit]:
    """Sort hits by their worth, best first.

    :param factor: factor of a hit's score for each better one of the same document.
    """
    better: Counter[int] = Counter()

    def worth(hit: Hit) -> float:
        better[hit.document] += 1
        return -hit.score.total * factor ** better[hit.document]

    return sorted(hits, key=worth)


class UncoveredQuery:
    """The part of a question that no taken section covers."""

    def __init__(self, ranking: Ranking) -> None:
        weights = ranking.coverage.weights
        self.aspects = 1 - exp(-len(ranking.query.keywords.weights) / BRIEF)
        self.settled = 0.0
        self._weights = weights / (weights.sum() or 1.0)
        self._open = np.ones(len(weights))

    def gain(self, shares: NDArray[Any]) -> float:
        """Return the share of the question that a section with these shares of its words would add."""
        return float(self._weights @ np.maximum(0, self._open - (1 - shares)))

    def take(self, shares: NDArray[Any]) -> None:
        """Take a section with these shares of the words."""
        self._open = np.minimum(self._open, 1 - shares)
        covered = 1 - float(self._weights @ self._open)
        self.settled = 1 - self.aspects * (1 - covered**HARDNESS)
