"""Report in an answer of the sections that have changed since its caller read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from npl_index.answer.marks import in_mark, note
from npl_index.answer.values import Written
from npl_index.library.documents import Found
from npl_mcp.app.app import App
from npl_mcp.app.reading import ReadSections, SectionChange

MAX_TOKENS = 60
"""Maximum tokens of these lines; at most a quarter of a budget is used for them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChangeReport:
    """Changes that an answer reports.

    :param changes: changes that fit into the answer.
    :param lines: for each change, the selector with the numbers of added and removed lines.
    :param tokens: their cost.
    :param reader: memory of the caller; ``None`` without a change to report.
    """

    changes: tuple[SectionChange, ...] = ()
    lines: tuple[str, ...] = ()
    tokens: int = 0
    reader: ReadSections | None = None

    def rest(self, budget: int | None) -> int | None:
        """Return a budget minus the tokens of the changes."""
        return None if budget is None else budget - self.tokens

    def before(self, answer: T) -> T:
        """Return an answer that begins with the changes."""
        if self.reader is None:
            return answer
        self.reader.told(self.changes)
        if not isinstance(answer, Written):
            told: Any = replace(answer, changed=self.lines)  # type: ignore[type-var]
            return told  # type: ignore[no-any-return]
        start = '{"success":true,"data":{'
        if answer.text.startswith(start):
            fields = json.dumps(self.lines, ensure_ascii=False)
            text = f'{start}"changed":{fields},{answer.text[len(start) :]}'
        else:
            text = _marks(self.lines) + answer.text
        return Written(replace(answer.value, changed=self.lines), text)  # type: ignore[return-value]


def report_changes(app: App, founds: Sequence[Found] = (), budget: int | None = None) -> ChangeReport:
    """Return the changes that fit into an answer; the next answer reports the others.

    :param founds: the documents that the answer is about.
    :param budget: tokens of the whole answer.
    """
    reader = app.reader
    changes = [] if reader is None else reader.changes(app, founds)
    most = MAX_TOKENS if budget is None else min(MAX_TOKENS, budget // 4)
    told = ChangeReport()
    for change in changes:
        lines = (*told.lines, str(change))
        tokens = app.counter.upper_bound(app.counter.count(_marks(lines)))
        if tokens <= most:
            told = ChangeReport((*told.changes, change), lines, tokens, reader)
    return told


def _marks(lines: Sequence[str]) -> str:
    return "".join(note(f"changed since you read it: {in_mark(line)}", "") for line in lines)
