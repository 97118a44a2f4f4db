"""The relevance cut: how many of the ranked sections are returned.

A fixed number of hits is wrong for nearly every question, and a fixed score is, too: scores of different
questions cannot be compared. Sections nearly as good as the best one are kept; the first gap ends the list.
"""

from __future__ import annotations

from collections.abc import Sequence

from npl_index.ranking.indexing import Collection
from npl_index.ranking.scoring import Hit

GAP = 0.82
"""Share of the best total that a hit needs to be returned."""

MOST = 3
MOST_NAMED = 5
"""Sections returned without a budget: those near the best, and those whose heading is a topic."""

GENEROUS_GAP = 0.4
GENEROUS_MOST = 16
"""The gap and the number of sections when a budget limits the answer."""


def cut(hits: Sequence[Hit], collection: Collection, *, generous: bool = False) -> list[Hit]:
    """Keep the hits that are nearly as good as the best, and some whose heading is a topic the caller named.

    Headings without text of their own are left out; what stands below them has part of their score.

    :param hits: best first.
    :param generous: keep all that may be of use, because a budget will limit them.
    """
    kept: list[Hit] = []
    gap, most = (GENEROUS_GAP, GENEROUS_MOST) if generous else (GAP, MOST)
    near = named = 0
    for hit in hits:
        if not collection.has_text(hit.document, hit.section):
            continue
        if near < most and (not kept or hit.score.total >= gap * kept[0].score.total):
            near += 1
            kept.append(hit)
        elif hit.score.topic == 1 and named < MOST_NAMED:
            named += 1
            kept.append(hit)
    return kept
