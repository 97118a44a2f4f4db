"""What the first answer to a question holds. The answer is made as ``npl_load_tailored`` makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from npl_index.answer.assembling import Known, selected_lines
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.suggestions import Companions
from npl_index.answer.tailoring import Answered, Findings, TailorRequest, answer, find
from npl_index.errors import NPLError, SectionNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import Selected, heads_in, select_in
from npl_mcp.core.app import App
from npl_mcp.core.waiting import waited
from npl_mcp.questions.format import Question
from npl_mcp.tools.npl import found_in
from npl_mcp.tools.responses import ENVELOPE, as_dict

ABOVE = 3
"""Sections that are named because they stood above the right one."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the first answer to a question holds.

    :param question: with the selectors of the sections that answer it.
    :param held: one of these sections is in the text of the answer; for ``nowhere``, the answer has no text.
    :param rank: of the best of these sections, from 1; ``None`` if none of them is ranked.
    :param tokens: of the whole answer as it is sent.
    :param verdict: ``held``, ``weak`` or ``absent``: what the answer says of its evidence.
    :param absent: words of the question that no section has.
    :param above: selectors of the best sections that stood above the right one, or that were handed over
        although nothing answers the question.
    :param wrong: for each selector of the question that selects nothing, why.
    """

    question: Question
    held: bool
    rank: int | None
    tokens: int
    verdict: Literal["held", "weak", "absent"]
    absent: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """It is held, and all selectors of the question select something."""
        return self.held and not self.wrong

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as JSON holds them."""
        found: dict[str, Any] = as_dict(self)
        return found

    @classmethod
    def of_dict(cls, stored: Mapping[str, Any]) -> Outcome:
        """Return what :meth:`as_dict` was made from."""
        asked = stored["question"]
        question = Question(asked["text"], tuple(asked["answers"]), asked.get("line"))
        lists = {name: tuple(stored[name]) for name in ("absent", "above", "wrong")}
        return cls(**{"rank": None, **stored, **lists, "question": question})


@dataclass(frozen=True, slots=True)
class Difference:
    """A question that two runs answer differently.

    :param before: its outcome in the first run, if it was asked.
    :param after: its outcome in the second run, if it was asked.
    :param lost: sentences of the first answer that the right sections no longer have.
    """

    before: Outcome | None
    after: Outcome | None
    lost: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """It passed before, and does not now, or its answer has lost sentences."""
        passed = bool(self.before and self.before.passed and self.after)
        return passed and bool(self.lost or (self.after and not self.after.passed))

    @property
    def better(self) -> bool:
        """It passes now, and did not before."""
        return bool(self.before and not self.before.passed and self.after and self.after.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as JSON holds them."""
        return {**as_dict(self), "worse": self.worse, "better": self.better}


def ask(app: App, questions: Iterable[Question], ref: DocumentRef | None = None) -> Iterator[Outcome]:
    """Ask questions one after another; whoever stops iterating cancels the rest.

    :param ref: the documents that are asked, by default those of a call without ``file``.
    :raises DocumentNotFoundError: there are no documents.
    :raises DocumentError: they cannot be used.
    """
    for question in questions:
        yield ask_one(app, question, ref)


def ask_one(app: App, question: Question, ref: DocumentRef | None = None) -> Outcome:
    """Ask one question; see :func:`ask`."""
    return answered(app, question, ref).outcome


class Asked(NamedTuple):
    """An outcome with the texts that it is about.

    :param shown: what the answer holds of the right sections.
    :param right: the right sections whole.
    :param places: for each section that a selector names: the selector, the file, the number of the section.
    """

    outcome: Outcome
    shown: str
    right: str
    places: tuple[tuple[str, str, int], ...]


def answered(app: App, question: Question, ref: DocumentRef | None = None) -> Asked:
    """Ask one question, and return the texts as well; see :func:`ask`."""
    call = app.unchanging(lambda: _asked(app, question, ref or DocumentRef()))
    return waited(call, app.settings.patience)


def compare(before: Iterable[Outcome], after: Iterable[Outcome]) -> tuple[Difference, ...]:
    """Return the questions that two runs answer differently, those that got worse first."""
    old = {one.question.text: one for one in before}
    new = {one.question.text: one for one in after}
    pairs = (Difference(old.get(text), new.get(text)) for text in {**new, **old})
    changed = (one for one in pairs if _plain(one.before) != _plain(one.after))
    return tuple(sorted(changed, key=lambda one: (not one.worse, one.better)))


def _plain(outcome: Outcome | None) -> Outcome | None:
    return outcome and replace(outcome, question=replace(outcome.question, line=None))


async def _asked(app: App, question: Question, ref: DocumentRef) -> Asked:
    request = TailorRequest.parse(context=question.text, default_budget=app.settings.token_budget)
    form: Form = Markdown() if app.settings.format == "markdown" else Json(*ENVELOPE)
    async with found_in(app, ref, request) as (request, documents):
        with documents.collection.reading():
            found = find(request, documents, app.settings.weights)
            made = answer(request, found, documents, form, Companions())
            selected, wrong = _right(documents, question)
            right = selected_lines(documents, [one for _, one in selected])
            outcome = _outcome(question, documents, found, made, right, wrong)
            parts = (part for unit in made.packed.kept for part in unit.parts if part.place in right)
            shown = "\n\n".join(map(made.documents.part_text, parts))
            places = ((text, documents.path(one.tree), one.head) for text, one in selected)
            return Asked(outcome, shown, "\n\n".join(map(documents.text, right)), tuple(places))


def _outcome(
    question: Question,
    documents: DocumentSet,
    found: Findings,
    made: Answered,
    right: Known,
    wrong: tuple[str, ...],
) -> Outcome:
    shown = [part for unit in made.packed.kept for part in unit.parts]
    places = [(hit.document, hit.section) for hit in found.hits]
    rank = next((number for number, place in enumerate(places, 1) if place in right), None)
    if question.answers:
        held = any(_overlaps(part.lines.start, part.lines.stop, right.get(part.place, ())) for part in shown)
        above = places[: min(ABOVE, rank - 1)] if rank else places[:ABOVE]
    else:
        held, above = not shown, [part.place for part in shown][:ABOVE]
    return Outcome(
        question=question,
        held=held,
        rank=rank,
        tokens=documents.counter.count(made.written.text),
        verdict=found.evidence.verdict,
        absent=found.evidence.absent,
        above=tuple(documents.selector(place, own=True, by_path=True) for place in dict.fromkeys(above)),
        wrong=wrong,
    )


def _overlaps(start: int, stop: int, spans: Sequence[Any]) -> bool:
    return any(start < span.stop and span.start < stop for span in spans)


def _right(documents: DocumentSet, question: Question) -> tuple[list[tuple[str, Selected]], tuple[str, ...]]:
    """Return what the selectors of a question select, and why others select nothing."""
    scope = documents.scope()
    selected: list[tuple[str, Selected]] = []
    wrong: list[str] = []
    for text in question.answers:
        try:
            selected += ((text, one) for one in _selected(scope, text))
        except NPLError as error:
            wrong.append(f"{text}: {error.message}")
    return selected, tuple(wrong)


def _selected(scope: Scope, text: str) -> tuple[Selected, ...]:
    """Return what a selector selects; the beginning of a name is not enough, since it may be another's."""
    selector = compile_selector(text)
    found, last = select_in(scope, selector), selector.steps[-1].name
    heads = heads_in(scope, selector)
    if last is not None and not scope.called(heads, last):
        raise SectionNotFoundError("no section is called so; it is only the beginning of a name")
    return found
