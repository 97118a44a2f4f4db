"""Packing an answer into its token budget.

The tokens are shared in this order: remarks, passages, pointers, keywords and suggestions. Tokens for the
parts after the passages are reserved first.

A unit is the text of one row of the answer: a hit's own text, or a selected section with its subsections. It
is kept whole if it fits, else split into its subsections, else cut. After a unit without room, no lesser unit
is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from npl_index.answer.cutting import cut, rest_of
from npl_index.answer.document_set import AnswerUnit, DocumentSet, SectionPart
from npl_index.answer.finding import matching_line
from npl_index.answer.ledger import MAX_TOKENS, Ledger
from npl_index.answer.units import Further, Known, Packed, joined, left_out, pointer, selector, split
from npl_index.answer.values import Pointer, Tailored
from npl_index.markdown.sections import Span
from npl_index.ranking.analysis import Keywords
from npl_index.ranking.scoring import Ranking
from npl_index.ranking.verdict import Verdict
from npl_index.selectors.names import Place

BEST = 3
"""Number of best hits that are in every answer, at least by name."""

POINTERS = 4
MORE_POINTERS = 8
MAX_CHOSEN_NAMED = 64
"""Maximum pointers of an answer, of an answer without enough evidence, and to remaining parts of selected
sections."""

MAX_LINES = 2
"""Maximum pointers with a matching line; with the verdict *absent*, a line would look like an answer."""

POINTER_DIVISOR = 4
"""Divisor of the remaining tokens for the limit of pointers, except for those to the best hits."""

FURTHER_DIVISOR = 12
"""Divisor of the remaining tokens for the limit of keywords and suggestions in a truncated answer."""

REMARK_DIVISOR = 3
"""Divisor of the budget for the limit of remarks."""

MAX_FILES = 3
"""Maximum files in remarks; the section index names all."""

MIN_ROWS = 2
"""Minimum length of a further piece, in lengths of its row."""

MAX_FAILED_CUTS = 5
"""Maximum failed cuts before the first kept unit: each try takes as long as the rest of the packing."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings for a request, and the material of its answer.

    :param documents: the documents, with the terms of the request.
    :param units: wanted units, best first.
    :param others: units to name only, best first.
    :param best: sections of the best hits.
    :param most: maximum tokens of one unit, ``None`` for no limit.
    :param pointers: maximum of optional pointers.
    :param keywords: keywords of the context.
    :param ranking: ranked sections.
    :param verdict: verdict on the question.
    :param known: excluded lines.
    :param excluded_tokens: tokens of wanted text that is excluded; ``None`` without ``exclude``.
    :param failures: reasons for selectors without a match.
    :param used: sections of selectors, which the caller certainly uses.
    """

    documents: DocumentSet
    units: Sequence[AnswerUnit]
    others: Sequence[AnswerUnit]
    best: frozenset[Place]
    most: int | None
    pointers: int
    keywords: Keywords
    ranking: Ranking
    verdict: Verdict
    known: Known
    excluded_tokens: int | None
    failures: tuple[str, ...]
    used: Sequence[Place]

    @property
    def chosen(self) -> bool:
        """Whether selectors match the units."""
        return bool(self.units) and self.units[0].parts[0].chosen

    def holds_best(self, unit: AnswerUnit) -> bool:
        """Return whether a unit is among the best hits."""
        return not self.best.isdisjoint(unit.places)


def remarks(found: Findings, ledger: Ledger) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the remarks on failed selectors and on omitted files: the first of each, and a count."""
    left = MAX_TOKENS if ledger.budget is None else ledger.budget // REMARK_DIVISOR
    unreadable = found.documents.unreadable
    said: list[tuple[str, ...]] = []
    for texts, most, what, state in (
        (found.failures, len(found.failures), "selector", "found nothing"),
        (unreadable, MAX_FILES, "file", "left out"),
    ):
        costs = (ledger.cost(ledger.form.named, text) for text in texts[:most])
        spent = list(accumulate(costs, initial=0))
        number = sum(total <= left for total in spent) - 1
        left -= spent[number]
        others, more = len(texts) - number, " more" if number else ""
        count = (f"{others:,}{more} {what}{'' if others == 1 else 's'} {state}",) if others else ()
        said.append((*texts[:number], *count))
    return said[0], said[1]


