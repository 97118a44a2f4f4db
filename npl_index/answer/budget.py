"""Packing passages into a token budget, best first.

A unit is what one row of the answer describes: a hit's own text, or a section that a selector asked for with
its subsections. Each is kept whole if it fits, else split into its subsections, else cut. Once a unit has no
room, no lesser unit is kept in its place.

The selectors of the other units follow the passages; their room is reserved first. The caller gives the costs
of texts, rows and selectors; costs add up.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from npl_index.markdown.sections import Span

WORTH_A_ROW = 2
"""A further piece is kept if it is this many times as long as its row."""

MOST_FAILED_CUTS = 5
"""Failed cuts before the first unit is kept: each try takes as long as the rest of the packing."""


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
    """A stretch of one section's own text. Its lines are looked up and counted when they are first needed.

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
    """Text that is kept, cut or left out as one.

    :param parts: of one document, in its order.
    :param score: 0 to 1; 1 for what a selector asked for.
    :param cut: it ends before its section's end, or begins after its beginning, for lack of room.
    :param ranges: its parts are several sections that follow one another; it is only named.
    """

    parts: tuple[Part, ...]
    score: float
    cut: bool = False
    ranges: bool = False

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
        """Return the cost of a unit's row."""

    def entry(self, document: int) -> int:
        """Return the additional cost of a document's first unit."""

    def trace(self, unit: Unit) -> int:
        """Return the cost of naming a unit."""


Splitter = Callable[[Unit], Sequence[Unit]]
"""Takes a unit of several parts; gives the smaller units that it consists of."""

Cutter = Callable[[Part, int, bool], "Sequence[Part] | None"]
"""Takes a part, tokens as they are sent, and whether a bare heading is better than nothing; gives a piece
that fits and the remaining parts before and behind it, or ``None``."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The units that fit, and the others.

    :param kept: best first.
    :param dropped: units without room, best first.
    :param rests: the remaining parts of units that were cut.
    :param owed: how many of the dropped units are better than a kept one.
    :param left: remaining tokens, for selectors and further fields.
    """

    kept: tuple[Unit, ...]
    dropped: tuple[Unit, ...] = ()
    rests: tuple[Unit, ...] = ()
    owed: int = 0
    left: int = 0


def pack(
    units: Sequence[Unit],
    room: int,
    prices: Prices,
    split: Splitter,
    cut: Cutter,
    *,
    names: tuple[int, int] = (0, 0),
    most: int | None = None,
) -> Packed:
    """Choose what fits.

    :param units: best first.
    :param room: tokens.
    :param names: tokens to reserve for selectors, the least and the most; a piece of the best unit may take
        the difference, and in the last resort all, unless a selector asked for it.
    :param most: tokens of one text; a longer one is cut.
    """
    packing = _Packing(room, names, most, prices, cut)
    waiting = deque(units)
    while waiting:
        unit = waiting.popleft()
        if packing.open and not packing.take(unit):
            if len(unit.parts) > 1:
                waiting.extendleft(reversed(split(unit)))
                continue
            packing.take_piece(unit)
        elif not packing.open:
            packing.dropped.append(unit)
    left = packing.left + packing.traces
    return Packed(tuple(packing.kept), tuple(packing.dropped), tuple(packing.rests), packing.owed, left)


class _Packing:
    """The units kept so far.

    :ivar left: remaining tokens, without those for the selectors of remaining parts and of dropped units.
    """

    def __init__(
        self, room: int, names: tuple[int, int], most: int | None, prices: Prices, cut: Cutter
    ) -> None:
        self.kept: list[Unit] = []
        self.dropped: list[Unit] = []
        self.rests: list[Unit] = []
        self.owed = self.traces = self._failed = 0
        self.left, self._most = room, room if most is None else most
        self._least_names, self._names = names
        self._prices, self._cut = prices, cut
        self._entered: set[int] = set()
        self.open = room > 0

    def take(self, unit: Unit) -> bool:
        """Keep a unit whole if it fits."""
        room = self.left - self._names
        if unit.tokens >= room or (unit.tokens > self._most and not unit.parts[0].chosen):
            return False
        cost = self._row_and_entry(unit)
        if cost + unit.tokens > room or cost + (text := self._prices.text(unit)) > room:
            return False
        self._keep(unit, cost + text)
        return True

    def take_piece(self, unit: Unit) -> None:
        """Keep a piece of a unit, if one fits that is worth its row."""
        part = unit.parts[0]
        # A piece and its remaining parts are named by their lines.
        lines = Span(part.lines.start, max(part.lines.start, part.lines.stop - 1))
        like = Unit((part.shortened(lines, part.size),), unit.score, cut=True)
        cost, trace = self._row_and_entry(like), self._prices.trace(like)
        room = self.left - cost - trace
        pieces = None
        if not self.kept or room - self._names > WORTH_A_ROW * cost:
            pieces = self._piece(part, room - self._names)
            if pieces is not None and len(pieces) > 2:  # text stands before it and behind it
                pieces = self._piece(part, room - self._names - trace) or pieces
        if pieces is None and not self.kept and self._failed < MOST_FAILED_CUTS:
            pieces = self._piece(part, room - self._least_names, at_any_cost=True)
            if pieces is None and not part.chosen:
                pieces = self._piece(part, room, at_any_cost=True)
            self._failed += pieces is None
        if pieces is None:
            self.dropped.append(unit)
            self._set_aside(unit)
            self.open = not self.kept and self.left > 0
            return
        piece, *rest = (Unit((one,), unit.score, cut=len(pieces) > 1) for one in pieces)
        self._keep(piece, self._row_and_entry(piece) + self._prices.text(piece))
        self.rests += sorted(rest, key=lambda one: one.tokens, reverse=True)
        for one in rest:
            self._set_aside(one)

    def _piece(self, part: Part, room: int, *, at_any_cost: bool = False) -> Sequence[Part] | None:
        room = room if part.chosen else min(room, self._most)
        return self._cut(part, room, at_any_cost) if room > 0 else None

    def _set_aside(self, unit: Unit) -> None:
        trace = self._prices.trace(unit)
        self.left -= trace
        self.traces += trace

    def _row_and_entry(self, unit: Unit) -> int:
        entry = 0 if unit.document in self._entered else self._prices.entry(unit.document)
        return entry + self._prices.row(unit)

    def _keep(self, unit: Unit, cost: int) -> None:
        self.kept.append(unit)
        self._entered.add(unit.document)
        self.left -= cost
        self.owed = len(self.dropped)
