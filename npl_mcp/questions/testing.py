"""Tests of documents by their questions, for ``npl-load test``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.app.app import App
from npl_mcp.app.waiting import result_of
from npl_mcp.config.settings import Settings
from npl_mcp.questions.files import MAX_BYTES, QuestionFile, problems_of, question_files, read_questions
from npl_mcp.questions.outcomes import Outcome, ask_one
from npl_mcp.tools.contract.responses import as_dict

MISSED, UNREADABLE = 1, 2
"""Exit codes: a question fails; a question file is invalid or missing."""

CUTS = (1, 3, 10)
"""Numbers of first sections for the recall."""

_NO_FILE = "there is no question file: create questions.md or NAME.questions.md"


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of a test.

    :param outcomes: outcomes by name of the question file.
    :param problems: invalid places of question files, with line and column.
    """

    outcomes: dict[str, tuple[Outcome, ...]]
    problems: tuple[str, ...] = ()

    @property
    def passed(self) -> list[bool]:
        """Whether each question passes."""
        return [outcome.passed for outcomes in self.outcomes.values() for outcome in outcomes]

    @property
    def code(self) -> int:
        """The exit code."""
        return UNREADABLE if self.problems else 0 if all(self.passed) else MISSED

    @property
    def ranking(self) -> Mapping[str, float]:
        """The share of questions with a right section among the first ones, and the mean reciprocal rank, to
        three places; empty without questions that have right sections.
        """
        outcomes = [outcome for each in self.outcomes.values() for outcome in each]
        ranks = [outcome.rank or inf for outcome in outcomes if outcome.question.answers]
        means = {f"recall@{cut}": fmean(rank <= cut for rank in ranks) for cut in CUTS if ranks}
        means |= {"mrr": fmean(1 / rank for rank in ranks)} if ranks else {}
        return {name: round(mean, 3) for name, mean in means.items()}

    def as_dict(self) -> dict[str, Any]:
        """Return its fields and sums as JSON."""
        return {**as_dict(self), **self.ranking, "passed": sum(self.passed), "asked": len(self.passed)}

    def lines(self) -> Iterator[str]:
        """Yield a report for people: a line for each question, with more lines for a failing one."""
        for file, outcomes in self.outcomes.items():
            yield f"{file}: {sum(outcome.passed for outcome in outcomes)} of {len(outcomes)} pass"
            for outcome in outcomes:
                rank = "-" if outcome.rank is None else str(outcome.rank)
                state = "pass" if outcome.passed else "FAIL"
                yield f"  {state}  rank {rank:>3}  {outcome.tokens:>4} tokens  {outcome.question.text}"
                yield from (f"        {line}" for line in (() if outcome.passed else _reasons(file, outcome)))
        if self.ranking:
            yield ", ".join(f"{name} {mean:.3f}" for name, mean in self.ranking.items())
        yield from self.problems


def _reasons(file: str, outcome: Outcome) -> Iterator[str]:
    """Yield the reasons why a question fails."""
    answers = ", ".join(outcome.question.answers) or "nowhere"
    yield f"{file}:{outcome.question.line or 1}: expected {answers}"
    yield from (f"wrong selector: {wrong}" for wrong in outcome.wrong)
    if outcome.absent:
        yield f"no section has: {', '.join(outcome.absent)}"
    if outcome.above and not outcome.wrong:
        yield f"{'above' if outcome.question.answers else 'in the answer'}: {'; '.join(outcome.above)}"


def run_tests(settings: Settings, paths: Sequence[str]) -> Tested:
    """Ask the questions of question files.

    :param paths: paths of question files; by default those below the roots and in the data folder.
    :raises InvalidRequestError: a question file cannot be read.
    """
    with closing(App(settings)) as app:
        files = [_file_at(path) for path in paths] or question_files(app)
        outcomes = {
            file.name: tuple(result_of(ask_one(app, question)) for question in file.questions)
            for file in files
        }
        return Tested(outcomes, problems_of(files) or (() if files else (_NO_FILE,)))


def _file_at(path: str) -> QuestionFile:
    try:
        with Path(path).open("rb") as file:
            return read_questions(file.read(MAX_BYTES + 1), path)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from None
