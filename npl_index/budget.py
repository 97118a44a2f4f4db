"""Packing sections into a token budget.

Parts come in order of importance. What does not fit is skipped, not stopped at; a part larger than the
whole budget is cut at the end of a block. The result never exceeds the budget: the cost of a part is the
larger of its two counts, with and without the blank line that follows it, and the exact total is the sum
over the parts in the order they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from npl_index.sections import Span


class Part(NamedTuple):
    """A stretch of one document that is handed over or not as a whole.

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
    """What is handed over.

    :param kept: in the order given.
    :param dropped: what did not fit, in the order given; the rest of a part that was cut comes in its place.
    :param cut: the kept part that was cut, if one was.
    """

    kept: tuple[Part, ...]
    dropped: tuple[Part, ...]
    cut: Part | None = None


Cutter = Callable[[Part, int], "tuple[Part, Part] | None"]
"""Takes a part and a number of tokens; gives its beginning that fits and the rest, or ``None``."""


def fit(
    parts: Sequence[Part], limit: int | None, cutter: Cutter, entry_cost: Callable[[int], int] | None = None
) -> Fit:
    """Choose what is handed over.

    :param parts: most important first.
    :param limit: tokens; ``None`` for no limit, 0 for nothing.
    :param cutter: cuts a part that is larger than the whole limit.
    :param entry_cost: tokens that the first part of a document costs beside its own (a mark that names the
        file); by default none.
    """
    if limit is None:
        return Fit(tuple(parts), ())
    kept: list[Part] = []
    dropped: list[Part] = []
    entered: set[int] = set()
    cut: Part | None = None
    left = limit
    for part in parts:
        entry = entry_cost(part.document) if entry_cost and part.document not in entered else 0
        room = left - entry
        if part.cost <= room:
            chosen = part
        elif cut is None and part.cost > limit and (pieces := cutter(part, room)) is not None:
            chosen, rest = pieces
            cut = chosen
            dropped.append(rest)
        else:
            dropped.append(part)
            continue
        kept.append(chosen)
        entered.add(part.document)
        left = room - chosen.cost
    return Fit(tuple(kept), tuple(dropped), cut)
