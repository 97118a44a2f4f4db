"""Outcomes of questions, and tests of documents by their questions, for ``npl-load test``.

The answer to a question is the first answer of ``npl_load_tailored``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, cast

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import answer, find
from npl_index.answer.units import selected_lines
from npl_index.errors import InvalidRequestError, NPLError, SectionNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import Span
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import Selected, heads_in, select_in
from npl_mcp.app.app import App
from npl_mcp.app.context import Context
from npl_mcp.app.waiting import HURRY, result_of
from npl_mcp.config.settings import Settings
from npl_mcp.questions import files
from npl_mcp.questions.files import Question, QuestionFile
from npl_mcp.tools.contract.responses import ENVELOPE, as_dict

MAX_ABOVE = 3
"""Named sections with a better rank than the right one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a question's first answer.

    :param question: question with the selectors of its right sections.
    :param passed: whether all selectors of the question are valid, and a right section is in the text of the
        answer; for ``nowhere``, whether the answer has no text.
    :param rank: rank of the best right section, from 1; ``None`` if no right section is ranked.
    :param tokens: tokens of the whole answer as it is sent.
    :param verdict: verdict of the answer: ``held``, ``weak`` or ``absent``.
    :param absent: words of the question that no section has.
    :param above: selectors of the best sections with a better rank than the right one, or of sections in the
        answer to a question without right sections.
    :param wrong: selectors of the question that select nothing, with the reasons.
    """

    question: Question
    passed: bool
    rank: int | None
    tokens: int
    verdict: Literal["held", "weak", "absent"]
    absent: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


async def ask_one(app: Context, question: Question) -> Outcome:
    """Ask one question of the documents of a call without ``file``.

    :raises DocumentNotFoundError: there are no documents.
    :raises DocumentError: a document cannot be read.
    """
    return await app.read(lambda: _ask(app, question))


def known_outcomes(app: Context, questions: Iterable[Question]) -> list[tuple[Outcome | None, bool]]:
    """Return the last outcomes of questions, each with whether the documents are still the same.

    While the documents are being indexed, they are not.
    """
    try:
        state = app.gather(DocumentRef(), HURRY).collection.state
    except NPLError:
        state = None
    with app.state.lock:
        known = [
            [app.state.outcomes.get(_key(app, question, of)) for of in (state, _view(app))]
            for question in questions
        ]
    return [(cast("Outcome | None", now or last), now is not None) for now, last in known]


def _view(app: Context) -> Hashable:
    """Return the key of what a caller sees, at any state of the documents."""
    return app.settings.roots, app.permissions


def _key(app: Context, question: Question, state: Hashable) -> Hashable:
    return state, question.text, question.answers, app.settings.format, app.settings.token_budget


def _ask(app: Context, question: Question) -> Outcome:
    request = TailorRequest.parse(context=question.text, default_budget=app.settings.token_budget)
    form: Form = Markdown() if app.settings.format == "markdown" else Json(*ENVELOPE)
    documents = app.documents_of(DocumentRef(), request.selectors)
    with documents.collection.reading():
        finding = find(request, documents, app.settings.weights)
        written = answer(request, finding, form)
        selected, wrong = _right(documents, question)
        right = selected_lines(documents, selected)
        shown = [part for unit in written.plan.kept for part in unit.parts]
        ranked = [(hit.document, hit.section) for hit in finding.ranking.hits]
        rank = next((number for number, place in enumerate(ranked, 1) if place in right), None)
        if question.answers:
            answers = any(_overlap(part.lines, span) for part in shown for span in right.get(part.place, ()))
            above = ranked[: min(MAX_ABOVE, rank - 1)] if rank else ranked[:MAX_ABOVE]
        else:
            answers, above = not shown, [part.place for part in shown][:MAX_ABOVE]
        outcome = Outcome(
            question=question,
            passed=answers and not wrong,
            rank=rank,
            tokens=documents.counter.count(written.text),
            verdict=finding.verdict.state,
            absent=finding.verdict.absent,
            above=tuple(documents.selector(place, own=True, by_path=True) for place in dict.fromkeys(above)),
            wrong=wrong,
        )
        with app.state.lock:
            for of in (documents.collection.state, _view(app)):
                app.state.outcomes[_key(app, question, of)] = outcome
        return outcome


def _overlap(first: Span, second: Span) -> bool:
    return first.start < second.stop and second.start < first.stop


def _right(documents: DocumentSet, question: Question) -> tuple[list[Selected], tuple[str, ...]]:
    """Return the right sections of a question, and the problems of selectors without sections."""
    scope = documents.scope()
    selected: list[Selected] = []
    wrong: list[str] = []
    for text in question.answers:
        try:
            selected += _selected(scope, text)
        except NPLError as error:
            wrong.append(f"{text}: {error}")
    return selected, tuple(wrong)


def _selected(scope: Scope, text: str) -> tuple[Selected, ...]:
    """Return the sections of a selector with complete names: a beginning may be that of another name.

    A heading may have more words in brackets than the selector.
    """
    selector = compile_selector(text)
    sections, last = select_in(scope, selector), selector.steps[-1].name
    heads = heads_in(scope, selector)
    names = (scope.trees[tree].sections[index].name for tree, index in heads)
    if last is not None and not scope.called(heads, last) and not all(_extends(name, last) for name in names):
        raise SectionNotFoundError("no section has this name; it is only the beginning of a name")
    return sections


def _extends(name: str, beginning: str) -> bool:
    longer, short = name.casefold(), beginning.casefold()
    return longer.startswith(f"{short} (") or (short[-1:] == ")" and longer.startswith(f"{short[:-1]}, "))


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
        known = [_file_at(path) for path in paths] or files.question_files(app)
        outcomes = {
            file.name: tuple(result_of(ask_one(app, question)) for question in file.questions)
            for file in known
        }
        return Tested(outcomes, files.problems_of(known) or (() if known else (_NO_FILE,)))


def _file_at(path: str) -> QuestionFile:
    try:
        with Path(path).open("rb") as file:
            return files.read_questions(file.read(files.MAX_BYTES + 1), path)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from None
