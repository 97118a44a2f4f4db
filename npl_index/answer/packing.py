"""Packing an answer into its token budget.

The tokens are shared in this order: remarks, passages, pointers, keywords and suggestions. What follows the
passages has a part that is reserved first.

A unit is what one row of the answer describes: a hit's own text, or a section that a selector asked for with
its subsections. Each is kept whole if it fits, else split into its subsections, else cut. Once a unit has no
room, no lesser unit is kept in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from npl_index.answer.assembling import joined, left_out, selector, split
from npl_index.answer.cutting import cut, rest_of
from npl_index.answer.document_set import DocumentSet, Part, Unit
from npl_index.answer.forms import Form, Prices
from npl_index.answer.pointers import matching_line, pointer
from npl_index.answer.suggestions import Place
from npl_index.answer.values import Pointer, Suggestion, Tailored
from npl_index.markdown.sections import Span

BEST = 3
"""The best hits are in every answer, at least by name."""

POINTERS = 4
MORE_POINTERS = 8
MAX_CHOSEN_NAMED = 64
"""Most pointers of an answer, of an answer without enough evidence, and to remaining parts of selected
sections."""

LINES = 2
"""Pointers that show their matching line; where no section speaks for an answer, a line would seem to."""

MOST_TOKENS = 10**9
"""No answer has as many; a larger budget is the same, and may have more digits than a float takes."""

MOST_FOR_POINTERS = 4
"""The remaining tokens divided by this are the bound for pointers, except for those to the best hits."""

MOST_FOR_FURTHER = 12
"""The remaining tokens divided by this are the bound for keywords and suggestions of a truncated answer."""

MOST_FOR_REMARKS = 3
"""The budget divided by this is the bound for remarks: the sections keep most of it."""

MOST_FILES = 3
"""Files that remarks name; the section index names all."""

WORTH_A_ROW = 2
"""A further piece is kept if it is this many times as long as its row."""

MOST_FAILED_CUTS = 5
"""Failed cuts before the first unit is kept: each try takes as long as the rest of the packing."""


Further = Sequence[str | Suggestion]
"""What an answer says besides its sections: keywords, best first, then suggestions."""


class Wanted(NamedTuple):
    """What an answer is packed from.

    :param units: to be returned, best first.
    :param most: most tokens of one unit, ``None`` for no limit.
    :param others: units that are only named, best first.
    :param best: the sections of the best hits.
    :param pointers: how many sections are named in addition to the obligatory ones.
    """

    units: Sequence[Unit]
    most: int | None
    others: Sequence[Unit]
    best: frozenset[Place]
    pointers: int

    @property
    def chosen(self) -> bool:
        """Whether selectors ask for the units."""
        return bool(self.units) and self.units[0].parts[0].chosen

    def holds_best(self, unit: Unit) -> bool:
        """Return whether a unit is among the best hits."""
        return not self.best.isdisjoint(unit.places)


class Packed(NamedTuple):
    """What fits, and what does not.

    :param kept: units of the answer, best first.
    :param dropped: units without room, best first.
    :param rests: the remaining parts of units that were cut.
    :param pointers: to sections that the answer does not hold, best first.
    :param further: keywords and suggestions.
    """

    kept: Sequence[Unit]
    dropped: Sequence[Unit]
    rests: Sequence[Unit]
    pointers: tuple[Pointer, ...]
    further: Further

    @property
    def truncated(self) -> bool:
        """Whether something that is wanted was left out or cut."""
        return bool(self.dropped or self.rests)


def remarks(
    failures: Sequence[str], unreadable: Sequence[str], token_budget: int | None, prices: Prices
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return why selectors select nothing, and which files were left out: the first of each, and a count.

    :param failures: why selectors select nothing.
    :param unreadable: files that were left out, and why.
    :param token_budget: of the whole answer; ``None`` for no limit.
    """
    left = MOST_TOKENS if token_budget is None else token_budget // MOST_FOR_REMARKS
    said: list[tuple[str, ...]] = []
    for texts, most, what, state in (
        (failures, len(failures), "selector", "found nothing"),
        (unreadable, MOST_FILES, "file", "left out"),
    ):
        spent = list(accumulate(map(prices.named, texts[:most]), initial=0))
        number = sum(total <= left for total in spent) - 1
        left -= spent[number]
        others, more = len(texts) - number, " more" if number else ""
        count = (f"{others:,}{more} {what}{'' if others == 1 else 's'} {state}",) if others else ()
        said.append((*texts[:number], *count))
    return said[0], said[1]


