"""The tokens of one answer: its budget, and the cost of each part as sent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from npl_index.answer.document_set import SectionPart
from npl_index.answer.forms import Form
from npl_index.answer.units import AnswerUnit, Pointer
from npl_index.answer.values import Suggestion, Tailored

SHARE = 4
"""Divisor of the budget for the limit of remarks and of a sentence."""

MAX_TOKENS = 1_000_000_000
"""More tokens than any answer has; a larger budget is reduced to this, so that it fits a float."""


class Ledger:
    """Remaining tokens of an answer. The costs of its parts add up.

    :param form: form of the answer.
    :param budget: tokens of the whole answer; ``None`` for no limit: then only texts are counted.
    :ivar left: remaining tokens.
    """

    def __init__(self, form: Form, budget: int | None) -> None:
        self.form, self._counter = form, form.documents.counter
        self._counted = form if budget is not None else Form().on(form.documents)
        self.budget = MAX_TOKENS if budget is None else min(budget, MAX_TOKENS)
        self.left, self._entered = self.budget, set[int]()
        self._costs: dict[Hashable, int] = {}

    def reserve_frame(self, answer: Tailored) -> None:
        """Begin with the budget without the cost of an answer that has no parts."""
        # The upper bound of these tokens is at most the budget.
        room = self.budget**2 // max(1, self._counter.upper_bound(self.budget))
        frame = replace(answer, content="…", total_tokens=self.budget)
        self.left = room - self._counter.count(self._counted.frame(frame))

    def _cost(self, write: Callable[..., str], part: Hashable) -> int:
        if (write, part) not in self._costs:
            self._costs[write, part] = self._counter.count(write(part))
        return self._costs[write, part]

    def named(self, part: str | Suggestion) -> int:
        """Return the cost of a remark, a keyword or a suggestion."""
        return self._cost(self._counted.named, part)

    def short(self, sentence: str) -> str | None:
        """Return a sentence if it takes a small share of the budget, else ``None``."""
        return sentence if sentence and self.named(sentence) <= self.budget // SHARE else None

    def text(self, part: SectionPart) -> int:
        """Return the cost of a part's text."""
        return self._counted.text(part)

    def price(self, units: Sequence[AnswerUnit]) -> int:
        """Return the cost of texts with their descriptions, and those of their documents if these are new."""
        new = {unit.document for unit in units} - self._entered
        texts = sum(self.text(part) for unit in units for part in unit.parts)
        return (
            texts
            + sum(self._cost(self._counted.row, unit) for unit in units)
            + sum(map(self._counted.entry, new))
        )

    def enter(self, units: Iterable[AnswerUnit]) -> None:
        """Note that the descriptions of some texts' documents are paid."""
        self._entered = self._entered | {unit.document for unit in units}  # a copy keeps the former

    def pointer(self, pointer: Pointer) -> int:
        """Return the cost of a pointer."""
        return self._cost(self._counted.pointer, pointer)

    def pay(self, cost: int) -> bool:
        """Pay, if enough tokens remain."""
        if cost > self.left:
            return False
        self.left -= cost
        return True
