"""Questions for the documents to answer: their list with their outcomes, and changes of one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

from npl_index.errors import InvalidRequestError
from npl_index.library.documents import DocumentRef
from npl_mcp.app.context import Context
from npl_mcp.app.section_edits import own_section
from npl_mcp.questions.files import (
    DEFAULT_NAME,
    Question,
    QuestionFile,
    problems_of,
    question_files,
    save_question,
)
from npl_mcp.questions.outcomes import Outcome, ask_one, known_outcomes, sections_of
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.pages.ask import audit_of
from npl_mcp.web.pages.folders import ACTION
from npl_mcp.web.rendering import marked, sought
from npl_mcp.web.routing import Action, Data, FormPage, WebPage
from npl_mcp.web.tables import paged
from npl_mcp.web.visits import CallError, Visit, address, whole_number

PATH = "/questions"

SHOWN = 200
"""Rows of a page."""

COLUMNS = {"question": "Question", "result": "Result", "rank": "Rank", "file": "File"}

RESULTS = {True: "pass", False: "fail", None: "not asked"}

RUN_SECONDS = 2.0
"""Time for asking questions in one request; the page then goes on."""

MAX_ABOVE = 5
"""Sections above the right one on the page of a question."""


async def questions(visit: Visit) -> Data:
    """Return all questions with their last results; those that fail come first.

    With ``run`` in the address, questions without a result for the present documents are asked for a while.
    """
    files = await visit.run("npl", question_files)
    every = [(question, file.name) for file in files for question in file.questions]
    known = await visit.run("npl", partial(known_outcomes, questions=[question for question, _ in every]))
    problems, runs = list(problems_of(files)), visit.flag("run") and visit.request.method == "GET"
    until = time.monotonic() + RUN_SECONDS
    try:
        for number, (question, _) in enumerate(every):
            if runs and not known[number][1] and time.monotonic() < until:
                known[number] = (await visit.run("npl", partial(ask_one, question=question)), True)
    except CallError as error:
        problems, runs = [error.message, *problems], False
    rows = [
        {
            **_row(question, name),
            "result": RESULTS[outcome.passed if outcome else None],
            "rank": outcome.rank if outcome else None,
            "why": _reasons(outcome) if outcome else None,
            "old": bool(outcome) and not current,
        }
        for (question, name), (outcome, current) in zip(every, known, strict=True)
    ]
    left, wanted = sum(not current for _, current in known), visit.text("result")
    shown = [row for row in rows if wanted in ("", row["result"])]
    shown.sort(key=lambda row: row["result"] == "pass")
    data = {
        "problems": problems,
        "counts": Counter(row["result"] for row in rows),
        "result": wanted,
        "questions": len(rows),
        "left": left,
        "runs": bool(runs and left),
    }
    return {**paged(visit, shown, COLUMNS, SHOWN), **data, "_results": tuple(RESULTS.values())}


def _reasons(outcome: Outcome) -> list[str]:
    """Return why a question failed; empty if it passed."""
    absent = [f"no section has {', '.join(outcome.absent)}"] if outcome.absent else []
    above = [f"ranked above: {' · '.join(outcome.above)}"] if outcome.above else []
    return [] if outcome.passed else list(outcome.wrong) or absent + above


async def one_question(visit: Visit) -> Data:
    """Return a question with its outcome: the right section, those above it, and the text to mend."""
    file = visit.text("file")
    return await _explained(visit, await _question(visit, file, visit.number("line")), file)


async def _question(visit: Visit, name: str, line: int | None) -> Question:
    for file in await visit.run("npl", question_files):
        for question in file.questions:
            if (file.name, question.line) == (name, line):
                return question
    raise CallError("there is no such question; it was changed or removed", ErrorCode.NOT_FOUND)


async def _explained(visit: Visit, question: Question, file: str) -> Data:
    outcome = await visit.run("npl", partial(ask_one, question=question))
    first = question.answers[0] if question.answers and outcome.rank is None and not outcome.wrong else None
    audit = await audit_of(visit, first, context=question.text)
    ranked = [row for row in audit["matches"] if "rank" in row]
    right = next((row for row in ranked if row["rank"] == outcome.rank), audit.get("opened"))
    above = [row for row in ranked if outcome.rank is None or row["rank"] < outcome.rank][:MAX_ABOVE]
    return {
        **_row(question, file),
        "outcome": as_dict(outcome),
        "right": right,
        "above": above,
        "section": await _text(visit, right) if right else None,
        "_action": ACTION,
        "_marked": partial(marked, terms=sought(question.text, "")),
    }


async def _text(visit: Visit, right: Data) -> Data | None:
    """Return the own text of a section for its form; ``None`` if it cannot be changed."""
    try:
        selector = right["selector"].removesuffix(" [depth=0]")
        section = await visit.run("npl", partial(own_section, file=right["file"], selector=selector))
    except CallError:
        return None
    return {**as_dict(section), "selector": selector}


def _row(question: Question, file: str) -> Data:
    return {
        "question": question.text,
        "answers": list(question.answers),
        "line": question.line,
        "file": file,
    }


async def edit_page(visit: Visit) -> Data:
    """Return one question for a form, or a new one."""
    files = await visit.run("npl", question_files)
    name, line = visit.text("file") or _targets(files)[0], visit.number("line")
    question = Question("") if line is None else await _question(visit, name, line)
    return _form(files, name, question, nowhere=line is not None and not question.answers)


def _form(files: Sequence[QuestionFile], name: str, question: Question, *, nowhere: bool) -> Data:
    return {
        "file": name,
        "line": question.line,
        "digest": next((file.digest for file in files if file.name == name), None),
        "text": question.text,
        "answers": list(question.answers),
        "_nowhere": nowhere,
        "_writable": _targets(files),
    }


def _targets(files: Sequence[QuestionFile]) -> list[str]:
    """Return the files that a question may be saved in; first those below the roots, which others see."""
    return list(dict.fromkeys([*(file.name for file in files if file.writable), DEFAULT_NAME]))


async def save(visit: Visit) -> str | FormPage:
    """Save a question, or remove it; a question with the same text is replaced."""
    form = visit.form
    text = " ".join(form.get("text", "").split())
    lines = [*form.getlist("right"), *form.get("others", "").splitlines()]
    answers = tuple(dict.fromkeys(line.strip() for line in lines if line.strip()))
    files = await visit.run("npl", question_files)
    name, line = form.get("file") or _targets(files)[0], whole_number("line", form.get("line", ""))
    typed, nowhere = Question(text, answers, line), bool(form.get("nowhere"))
    question = None if form.get("delete") else typed

    def change(app: Context) -> int | None:
        """Return the line of the saved question."""
        known = next((file for file in question_files(app) if file.name == name), None)
        number = line or _line_of(known, text) if known else line
        return _line_of(save_question(app, name, question, number, form.get("digest") or None), text)

    try:
        if question is not None:
            await visit.run("npl", partial(_check, answers=answers, nowhere=nowhere))
        number = await visit.run("npl", change)
    except CallError as error:
        shown = {**_form(files, name, typed, nowhere=nowhere), "_problem": error.message}
        return FormPage("question.html", shown, error.status)
    return PATH if question is None else address(f"{PATH}/one", file=name, line=number)


def _line_of(file: QuestionFile, text: str) -> int | None:
    """Return the line of a question in a file; ``None`` without it."""
    return next((question.line for question in file.questions if question.text == text), None)


async def _check(app: Context, answers: Sequence[str], nowhere: bool) -> None:
    """Check the answers of a question before it is saved.

    :raises InvalidRequestError: no selector is given, or one selects nothing.
    """
    if not answers and not nowhere:
        raise InvalidRequestError("not saved yet: name a section that answers it, or say that none does")
    sections = await sections_of(app, answers, DocumentRef())
    wrong = [selector for selector, names in sections.items() if not names]
    if wrong:
        raise InvalidRequestError(f"{wrong[0]!r} selects no section")


DECLARED = (
    WebPage(PATH, questions, "questions.html", "npl", "Questions"),
    WebPage(f"{PATH}/one", one_question, "one_question.html", "npl"),
    WebPage(f"{PATH}/edit", edit_page, "question.html", "npl"),
    Action(f"{PATH}/save", save, "npl"),
)
