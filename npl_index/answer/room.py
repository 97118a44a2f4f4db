"""What a budget has room for, part by part, in the order of their worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from npl_index.answer.assembling import left_out, selector, split
from npl_index.answer.budget import Packed, Part, Unit, pack
from npl_index.answer.cutting import cut, rest_of
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Pricing
from npl_index.answer.values import Suggestion, Tailored
from npl_index.markdown.sections import Span

MAX_CHOSEN_NAMED = 64
MAX_HITS_NAMED = 6
"""Selectors of parts that did not fit, beside those that have to be named; each costs some ten tokens."""

MOST_TOKENS = 10**9
"""No answer has as many; a larger budget is the same, and may have more digits than a float takes."""

MOST_FOR_NEAR = 4
"""The best hits that are not wanted are suggested if that takes at most this part of the room, else named."""

_T = TypeVar("_T")


class Room:
    """What is left of a budget for the parts of an answer, which take from it in their order.

    :param budget: tokens; ``None`` for no limit.
    :param nothing: the answer without any of its parts.
    """

    def __init__(self, budget: int | None, documents: DocumentSet, form: Form, nothing: Tailored) -> None:
        self._documents, self._form = documents, form
        self._prices = Pricing(documents, form)
        self._nothing = nothing
        self._near: list[str] = []
        self._left: int | None = None
        self._most = self._aside = 0
        if budget is not None:
            budget = min(budget, MOST_TOKENS)
            counter = documents.counter
            self._most = budget * budget // max(1, counter.upper_bound(budget))
            while counter.upper_bound(self._most) > budget:
                self._most -= 1
            # The longest number there may be, and some content.
            self._left = self._without_frame(replace(nothing, content="…", total_tokens=budget))

    def _without_frame(self, nothing: Tailored) -> int:
        return self._most - self._documents.counter.count(self._form.frame(nothing, self._documents))

    def pack(self, units: Sequence[Unit], near: Sequence[Suggestion]) -> Packed:
        """Choose what fits.

        :param near: the best hits that are not wanted: room is kept to suggest them, else to name them.
        """
        if self._left is None:
            return Packed(tuple(units))
        names = sum(map(self._prices.suggested, near))
        if MOST_FOR_NEAR * names > self._left:
            self._near = [one.selector for one in near]
            names = sum(map(self._price, self._near))
        documents = self._documents
        packed = pack(units, self._left, self._prices, lambda unit: split(documents, unit), self._cut, names)
        self._left = packed.left
        beside = self._most - packed.left - sum(unit.tokens for unit in packed.kept)
        self._aside = self._form.beside - beside
        return packed

    def _cut(self, part: Part, room: int, at_any_cost: bool) -> Sequence[Part] | None:
        """Cut a part to a room in tokens as they are sent; the cutter knows only those of the text."""
        counter = self._documents.counter
        larger = self._form.larger
        for _ in range(3):
            pieces = cut(self._documents, part, counter.upper_bound(int(room / larger)))
            if pieces is None:
                break
            cost = self._form.text(self._documents, pieces[0])
            if cost <= room:
                return pieces if len(pieces) > 1 else (part,)
            larger *= 1.02 * cost / room
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

    def named(self, packed: Packed) -> tuple[str, ...]:
        """Return the selectors of what was left out, best first.

        Named are: one at least; all that is better than something kept, for which there is room; the best
        hits that cannot be suggested; what is left of sections that were cut; and then as many as may be.
        """
        units = [*left_out(self._documents, packed.dropped), *packed.rests]
        owed = {part for unit in packed.dropped[: packed.owed] for part in unit.parts}
        names: dict[int, str] = {}
        if units and self._left is not None and not packed.kept:
            # What to ask for is the least that an answer says.
            names[0] = selector(self._documents, units[0])
            self._left = self._without_frame(self._nothing) - self._price(names[0])
        for at, unit in enumerate(units):
            if at not in names and (not at or not owed.isdisjoint(unit.parts)):
                self._name(at, unit, names, aside=False)
        near = [name for name in self._near if self._paid(self._price(name), aside=False)]
        for at, unit in enumerate(packed.rests, len(units) - len(packed.rests)):
            if at not in names:
                self._name(at, unit, names, aside=False)
        most = len(names) + MAX_HITS_NAMED
        for at, unit in enumerate(units):
            chosen = unit.parts[0].chosen
            if at in names:
                continue
            if len(names) >= (MAX_CHOSEN_NAMED if chosen else most):
                break
            if not self._name(at, unit, names, aside=not chosen):
                break
        best_first = sorted(names, key=lambda at: (-units[at].score, at))
        return (*(names[at] for at in best_first), *near)

    def _name(self, at: int, unit: Unit, names: dict[int, str], *, aside: bool) -> bool:
        """Name a unit if there is room."""
        name = selector(self._documents, unit)
        paid = self._paid(self._price(name), aside=aside)
        if paid:
            names[at] = name
        return paid

    def _price(self, name: str) -> int:
        return self._prices.named(name)

    def suggestions(self, ideas: Sequence[Suggestion], best: int) -> tuple[Suggestion, ...]:
        """Return the suggestions there is room for.

        :param best: how many of them come in any case, if there is room.
        """
        return self._first(ideas, self._prices.suggested, best)

    def keywords(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the keywords there is room for."""
        return self._first(words, self._prices.named)

    def _first(self, entries: Sequence[_T], price: Callable[[_T], int], best: int = 0) -> tuple[_T, ...]:
        if self._left is None:
            return tuple(entries)
        kept = []
        for number, entry in enumerate(entries):
            if not self._paid(price(entry), aside=number >= best):
                break
            kept.append(entry)
        return tuple(kept)

    def _paid(self, cost: int, *, aside: bool) -> bool:
        """Take tokens if there are as many."""
        if self._left is None:
            return True
        if cost > self._left or (aside and cost > self._aside):
            return False
        self._left -= cost
        self._aside -= cost if aside else 0
        return True
