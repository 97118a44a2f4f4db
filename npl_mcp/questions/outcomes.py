"""Outcomes of questions. The answer to a question is the first answer of ``npl_load_tailored``."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, cast

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.request import TailorRequest
from npl_index.answer.tailoring import answer, find
from npl_index.answer.units import selected_lines
from npl_index.errors import NPLError, SectionNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import Span
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import Selected, heads_in, select_in
from npl_mcp.app.context import Context
from npl_mcp.app.waiting import HURRY
from npl_mcp.questions.files import Question
from npl_mcp.tools.contract.responses import ENVELOPE

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
