"""Outcomes of questions, and runs of questions in the background with their stored results.

The answer to a question is the first answer of ``npl_load_tailored``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NamedTuple

from npl_index.answer.assembling import selected_lines
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.forms import Form, Json, Markdown
from npl_index.answer.suggestions import Companions
from npl_index.answer.tailoring import TailorRequest, answer, find
from npl_index.errors import InvalidRequestError, NPLError, SectionNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.library.files import Folder
from npl_index.markdown.sections import Span
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.matching import Scope
from npl_index.selectors.selection import Selected, heads_in, select_in
from npl_mcp import __version__
from npl_mcp.app.app import App
from npl_mcp.app.lanes import lane
from npl_mcp.app.waiting import waited
from npl_mcp.questions.files import Question
from npl_mcp.stores.base.errors import StorageError
from npl_mcp.stores.base.folder import FILE, FOLDER, QUESTION_FOLDER, private_folder
from npl_mcp.stores.base.paging import now
from npl_mcp.tools.contract.responses import ENVELOPE, as_dict

MAX_ABOVE = 3
"""Named sections with a better rank than the right one."""

MAX_RUNS = 50
"""Stored runs."""

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of the file of runs."""

RUNNING, DONE, CANCELLED = "running", "done", "cancelled"

_FILE = "runs.jsonl"
_LOCK_SECONDS = 10
"""Time to wait for another process that writes the file."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a question's first answer.

    :param question: question with the selectors of its right sections.
    :param held: whether a right section is in the text of the answer; for ``nowhere``, whether the answer has
        no text.
    :param rank: rank of the best right section, from 1; ``None`` if no right section is ranked.
    :param tokens: tokens of the whole answer as it is sent.
    :param verdict: verdict of the answer: ``held``, ``weak`` or ``absent``.
    :param absent: words of the question that no section has.
    :param above: selectors of the best sections with a better rank than the right one, or of sections in the
        answer to a question without right sections.
    :param wrong: selectors of the question that select nothing, with the reasons.
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
        """Whether a right section is held, and all selectors of the question are valid."""
        return self.held and not self.wrong

    @classmethod
    def of_dict(cls, stored: Mapping[str, Any]) -> Outcome:
        """Return an outcome from the result of :func:`as_dict`."""
        asked = stored["question"]
        question = Question(asked["text"], tuple(asked["answers"]), asked.get("line"))
        lists = {name: tuple(stored[name]) for name in ("absent", "above", "wrong")}
        return cls(**{"rank": None, **stored, **lists, "question": question})


@dataclass(frozen=True, slots=True)
class Difference:
    """A question with different outcomes in two runs.

    :param before: outcome in the first run, if the question was asked.
    :param after: outcome in the second run, if the question was asked.
    :param lost: sentences of the first answer that the right sections no longer have.
    """

    before: Outcome | None
    after: Outcome | None
    lost: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether the question passed only in the first run, or its answer lost sentences."""
        passed = bool(self.before and self.before.passed and self.after)
        return passed and bool(self.lost or (self.after and not self.after.passed))

    @property
    def better(self) -> bool:
        """Whether the question passed only in the second run."""
        return bool(self.before and not self.before.passed and self.after and self.after.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as JSON holds them."""
        return {**as_dict(self), "worse": self.worse, "better": self.better}


def ask_one(app: App, question: Question, ref: DocumentRef | None = None) -> Outcome:
    """Ask one question.

    :param ref: documents to ask; by default those of a call without ``file``.
    :raises DocumentNotFoundError: there are no documents.
    :raises DocumentError: a document cannot be read.
    """
    return answered(app, question, ref).outcome


class Asked(NamedTuple):
    """An outcome with its texts.

    :param outcome: the outcome.
    :param shown: parts of the right sections in the answer.
    :param right: whole right sections.
    :param places: selector, file and section number of each right section.
    """

    outcome: Outcome
    shown: str
    right: str
    places: tuple[tuple[str, str, int], ...]


def answered(app: App, question: Question, ref: DocumentRef | None = None) -> Asked:
    """Ask one question and return the outcome with its texts; see :func:`ask_one`."""
    call = app.unchanging(lambda: _asked(app, question, ref or DocumentRef()))
    return waited(call, app.settings.patience)


def compare(before: Iterable[Outcome], after: Iterable[Outcome]) -> tuple[Difference, ...]:
    """Return the questions with different outcomes in two runs; worse ones come first."""
    old = {outcome.question.text: outcome for outcome in before}
    new = {outcome.question.text: outcome for outcome in after}
    pairs = (Difference(old.get(text), new.get(text)) for text in {**new, **old})
    changed = (pair for pair in pairs if _without_line(pair.before) != _without_line(pair.after))
    return tuple(sorted(changed, key=lambda pair: (not pair.worse, pair.better)))


def _without_line(outcome: Outcome | None) -> Outcome | None:
    return outcome and replace(outcome, question=replace(outcome.question, line=None))


async def _asked(app: App, question: Question, ref: DocumentRef) -> Asked:
    request = TailorRequest.parse(context=question.text, default_budget=app.settings.token_budget)
    form: Form = Markdown() if app.settings.format == "markdown" else Json(*ENVELOPE)
    documents = await app.gathered(ref, request.selectors)
    with documents.collection.reading():
        found = find(request, documents, app.settings.weights)
        made = answer(request, found, documents, form, Companions())
        selected, wrong = _right(documents, question)
        right = selected_lines(documents, [one for _, one in selected])
        shown = [part for unit in made.packed.kept for part in unit.parts]
        ranked = [(hit.document, hit.section) for hit in found.hits]
        rank = next((number for number, place in enumerate(ranked, 1) if place in right), None)
        if question.answers:
            held = any(_overlap(part.lines, span) for part in shown for span in right.get(part.place, ()))
            above = ranked[: min(MAX_ABOVE, rank - 1)] if rank else ranked[:MAX_ABOVE]
        else:
            held, above = not shown, [part.place for part in shown][:MAX_ABOVE]
        outcome = Outcome(
            question=question,
            held=held,
            rank=rank,
            tokens=documents.counter.count(made.written.text),
            verdict=found.evidence.verdict,
            absent=found.evidence.absent,
            above=tuple(documents.selector(one, own=True, by_path=True) for one in dict.fromkeys(above)),
            wrong=wrong,
        )
        texts = map(made.documents.part_text, (part for part in shown if part.place in right))
        places = ((text, documents.path(one.tree), one.head) for text, one in selected)
        whole = "\n\n".join(map(documents.text, right))
        return Asked(outcome, "\n\n".join(texts), whole, tuple(places))


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.stop and other.start < one.stop


def _right(documents: DocumentSet, question: Question) -> tuple[list[tuple[str, Selected]], tuple[str, ...]]:
    """Return the right sections of a question with their selectors, and the problems of other selectors."""
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
    """Return the sections of a selector with complete names: a beginning may be that of another name.

    A heading may have more words in brackets than the selector.
    """
    selector = compile_selector(text)
    found, last = select_in(scope, selector), selector.steps[-1].name
    heads = heads_in(scope, selector)
    names = (scope.trees[tree].sections[index].name for tree, index in heads)
    if last is not None and not scope.called(heads, last) and not all(_extends(name, last) for name in names):
        raise SectionNotFoundError("no section has this name; it is only the beginning of a name")
    return found


def _extends(name: str, beginning: str) -> bool:
    longer, short = name.casefold(), beginning.casefold()
    return longer.startswith(f"{short} (") or (short[-1:] == ")" and longer.startswith(f"{short[:-1]}, "))


@dataclass(slots=True)
class Run:
    """A run of questions, which are asked one after another.

    :param id: time of its start; ids only grow.
    :param file: name of the question file; empty for all files.
    :param total: number of questions.
    :param owner: name of the token that started it; empty without tokens.
    :param version: version of npl.
    :param state: ``running``, ``done``, ``cancelled``, or the reason of its failure.
    :param outcomes: outcomes in the order of the questions.
    """

    id: str
    file: str
    total: int
    owner: str = ""
    version: str = __version__
    state: str = RUNNING
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def held(self) -> int:
        """Number of questions that passed."""
        return sum(outcome.passed for outcome in self.outcomes)

    @property
    def reciprocal_rank(self) -> float | None:
        """Mean of 1 / rank over the questions with right sections, from 0 to 1."""
        answerable = (outcome for outcome in self.outcomes if outcome.question.answers)
        ranks = [1 / outcome.rank if outcome.rank else 0.0 for outcome in answerable]
        return fmean(ranks) if ranks else None

    @property
    def tokens(self) -> int | None:
        """Mean tokens of an answer."""
        return round(fmean(outcome.tokens for outcome in self.outcomes)) if self.outcomes else None

    @classmethod
    def of_dict(cls, stored: dict[str, Any]) -> Run:
        """Return a run from the result of :func:`as_dict`."""
        return cls(**{**stored, "outcomes": [Outcome.of_dict(part) for part in stored["outcomes"]]})


class Runs:
    """The runs of one server: finished runs in a file of its data folder, the others in memory.

    :param folder: data folder of the server.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._going: dict[str, tuple[Run, asyncio.Task[None]]] = {}

    def all(self, owner: str | None = None) -> list[Run]:
        """Return the runs, newest first.

        :param owner: owner of the runs; ``None`` for all runs.
        """
        every = [*(run for run, _ in self._going.values()), *self._stored()]
        by_id = {run.id: run for run in reversed(every)}
        return [by_id[key] for key in sorted(by_id, reverse=True) if owner in (None, by_id[key].owner)]

    def start(self, app: App, questions: Sequence[Question], file: str, owner: str) -> Run:
        """Start a run; to be called on the event loop.

        :param app: the caller's view of the documents.
        :raises InvalidRequestError: a run of this owner is in progress, or there are no questions.
        """
        if not questions:
            raise InvalidRequestError("there are no questions to run", hint="write some")
        if any(run.owner == owner for run, _ in self._going.values()):
            raise InvalidRequestError("a run is in progress", hint="wait for it or cancel it")
        run = Run(now(), file, len(questions), owner)
        self._going[run.id] = (run, asyncio.create_task(self._run(app, run, questions)))
        return run

    def cancel(self, id: str) -> None:
        """Stop a run after its present question."""
        if id in self._going:
            self._going[id][0].state = CANCELLED

    async def _run(self, app: App, run: Run, questions: Sequence[Question]) -> None:
        try:
            for question in questions:
                if run.state != RUNNING:
                    break
                run.outcomes.append(await lane("heavy").run(ask_one, app, question))
            run.state = DONE if run.state == RUNNING else run.state
        except NPLError as error:
            run.state = str(error)
        with suppress(StorageError):
            await lane("light").run(self._store, replace(run))
        del self._going[run.id]

    def _stored(self) -> list[Run]:
        try:
            with Folder.opened(self._folder, QUESTION_FOLDER) as folder:
                lines = folder.read(_FILE, MAX_BYTES)[0].splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _refused(error) from error
        return [Run.of_dict(json.loads(line)) for line in lines]

    def _store(self, run: Run) -> None:
        try:
            private_folder(self._folder)
            with (
                Folder.opened(self._folder, QUESTION_FOLDER, make=True, mode=FOLDER) as folder,
                folder.locked(_LOCK_SECONDS),
            ):
                runs = [*self._stored(), run][-MAX_RUNS:]
                lines = (json.dumps(as_dict(stored), ensure_ascii=False) + "\n" for stored in runs)
                folder.replace(_FILE, "".join(lines).encode("utf-8", "replace"), mode=FILE)
        except OSError as error:
            raise _refused(error) from error


@cache
def runs_of(folder: Path) -> Runs:
    """Return the runs of a data folder."""
    return Runs(folder)


def _refused(error: OSError) -> StorageError:
    return StorageError(f"the runs of questions cannot be read or written: {error.strerror or error}")
