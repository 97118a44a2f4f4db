"""Packing an answer into its token budget.

The tokens are shared in this order: remarks, passages, pointers, keywords and suggestions. Tokens for the
parts after the passages are reserved first.

A unit is the text of one row of the answer: a hit's own text, or a selected section with its subsections. It
is kept whole if it fits, else split into its subsections, else cut. After a unit without room, no lesser unit
is kept.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice

from npl_index.answer.cutting import PIECE, WHOLE, rest_of, windows
from npl_index.answer.document_set import AnswerUnit, DocumentSet, SectionPart
from npl_index.answer.finding import matching_line
from npl_index.answer.ledger import MAX_TOKENS, Ledger
from npl_index.answer.units import Excluded, joined, pointer, reunited, selector, split
from npl_index.answer.values import Pointer, Suggestion, Tailored
from npl_index.choices import DEFAULT_BUDGET
from npl_index.markdown.sections import Span
from npl_index.ranking.scoring import Ranking
from npl_index.ranking.verdict import Verdict
from npl_index.selectors.names import Place

BEST = 3
"""Number of best hits that are in every answer, at least by name."""

POINTERS = 3
MORE_POINTERS = 4
MAX_CHOSEN_NAMED = 64
"""Maximum pointers of an answer, of an answer without enough evidence, and to remaining parts of selected
sections."""

MAX_LINES = 2
"""Maximum pointers with a matching line; with the verdict *absent*, a line would look like an answer."""

FURTHER_TEXT = 450
SURE = 0.4
"""Tokens of text up to which further passages follow the first, plus tokens beyond the default budget; for a
section with this score, :data:`~npl_index.answer.cutting.WHOLE`."""

MAX_READ = 1_500
"""Maximum tokens of selected sections in an answer to a question without a budget; of one section
:data:`~npl_index.answer.cutting.WHOLE`."""

MAX_READ_NAMED = 8
"""Maximum pointers to remaining parts of selected sections without a budget; further ones are ranges."""

POINTER_DIVISOR = 4
"""Divisor of the remaining tokens for the limit of pointers, except for those to the best hits."""

FURTHER_DIVISOR = 12
"""Divisor of the remaining tokens for the limit of keywords and suggestions if text is left out."""

REMARK_DIVISOR = 3
"""Divisor of the budget for the limit of remarks."""

MAX_FILES = 3
"""Maximum files in remarks; the section index names all."""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings for a request, and the material of its answer.

    :param documents: the documents, with the terms of the request.
    :param units: wanted units, most important first.
    :param only_named: units to name only, best first.
    :param best: sections of the best hits.
    :param whole: maximum tokens of a unit that is not cut, ``None`` for no limit.
    :param piece: maximum tokens of a piece of a longer one.
    :param pointers: maximum of optional pointers.
    :param reading: whether selectors with a question, without a budget, choose the units.
    :param exact: sections whose selected text is always complete.
    :param broad: sections of selectors that match several.
    :param ranking: ranked sections.
    :param verdict: verdict on the question.
    :param excluded: excluded lines.
    :param excluded_tokens: tokens of wanted text that is excluded; ``None`` without ``exclude``.
    :param failures: reasons for selectors without a match.
    :param used: sections of selectors, which the caller certainly uses.
    :param advice: advice instead of the text of too many matches.
    """

    documents: DocumentSet
    units: Sequence[AnswerUnit]
    only_named: Sequence[AnswerUnit]
    best: frozenset[Place]
    whole: int | None
    piece: int
    pointers: int
    reading: bool
    exact: frozenset[Place]
    broad: frozenset[Place]
    ranking: Ranking
    verdict: Verdict
    excluded: Excluded
    excluded_tokens: int | None
    failures: tuple[str, ...]
    used: Sequence[Place]
    advice: str | None = None

    @property
    def chosen(self) -> bool:
        """Whether selectors match the units."""
        return bool(self.units) and self.units[0].parts[0].chosen

    def holds_best(self, unit: AnswerUnit) -> bool:
        """Return whether a unit is among the best hits."""
        return not self.best.isdisjoint(unit.places)


