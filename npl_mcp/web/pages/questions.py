"""Questions for the documents to answer: their list, their outcomes as they come, and changes of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from zlib import crc32

from npl_mcp.app.app import App
from npl_mcp.questions.files import DEFAULT_NAME, Question, problems_of, question_files, save_question
from npl_mcp.questions.outcomes import ask_one
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.routing import Action, Data, Shown, WebPage
from npl_mcp.web.tables import Column, Table, paged
from npl_mcp.web.visits import CallError, Visit, address, whole_number

PATH = "/questions"

SHOWN = 200
"""Rows of a page."""

_GONE = "there is no such question; it was changed or removed"

COLUMNS = (Column("question", "Question"), Column("file", "File", "minor"))


async def questions(visit: Visit) -> Data:
    """Return all questions."""
    files = await visit.run(question_files)
    rows = [{**_row(one, file.name), "writable": file.writable} for file in files for one in file.questions]
    page = paged(visit, rows, COLUMNS, SHOWN)
    return {**page, "problems": problems_of(files), "_table": Table(visit, COLUMNS, page)}


def _row(question: Question, file: str) -> Data:
    return {
        "id": anchor(question.text),
        "question": question.text,
        "answers": list(question.answers),
        "line": question.line,
        "file": file,
    }


def anchor(text: str) -> str:
    """Return the id of a question's row."""
    return f"q-{crc32(text.encode()):x}"


async def run(visit: Visit) -> Data:
    """Return the outcomes of all questions, of a file's questions, or of one."""
    name, line = visit.text("file"), visit.number("line")
    files = await visit.run(question_files)
    every = ((one, file.name) for file in files if name in ("", file.name) for one in file.questions)
    chosen = [(one, file) for one, file in every if line in (None, one.line)]
    if not chosen and (name or line):
        raise CallError(_GONE, ErrorCode.NOT_FOUND)
    return {"total": len(chosen), "items": _outcomes(visit, chosen)}


async def _outcomes(visit: Visit, chosen: Sequence[tuple[Question, str]]) -> AsyncIterator[Data]:
    """Ask questions, and yield the rows of their outcomes."""
    for question, file in chosen:
        outcome = await visit.run(partial(ask_one, question=question))
        row = {**as_dict(outcome), "rank": outcome.rank, "passed": outcome.passed}
        yield row | _row(question, file)


async def edit_page(visit: Visit) -> Data:
    """Return one question for a form, or a new one."""
    files = await visit.run(question_files)
    name, line = visit.text("file", DEFAULT_NAME), visit.number("line")
    file = next((one for one in files if one.name == name), None)
    found = next((one for one in file.questions if one.line == line), None) if file and line else None
    if line and found is None:
        raise CallError(_GONE, ErrorCode.NOT_FOUND)
    return {
        "file": name,
        "line": line,
        "digest": file and file.digest,
        "text": found.text if found else visit.text("text"),
        "answers": list(found.answers) if found else [],
        "_nowhere": found is not None and not found.answers,
        "_writable": list(dict.fromkeys([DEFAULT_NAME, *(one.name for one in files if one.writable)])),
    }


async def save(visit: Visit) -> str | Shown:
    """Save a question, or remove it; a question with the same text is replaced."""
    form = visit.form
    text = " ".join(form.get("text", "").split())
    lines = [*form.getlist("right"), *form.get("others", "").splitlines()]
    answers = tuple(dict.fromkeys(one.strip() for one in lines if one.strip()))
    name, line = form.get("file") or DEFAULT_NAME, whole_number("line", form.get("line", ""))
    if not (answers or form.get("nowhere") or form.get("delete")):
        return address(f"{PATH}/edit", text=text, file=name, line=line)
    question = None if form.get("delete") else Question(text, answers)

    def change(app: App) -> None:
        number = line
        if number is None:
            same = (one for file in question_files(app) if file.name == name for one in file.questions)
            number = next((one.line for one in same if one.text == text), None)
        save_question(app, name, question, number, form.get("digest") or None)

    try:
        await visit.run(change)
    except CallError as error:
        typed = {"file": name, "line": line, "digest": None, "text": text, "answers": list(answers)}
        rest = {"_nowhere": not answers, "_writable": [name], "_problem": error.message}
        return Shown("question.html", typed | rest, error.status)
    return PATH if question is None else f"{PATH}#{anchor(text)}"


DECLARED = (
    WebPage(PATH, questions, "questions.html", "npl", "Questions"),
    WebPage(f"{PATH}/run", run, "question_run.html", "npl", row=("asking.html", "outcome")),
    WebPage(f"{PATH}/edit", edit_page, "question.html", "npl"),
    Action(f"{PATH}/save", save, "npl"),
)
