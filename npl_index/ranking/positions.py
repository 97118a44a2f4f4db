"""Positions of a query's terms: neighbouring terms, and terms close together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.bm25f import Concept
from npl_index.ranking.postings import FIELDS, Postings, begin_runs, distinct


def concept_of_rows(concepts: Sequence[Concept]) -> dict[int, tuple[int, float]]:
    """Return the rows of all variants of concepts, each with its concept and its share.

    A variant of several concepts counts for the one with its largest share, or for the first of these.
    """
    best: dict[int, tuple[int, float]] = {}
    for number, concept in enumerate(concepts):
        for row, share in concept.variants:
            if row not in best or share > best[row][1]:
                best[row] = number, share
    return best


def pair_counts(
    postings: Postings, pairs: Sequence[tuple[int, int]]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Count pairs of rows that are neighbours in a heading or a body.

    :returns: arrays with one number for each pair and section with it: the number of the pair, ascending; the
        section; how often it is in the heading, and in the body.
    """
    asked = np.array(pairs, np.intp).reshape(-1, 2)
    rows = distinct(asked.ravel())
    numbers, fields, places = postings.positions(rows.tolist())
    beside = ((places[1:] - places[:-1] == 1) & (fields[1:] == fields[:-1])).nonzero()[0]
    number_of = np.full(len(rows) ** 2, -1)
    number_of[rows.searchsorted(asked) @ [len(rows), 1]] = np.arange(len(asked))
    pair = number_of[numbers[beside] * len(rows) + numbers[beside + 1]]
    sections, field = np.divmod(fields[beside], FIELDS)
    counted = (pair >= 0) & (field != 1)
    cells, cell_of = np.unique((pair * postings.size + sections)[counted], return_inverse=True)
    in_body = field[counted] > 0
    in_heading, in_bodies = (np.bincount(cell_of, chosen, len(cells)) for chosen in (~in_body, in_body))
    pair, sections = np.divmod(cells, postings.size)
    return pair, sections, in_heading, in_bodies


def best_windows(
    postings: Postings, concepts: Sequence[Concept], sections: NDArray[Any], width: int
) -> NDArray[Any]:
    """Return the weight of the different concepts in the best window of ``width`` terms of some bodies."""
    best = concept_of_rows(concepts)
    windows, is_read = np.zeros(postings.size), np.zeros(FIELDS * postings.size, bool)
    is_read[FIELDS * sections + 2] = True
    numbers, fields, places = postings.positions(list(best))
    read = is_read[fields]
    if not read.any():
        return windows[sections]
    owners, numbers = fields[read] // FIELDS, numbers[read]
    concept_of, share_of = map(np.array, zip(*best.values(), strict=True))
    worth = (np.array([concept.weight for concept in concepts])[concept_of] * share_of)[numbers]
    where = places[read] + owners * width  # so that no window spans two texts
    # A concept counts once in a window, at its first place. So a place counts in windows that begin after the
    # concept's previous place.
    keys = owners * len(concepts) + concept_of[numbers]
    order = keys.argsort(kind="stable")
    same = keys[order[1:]] == keys[order[:-1]]
    before = np.full(len(keys), -1)
    before[order[1:][same]] = order[:-1][same]
    first = np.maximum(before + 1, where.searchsorted(where - width, side="right"))
    places = np.arange(len(keys))
    sums = worth.copy()
    for step in range(1, int((places - first).max()) + 1):
        np.add(sums[:-step], worth[step:], out=sums[:-step], where=first[step:] <= places[:-step])
    begins = begin_runs(owners).nonzero()[0]
    windows[owners[begins]] = np.maximum.reduceat(sums, begins)
    return windows[sections]
