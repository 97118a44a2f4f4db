"""Question files below the roots and in the data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from npl_index.errors import InvalidRequestError, NPLError
from npl_index.library.files import read_below
from npl_index.library.references import QUESTION_SUFFIXES, has_suffix
from npl_index.library.roots import Found, unusable
from npl_index.markdown.sections import digest_of
from npl_mcp.app.app import App
from npl_mcp.app.section_edits import check_writable, check_write
from npl_mcp.documents.folders import SharedFolder
from npl_mcp.questions.format import Problem, Question, read_questions, with_question
from npl_mcp.stores.base.errors import ConflictError
from npl_mcp.stores.base.folder import QUESTION_FOLDER, private_folder

DEFAULT_NAME = f"data folder:{QUESTION_SUFFIXES[0]}"
"""File for questions that are saved without a name."""

_DATA = "data folder"


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A question file.

    :param name: path below a root, or ``data folder:NAME``.
    :param questions: valid questions, in order.
    :param problems: problems of the others, in order.
    :param digest: digest of the content, for :func:`save_question`.
    :param writable: whether :func:`save_question` may change it.
    """

    name: str
    questions: tuple[Question, ...]
    problems: tuple[Problem, ...]
    digest: str
    writable: bool


def question_files(app: App) -> tuple[QuestionFile, ...]:
    """Return the question files that a caller may see; the files of the data folder come last."""
    return tuple(_read_file(app, name, found) for name, found in _found_files(app))


def save_question(
    app: App, name: str, question: Question | None, line: int | None = None, expect: str | None = None
) -> QuestionFile:
    """Add, replace or remove a question.

    :param name: name of the file; a new file is created only in the data folder.
    :param question: new question; ``None`` removes the old one.
    :param line: line of the question to replace or remove; ``None`` adds a question at the end.
    :param expect: digest of the file; only this state is changed.
    :raises NotAllowedError: files below the roots may not be changed.
    :raises InvalidRequestError: there is no such file or question, or the question is invalid.
    :raises ConflictError: the file has changed.
    :raises StorageError: the file cannot be written.
    """
    found = dict(_found_files(app)).get(name)
    label, _, file = name.partition(":")
    is_plain = has_suffix(file, QUESTION_SUFFIXES) and not file.startswith(".") and Path(file).name == file
    if found is None and label == _DATA and is_plain and app.sight.roots is None:
        found = _in_data(app).found(file)
    if found is None:
        hint = f"use {DEFAULT_NAME!r}, or a name of the list"
        raise InvalidRequestError(f"there is no question file {name!r}", parameter="name", hint=hint)

    def edit(data: bytes) -> bytes:
        if expect is not None and digest_of(data) != expect:
            raise ConflictError(f"{name} has changed since it was read", hint="read it again")
        return with_question(data, question, line)

    below, _, last = found.path.rpartition("/")
    folder = SharedFolder(found.root.path, below)
    if label == _DATA:
        private_folder(app.settings.data_folder)
    else:
        check_write(app)
        check_writable(app, found, name)
    if os.path.exists(found.absolute):  # noqa: PTH110
        folder.change(last, name, edit)
    else:
        folder.create(last, name, edit(b""))
    return _read_file(app, name, found)


def _in_data(app: App) -> SharedFolder:
    return SharedFolder(os.path.realpath(app.settings.data_folder), QUESTION_FOLDER)


def _found_files(app: App) -> Iterator[tuple[str, Found]]:
    """Yield the files with their names; a caller with limited roots does not see the data folder."""
    roots = app.library.roots
    below = [
        found
        for root in app.library.searched
        for _, found in roots.walk(os.path.realpath(root.path), None, QUESTION_SUFFIXES)
    ]
    below = sorted(set(below), key=lambda file: file.path)
    yield from zip(roots.names(below), below, strict=True)
    if app.sight.roots is None:
        folder = _in_data(app)
        for name in sorted(folder.states(QUESTION_SUFFIXES[0])):
            if has_suffix(name, QUESTION_SUFFIXES):
                yield f"{_DATA}:{name}", folder.found(name)


def _read_file(app: App, name: str, found: Found) -> QuestionFile:
    writable = name.startswith(f"{_DATA}:") or _is_writable(app, found, name)
    try:
        data = read_below(found.root.path, found.path, app.settings.limits.max_bytes)[0]
    except OSError as error:
        return QuestionFile(name, (), (Problem(1, 1, str(unusable(name, error))),), "", writable)
    read = read_questions(data)
    return QuestionFile(name, read.questions, read.problems, digest_of(data), writable)


def _is_writable(app: App, found: Found, name: str) -> bool:
    try:
        check_write(app)
        check_writable(app, found, name)
    except NPLError:
        return False
    return True
