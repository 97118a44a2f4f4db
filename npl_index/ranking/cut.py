"""The relevance cut: how many of the ranked sections are handed over.

A fixed number of hits is wrong for nearly every question, and so is a fixed score: scores of different
questions cannot be compared. What a further section is worth depends on three things that can:

- its score, as a share of the best one's;
- how much of the query what was taken before leaves open. A short question is answered by one section; of a
  task with many aspects each section answers a few;
- its size, since a long section costs what several short ones do.

The first section that is worth less than asked ends the list, so that nothing is handed over in place of
something better.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import NamedTuple

from npl_index.ranking.indexing import Collection
from npl_index.ranking.reading import held, read
from npl_index.ranking.scoring import Hit, Query, concepts_in

ORDINARY = 800
"""Bytes of an ordinary section; longer ones need a higher score, shorter ones a lower one."""

_LEAST = ORDINARY / 10


class Demand(NamedTuple):
    """Which share of the best score a section needs.

    :param open: while nothing of the query is covered.
    :param answered: when all of it is.
    :param size: by what share more for a section e times as long as an ordinary one.
    """

    open: float
    answered: float
    size: float

    def least(self, covered: float, size: int) -> float:
        """Return the share that a section needs, at most 1.

        :param covered: share of the query that the sections taken so far cover.
        :param size: bytes of the section.
        """
        share = self.open + (self.answered - self.open) * covered
        return min(1.0, share * (1 + self.size * log(max(size, _LEAST) / ORDINARY)))


FEW = Demand(open=0.8, answered=0.85, size=0.03)
MANY = Demand(open=0.35, answered=0.6, size=0.14)
"""What is asked for without a budget, and with one: the caller said how much is welcome.

They are those that kept the labelled sections with the fewest tokens (``benchmarks/relevance``)."""


def cut(hits: Sequence[Hit], collection: Collection, query: Query, *, generous: bool = False) -> list[Hit]:
    """Keep the hits that are worth handing over, best first.

    Headings without text of their own are left out; what stands below them has part of their score. A section
    whose heading is a topic that the caller named is always worth it.

    :param hits: best first.
    :param generous: a budget limits the answer, so that more may be of use.
    """
    import numpy as np

    if not hits:
        return []
    concepts = concepts_in(collection, query)
    weights = np.array([concept.weight for concept in concepts])
    numbers = np.array([collection.offsets[hit.document] + hit.section for hit in hits])
    shares = held(read(collection.postings, numbers), concepts)
    open_shares, whole = np.ones(len(concepts)), float(weights.sum()) or 1.0
    demand, covered = MANY if generous else FEW, 0.0
    kept: list[Hit] = []
    for place, hit in enumerate(hits):
        if not collection.has_text(hit.document, hit.section):
            continue
        if kept and hit.score.topic < 1:
            own = collection.documents[hit.document].tree.sections[hit.section].own_bytes
            if hit.score.total < kept[0].score.total * demand.least(covered, own.stop - own.start):
                break
        kept.append(hit)
        if place < shares.shape[1]:
            open_shares = np.minimum(open_shares, 1 - shares[:, place])
            covered = 1 - float(weights @ open_shares) / whole
    return kept
