"""Packing sections into a token budget, best first.

A unit is what one row of the answer describes: a hit's own text, or a section that a selector asked for with
its subsections. Each is kept whole if it fits, else split into its subsections, else cut at the end of a
block. So nothing is kept while something better, whole or cut, would fit in its place.

What was left out is owed a trace, the selector to ask for it with, before anything of lower rank is kept. The
caller says what texts, rows and traces cost; costs add up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, Protocol

from npl_index.markdown.sections import Span

BEST = 3
"""So many of the best units are in every answer, at least by name."""

WORTH_A_ROW = 2
"""A further piece is kept if it is so many times as long as what says what it is."""

MOST_ASKED_FOR = 8
"""Room is kept for the names of so many of the sections that were asked for."""

MOST_FAILED_CUTS = 5
"""Units that could not be cut to the room they had: to find that out takes as long as all else."""


class Size(NamedTuple):
    """Tokens of a text.

    :param followed: when more text follows after a blank line.
    :param last: at the end of the content.
    :param cost: upper bound of both; equal to their maximum where counting is exact.
    """

    followed: int
    last: int
    cost: int


class Part:
    """A stretch of one section's own text; what has no room anyway is neither looked up nor counted.

    :param document: index of the document.
    :param section: index of the section the lines belong to.
    :param lines: returns the lines of the document.
    :param size: counts them.
    :param chosen: a selector asked for it.
    """

    def __init__(
        self,
        document: int,
        section: int,
        lines: Callable[[], Span],
        size: Callable[[], Size],
        chosen: bool = False,
    ) -> None:
        self.document, self.section, self.chosen = document, section, chosen
        self._look_up, self._count = lines, size

    def shortened(self, lines: Span, size: Size) -> Part:
        """Return another stretch of the same section's text."""
        return Part(self.document, self.section, lambda: lines, lambda: size, self.chosen)

    @cached_property
    def lines(self) -> Span:
        """The lines of the document."""
        return self._look_up()

    @cached_property
    def size(self) -> Size:
        """The tokens of the text."""
        return self._count()


class Unit(NamedTuple):
    """What is kept, cut or left out together.

    :param parts: of one document, in its order.
    :param score: 0 to 1; 1 for what a selector asked for.
    :param cut: it ends before its section's end, or begins after its beginning, for lack of room.
    """

    parts: tuple[Part, ...]
    score: float
    cut: bool = False

    @property
    def document(self) -> int:
        """Index of the document."""
        return self.parts[0].document

    @property
    def tokens(self) -> int:
        """Tokens of the text alone."""
        return sum(part.size.followed for part in self.parts[:-1]) + self.parts[-1].size.last


class Prices(Protocol):
    """What the parts of an answer cost, in tokens as they are sent."""

    def text(self, unit: Unit) -> int:
        """Return the cost of a unit's text."""

    def row(self, unit: Unit) -> int:
        """Return the cost of what says what the text is."""

    def entry(self, document: int) -> int:
        """Return what the first unit of a document costs beside that."""

    def trace(self, unit: Unit) -> int:
        """Return the cost of naming a unit that was left out."""


Splitter = Callable[[Unit], Sequence[Unit]]
"""Takes a unit of several parts; gives smaller ones that are the same together."""

Cutter = Callable[[Part, int, bool], "Sequence[Part] | None"]
"""Takes a part, tokens as they are sent, and whether a bare heading is better than nothing; gives a piece
that fits and what is left before and behind it, or ``None``."""


@dataclass(frozen=True, slots=True)
class Packed:
    """What fits.

    :param kept: best first.
    :param dropped: what does not fit, best first.
    :param rests: what is before and behind the pieces of units that were cut; the lines of a piece say
        already that there is more.
    :param owed: how many of the dropped units are better than the last kept one, or among the best.
    :param left: tokens that are left for the names of what was left out, and for all else.
    """

    kept: tuple[Unit, ...]
    dropped: tuple[Unit, ...] = ()
    rests: tuple[Unit, ...] = ()
    owed: int = 0
    left: int = 0


def pack(
    units: Sequence[Unit], room: int, prices: Prices, split: Splitter, cut: Cutter, names: int = 0
) -> Packed:
    """Choose what fits.

    :param units: best first.
    :param room: tokens.
    :param names: tokens to leave for other names; only the best unit goes before them.
    """
    packing = _Packing(room, names, prices, cut)
    waiting = deque(units)
    while waiting:
        unit = waiting.popleft()
        if not packing.take(unit, waiting):
            if len(unit.parts) > 1 and packing.open:
                waiting.extendleft(reversed(split(unit)))
                continue
            packing.take_piece(unit, waiting)
        packing.count()
    left = packing.left + packing.set_aside
    return Packed(tuple(packing.kept), tuple(packing.dropped), tuple(packing.rests), packing.owed, left)


