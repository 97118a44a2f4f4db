"""Tests of documents by their questions, for ``npl-load test``, with reports.

A test may compare the documents with those of a git revision: questions with a worse outcome, and lost
sentences of their answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.config.settings import Settings
from npl_mcp.questions.files import (
    MAX_BYTES,
    Question,
    QuestionFile,
    problems_of,
    question_files,
    read_questions,
)
from npl_mcp.questions.outcomes import Asked, Difference, Outcome, answered, ask_one
from npl_mcp.questions.trial import Trial
from npl_mcp.tools.contract.responses import as_dict

MISSED, UNREADABLE = 1, 2
"""Exit codes: a question fails or got worse; a question file is invalid or missing."""

MIN_SIMILARITY = 70
"""Similarity in percent of two sentences with the same meaning."""

_NO_FILE = "there is no question file: create questions.md or NAME.questions.md"

_MIN_WORDS = 3
"""Words of the shortest sentence."""

_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*(?:[-*+|>#]|\d+\.))")


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of a test.

    :param outcomes: outcomes by name of the question file.
    :param problems: invalid places of question files, with line and column.
    :param differences: differences from a revision; ``None`` without a comparison.
    """

    outcomes: dict[str, tuple[Outcome, ...]]
    problems: tuple[str, ...] = ()
    differences: tuple[Difference, ...] | None = None

    @property
    def every(self) -> tuple[Outcome, ...]:
        """All outcomes."""
        return tuple(outcome for outcomes in self.outcomes.values() for outcome in outcomes)

    @property
    def worse(self) -> dict[str, tuple[str, ...]]:
        """The questions that got worse, with the lost sentences of their answers."""
        return {pair.after.question.text: pair.lost for pair in self.differences or () if pair.worse}

    @property
    def code(self) -> int:
        """The exit code."""
        if self.problems:
            return UNREADABLE
        if self.differences is not None:
            return MISSED if self.worse else 0
        return 0 if all(outcome.passed for outcome in self.every) else MISSED

    def as_dict(self) -> dict[str, Any]:
        """Return its fields and sums as JSON."""
        passed = sum(outcome.passed for outcome in self.every)
        differences = self.differences and [pair.as_dict() for pair in self.differences]
        return {**as_dict(self), "differences": differences, "passed": passed, "asked": len(self.every)}

    def lines(self) -> Iterator[str]:
        """Yield a report for people: a line for each question, with more lines for a failing one."""
        for file, outcomes in self.outcomes.items():
            yield f"{file}: {sum(outcome.passed for outcome in outcomes)} of {len(outcomes)} pass"
            for outcome in outcomes:
                rank = "-" if outcome.rank is None else str(outcome.rank)
                state = "pass" if outcome.passed else "FAIL"
                yield f"  {state}  rank {rank:>3}  {outcome.tokens:>4} tokens  {outcome.question.text}"
                yield from (f"        {line}" for line in (() if outcome.passed else _reasons(file, outcome)))
        yield from self.problems
        if self.differences is not None:
            better = sum(pair.better for pair in self.differences)
            yield f"{len(self.worse)} worse, {better} better than before"
            for text, lost in self.worse.items():
                yield f"  WORSE {text}"
                yield from (f"        lost: {sentence}" for sentence in lost)

    def junit(self) -> str:
        """Return a JUnit report for continuous integration."""
        top = ElementTree.Element("testsuites", name="npl-load test")
        for file, outcomes in self.outcomes.items():
            failures = [self._failure(file, outcome) for outcome in outcomes]
            counts = {"tests": str(len(outcomes)), "failures": str(sum(map(bool, failures)))}
            suite = ElementTree.SubElement(top, "testsuite", {"name": file, **counts})
            for outcome, text in zip(outcomes, failures, strict=True):
                case = ElementTree.SubElement(suite, "testcase", classname=file, name=outcome.question.text)
                case.set("file", file)
                case.set("line", str(outcome.question.line or 1))
                if text:
                    ElementTree.SubElement(case, "failure", message=text.split("\n")[0]).text = text
        for problem in self.problems:
            counts = {"tests": "1", "errors": "1"}
            suite = ElementTree.SubElement(top, "testsuite", {"name": problem.partition(":")[0], **counts})
            case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name="format")
            ElementTree.SubElement(case, "error", message=problem)
        ElementTree.indent(top)
        return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"

    def _failure(self, file: str, outcome: Outcome) -> str:
        """Return the reasons why a question fails; empty if it passes."""
        if self.differences is None:
            return "" if outcome.passed else "\n".join(_reasons(file, outcome))
        lost = self.worse.get(outcome.question.text)
        if lost is None:
            return ""
        return "\n".join([*_reasons(file, outcome), *(f"lost: {sentence}" for sentence in lost)])


