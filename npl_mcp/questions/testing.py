"""The work of ``npl-load test``: asks the questions of some folders, and says what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_mcp.config.settings import Settings
from npl_mcp.core.app import App
from npl_mcp.questions.against import against
from npl_mcp.questions.files import QuestionFile, question_files
from npl_mcp.questions.format import Question, read_questions, written
from npl_mcp.questions.proposing import Proposal, draft, from_calls
from npl_mcp.questions.repairs import Repair, propose, write_repairs
from npl_mcp.questions.running import Difference, Outcome, ask
from npl_mcp.tools.responses import as_dict

MISSED, UNREADABLE = 1, 2
"""Exit codes: a question is missed, or got worse; a question file cannot be read, or there is none."""


@dataclass(frozen=True, slots=True)
class Tested:
    """What came of a test.

    :param outcomes: by the name of the question file.
    :param problems: what cannot be read, with file, line and column.
    :param differences: since a revision; ``None`` if nothing was compared.
    """

    outcomes: dict[str, tuple[Outcome, ...]]
    problems: tuple[str, ...] = ()
    differences: tuple[Difference, ...] | None = None

    @property
    def every(self) -> tuple[Outcome, ...]:
        """All outcomes."""
        return tuple(one for some in self.outcomes.values() for one in some)

    @property
    def code(self) -> int:
        """The exit code."""
        if self.problems:
            return UNREADABLE
        if self.differences is not None:
            return MISSED if any(one.worse for one in self.differences) else 0
        return 0 if all(one.passed for one in self.every) else MISSED

    def as_dict(self) -> dict[str, Any]:
        """Return its fields as JSON holds them, and sums."""
        held = sum(one.passed for one in self.every)
        differences = self.differences and [one.as_dict() for one in self.differences]
        return {**as_dict(self), "differences": differences, "held": held, "asked": len(self.every)}

    def lines(self) -> Iterator[str]:
        """Yield a report for people: a line for each question, and more for one that is missed."""
        for file, outcomes in self.outcomes.items():
            yield f"{file}: {sum(one.passed for one in outcomes)} of {len(outcomes)} held"
            for one in outcomes:
                rank = "-" if one.rank is None else str(one.rank)
                state = "held" if one.passed else "MISS"
                yield f"  {state}  rank {rank:>3}  {one.tokens:>4} tokens  {one.question.text}"
                yield from (f"        {line}" for line in (() if one.passed else _reasons(file, one)))
        yield from self.problems
        if self.differences is not None:
            worse = [one for one in self.differences if one.worse and one.after]
            yield f"{len(worse)} worse, {sum(one.better for one in self.differences)} better than before"
            for difference in worse:
                assert difference.after is not None
                yield f"  WORSE {difference.after.question.text}"
                yield from (f"        lost: {sentence}" for sentence in difference.lost)

    def junit(self) -> str:
        """Return a report that programs for continuous integration read."""
        top = ElementTree.Element("testsuites", name="npl-load test")
        worse = {one.after.question.text: one for one in self.differences or () if one.worse and one.after}
        for file, outcomes in self.outcomes.items():
            failures = [bool(_failure(file, one, self.differences, worse)) for one in outcomes]
            counts = {"tests": str(len(outcomes)), "failures": str(sum(failures))}
            suite = ElementTree.SubElement(top, "testsuite", {"name": file, **counts})
            for one in outcomes:
                case = ElementTree.SubElement(suite, "testcase", classname=file, name=one.question.text)
                case.set("file", file)
                case.set("line", str(one.question.line or 1))
                if text := _failure(file, one, self.differences, worse):
                    ElementTree.SubElement(case, "failure", message=text.split("\n")[0]).text = text
        for problem in self.problems:
            counts = {"tests": "1", "errors": "1"}
            suite = ElementTree.SubElement(top, "testsuite", {"name": problem.partition(":")[0], **counts})
            case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name="format")
            ElementTree.SubElement(case, "error", message=problem)
        ElementTree.indent(top)
        return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _failure(
    file: str, one: Outcome, differences: Sequence[Difference] | None, worse: dict[str, Difference]
) -> str:
    if differences is None:
        return "" if one.passed else "\n".join(_reasons(file, one))
    found = worse.get(one.question.text)
    lines = [*_reasons(file, one), *(f"lost: {sentence}" for sentence in found.lost)] if found else []
    return "\n".join(lines)


def _reasons(file: str, one: Outcome) -> Iterator[str]:
    """Yield why a question is missed."""
    answers = ", ".join(one.question.answers) or "nowhere"
    yield f"{file}:{one.question.line or 1}: expected {answers}"
    yield from (f"wrong selector: {wrong}" for wrong in one.wrong)
    if one.absent:
        yield f"no section has: {', '.join(one.absent)}"
    if one.above and not one.held:
        yield f"{'above' if one.question.answers else 'in the answer'}: {'; '.join(one.above)}"


class Testing:
    """Questions and the documents that are asked.

    :param app: has the roots.
    :param paths: question files; by default those below the roots and in the data folder.
    :param ref: the documents that are asked.
    """

    def __init__(self, app: App, paths: Sequence[str], ref: DocumentRef) -> None:
        self._app, self._ref = app, ref
        every = question_files(app)
        self._files = [_given(path) for path in paths] if paths else list(every)
        texts = {one.text for file in self._files for one in file.questions}
        self._others = [one for file in every for one in file.questions if one.text not in texts]

    @property
    def questions(self) -> list[Question]:
        """The questions of all files."""
        return [one for file in self._files for one in file.questions]

    def test(self, revision: str | None = None) -> Tested:
        """Ask all questions.

        :param revision: of git; what got worse since then is told.
        :raises InvalidRequestError: a root lies in no git repository, or it has no such revision.
        """
        outcomes = {one.name: tuple(ask(self._app, one.questions, self._ref)) for one in self._files}
        problems = [
            f"{file.name}:{one.line}:{one.column}: {one.message}"
            for file in self._files
            for one in file.problems
        ]
        if not self._files:
            problems.append("there is no question file: name one questions.md or NAME.questions.md")
        differences = revision and against(self._app, self.questions, self._ref, revision)
        return Tested(outcomes, tuple(problems), differences or (None if revision is None else ()))

    def repairs(self) -> list[Repair]:
        """Return repairs for the questions that are missed."""
        return list(propose(self._app, self.questions, self._ref, self._others))

    def write(self, repairs: Sequence[Repair]) -> None:
        """Write repairs; see :func:`~npl_mcp.questions.repairs.write_repairs`."""
        write_repairs(self._app, repairs)

    def draft(self) -> list[Outcome]:
        """Return questions from the links among the documents, asked."""
        return list(draft(self._app, self._ref))

    def from_calls(self) -> tuple[Proposal, ...]:
        """Return questions from the log of calls."""
        return from_calls(self._app, self._ref)


def _given(path: str) -> QuestionFile:
    try:
        read = read_questions(Path(path).read_bytes())
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from None
    return QuestionFile(path, read.questions, read.problems, "", writable=False)


@contextmanager
def testing(settings: Settings, paths: Sequence[str], file: str | None) -> Iterator[Testing]:
    """Give the questions and the documents of a command.

    :param paths: of question files.
    :param file: the documents that are asked, as the tools take it; by default all below the roots.
    :raises InvalidRequestError: a question file cannot be read.
    """
    app = App(settings)
    try:
        yield Testing(app, paths, DocumentRef(file=file))
    finally:
        app.close()


def drafted(outcomes: Sequence[Outcome]) -> str:
    """Return a question file of a draft."""
    return written((one.question for one in outcomes), "Questions from links among the documents")


def proposed(proposals: Iterable[Proposal]) -> str:
    """Return a question file of proposals; comments say where they come from."""
    parts = ["# Questions from calls"]
    for one in proposals:
        times = f"{one.calls} call{'s' * (one.calls != 1)}"
        head, _, rest = one.question.written().partition("\n\n")
        parts.append(f"{head}\n\n<!-- {one.why}, {times}; check what answers it -->\n{rest.rstrip()}")
    return "\n\n".join(parts) + "\n"
