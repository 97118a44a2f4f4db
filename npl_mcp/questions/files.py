"""Question files, below the roots and in the data folder.

They are Markdown that names, below each question, the sections that answer it.

::

    ## How large may an upload be?

    - limits > ## Upload size

    ## How do I brew coffee?

    - nowhere

A heading of level 2 is a question. Its list items are selectors; each of these sections answers it. The
single item ``nowhere`` means that no section does. The text above the first question is free.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from npl_index.deadline import Deadline
from npl_index.errors import DocumentError, DocumentTooLargeError, InvalidRequestError, SelectorSyntaxError
from npl_index.library.files import read_below
from npl_index.library.references import QUESTION_SUFFIXES, has_suffix
from npl_index.library.roots import DocumentFile, unusable
from npl_index.library.walking import Walk
from npl_index.markdown.headings import MAX_HEADING
from npl_index.markdown.sections import Section, SectionTree, parse_sections
from npl_index.selectors.grammar import compile_selector
from npl_mcp.app.context import Context
from npl_mcp.app.section_edits import is_writable
from npl_mcp.documents.folders import SharedFolder
from npl_mcp.stores.base.errors import NotAllowedError
from npl_mcp.stores.base.folder import QUESTION_FOLDER, private_folder

NOWHERE = "nowhere"

DEFAULT_NAME = f"data folder:{QUESTION_SUFFIXES[0]}"
"""File for questions that are saved without a name."""

MAX_BYTES = 256 * 1024
"""Bytes of a question file, which has room for two thousand questions."""

MAX_PROBLEMS = 50
"""Reported problems of a file."""

MAX_ANSWERS = 100
"""Selectors of a question."""

READ_SECONDS = 10.0
"""Time to read all question files of a call."""

_DATA = "data folder"

_ITEM = re.compile(r" {0,3}[-*+][ \t]+(?:`(?P<code>[^`]+)`|(?P<plain>\S.*))$")
_COMMENT = re.compile(r"\s*<!--.*-->\s*$")
_LEVEL = 2
_EXPECTED = f"expected a list item with a selector or {NOWHERE!r}: - limits > ## Upload size"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its answers.

    :param text: text of the question, one line.
    :param answers: selectors of sections that answer it; empty if no section does.
    :param line: line of its heading in the file, from 1.
    """

    text: str
    answers: tuple[str, ...] = ()
    line: int | None = None

    def markdown(self) -> str:
        """Return its Markdown."""
        items = "\n".join(f"- {selector}" for selector in self.answers or (NOWHERE,))
        return f"## {self.text}\n\n{items}\n"


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A question file.

    :param name: path below a root, or ``data folder:NAME``.
    :param questions: valid questions, in order.
    :param problems: problems of the others, each with its place, ``NAME:LINE: …``; further ones are counted.
    """

    name: str
    questions: tuple[Question, ...]
    problems: tuple[str, ...]


def reading_time() -> Deadline:
    """Return the deadline for reading question files from now on."""
    return Deadline("question files", time.monotonic() + READ_SECONDS)


def read_questions(data: bytes, name: str = "questions", clock: Deadline | None = None) -> QuestionFile:
    """Read a question file; an invalid place becomes a problem.

    :param clock: deadline of the reading, by default that of one file.
    """
    try:
        questions, problems = _questions(data, clock or reading_time())
    except DocumentError as error:
        questions, problems = (), [(1, str(error))]
    lines = [f"{name}:{line}: {problem}" for line, problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(f"{name}: {len(problems) - MAX_PROBLEMS:,} more problems")
    return QuestionFile(name, questions, tuple(lines))


def _questions(data: bytes, clock: Deadline) -> tuple[tuple[Question, ...], list[tuple[int, str]]]:
    """Return the questions of a file, and its problems with their lines, both in order.

    :raises DocumentError: the file is too large, is not text, or takes too long.
    """
    if len(data) > MAX_BYTES:
        raise DocumentTooLargeError(f"the file has more than {MAX_BYTES:,} bytes", hint="split it")
    tree = parse_sections(data, "questions", deadline=clock.moment)
    questions: dict[str, Question] = {}
    problems: list[tuple[int, str]] = []
    for section in tree.sections:
        line, text, before = section.heading_lines.start + 1, section.heading, len(problems)
        if section.level < _LEVEL:
            continue
        if section.level > _LEVEL:
            problems.append((line, "expected a question, which is a heading of level 2: ## …"))
            continue
        if not text or len(text) >= MAX_HEADING:
            problems.append((line, f"expected a question of 1 to {MAX_HEADING - 1:,} characters"))
        elif text in questions:
            problems.append((line, f"line {questions[text].line} has the same question"))
        answers = _answers(tree, section, problems, clock)
        if len(problems) == before:
            questions[text] = Question(text, answers, line)
    return tuple(questions.values()), problems


def _answers(
    tree: SectionTree, section: Section, problems: list[tuple[int, str]], clock: Deadline
) -> tuple[str, ...]:
    """Return the selectors in the list below a question; empty for ``nowhere``.

    :param problems: list to which the problems of lines are added.
    """
    answers: list[str] = []
    heading = section.heading_lines.start + 1
    for number in range(section.heading_lines.stop, section.own.stop):
        clock.check()
        line = tree.line(number)
        if not line.strip() or _COMMENT.match(line):
            continue
        item = _ITEM.match(line.rstrip())
        answers.append("" if item is None else item["code"] or item["plain"])
        try:
            if item is None:
                problems.append((number + 1, _EXPECTED))
            elif answers[-1] != NOWHERE:
                compile_selector(answers[-1])
        except SelectorSyntaxError as error:
            problems.append((number + 1, f"{error.problem} at character {error.position + 1}"))
        except InvalidRequestError as error:
            problems.append((number + 1, error.message))
    if not answers:
        problems.append((heading, _EXPECTED))
    if len(answers) > MAX_ANSWERS:
        problems.append((heading, f"expected at most {MAX_ANSWERS} selectors below a question"))
    if NOWHERE in answers and len(answers) > 1:
        problems.append((heading, f"{NOWHERE!r} has to be the only item below its question"))
    return () if NOWHERE in answers else tuple(answers)


def with_question(data: bytes, question: Question) -> bytes:
    """Add a question at the end; all other lines stay unchanged.

    :param data: content of a question file.
    :raises InvalidRequestError: the question is invalid, or the file has it.
    :raises DocumentError: the file cannot be read, or is too large with the question.
    """
    before, text = data.rstrip(), question.markdown()
    added = (f"\n\n{text}" if before else text).encode()
    changed = before + (added.replace(b"\n", b"\r\n") if b"\r\n" in data else added)
    read, known = (_questions(part, reading_time())[0] for part in (changed, data))
    if [(new.text, new.answers) for new in read[len(known) :]] != [(question.text, question.answers)]:
        hint = "write one line, and a selector for each section; no question twice"
        raise InvalidRequestError(f"{question.text[:80]!r} cannot be written as a question", hint=hint)
    return changed


def question_files(app: Context) -> tuple[QuestionFile, ...]:
    """Return the question files that a caller may see; the files of the data folder come last."""
    clock = reading_time()
    return tuple(_read_file(name, file, clock) for name, file in _files(app))


def problems_of(files: Iterable[QuestionFile]) -> tuple[str, ...]:
    """Return the problems of files."""
    return tuple(problem for file in files for problem in file.problems)


def add_question(app: Context, question: Question) -> tuple[str, int | None]:
    """Add a question, unless a file has it, to the first writable file; the data folder's comes last.

    :returns: the name of the file, and the line of the question in it.
    :raises NotAllowedError: the caller sees no file that may be changed.
    :raises InvalidRequestError: the question is invalid, or the file has it.
    :raises StorageError: the file cannot be written.
    """
    for known in question_files(app):
        for same in known.questions:
            if (same.text, same.answers) == (question.text, question.answers):
                return known.name, same.line
    files = list(_files(app))
    if app.permissions.roots is None:
        files.append((DEFAULT_NAME, _in_data(app).file(QUESTION_SUFFIXES[0])))
    may_change = (row for row in files if _is_in_data(app, row[1]) or is_writable(app, row[1], row[0]))
    name, file = next(may_change, (None, None))
    if name is None or file is None:
        raise NotAllowedError("no question file may be changed", hint="write the question in an editor")
    if _is_in_data(app, file):
        private_folder(app.settings.data_folder)
    below, _, last = file.path.rpartition("/")
    folder, edit = SharedFolder(file.root.path, below, MAX_BYTES), partial(with_question, question=question)
    if os.path.exists(file.absolute):  # noqa: PTH110
        folder.change(last, name, edit)
    else:
        folder.create(last, name, edit(b""))
    read = _read_file(name, file, reading_time()).questions
    return name, next((known.line for known in read if known.text == question.text), None)


def _in_data(app: Context) -> SharedFolder:
    return SharedFolder(os.path.realpath(app.settings.data_folder), QUESTION_FOLDER)


def _is_in_data(app: Context, file: DocumentFile) -> bool:
    return file == _in_data(app).file(file.path.rpartition("/")[2])


def _files(app: Context) -> Iterator[tuple[str, DocumentFile]]:
    """Yield the files with their names; a caller with limited roots does not see the data folder."""
    roots = app.library.roots
    searched = (os.path.realpath(root.path) for root in app.library.searched)
    found = chain.from_iterable(Walk(roots, QUESTION_SUFFIXES).files(path) for path in searched)
    below = sorted({file for _, file in found}, key=lambda file: file.path)
    yield from zip(roots.names(below), below, strict=True)
    if app.permissions.roots is None:
        folder = _in_data(app)
        for name in sorted(folder.states(QUESTION_SUFFIXES[0])):
            if has_suffix(name, QUESTION_SUFFIXES):
                yield f"{_DATA}:{name}", folder.file(name)


def _read_file(name: str, file: DocumentFile, clock: Deadline) -> QuestionFile:
    try:
        data = read_below(file.root.path, file.path, MAX_BYTES)[0]
    except OSError as error:
        return QuestionFile(name, (), (f"{name}:1: {unusable(name, error)}",))
    return read_questions(data, name, clock)