def _reasons(file: str, outcome: Outcome) -> Iterator[str]:
    """Yield the reasons why a question fails."""
    answers = ", ".join(outcome.question.answers) or "nowhere"
    yield f"{file}:{outcome.question.line or 1}: expected {answers}"
    yield from (f"wrong selector: {wrong}" for wrong in outcome.wrong)
    if outcome.absent:
        yield f"no section has: {', '.join(outcome.absent)}"
    if outcome.above and not outcome.wrong:
        yield f"{'above' if outcome.question.answers else 'in the answer'}: {'; '.join(outcome.above)}"


def run_tests(settings: Settings, paths: Sequence[str], revision: str | None = None) -> Tested:
    """Ask the questions of question files.

    :param paths: paths of question files; by default those below the roots and in the data folder.
    :param revision: git revision to compare with.
    :raises InvalidRequestError: a question file cannot be read; or a root is not in a git repository, or the
        repository has no such revision.
    """
    with closing(App(settings)) as app:
        ref = DocumentRef()
        files = [_file_at(path) for path in paths] or question_files(app)
        outcomes = {
            file.name: tuple(ask_one(app, question, ref) for question in file.questions) for file in files
        }
        problems = problems_of(files) or (() if files else (_NO_FILE,))
        differences = None
        if revision is not None:
            questions = [question for file in files for question in file.questions]
            differences = against(app, questions, ref, revision)
        return Tested(outcomes, problems, differences)


def against(
    app: App, questions: Sequence[Question], ref: DocumentRef, revision: str
) -> tuple[Difference, ...]:
    """Ask the documents of a git revision and the present ones, and return the differences.

    A question of the revision is asked with its former selectors.

    :param questions: present questions.
    :param ref: documents to ask.
    :param revision: branch, tag or commit of git.
    :raises InvalidRequestError: a root is not in a git repository, or the repository has no such revision.
    """
    with Trial.at(app, revision) as trial:
        former = {
            question.text: question for file in question_files(trial.app) for question in file.questions
        }
        known = [former.get(question.text, replace(question, line=None)) for question in questions]
        before = [answered(trial.app, question, ref) for question in known]
    differences = []
    for old, question in zip(before, questions, strict=True):
        new = answered(app, question, ref)
        lost = lost_sentences(old, new) if old.outcome.passed and new.outcome.passed else ()
        if lost or _without_line(old.outcome) != _without_line(new.outcome):
            differences.append(Difference(old.outcome, new.outcome, lost))
    return tuple(sorted(differences, key=lambda pair: (not pair.worse, pair.better)))


def _without_line(outcome: Outcome) -> Outcome:
    return replace(outcome, question=replace(outcome.question, line=None))


def lost_sentences(old: Asked, new: Asked) -> tuple[str, ...]:
    """Return the sentences of an answer that the right sections lost without replacing them."""
    lost = _missing(sentences(old.shown), sentences(new.right))
    added = _missing(sentences(new.right), sentences(old.right)) if lost else []
    return tuple(lost) if len(added) < len(lost) else ()


def _missing(known: Sequence[str], others: Sequence[str]) -> list[str]:
    from rapidfuzz import fuzz, process

    options: dict[str, Any] = {"scorer": fuzz.ratio, "score_cutoff": MIN_SIMILARITY}
    new = [sentence for sentence in known if sentence not in set(others)]
    return [sentence for sentence in new if process.extractOne(sentence, others, **options) is None]


def sentences(text: str) -> list[str]:
    """Return the sentences and list items of a text on one line each, without headings."""
    parts = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [part for part in parts if not part.startswith("#") and len(part.split()) >= _MIN_WORDS]


def _file_at(path: str) -> QuestionFile:
    try:
        with Path(path).open("rb") as file:
            return read_questions(file.read(MAX_BYTES + 1), path)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from None
