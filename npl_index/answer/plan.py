"""The plan of an answer: the longest prefix of its steps that fits into the budget.

A window of a text contains the smaller ones. So an answer with a larger budget has all lines of a smaller
one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import accumulate, chain, islice, takewhile
from typing import NamedTuple

from npl_index.answer.cutting import PIECE, rest_of, windows
from npl_index.answer.document_set import DocumentSet, SectionPart
from npl_index.answer.finding import matching_line
from npl_index.answer.ledger import Ledger
from npl_index.answer.steps import LEAD, Step
from npl_index.answer.units import (
    AnswerUnit,
    Pointer,
    families,
    joined,
    merged_spans,
    pointer,
    selector,
)
from npl_index.answer.values import Suggestion
from npl_index.markdown.sections import Span

SHORT_REST = 80
"""Maximum tokens of a rest that joins its piece; its name would cost half as much."""

MAX_LINES, MAX_SINGLE = 2, 8
"""Maximum names with a matching line, and maximum names of selected sections that are not ranges."""


class Shown(NamedTuple):
    """The shown part of a text: the text or a piece of it, and the names of the omitted parts."""

    text: AnswerUnit | None = None
    names: tuple[Pointer, ...] = ()


class Plan:
    """The parts of an answer.

    :param ledger: the remaining tokens.
    :ivar further: keywords and suggestions.
    """

    def __init__(self, documents: DocumentSet, ledger: Ledger) -> None:
        self.documents, self._ledger = documents, ledger
        self.further: list[str | Suggestion] = []
        self._shown: dict[AnswerUnit, Shown] = {}
        self._wanted: list[AnswerUnit] = []

    @property
    def kept(self) -> list[AnswerUnit]:
        """The texts, best first."""
        texts = (shown.text for shown in self._shown.values() if shown.text)
        return sorted(texts, key=lambda unit: -unit.score)

    @property
    def pointers(self) -> list[Pointer]:
        """The names, best first."""
        names = (name for shown in self._shown.values() for name in shown.names)
        return sorted(names, key=lambda name: -name.unit.score)

    @property
    def left_out(self) -> list[AnswerUnit]:
        """The wanted texts without room, and the rests of cut ones."""
        rests = (name.unit for name in self.pointers if name.unit.cut)
        return [*(unit for unit in self._wanted if not self._shown.get(unit, Shown()).text), *rests]

    def follow(
        self, steps: Iterable[Step], wanted: Iterable[AnswerUnit] = (), first: Sequence[Step] = ()
    ) -> bool:
        """Take steps until there is no room for one.

        :param wanted: texts that the answer should have.
        :param first: steps before the others.
        :returns: whether all steps are taken.
        """
        self._wanted += wanted
        return all(map(self._take, chain(() if self._leap(first) else first, steps)))

    def _leap(self, steps: Sequence[Step]) -> bool:
        """Take steps without those that a later one replaces, if there is room for all; else take none.

        A text need not be cut to a few lines where more of it has room.
        """
        ledger, shown, last = copy(self._ledger), self._shown.copy(), {step.unit: step for step in steps}
        for step in steps:
            room = self._ledger.left + self._price(self._shown.get(step.unit, Shown()))
            is_kept = not step.most or step is last[step.unit]
            if is_kept and not (step.most <= room and self._take(step)):
                self._ledger, self._shown = ledger, shown
                return False
        return True

    def select(self, units: Sequence[AnswerUnit]) -> bool:
        """Take the texts of selectors in order as far as they fit, and name the others.

        :returns: whether all fit.
        """
        parts = [part for unit in units for part in unit.parts]
        totals = accumulate(map(self._ledger.text, parts))  # counted until they do not fit
        many = 1 + sum(1 for _ in takewhile(lambda total: total <= self._ledger.left, totals))
        few, middle = -1, many - 1
        while many - few > 1:  # the cost grows with the number of parts
            if shown := self._division(parts, middle):
                few, self._shown = middle, shown
            else:
                many = middle
            middle = (few + many) // 2
        if self._shown:
            self._ledger.left -= self._price(*self._shown.values())
        else:
            self._shown = {units[0]: Shown(names=(self._least(units[0]),))}
        self._ledger.enter(self.kept)
        self._wanted += (unit for unit, shown in self._shown.items() if not shown.text)
        return few == len(parts)

    def add(self, further: Iterable[str | Suggestion]) -> None:
        """Add keywords and suggestions until there is no room for one."""
        self.further += takewhile(lambda part: self._ledger.pay(self._ledger.named(part)), further)

    def add_lines(self) -> None:
        """Give the first names their matching lines, as far as these fit."""
        first = self.pointers[:MAX_LINES]
        for unit, (text, names) in self._shown.items():
            lines = (self._with_line(name) if name in first else name for name in names)
            self._shown[unit] = Shown(text, tuple(lines))

    def _division(self, parts: Sequence[SectionPart], number: int) -> dict[AnswerUnit, Shown]:
        """Return some first parts, a piece of the next one and the names of the others, if they fit."""
        whole = {unit: Shown(unit) for unit in families(self.documents, parts[:number])}
        cut = [AnswerUnit((part,), 1.0) for part in parts[number : number + 1]]
        room = self._ledger.left - self._price(*whole.values())
        for pieces in (*(self._windows(cut[0], room) if cut else ()), ()):
            left_out = [*pieces[1:], *families(self.documents, parts[number + bool(pieces) :])]
            for single in (MAX_SINGLE, 0):
                shown = whole | {unit: Shown(unit) for unit in pieces[:1]}
                for unit in (*left_out[:single], *joined(left_out[single:])):
                    shown[unit] = Shown(names=(pointer(self.documents, unit),))
                if self._price(*shown.values()) <= self._ledger.left:
                    return shown
        return {}

    def _take(self, step: Step) -> bool:
        """Take as much of a step as fits, and return whether that is all."""
        before, is_all = self._shown.get(step.unit, Shown()), True
        for shown in self._choices(step, before):
            names = {} if shown.names else self._next_name(step)
            if self._ledger.pay(self._price(shown, *names.values()) - self._price(before)):
                self._shown |= {step.unit: shown, **names}
                self._ledger.enter([shown.text] if shown.text else [])
                return is_all
            is_all = False
        if not (is_all or self._shown):
            self._shown[step.unit] = Shown(names=(self._least(step.unit),))
        return is_all

    def _next_name(self, step: Step) -> dict[AnswerUnit, Shown]:
        """Return the name of the next wanted text, if the answer has no name of another one."""
        if any(shown.names for unit, shown in self._shown.items() if unit != step.unit):
            return {}
        missing = (unit for unit in self._wanted if unit != step.unit and unit not in self._shown)
        return {unit: self._name(unit) for unit in islice(missing, 1)}

    def _choices(self, step: Step, before: Shown) -> Iterator[Shown]:
        """Yield the texts that a step can show, longest first; each contains the next."""
        unit, most = step.unit, step.most
        if not most:
            yield self._name(unit)
        elif unit.tokens <= most:
            yield Shown(unit)
        if not most or not (step.in_part or unit.tokens > most):
            return
        room = min(most, self._ledger.left + self._price(before))
        piece, short = None, SHORT_REST if LEAD < most < unit.tokens else 0
        for piece, *rests in self._windows(unit, room, short, step.least):
            yield Shown(piece, tuple(pointer(self.documents, rest) for rest in rests))
        if piece and not before.text:  # the names of two rests may cost more than the text
            yield Shown(piece, (pointer(self.documents, unit._replace(cut=True)),))

    def _windows(
        self, unit: AnswerUnit, most: int, short: int = 0, least: int = 0
    ) -> Iterator[list[AnswerUnit]]:
        """Yield the windows of a text, largest first, each with the rests before and after it, longest first.

        If all windows are larger and there is no minimum, yield the smallest.

        :param short: maximum tokens of a rest that joins its window.
        :param least: minimum tokens of a window.
        """
        part = unit.parts[0]
        sizes = partial(windows, self.documents, part)
        pieces = sizes(min(most, max(part.size)), least)
        first = list(islice(pieces, 1)) or deque(() if least else sizes(PIECE), 1)
        for piece in chain(first, pieces):
            rests = [rest.lines for rest in rest_of(part, piece) if rest.size.last <= short]
            if rests and type(piece.lines) is Span:
                piece = part.narrowed(merged_spans([piece.lines, *rests])[0])
            yield self._divided(unit, piece)

    def _divided(self, unit: AnswerUnit, piece: SectionPart) -> list[AnswerUnit]:
        """Return a piece of a text and its rests, longest first."""
        rests = sorted(rest_of(unit.parts[0], piece), key=lambda rest: rest.size.last, reverse=True)
        return [AnswerUnit((part,), unit.score, cut=bool(rests)) for part in (piece, *rests)]

    def _price(self, *shown: Shown) -> int:
        texts = [text for text, _ in shown if text]
        return self._ledger.price(texts) + sum(
            self._ledger.pointer(name) for _, names in shown for name in names
        )

    def _name(self, unit: AnswerUnit) -> Shown:
        return Shown(names=(pointer(self.documents, unit),))

    def _with_line(self, name: Pointer) -> Pointer:
        """Return a name with its matching line, if there is one and room for it."""
        line = None if name.unit.ranges else matching_line(self.documents, name.unit.parts[0])
        full = name._replace(line=line[1]) if line else name
        return full if self._ledger.pay(self._ledger.pointer(full) - self._ledger.pointer(name)) else name

    def _least(self, unit: AnswerUnit) -> Pointer:
        """Return the name of a text, or of its document if there is no room."""
        for name in (selector(self.documents, unit), self.documents.name(unit.document)):
            least = Pointer(name, unit._replace(ranges=False))
            if self._ledger.pay(self._ledger.pointer(least)):
                break
        return least
