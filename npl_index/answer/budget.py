"""Packing sections into a token budget.

Parts come in order of importance. What does not fit is skipped, not stopped at; a part larger than the
whole budget is cut at the end of a block. The result never exceeds the budget: the cost of a part is the
larger of its two counts, with and without the blank line that follows it, and the exact total is the sum
over the parts in document order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from npl_index.markdown.sections import Span


class Part(NamedTuple):
    """A stretch of one document that is kept or dropped as a whole.

    :param document: index of the document.
    :param section: index of the section the lines belong to.
    :param lines: of the document.
    :param followed: tokens of the text when more text follows after a blank line.
    :param last: tokens of the text at the end of the content.
    :param cost: upper bound of both; equal to their maximum where counting is exact.
    :param chosen: a selector asked for it.
    """

    document: int
    section: int
    lines: Span
    followed: int
    last: int
    cost: int
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Fit:
    """What fits into the budget.

    :param kept: in the order given.
    :param dropped: what did not fit, in the order given; the rest of a part that was cut comes in its place.
    :param cut: the kept part that was cut, if one was.
    """

    kept: tuple[Part, ...]
    dropped: tuple[Part, ...]
    cut: Part | None = None


Cutter = Callable[[Part, int], "tuple[Part, Part] | None"]
"""Takes a part and a number of tokens; gives its beginning that fits and the rest, or ``None``."""


LARGE = 0.6
"""Share of the limit above which a hit is large: several smaller ones may hold the answer in its place."""


def fit(
    parts: Sequence[Part], limit: int | None, cutter: Cutter, entry_cost: Callable[[int], int] | None = None
) -> Fit:
    """Choose what fits into a budget.

    The first part never waits. Further large hits wait until all others have been tried; what is then left of
    the budget goes to them. A hit that has to be cut gets at most the share :data:`LARGE` of the budget, a
    part that a selector asked for gets all of it.

    :param parts: most important first.
    :param limit: tokens; ``None`` for no limit, 0 for nothing.
    :param cutter: cuts a part that is larger than the whole limit.
    :param entry_cost: tokens that the first part of a document costs beside its own (a mark that names the
        file); by default none.
    """
    if limit is None:
        return Fit(tuple(parts), ())
    packing = _Packing(limit, cutter, entry_cost or (lambda _: 0))
    waiting = []
    for number, part in enumerate(parts):
        if part.chosen or number == 0 or part.cost / LARGE <= limit:  # a limit may be larger than any float
            packing.add(part)
        else:
            waiting.append(part)
    for part in waiting:
        packing.add(part)
    return Fit(tuple(packing.kept), tuple(packing.dropped), packing.cut)


class _Packing:
    """What is kept so far."""

    def __init__(self, limit: int, cutter: Cutter, entry_cost: Callable[[int], int]) -> None:
        self.kept: list[Part] = []
        self.dropped: list[Part] = []
        self.cut: Part | None = None
        self._limit = self._left = limit
        self._cutter = cutter
        self._entry_cost = entry_cost
        self._entered: set[int] = set()

    def add(self, part: Part) -> None:
        """Keep a part, its beginning, or nothing of it."""
        entry = 0 if part.document in self._entered else self._entry_cost(part.document)
        room = self._left - entry
        if part.cost > room:
            pieces = self._cut(part, room)
            if pieces is None:
                self.dropped.append(part)
                return
            part, rest = pieces
            self.cut = part
            self.dropped.append(rest)
        self.kept.append(part)
        self._entered.add(part.document)
        self._left = room - part.cost

    def _cut(self, part: Part, room: int) -> tuple[Part, Part] | None:
        if self.cut is not None or part.cost <= self._limit:
            return None
        return self._cutter(part, room if part.chosen else min(room, int(LARGE * self._limit)))