class Packing:
    """Choice of the parts of an answer, which use up the remaining tokens in order.

    :param further: keywords and suggestions.
    :param ledger: remaining tokens, without those for pointers to remaining parts and to dropped units.
    :param nothing: the answer without its parts.
    :ivar owed: number of dropped units that are better than a kept one.
    """

    def __init__(self, found: Findings, further: Further, ledger: Ledger, nothing: Tailored) -> None:
        self._found, self._further, self._ledger = found, further, ledger
        self._documents, self._form, self._nothing = found.documents, ledger.form, nothing
        self.kept: list[AnswerUnit] = []
        self.dropped: list[AnswerUnit] = []
        self.rests: list[AnswerUnit] = []
        self.owed = self._traces = self._failed = self._paid_for = 0
        self._names_all = True
        self._open()
        self._least_names = self._names = 0
        if ledger.budget is not None and not self._fits():
            self._pay_further(max(0, ledger.left) // FURTHER_DIVISOR)
            self._least_names, self._names = self._reserved()
        self._most = ledger.left if found.most is None else found.most

    def packed(self, *, brief: bool) -> Packed:
        """Return the chosen parts.

        :param brief: suggestions keep their limit, even if tokens remain.
        """
        self._take_all()
        pointers = self._pointers()
        if not pointers and (self.dropped or self.rests):
            # An answer must name a dropped part.
            self.kept, self.dropped, self.rests, self.owed = [], list(self._found.units), [], 0
            self._open()
            pointers = self._pointers()
        further = self._further
        if self._ledger.budget is not None:
            if self._names_all and not (self.dropped or self.rests or brief):
                self._pay_further(self._ledger.left)  # no text is missing
            further = further[: self._paid_for]
        held = self._found.verdict.held
        return Packed(self.kept, self.dropped, self.rests, pointers, further, held)

    def _open(self, content: str = "…") -> None:
        """Begin with all tokens.

        :param content: some content, or none.
        """
        self._paid_for, tokens = 0, (self._ledger.budget or 0) if content else 0
        nothing = replace(self._nothing, content=content, total_tokens=min(tokens, MAX_TOKENS))
        self._ledger.reserve_frame(nothing, self._found.verdict.held)

    def _fits(self) -> bool:
        """Return whether all parts fit, so that no tokens need to be reserved."""
        units, ledger = self._found.units, self._ledger
        if self._found.most is not None or sum(unit.tokens for unit in units) > ledger.left:
            return False
        costs = sum(ledger.row(unit) + ledger.text(unit) for unit in units)
        costs += sum(map(ledger.trace, self._found.others))
        return costs + sum(ledger.cost(self._form.further, one) for one in self._further) <= ledger.left

    def _reserved(self) -> tuple[int, int]:
        """Return the tokens to reserve for pointers: for those to the best hits, and for all.

        A piece of the best unit may use the difference, and as a last resort all, unless a selector matches
        it.
        """
        wanted, trace = self._found, self._ledger.trace
        named = [*wanted.units[1:MAX_CHOSEN_NAMED], *wanted.others]
        best = self._widest() if wanted.chosen else list(filter(wanted.holds_best, named))
        costs = accumulate(map(trace, named[: wanted.pointers]), initial=0)
        most = max(0, self._ledger.left) // POINTER_DIVISOR
        least = sum(map(trace, best))
        return least, max(least, *(total for total in costs if total <= most))

    def _widest(self) -> list[AnswerUnit]:
        """Return the longest possible range over selected sections, which names dropped ones."""
        first = self._found.units[0]
        if len(first.parts) < 2:
            return []
        steps = self._documents.collection.documents[first.document].steps
        longest = max(first.parts, key=lambda part: len(steps[part.section]))
        return [AnswerUnit((longest, *first.parts), 1.0, ranges=True)]

    def _take_all(self) -> None:
        """Keep the passages that fit."""
        is_open = self._ledger.left > 0
        waiting = deque(self._found.units)
        while waiting:
            unit = waiting.popleft()
            if not is_open:
                self.dropped.append(unit)
            elif not self._take(unit):
                if len(unit.parts) > 1:
                    waiting.extendleft(reversed(split(self._documents, unit)))
                elif not self._take_piece(unit):
                    is_open = not self.kept and self._ledger.left > 0
        self._ledger.left += self._traces

    def _take(self, unit: AnswerUnit) -> bool:
        """Keep a unit whole if it fits."""
        room = self._ledger.left - self._names
        if unit.tokens >= room or (unit.tokens > self._most and not unit.parts[0].chosen):
            return False
        cost = self._ledger.row(unit)
        if cost + unit.tokens > room or cost + (text := self._ledger.text(unit)) > room:
            return False
        self._keep(unit, cost + text)
        return True

    def _take_piece(self, unit: AnswerUnit) -> bool:
        """Keep a piece of a unit if one fits that is worth its row."""
        part = unit.parts[0]
        # A piece and its remaining parts are named by their lines.
        lines = Span(part.lines.start, max(part.lines.start, part.lines.stop - 1))
        like = AnswerUnit((part.shortened(lines, part.size),), unit.score, cut=True)
        cost, trace = self._ledger.row(like), self._ledger.trace(like)
        room = self._ledger.left - cost - trace
        pieces = None
        if not self.kept or room - self._names > MIN_ROWS * cost:
            pieces = self._cut(part, room - self._names)
            if pieces is not None and len(pieces) > 2:  # parts remain before and after it
                pieces = self._cut(part, room - self._names - trace) or pieces
        if pieces is None and not self.kept and self._failed < MAX_FAILED_CUTS:
            pieces = self._cut(part, room - self._least_names, at_any_cost=True)
            if pieces is None and not part.chosen:
                pieces = self._cut(part, room, at_any_cost=True)
            self._failed += pieces is None
        if pieces is None:
            self.dropped.append(unit)
            self._set_aside(unit)
            return False
        piece, *rest = (AnswerUnit((one,), unit.score, cut=len(pieces) > 1) for one in pieces)
        self._keep(piece, self._ledger.row(piece) + self._ledger.text(piece))
        self.rests += sorted(rest, key=lambda one: one.tokens, reverse=True)
        for one in rest:
            self._set_aside(one)
        return True

    def _cut(
        self, part: SectionPart, limit: int, *, at_any_cost: bool = False
    ) -> Sequence[SectionPart] | None:
        """Return a piece of a part that fits, and the remaining parts before and after it.

        :param limit: maximum tokens as sent.
        :param at_any_cost: also return a beginning without a term, or a bare heading.
        """
        limit = limit if part.chosen else min(limit, self._most)
        if limit <= 0:
            return None

        pieces = cut(self._documents, part, limit, self._form.text, or_beginning=at_any_cost)
        if pieces is not None:
            return pieces if len(pieces) > 1 else (part,)
        heading = self._documents.tree(part.document).sections[part.section].heading_lines
        if not at_any_cost or not part.lines.start <= heading.start < heading.stop < part.lines.stop:
            return None
        # If only the heading fits, it shows the place of the text.
        lines = Span(part.lines.start, heading.stop)
        first = self._documents.part(part.place, chosen=part.chosen, lines=lines)
        rest = tuple(rest_of(self._documents, part, first))
        return (first, *rest) if rest and self._form.text(first) <= limit else None

    def _set_aside(self, unit: AnswerUnit) -> None:
        trace = self._ledger.trace(unit)
        self._ledger.left -= trace
        self._traces += trace

    def _keep(self, unit: AnswerUnit, cost: int) -> None:
        self.kept.append(unit)
        self._ledger.keep(unit, cost)
        self.owed = len(self.dropped)

    def _pointers(self) -> tuple[Pointer, ...]:
        """Return pointers to sections outside the answer, best first.

        Always included: one pointer after dropped text, the units better than a kept one, the remaining parts
        of cut units, and the best hits; then others follow while there is room. The first pointers show their
        matching lines, unless there is no text.
        """
        wanted = self._found
        dropped = left_out(self._documents, self.dropped)
        owed = {part for unit in (*self.dropped[: self.owed], *self.rests) for part in unit.parts}
        if wanted.chosen:
            dropped = self._with_ranges(dropped)
        units = [*dropped, *self.rests, *wanted.others]
        first = [unit for unit in units if not owed.isdisjoint(unit.parts) or wanted.holds_best(unit)]
        then = [unit for unit in units if unit not in first]
        named: list[tuple[AnswerUnit, Pointer]] = []
        if not self.kept and (units := [*first, *then]):
            # An answer without passages has at least one pointer.
            named.append((units[0], self._least(units[0])))
        for number, unit in enumerate((*first, *then)):
            most = MAX_CHOSEN_NAMED if wanted.chosen else wanted.pointers
            if number >= len(first) and len(named) >= most:
                break
            one = pointer(self._documents, unit)
            if named and unit is named[0][0]:
                continue
            if self._ledger.pay(self._ledger.cost(self._form.pointer, one)):
                named.append((unit, one))
                continue
            self._names_all = False
            if number >= len(first):
                break
        named.sort(key=lambda one: -one[0].score)
        for at, (unit, one) in enumerate(named[: MAX_LINES if wanted.units else 0]):
            named[at] = unit, self._with_line(unit, one)
        return tuple(one for _, one in named)

    def _with_ranges(self, units: list[AnswerUnit]) -> list[AnswerUnit]:
        """Return units to name: as many single ones as fit, and the others joined."""
        room = self._ledger.left - sum(map(self._ledger.trace, self.rests))
        for alone in (min(len(units), MAX_CHOSEN_NAMED), *range(POINTERS, -1, -1)):
            named = [*units[:alone], *joined(self._documents, units[alone:])]
            if sum(map(self._ledger.trace, named)) <= room:
                break
        return named

    def _least(self, unit: AnswerUnit) -> Pointer:
        """Return the pointer to a unit, or to its document if there is no room."""
        names = selector(self._documents, unit), self._documents.name(unit.document)
        every = [Pointer(name, unit.tokens) for name in names]
        cost, ledger = partial(self._ledger.cost, self._form.pointer), self._ledger
        one = next((one for one in every if cost(one) <= ledger.left), None)
        if one is None:
            self._open(content="")
            one = next((one for one in every if cost(one) <= ledger.left), every[0])
        ledger.left -= cost(one)
        return one

    def _with_line(self, unit: AnswerUnit, one: Pointer) -> Pointer:
        if unit.ranges or not self._form.shows_lines:
            return one
        line = matching_line(self._documents, unit.parts[0])
        full = one if line is None else one._replace(line=line[1])
        cost, write = self._ledger.cost, self._form.pointer
        return full if self._ledger.pay(cost(write, full) - cost(write, one)) else one

    def _pay_further(self, most: int) -> None:
        """Take tokens for keywords and then for suggestions, up to a maximum."""
        for one in self._further[self._paid_for :]:
            cost = self._ledger.cost(self._form.further, one)
            if cost > most:
                break
            most -= cost
            self._ledger.left -= cost
            self._paid_for += 1
