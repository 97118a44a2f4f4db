"""Questions for the documents to answer: their list with their outcomes, and why one fails."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

from npl_mcp.questions.files import Question, add_question, problems_of, question_files
from npl_mcp.questions.outcomes import Outcome, ask_one, known_outcomes
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.pages.ask import audit_of
from npl_mcp.web.rendering import marked, sought
from npl_mcp.web.routing import Action, Data, WebPage
from npl_mcp.web.tables import columns, paged
from npl_mcp.web.visits import CallError, Visit, address

PATH = "/questions"

SHOWN = 200
"""Rows of a page."""

COLUMNS = columns("question", "result", "rank", "file")

RESULTS = {True: "pass", False: "fail", None: "not asked"}

RUN_SECONDS = 2.0
"""Time for asking questions in one request; the page then goes on."""

MAX_ABOVE = 5
"""Sections above the right one on the page of a question."""


async def questions(visit: Visit) -> Data:
    """Return all questions with their last results; those that fail come first.

    With ``run`` in the address, questions without a result for the present documents are asked for a while.
    """
    files = await visit.run(question_files)
    every = [(question, file.name) for file in files for question in file.questions]
    known = await visit.run(known_outcomes, [question for question, _ in every])
    problems, runs = list(problems_of(files)), visit.flag("run") and visit.request.method == "GET"
    until = time.monotonic() + RUN_SECONDS
    try:
        for number, (question, _) in enumerate(every):
            if runs and not known[number][1] and time.monotonic() < until:
                known[number] = (await visit.run(ask_one, question), True)
    except CallError as error:
        problems, runs = [error.message, *problems], False
    rows = [
        {**_row(*question, outcome), "old": bool(outcome) and not current}
        for question, (outcome, current) in zip(every, known, strict=True)
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
    """Return a question with its outcome: the right section, and those above it."""
    name, line = visit.text("file"), visit.number("line")
    files = (file for file in await visit.run(question_files) if file.name == name)
    every = (question for file in files for question in file.questions)
    question = next((question for question in every if question.line == line), None)
    if question is None:
        raise CallError("there is no such question; it was changed or removed", ErrorCode.NOT_FOUND)
    outcome = await visit.run(ask_one, question)
    first = question.answers[0] if question.answers and outcome.rank is None and not outcome.wrong else None
    audit = await audit_of(visit, first, context=question.text)
    ranked = [row for row in audit["matches"] if "rank" in row]
    right = next((row for row in ranked if row["rank"] == outcome.rank), audit.get("opened"))
    return {
        **_row(question, name, outcome),
        "outcome": as_dict(outcome),
        "right": right,
        "above": [row for row in ranked if outcome.rank is None or row["rank"] < outcome.rank][:MAX_ABOVE],
        "_marked": partial(marked, terms=sought(question.text, "")),
    }


def _row(question: Question, file: str, outcome: Outcome | None) -> Data:
    return {
        "question": question.text,
        "answers": list(question.answers),
        "line": question.line,
        "file": file,
        "result": RESULTS[outcome.passed if outcome else None],
        "rank": outcome.rank if outcome else None,
        "why": _reasons(outcome) if outcome else None,
    }


async def save(visit: Visit) -> str:
    """Add a question with the sections that are ticked as right."""
    text, right = " ".join(visit.form.get("text", "").split()), visit.form.getlist("right")
    if not right:
        raise CallError("not saved: tick a section that answers the question")
    question = Question(text, tuple(dict.fromkeys(right)))
    name, line = await visit.run(add_question, question)
    return address(f"{PATH}/one", file=name, line=line)


DECLARED = (
    WebPage(PATH, questions, "questions.html", "npl", "Questions"),
    WebPage(f"{PATH}/one", one_question, "one_question.html", "npl"),
    Action(f"{PATH}/save", save, "npl"),
)