def pack(
    wanted: Wanted,
    further: Further,
    documents: DocumentSet,
    form: Form,
    nothing: Tailored,
    token_budget: int | None,
    *,
    held: tuple[str, ...],
    brief: bool,
) -> Packed:
    """Choose what an answer holds.

    :param further: keywords and suggestions.
    :param nothing: the answer without any of its parts.
    :param token_budget: of the whole answer; ``None`` for no limit.
    :param held: as in :class:`~npl_index.answer.values.Guide`.
    :param brief: suggestions keep to their part, whatever remains.
    """
    packing = _Packing(wanted, further, documents, form, nothing, token_budget, held)
    packing.take_all()
    pointers = packing.pointers()
    if not pointers and (packing.dropped or packing.rests):
        # An answer that leaves something out and does not name it is a dead end.
        packing.kept, packing.dropped, packing.rests, packing.owed = [], list(wanted.units), [], 0
        pointers = packing.pointers()
    packed = Packed(packing.kept, packing.dropped, packing.rests, pointers, further)
    if token_budget is None:
        return packed
    return packed._replace(further=packing.paid_further(complete=not (packed.truncated or brief)))


class _Packing:
    """An answer while it is packed; its parts take from the remaining tokens in turn.

    :ivar left: remaining tokens, without those for the selectors of remaining parts and of dropped units.
    :ivar owed: how many of the dropped units are better than a kept one.
    """

    def __init__(
        self,
        wanted: Wanted,
        further: Further,
        documents: DocumentSet,
        form: Form,
        nothing: Tailored,
        token_budget: int | None,
        held: tuple[str, ...],
    ) -> None:
        self._wanted, self._further = wanted, further
        self._documents, self._form, self._nothing, self._held = documents, form, nothing, held
        self._prices = Prices(documents, form, free=token_budget is None)
        self.kept: list[Unit] = []
        self.dropped: list[Unit] = []
        self.rests: list[Unit] = []
        self.owed = self._traces = self._failed = self._paid_for = 0
        self._entered: set[int] = set()
        self._names_all = True
        self._limit, self._left = 0, MOST_TOKENS
        self._least_names = self._names = 0
        if token_budget is not None:
            token_budget = min(token_budget, MOST_TOKENS)
            bound = documents.counter.upper_bound
            self._limit = token_budget * token_budget // max(1, bound(token_budget))
            while bound(self._limit) > token_budget:
                self._limit -= 1
            # The longest number there may be, and some content.
            self._left = self._without_frame(replace(nothing, content="…", total_tokens=token_budget))
            self._pay_further(max(0, self._left) // MOST_FOR_FURTHER)
            self._least_names, self._names = self._reserved()
        self._most = self._left if wanted.most is None else wanted.most

    def _without_frame(self, nothing: Tailored) -> int:
        frame = self._form.frame(nothing, self._documents, self._held)
        return self._limit - self._documents.counter.count(frame)

    def _reserved(self) -> tuple[int, int]:
        """Return the tokens to reserve for pointers: for those to the best hits, and for all.

        A piece of the best unit may take the difference, and in the last resort all, unless a selector asked
        for it.
        """
        wanted, trace = self._wanted, self._prices.trace
        named = [*wanted.units[1:MAX_CHOSEN_NAMED], *wanted.others]
        best = self._widest() if wanted.chosen else list(filter(wanted.holds_best, named))
        costs = accumulate(map(trace, named[: wanted.pointers]), initial=0)
        most = max(0, self._left) // MOST_FOR_POINTERS
        least = sum(map(trace, best))
        return least, max(least, *(total for total in costs if total <= most))

    def _widest(self) -> list[Unit]:
        """Return ranges of what selectors ask for, as long as those may be that name what has no room."""
        first = self._wanted.units[0]
        if len(first.parts) < 2:
            return []
        steps = self._documents.collection.documents[first.document].steps
        longest = max(first.parts, key=lambda part: len(steps[part.section]))
        return [Unit((longest, *first.parts), 1.0, ranges=True)]

    def take_all(self) -> None:
        """Keep the passages that fit."""
        is_open = self._left > 0
        waiting = deque(self._wanted.units)
        while waiting:
            unit = waiting.popleft()
            if not is_open:
                self.dropped.append(unit)
            elif not self._take(unit):
                if len(unit.parts) > 1:
                    waiting.extendleft(reversed(split(self._documents, unit)))
                elif not self._take_piece(unit):
                    is_open = not self.kept and self._left > 0
        self._left += self._traces

    def _take(self, unit: Unit) -> bool:
        """Keep a unit whole if it fits."""
        room = self._left - self._names
        if unit.tokens >= room or (unit.tokens > self._most and not unit.parts[0].chosen):
            return False
        cost = self._row_and_entry(unit)
        if cost + unit.tokens > room or cost + (text := self._prices.text(unit)) > room:
            return False
        self._keep(unit, cost + text)
        return True

    def _take_piece(self, unit: Unit) -> bool:
        """Keep a piece of a unit, if one fits that is worth its row."""
        part = unit.parts[0]
        # A piece and its remaining parts are named by their lines.
        lines = Span(part.lines.start, max(part.lines.start, part.lines.stop - 1))
        like = Unit((part.shortened(lines, part.size),), unit.score, cut=True)
        cost, trace = self._row_and_entry(like), self._prices.trace(like)
        room = self._left - cost - trace
        pieces = None
        if not self.kept or room - self._names > WORTH_A_ROW * cost:
            pieces = self._cut(part, room - self._names)
            if pieces is not None and len(pieces) > 2:  # text stands before it and behind it
                pieces = self._cut(part, room - self._names - trace) or pieces
        if pieces is None and not self.kept and self._failed < MOST_FAILED_CUTS:
            pieces = self._cut(part, room - self._least_names, at_any_cost=True)
            if pieces is None and not part.chosen:
                pieces = self._cut(part, room, at_any_cost=True)
            self._failed += pieces is None
        if pieces is None:
            self.dropped.append(unit)
            self._set_aside(unit)
            return False
        piece, *rest = (Unit((one,), unit.score, cut=len(pieces) > 1) for one in pieces)
        self._keep(piece, self._row_and_entry(piece) + self._prices.text(piece))
        self.rests += sorted(rest, key=lambda one: one.tokens, reverse=True)
        for one in rest:
            self._set_aside(one)
        return True

    def _cut(self, part: Part, limit: int, *, at_any_cost: bool = False) -> Sequence[Part] | None:
        """Return a piece of a part that fits, and the remaining parts before and behind it.

        :param limit: tokens as they are sent.
        :param at_any_cost: a beginning, or a bare heading, is better than nothing.
        """
        limit = limit if part.chosen else min(limit, self._most)
        if limit <= 0:
            return None

        def price(piece: Part) -> int:
            return self._form.text(self._documents, piece)

        pieces = cut(self._documents, part, limit, price, or_beginning=at_any_cost)
        if pieces is not None:
            return pieces if len(pieces) > 1 else (part,)
        heading = self._documents.tree(part.document).sections[part.section].heading_lines
        if not at_any_cost or not part.lines.start <= heading.start < heading.stop < part.lines.stop:
            return None
        # Where nothing else fits, the heading says where the text is.
        lines = Span(part.lines.start, heading.stop)
        first = self._documents.part(part.place, chosen=part.chosen, lines=lines)
        rest = tuple(rest_of(self._documents, part, first))
        return (first, *rest) if rest and price(first) <= limit else None

    def _set_aside(self, unit: Unit) -> None:
        trace = self._prices.trace(unit)
        self._left -= trace
        self._traces += trace

    def _row_and_entry(self, unit: Unit) -> int:
        entry = 0 if unit.document in self._entered else self._prices.entry(unit.document)
        return entry + self._prices.row(unit)

    def _keep(self, unit: Unit, cost: int) -> None:
        self.kept.append(unit)
        self._entered.add(unit.document)
        self._left -= cost
        self.owed = len(self.dropped)

    def pointers(self) -> tuple[Pointer, ...]:
        """Name sections that the answer does not hold, best first.

        These are at least one if something does not fit; units better than a kept one; the remaining parts of
        cut units; the best hits; then others as far as there is room. The first ones show their matching
        lines, unless there is no text.
        """
        wanted = self._wanted
        dropped = left_out(self._documents, self.dropped)
        owed = {part for unit in (*self.dropped[: self.owed], *self.rests) for part in unit.parts}
        if wanted.chosen:
            dropped = self._joined(dropped)
        units = [*dropped, *self.rests, *wanted.others]
        first = [unit for unit in units if not owed.isdisjoint(unit.parts) or wanted.holds_best(unit)]
        then = [unit for unit in units if unit not in first]
        named: list[tuple[Unit, Pointer]] = []
        if not self.kept and (units := [*first, *then]):
            # What to ask for is the least that an answer says.
            named.append((units[0], self._least(units[0])))
        for number, unit in enumerate((*first, *then)):
            most = MAX_CHOSEN_NAMED if wanted.chosen else wanted.pointers
            if number >= len(first) and len(named) >= most:
                break
            one = pointer(self._documents, unit)
            if named and unit is named[0][0]:
                continue
            if self._pay(self._prices.pointer(one)):
                named.append((unit, one))
                continue
            self._names_all = False
            if number >= len(first):
                break
        named.sort(key=lambda one: -one[0].score)
        for at, (unit, one) in enumerate(named[: LINES if wanted.units else 0]):
            named[at] = unit, self._with_line(unit, one)
        return tuple(one for _, one in named)

    def _joined(self, units: list[Unit]) -> list[Unit]:
        """Return units to name: as many alone as there is room for, the others joined."""
        room = self._left - sum(map(self._prices.trace, self.rests))
        for alone in (min(len(units), MAX_CHOSEN_NAMED), *range(POINTERS, -1, -1)):
            named = [*units[:alone], *joined(self._documents, units[alone:])]
            if sum(map(self._prices.trace, named)) <= room:
                break
        return named

    def _least(self, unit: Unit) -> Pointer:
        """Name a unit, or its document if there is no room for more."""
        names = selector(self._documents, unit), self._documents.name(unit.document)
        every = [Pointer(name, unit.tokens) for name in names]
        one = next((one for one in every if self._prices.pointer(one) <= self._left), None)
        if one is None:
            self._left, self._paid_for = self._without_frame(self._nothing), 0
            one = next((one for one in every if self._prices.pointer(one) <= self._left), every[0])
        self._left -= self._prices.pointer(one)
        return one

    def _with_line(self, unit: Unit, one: Pointer) -> Pointer:
        if unit.ranges or not self._form.shows_lines:
            return one
        line = matching_line(self._documents, unit.parts[0])
        full = one if line is None else one._replace(line=line[1])
        return full if self._pay(self._prices.pointer(full) - self._prices.pointer(one)) else one

    def paid_further(self, *, complete: bool) -> Further:
        """Return the keywords and suggestions there is room for.

        :param complete: nothing was left out, so the rest of the budget is theirs.
        """
        if complete and self._names_all:
            self._pay_further(self._left)
        return self._further[: self._paid_for]

    def _pay_further(self, most: int) -> None:
        """Pay for keywords and then for suggestions, as far as some tokens go."""
        for one in self._further[self._paid_for :]:
            cost = self._prices.further(one)
            if cost > most:
                break
            most -= cost
            self._left -= cost
            self._paid_for += 1

    def _pay(self, cost: int) -> bool:
        """Take tokens, if enough remain."""
        if cost > self._left:
            return False
        self._left -= cost
        return True