class _Packing:
    """What is kept so far."""

    def __init__(self, room: int, names: int, prices: Prices, cut: Cutter) -> None:
        self.kept: list[Unit] = []
        self.dropped: list[Unit] = []
        self.rests: list[Unit] = []
        self.owed = 0
        self._room = self.left = room
        self.set_aside = 0  # traces of what was dropped before something was kept,
        self._unpaid = 0  # and since then
        self._names = names
        self._prices = prices
        self._cut = cut
        self._seen = 0
        self._failed = 0
        self._closed = False
        self._entered: set[int] = set()

    @property
    def open(self) -> bool:
        """Whether anything more can be kept at all."""
        return not self._closed and self.left > self._unpaid

    def count(self) -> None:
        """Count a unit that was kept or left out."""
        self._seen += 1
        if self._seen <= BEST:
            self.owed = len(self.dropped)

    def take(self, unit: Unit, waiting: Sequence[Unit]) -> bool:
        """Keep a unit whole if it fits."""
        if not self.open or unit.tokens >= self.left - self._unpaid:
            return False
        left = self.left - self._unpaid - self._reserved(waiting)
        cost = self._row_and_entry(unit)
        if cost + unit.tokens > left or cost + (text := self._prices.text(unit)) > left:
            return False
        self._keep(unit, cost + text)
        return True

    def take_piece(self, unit: Unit, waiting: Sequence[Unit]) -> None:
        """Keep a piece of a unit, if one fits that is worth its row; the rest is left out."""
        if not self.open:
            self._drop(unit)
            return
        # A piece and what is left of it are named by their lines.
        part = unit.parts[0]
        lines = Span(part.lines.start, max(part.lines.start, part.lines.stop - 1))
        like = Unit((part.shortened(lines, part.size),), unit.score, cut=True)
        cost, trace, names = self._row_and_entry(like), self._prices.trace(like), self._reserved(waiting)
        pieces = self._piece(part, cost, trace + names)
        if pieces is not None and len(pieces) > 2:  # text stands before it and behind it
            pieces = self._piece(part, cost, 2 * trace + names) or pieces
        if pieces is None and not self.kept:
            # The best unit comes before all names but that of its own rest.
            pieces = self._piece(part, cost, trace, at_any_cost=True)
        if pieces is None:
            self._drop(unit)
            return
        piece, *rest = (Unit((one,), unit.score, cut=len(pieces) > 1) for one in pieces)
        self._keep(piece, self._row_and_entry(piece) + self._prices.text(piece))
        if rest:
            self.rests += sorted(rest, key=lambda one: one.tokens, reverse=True)
            self._unpaid += sum(map(self._prices.trace, rest))

    def _piece(
        self, part: Part, cost: int, reserve: int, *, at_any_cost: bool = False
    ) -> Sequence[Part] | None:
        """Cut a part to the room there is.

        :param cost: tokens of what says what the piece is.
        :param reserve: tokens to leave for names.
        :param at_any_cost: a bare heading is better than nothing.
        """
        room = self.left - self._unpaid - reserve - cost
        if room <= (WORTH_A_ROW * cost if self.kept else 0) or self._failed >= MOST_FAILED_CUTS:
            # Something less good may fit whole, and has no right to.
            self._closed = bool(self.kept)
            return None
        pieces = self._cut(part, room, at_any_cost)
        self._failed += pieces is None
        return pieces

    def _reserved(self, waiting: Sequence[Unit]) -> int:
        """Return what it costs to name the best of those that wait, should they not fit.

        What selectors asked for is named as far as a third of the room reaches.
        """
        best = max(1 - len(self.dropped), BEST - self._seen - 1)
        cost = self._names
        for number, unit in enumerate(islice(waiting, max(best, MOST_ASKED_FOR))):
            if number >= best and (not unit.parts[0].chosen or 3 * cost > self._room):
                break
            cost += self._prices.trace(unit)
        return cost

    def _row_and_entry(self, unit: Unit) -> int:
        entry = 0 if unit.document in self._entered else self._prices.entry(unit.document)
        return entry + self._prices.row(unit)

    def _keep(self, unit: Unit, cost: int) -> None:
        self.kept.append(unit)
        self._entered.add(unit.document)
        self.left -= cost + self._unpaid
        self.set_aside += self._unpaid
        self._unpaid = 0
        self.owed = len(self.dropped)

    def _drop(self, unit: Unit) -> None:
        self.dropped.append(unit)
        if self.open:
            self._unpaid += self._prices.trace(unit)
