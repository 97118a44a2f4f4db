"""How a budget is shared: passages, pointers, then keywords and suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from npl_index.answer.assembling import joined, left_out, selector, split
from npl_index.answer.budget import Packed, Part, Unit, pack
from npl_index.answer.cutting import cut, rest_of
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Pricing
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
"""The room divided by this is the bound for pointers, except for those to the best hits."""

MOST_FOR_FURTHER = 12
"""The room divided by this is the bound for keywords and suggestions of a truncated answer."""


class Further(NamedTuple):
    """What an answer says besides its sections.

    :param keywords: best first.
    :param suggestions: best first; they come after all keywords.
    """

    keywords: Sequence[str]
    suggestions: Sequence[Suggestion]


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
        return not self.best.isdisjoint((part.document, part.section) for part in unit.parts)


class Room:
    """The tokens of a budget. The parts of an answer take from them in turn.

    :param budget: tokens; ``None`` for no limit.
    :param nothing: the answer without any of its parts.
    :param further: keywords and suggestions.
    :param held: as in :class:`~npl_index.answer.values.Guide`.
    """

    def __init__(
        self,
        budget: int | None,
        documents: DocumentSet,
        form: Form,
        nothing: Tailored,
        further: Further,
        held: tuple[str, ...] = (),
    ) -> None:
        self._documents, self._form, self._nothing, self._held = documents, form, nothing, held
        self._further = further
        self._paid_for = 0  # keywords and suggestions
        self._names_all = True
        self._limit, self._left = 0, MOST_TOKENS
        self.limited = budget is not None
        self._prices = Pricing(documents, form, free=not self.limited)
        if budget is not None:
            budget = min(budget, MOST_TOKENS)
            counter = documents.counter
            self._limit = budget * budget // max(1, counter.upper_bound(budget))
            while counter.upper_bound(self._limit) > budget:
                self._limit -= 1
            # The longest number there may be, and some content.
            self._left = self._without_frame(replace(nothing, content="…", total_tokens=budget))

    def _without_frame(self, nothing: Tailored) -> int:
        return self._limit - self._documents.counter.count(
            self._form.frame(nothing, self._documents, self._held)
        )

    def pack(self, wanted: Wanted) -> Packed:
        """Choose the passages that fit, and reserve room for pointers, keywords and suggestions."""
        documents = self._documents
        if self.limited:
            self._pay_further(max(0, self._left) // MOST_FOR_FURTHER)
        packed = pack(
            wanted.units,
            self._left,
            self._prices,
            lambda unit: split(documents, unit),
            self._cut,
            names=self._reserve(wanted) if self.limited else (0, 0),
            most=wanted.most,
        )
        self._left = packed.left
        return packed

    def _reserve(self, wanted: Wanted) -> tuple[int, int]:
        """Return the tokens to reserve for pointers: for those to the best hits, and for all."""
        named = [*wanted.units[1:MAX_CHOSEN_NAMED], *wanted.others]
        best = self._widest(wanted) if wanted.chosen else list(filter(wanted.holds_best, named))
        costs = accumulate(map(self._prices.trace, named[: wanted.pointers]), initial=0)
        room = max(0, self._left) // MOST_FOR_POINTERS
        least = sum(map(self._prices.trace, best))
        return least, max(least, *(total for total in costs if total <= room))

    def _widest(self, wanted: Wanted) -> list[Unit]:
        """Return ranges of what selectors ask for, as long as those may be that name what has no room."""
        first = wanted.units[0]
        if len(first.parts) < 2:
            return []
        steps = self._documents.collection.documents[first.document].steps
        longest = max(first.parts, key=lambda part: len(steps[part.section]))
        return [Unit((longest, *first.parts), 1.0, ranges=True)]

    def _cut(self, part: Part, room: int, at_any_cost: bool) -> Sequence[Part] | None:
        """Cut a part to a room in tokens as they are sent."""

        def price(piece: Part) -> int:
            return self._form.text(self._documents, piece)

        pieces = cut(self._documents, part, room, price, or_beginning=at_any_cost)
        if pieces is not None:
            return pieces if len(pieces) > 1 else (part,)
        return self._heading(part, room) if at_any_cost else None

    def _heading(self, part: Part, room: int) -> Sequence[Part] | None:
        """Cut a part behind its heading, where nothing else fits: it says where the text is."""
        documents = self._documents
        place = part.document, part.section
        heading = documents.tree(part.document).sections[part.section].heading_lines
        if not part.lines.start <= heading.start < heading.stop < part.lines.stop:
            return None
        first = documents.part(place, chosen=part.chosen, lines=Span(part.lines.start, heading.stop))
        rest = tuple(rest_of(documents, part, first))
        return (first, *rest) if rest and self._form.text(documents, first) <= room else None

    def pointers(self, wanted: Wanted, packed: Packed) -> tuple[Pointer, ...]:
        """Name sections that the answer does not hold, best first.

        These are at least one if something does not fit; units better than a kept one; the remaining parts of
        cut units; the best hits; then others as far as there is room. The first ones show their matching
        lines, unless there is no text.
        """
        dropped = left_out(self._documents, packed.dropped)
        owed = {part for unit in packed.dropped[: packed.owed] for part in unit.parts}
        owed |= {part for unit in packed.rests for part in unit.parts}
        if wanted.chosen:
            dropped = self._joined(dropped, packed.rests)
        units = [*dropped, *packed.rests, *wanted.others]
        first = [unit for unit in units if not owed.isdisjoint(unit.parts) or wanted.holds_best(unit)]
        then = [unit for unit in units if unit not in first]
        named: list[tuple[Unit, Pointer]] = []
        if not packed.kept and (units := [*first, *then]):
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

    def _joined(self, units: list[Unit], rests: Sequence[Unit]) -> list[Unit]:
        """Return units to name: as many alone as there is room for, the others joined."""
        room = self._left - sum(map(self._prices.trace, rests))
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
        if (
            unit.ranges
            or not self._form.shows_lines
            or (line := matching_line(self._documents, unit.parts[0])) is None
        ):
            return one
        full = one._replace(line=line[1])
        return full if self._pay(self._prices.pointer(full) - self._prices.pointer(one)) else one

    def further(self, *, complete: bool) -> Further:
        """Return the keywords and suggestions there is room for.

        :param complete: nothing was left out, so the rest of the budget is theirs.
        """
        if not self.limited:
            return self._further
        if complete and self._names_all:
            self._pay_further(self._left)
        keywords = self._further.keywords[: self._paid_for]
        return Further(keywords, self._further.suggestions[: self._paid_for - len(keywords)])

    def _pay_further(self, room: int) -> None:
        """Pay for keywords and then for suggestions, as far as some tokens go."""
        further: Sequence[str | Suggestion] = (*self._further.keywords, *self._further.suggestions)
        for one in further[self._paid_for :]:
            cost = self._prices.further(one)
            if cost > room:
                break
            room -= cost
            self._left -= cost
            self._paid_for += 1

    def _pay(self, cost: int) -> bool:
        """Take tokens, if enough remain."""
        if cost > self._left:
            return False
        self._left -= cost
        return True
