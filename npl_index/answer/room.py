"""What a budget has room for, part by part, in the order of their worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from npl_index.answer.assembling import left_out, selector, split
from npl_index.answer.budget import Packed, Part, Unit, pack
from npl_index.answer.cutting import cut
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Pricing
from npl_index.answer.values import Suggestion, Tailored
from npl_index.markdown.sections import Span

MAX_CHOSEN_NAMED = 64
MAX_HITS_NAMED = 6
"""Selectors of parts that did not fit, beside those that have to be named; each costs some ten tokens."""

ASIDE = 20
"""What may be wanted next takes at most this part of the budget."""

_T = TypeVar("_T")


class Room:
    """What is left of a budget for the parts of an answer, which take from it in their order.

    :param budget: tokens; ``None`` for no limit.
    :param nothing: the answer without any of its parts.
    """

    def __init__(self, budget: int | None, documents: DocumentSet, form: Form, nothing: Tailored) -> None:
        self._documents, self._form = documents, form
        self._prices = Pricing(documents, form)
        self._left: int | None = None
        self._aside = 0
        if budget is not None:
            counter = documents.counter
            most = budget * budget // max(1, counter.upper_bound(budget))
            while counter.upper_bound(most) > budget:
                most -= 1
            numbers = replace(nothing, total_tokens=budget)
            self._left = most - counter.count(form.write(numbers, documents, ()))
            self._aside = max(form.aside, budget // ASIDE)

    def pack(self, units: Sequence[Unit]) -> Packed:
        """Choose what fits."""
        if self._left is None:
            return Packed(tuple(units))
        documents = self._documents
        packed = pack(units, self._left, self._prices, lambda unit: split(documents, unit), self._cut)
        self._left = packed.left
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
                return pieces
            larger *= 1.02 * cost / room
        return self._heading(part, room) if at_any_cost else None

    def _heading(self, part: Part, room: int) -> Sequence[Part] | None:
        """Cut a part behind its heading, where nothing else fits: it says where the text is."""
        documents = self._documents
        place = part.document, part.section
        heading = documents.tree(part.document).sections[part.section].heading_lines
        if not part.lines.start <= heading.start < heading.stop < part.lines.stop:
            return None
        first, rest = (
            documents.part(place, chosen=part.chosen, lines=lines)
            for lines in (Span(part.lines.start, heading.stop), Span(heading.stop, part.lines.stop))
        )
        return (first, rest) if rest.last and self._form.text(documents, first) <= room else None

    def named(self, packed: Packed) -> tuple[str, ...]:
        """Return the selectors of what was left out.

        Named are: one at least; all that is better than something kept, for which there is room; and then
        as many as may be.
        """
        if not packed.dropped:
            return ()
        units = left_out(self._documents, packed.dropped)
        owed = sum(not unit.parts[0].chosen for unit in packed.dropped[: packed.owed])
        names: list[str] = []
        hits = 0
        for unit in units:
            hits += not unit.parts[0].chosen
            name = selector(self._documents, unit)
            must = unit.parts[0].chosen or hits <= owed
            if len(names) >= MAX_CHOSEN_NAMED or hits > owed + MAX_HITS_NAMED:
                break
            if not self._paid(self._prices.named(name), aside=not must) and (names or packed.kept):
                break
            names.append(name)
        return tuple(names)

    def suggestions(self, ideas: Sequence[Suggestion]) -> tuple[Suggestion, ...]:
        """Return the suggestions there is room for."""
        return self._first(ideas, self._prices.suggested)

    def keywords(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the keywords there is room for."""
        return self._first(words, self._prices.named)

    def _first(self, entries: Sequence[_T], price: Callable[[_T], int]) -> tuple[_T, ...]:
        if self._left is None:
            return tuple(entries)
        kept = []
        for entry in entries:
            if not self._paid(price(entry), aside=True):
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
