"""What a budget has room for, part by part, in the order of their worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

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

MOST_FOR_FURTHER = 12
"""Keywords and other suggestions have this part of the room at least; of what no text needs they have all."""


class Further(NamedTuple):
    """What an answer says besides its sections.

    :param keywords: best first.
    :param near: suggests the best hits that are not wanted.
    :param suggestions: others, best first; they come after all keywords.
    """

    keywords: Sequence[str]
    near: Sequence[Suggestion]
    suggestions: Sequence[Suggestion]


class Room:
    """What is left of a budget for the parts of an answer, which take from it in their order.

    :param budget: tokens; ``None`` for no limit.
    :param nothing: the answer without any of its parts.
    :param further: keywords and suggestions.
    """

    def __init__(
        self, budget: int | None, documents: DocumentSet, form: Form, nothing: Tailored, further: Further
    ) -> None:
        self._documents, self._form = documents, form
        self._prices = Pricing(documents, form)
        self._nothing = nothing
        self._further = further
        self._costs: list[int] = []  # of keywords and suggestions,
        self._paid_for = self._share = (
            0  # how many of them are paid for, and the tokens they have in any case
        )
        self._near = self._left = self._most = 0
        self._named_near: list[str] = []
        self._limited = budget is not None
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

    def pack(self, units: Sequence[Unit]) -> Packed:
        """Choose what fits, once a part of the room is set aside for what comes besides the sections."""
        if not self._limited:
            return Packed(tuple(units))
        keywords, near, others = self._further
        self._near = names = sum(map(self._prices.suggested, near))
        if MOST_FOR_NEAR * names > self._left:
            self._near, self._named_near = 0, [one.selector for one in near]
            names = sum(map(self._prices.named, self._named_near))
        count, form = self._documents.counter.count, self._form
        self._costs = [
            *(count(form.keyword(word)) for word in keywords),
            *map(self._prices.suggested, others),
        ]
        self._share = max(0, self._left) // MOST_FOR_FURTHER
        self._pay(self._share)
        documents = self._documents
        packed = pack(units, self._left, self._prices, lambda unit: split(documents, unit), self._cut, names)
        self._left = packed.left
        return packed

    def _pay(self, room: int) -> None:
        """Pay for keywords and then for suggestions, as many as a room in tokens holds."""
        costs = self._costs[self._paid_for :]
        number = sum(total <= room for total in accumulate(costs))
        self._left -= sum(costs[:number])
        self._paid_for += number

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

        Named are: one at least; what is better than something kept; the rests of sections that were cut; the
        best hits that cannot be suggested; and then as many as may be.
        """
        units = [*left_out(self._documents, packed.dropped), *packed.rests]
        owed = {part for unit in packed.dropped[: packed.owed] for part in unit.parts}
        names: dict[int, str] = {}
        if units and not packed.kept:
            # What to ask for is the least that an answer says.
            names[0] = self._least(units[0])
        first = [at for at, unit in enumerate(units) if not at or not owed.isdisjoint(unit.parts)]
        first += range(len(units) - len(packed.rests), len(units))
        for at in first:
            if at not in names:
                self._name(at, units[at], names)
        near = [name for name in self._named_near if self._paid(self._prices.named(name))]
        most = len(names) + MAX_HITS_NAMED
        for at, unit in enumerate(units):
            if at not in first and (
                len(names) >= (MAX_CHOSEN_NAMED if unit.parts[0].chosen else most)
                or not self._name(at, unit, names, spare=self._near)
            ):
                break
        best_first = sorted(names, key=lambda at: (-units[at].score, at))
        return (*(names[at] for at in best_first), *near)

    def _least(self, unit: Unit) -> str:
        """Name a unit, or its document if there is no room for more, at the cost of all else."""
        room = self._without_frame(self._nothing)
        names = selector(self._documents, unit), self._documents.name(unit.document)
        name = next((one for one in names if self._prices.named(one) <= room), names[0])
        self._left, self._paid_for = room - self._prices.named(name), 0
        self._pay(min(self._left, self._share))
        return name

    def _name(self, at: int, unit: Unit, names: dict[int, str], *, spare: int = 0) -> bool:
        """Name a unit if there is room."""
        name = selector(self._documents, unit)
        paid = self._paid(self._prices.named(name), spare=spare)
        if paid:
            names[at] = name
        return paid

    def further(self, *, complete: bool) -> Further:
        """Return the keywords and suggestions there is room for.

        :param complete: nothing was left out, so that all that is left of the budget is theirs.
        """
        if not self._limited:
            return self._further
        keywords, near, others = self._further
        near = [one for one in near if not self._named_near and self._paid(self._prices.suggested(one))]
        if complete:
            self._pay(self._left)
        return Further(keywords[: self._paid_for], near, others[: max(0, self._paid_for - len(keywords))])

    def _paid(self, cost: int, *, spare: int = 0) -> bool:
        """Take tokens if there are as many.

        :param spare: tokens that have to be left.
        """
        if cost > self._left - spare:
            return False
        self._left -= cost
        return True