def remarks(findings: Findings, ledger: Ledger) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the remarks on failed selectors and on omitted files: the first of each, and a count."""
    room = ledger.budget // REMARK_DIVISOR
    unreadable = findings.documents.unreadable
    result: list[tuple[str, ...]] = []
    for texts, most, what, state in (
        (findings.failures, len(findings.failures), "selector", "found nothing"),
        (unreadable, MAX_FILES, "file", "left out"),
    ):
        totals = list(accumulate(map(ledger.named, texts[:most]), initial=0))
        shown = bisect_right(totals, room) - 1
        room -= totals[shown]
        others, more = len(texts) - shown, " more" if shown else ""
        count = (f"{others:,}{more} {what}{'' if others == 1 else 's'} {state}",) if others else ()
        result.append((*texts[:shown], *count))
    return result[0], result[1]


class Packing:
    """Choice of the parts of an answer, which use up the remaining tokens in order.

    :param frame: the answer without its parts.
    :param further: keywords and suggestions, made as far as they may fit.
    :ivar documents: the documents.
    :ivar kept: units of the answer, best first.
    :ivar dropped: units without room, best first.
    :ivar rests: remaining parts of cut units.
    :ivar pointers: pointers to sections outside the answer, best first.
    :ivar further: keywords and suggestions that fit.
    """

    def __init__(
        self,
        findings: Findings,
        ledger: Ledger,
        frame: Tailored,
        further: Iterable[str | Suggestion],
    ) -> None:
        self._findings, self._ledger, self._frame = findings, ledger, frame
        self.documents, self._whole = findings.documents, findings.whole
        self.kept: list[AnswerUnit] = []
        self.dropped: list[AnswerUnit] = []
        self.rests: list[AnswerUnit] = []
        self.pointers: tuple[Pointer, ...] = ()
        self.further: list[str | Suggestion] = []
        self._waiting, self._further_costs = iter(further), [0]
        self._traces = self._least_reserve = self._reserve = 0

    @property
    def truncated(self) -> bool:
        """Whether a wanted unit is dropped or cut."""
        return bool(self.dropped or self.rests)

    def pack(self) -> Packing:
        """Choose the parts."""
        findings, ledger = self._findings, self._ledger
        ledger.reserve_frame(self._frame)
        if self._fits():
            self._whole = None
        else:
            self._least_reserve, self._reserve = self._reserve_names()
            most = max(0, ledger.left) // FURTHER_DIVISOR
            self._reserve += min(most, self._further_cost(most))
        if findings.reading:
            self._read()
        else:
            self._take_all()
        self.pointers = self._pointers()
        if not self.pointers and self.truncated:
            # An answer must name a dropped part.
            self.kept, self.dropped, self.rests = [], list(findings.units), []
            ledger.reserve_frame(self._frame)
            self.pointers = self._pointers()
        self._further_cost(ledger.left)
        del self.further[bisect_right(self._further_costs, ledger.left, lo=1) - 1 :]
        self.kept.sort(key=lambda unit: -unit.score)
        return self

    def _further_cost(self, most: int) -> int:
        """Return the tokens of keywords and suggestions; of more than a number, only of the first ones."""
        totals = self._further_costs
        while totals[-1] <= most and (part := next(self._waiting, None)) is not None:
            self.further.append(part)
            totals.append(totals[-1] + self._ledger.named(part))
        return totals[-1]

    def _fits(self) -> bool:
        """Return whether all parts fit, so that nothing is cut and no tokens need to be reserved."""
        ledger, findings = self._ledger, self._findings
        is_large = findings.chosen or ledger.budget > DEFAULT_BUDGET
        totals = accumulate(unit.tokens for unit in findings.units)  # counted until they do not fit
        if not is_large or any(total > ledger.left for total in totals):
            return False
        room = ledger.left - sum(ledger.row(unit) + ledger.text(unit) for unit in findings.units)
        room -= sum(map(ledger.trace, findings.only_named))
        return self._further_cost(room) <= room

    def _reserve_names(self) -> tuple[int, int]:
        """Return the tokens to reserve for pointers: for those to the best hits, and for all.

        A piece of the best unit may use the difference. If it still does not fit, it may use everything
        reserved, unless a selector chose it.
        """
        findings, trace = self._findings, self._ledger.trace
        named = [*findings.units[1:MAX_CHOSEN_NAMED], *findings.only_named]
        best = self._widest() if findings.chosen else list(filter(findings.holds_best, named))
        most = max(0, self._ledger.left) // POINTER_DIVISOR
        least = sum(map(trace, best))
        return least, max(least, min(most, sum(map(trace, named[: findings.pointers]))))

    def _widest(self) -> list[AnswerUnit]:
        """Return the longest possible range over selected sections, which names dropped ones.

        After a first section without subsections, that is the first range over the others.
        """
        first, *others = self._findings.units
        if len(first.parts) < 2:
            return joined(others)[:1]
        steps = self.documents.collection.documents[first.document].steps
        longest = max(first.parts, key=lambda part: len(steps[part.section]))
        return [AnswerUnit((longest, *first.parts), 1.0, ranges=True)]

    def _take_all(self) -> None:
        """Keep the passages that fit, until one does not come as it should."""
        is_open = self._ledger.left > 0
        waiting = deque(self._findings.units)
        beyond = max(0, self._ledger.budget - DEFAULT_BUDGET)
        while waiting:
            unit, left = waiting.popleft(), self._ledger.left
            most = WHOLE if unit.score >= SURE else FURTHER_TEXT
            within = max(0, most - sum(kept.tokens for kept in self.kept))
            room = left - self._reserve
            if self.kept and self._whole is not None:
                room = min(room, within + beyond)
            if not is_open or (room <= 0 and self.kept):
                self.dropped.append(unit)
            elif self._take(unit, room):
                pass
            elif len(unit.parts) > 1:
                waiting.extendleft(reversed(split(self.documents, unit)))
            else:
                is_open = self._take_piece(unit, room)
            beyond = max(0, beyond - max(0, left - self._ledger.left - within))
        if is_open and not self._findings.chosen:
            self._grow(beyond)
        self._ledger.left += self._traces

    def _take(self, unit: AnswerUnit, room: int) -> bool:
        """Keep a unit whole if it fits and may come whole."""
        if unit.tokens >= room or (self._whole is not None and unit.tokens > self._whole):
            return False
        room -= self._ledger.row(unit)
        if unit.tokens > room or self._ledger.text(unit) > room:
            return False
        self._keep(unit)
        return True

    def _take_piece(self, unit: AnswerUnit, room: int) -> bool:
        """Keep a piece of a unit if one fits that is worth its row.

        :returns: whether it is as long as it may be.
        """
        part, whole = unit.parts[0], self._whole
        # A piece and its remaining parts are named by their lines.
        lines = Span(part.lines.start, max(part.lines.start, part.lines.stop - 1))
        sample = AnswerUnit((part.narrowed(lines, part.size),), unit.score, cut=True)
        cost, trace = self._ledger.row(sample), self._ledger.trace(sample)
        room -= cost + 2 * trace  # parts may remain before and after it
        is_long = whole is not None and unit.tokens > whole
        most = self._findings.piece if is_long else MAX_TOKENS
        rooms = [(room, False)]
        if not self.kept:
            left = self._ledger.left - cost - trace
            rooms += [(left - self._least_reserve, True), (left, True)][: 1 if part.chosen else 2]
        elif room <= 0 or not (is_long or whole is None):
            rooms = []
        for room, or_beginning in rooms:
            pieces = self._pieces(part, min(most, max(room, self._findings.piece)), or_beginning)
            # A further piece of an answer to a question is as long as the first.
            for number, piece in enumerate(islice(pieces, 1 if self.kept and is_long else None)):
                # A room for the beginning has tokens for one remaining part.
                further_rests = len(list(rest_of(part, piece))) - 1 if or_beginning else 0
                if self._ledger.piece(piece) + further_rests * trace <= room:
                    self._keep_piece(unit, piece)
                    return is_long and not number
        self.dropped.append(unit)
        self._set_aside(unit)
        return False

    def _pieces(self, part: SectionPart, most: int, or_beginning: bool) -> Iterator[SectionPart]:
        """Yield the pieces of a part, largest first.

        :param or_beginning: a piece without a term is better than none, even the bare heading, which shows
            the place of the text.
        """
        yield from windows(self.documents, part, most, or_beginning=or_beginning)
        heading = part.tree.sections[part.section].heading_lines
        if or_beginning and part.lines.start <= heading.start < heading.stop < part.lines.stop:
            yield part.narrowed(Span(part.lines.start, heading.stop))

    def _keep_piece(self, unit: AnswerUnit, piece: SectionPart) -> None:
        kept, *rests = self._divided(unit.parts[0], piece, unit.score)
        self._keep(kept)
        self.rests += rests
        for rest in rests:
            self._set_aside(rest)

    def _divided(self, part: SectionPart, piece: SectionPart, score: float) -> Iterator[AnswerUnit]:
        """Yield the units of a piece and of the remaining parts, longest first."""
        rests = sorted(rest_of(part, piece), key=lambda rest: rest.size.last, reverse=True)
        for divided in (piece, *rests):
            yield AnswerUnit((divided,), score, cut=bool(rests))

    def _grow(self, beyond: int) -> None:
        """Use the tokens beyond the default budget for more of the cut units, best first."""
        whole = {unit.parts[0].place: unit.parts[0] for unit in self._findings.units}
        for number, kept in enumerate(self.kept):
            if not kept.cut:
                continue
            part, cost = whole[kept.parts[0].place], self._ledger.text(kept)
            room = min(beyond, self._ledger.left - self._reserve) + cost
            sizes = chain([part], windows(self.documents, part, min(room, max(part.size))))
            larger = next((size for size in sizes if self._ledger.piece(size) <= room), None)
            if larger is None or larger.size.last <= kept.tokens:
                return
            self.kept[number], *rests = self._divided(part, larger, kept.score)
            cost = self._ledger.text(self.kept[number]) - cost
            self._ledger.left -= cost
            beyond -= cost
            self.rests = [rest for rest in self.rests if rest.parts[0].place != part.place] + rests
            if rests:
                return

    def _read(self) -> None:
        """Keep selected sections as far as they are short, and of longer ones the text for the question."""
        rank = {hit.place: number for number, hit in enumerate(self._findings.ranking.hits)}
        left = MAX_READ
        for selected in self._findings.units:
            if self._findings.exact.issuperset(selected.places):
                self._keep(selected)
                continue
            room, waiting = min(WHOLE, left), [selected]
            left -= room
            while waiting:
                unit = waiting.pop(0)
                if unit.tokens <= room:
                    self._keep(unit)
                    room -= unit.tokens
                elif len(unit.parts) > 1:
                    first, *nested = split(self.documents, unit)
                    nested.sort(key=lambda below: min(rank.get(place, len(rank)) for place in below.places))
                    waiting = [first, *nested, *waiting]
                elif room >= PIECE and (piece := next(windows(self.documents, unit.parts[0], room), None)):
                    self._keep_piece(unit, piece)
                    room -= piece.size.last
                else:
                    self.dropped.append(unit)
            left += room

    def _set_aside(self, unit: AnswerUnit) -> None:
        trace = self._ledger.trace(unit)
        self._ledger.left -= trace
        self._traces += trace

    def _keep(self, unit: AnswerUnit) -> None:
        self.kept.append(unit)
        self._ledger.keep(unit)

    def _pointers(self) -> tuple[Pointer, ...]:
        """Return pointers to sections outside the answer, best first.

        Always included: one pointer after dropped text, the units better than a kept one, the remaining parts
        of cut units, and the best hits; then others follow while there is room. The first pointers show their
        matching lines, unless there is no text.
        """
        findings = self._findings
        dropped = reunited(self.documents, self.dropped)
        if findings.chosen:
            dropped = self._with_ranges(dropped)
        least = min((unit.score for unit in self.kept), default=1.0)

        def is_optional(unit: AnswerUnit) -> bool:
            return not (unit in self.rests or unit.score > least or findings.holds_best(unit))

        most = MAX_CHOSEN_NAMED if findings.chosen else findings.pointers
        named: list[Pointer] = []
        for unit in sorted([*dropped, *self.rests, *findings.only_named], key=is_optional):
            if is_optional(unit) and len(named) >= most:
                break
            if not named and not self.kept:
                # An answer without passages has at least one pointer.
                named.append(self._least(unit))
            elif self._ledger.pay(self._ledger.trace(unit)):
                named.append(pointer(self.documents, unit))
            elif is_optional(unit):
                break
        named.sort(key=lambda pointer: -pointer.unit.score)
        shown = MAX_LINES if findings.units and self._ledger.form.for_models else 0
        return (*map(self._with_line, named[:shown]), *named[shown:])

    def _with_ranges(self, units: list[AnswerUnit]) -> list[AnswerUnit]:
        """Return units to name: as many single ones as fit, and the others joined."""
        room = self._ledger.left - sum(map(self._ledger.trace, self.rests))
        most = MAX_READ_NAMED if self._findings.reading else MAX_CHOSEN_NAMED
        for alone in (min(len(units), most), *range(POINTERS, -1, -1)):
            named = [*units[:alone], *joined(units[alone:])]
            if sum(map(self._ledger.trace, named)) <= room:
                break
        return named

    def _least(self, unit: AnswerUnit) -> Pointer:
        """Return the pointer to a unit, or to its document if there is no room."""
        for name in (selector(self.documents, unit), self.documents.name(unit.document)):
            least = Pointer(name, unit._replace(ranges=False))
            if self._ledger.pay(self._ledger.pointer(least)):
                break
        return least

    def _with_line(self, bare: Pointer) -> Pointer:
        """Return a pointer with its matching line, if there is room for one."""
        line = None if bare.unit.ranges else matching_line(self.documents, bare.unit.parts[0])
        if line is None:
            return bare
        full = bare._replace(line=line[1])
        return full if self._ledger.pay(self._ledger.pointer(full) - self._ledger.pointer(bare)) else bare
