"""Questions for the documents to answer: lists, background runs, and differences between runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from npl_mcp.app.app import App
from npl_mcp.questions.files import DEFAULT_NAME, Question, QuestionFile, question_files, save_question
from npl_mcp.questions.running import DONE, RUNNING, Outcome, Run, compare, runs_of
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.drawing import plot
from npl_mcp.web.routing import Action, Data, Shown, WebPage
from npl_mcp.web.tables import Column, Table, paged
from npl_mcp.web.visits import CallError, Visit, address, failing

PATH = "/questions"

SHOWN = 200
"""Rows of a page."""

COLUMNS = (
    Column("question", "Question"),
    Column("held", "Held"),
    Column("rank", "Rank", "number"),
    Column("tokens", "Tokens", "number"),
    Column("verdict", "Evidence", "minor"),
    Column("file", "File", "minor"),
)

Row = dict[str, Any]


async def questions(visit: Visit) -> Data:
    """Return all questions with their latest outcomes, worst first, and the runs."""
    files, runs = await visit.run(question_files), await _runs(visit)
    last: dict[str, Outcome] = {}
    for run in reversed(runs):
        last |= {one.question.text: one for one in run.outcomes}
    rows = [_row(last.get(one.text), one, file) for file in files for one in file.questions]
    page = paged(visit, sorted(rows, key=_badness), COLUMNS, SHOWN)
    return {
        **page,
        "files": [{"name": one.name, "problems": as_dict(one.problems)} for one in files],
        "runs": [_summary(run) for run in runs],
        "_plots": plots(runs),
        "_table": Table(visit, COLUMNS, page),
        "_writable": [file.name for file in files if file.writable],
    }


def _row(outcome: Outcome | None, question: Question, file: QuestionFile | None = None) -> Row:
    """Return a question with an outcome as a row of a table."""
    asked = outcome and outcome.question.answers == question.answers and outcome
    return {
        "id": anchor(question.text),
        "question": question.text,
        "answers": list(question.answers),
        "line": question.line,
        "file": file and file.name,
        "writable": bool(file and file.writable),
        "held": ("yes" if asked.passed else "no") if asked else None,
        "rank": asked.rank if asked else None,
        "tokens": asked.tokens if asked else None,
        "verdict": asked.verdict if asked else None,
        "absent": list(asked.absent) if asked else [],
        "above": list(asked.above) if asked else [],
        "wrong": list(asked.wrong) if asked else [],
    }


def _badness(row: Mapping[str, Any]) -> tuple[int, float]:
    """Return the sort key of a row: failures, worst rank first; then rows without a run; then the rest."""
    return {"no": 0, None: 1, "yes": 2}[row["held"]], -(row["rank"] or (0 if row["held"] == "yes" else 1e9))


def anchor(text: str) -> str:
    """Return the id of a question's row."""
    return f"q-{crc32(text.encode()):x}"


async def _runs(visit: Visit) -> list[Run]:
    """Return the visible runs: a visitor without access to all documents sees only that visitor's runs."""
    owner = None if visit.sight.roots is None else _owner(visit)
    return await visit.run(lambda app: runs_of(app.settings.data_folder).all(owner))


def _owner(visit: Visit) -> str:
    return visit.identity.name if visit.identity else ""


def _summary(run: Run) -> Data:
    return {
        "id": run.id,
        "file": run.file,
        "state": run.state,
        "asked": len(run.outcomes),
        "total": run.total,
        "held": run.held,
        "reciprocal_rank": None if run.reciprocal_rank is None else round(run.reciprocal_rank, 3),
        "tokens": run.tokens,
        "version": run.version,
    }


def plots(runs: Sequence[Run]) -> list[Data]:
    """Return the plots over complete runs of all questions, oldest first."""
    whole = [run for run in reversed(runs) if run.state == DONE and not run.file]
    if not whole:
        return []
    labels = [run.id[:16].replace("T", " ") for run in whole]
    held = [100 * run.held / run.total for run in whole]
    ranks = [None if run.reciprocal_rank is None else 100 * run.reciprocal_rank for run in whole]
    return [
        plot("Held by the first answer", labels, [("held", held)], " %", 100),
        plot("Mean reciprocal rank", labels, [("rank", ranks)], " %", 100),
        plot("Tokens of an answer", labels, [("tokens", [run.tokens for run in whole])]),
    ]


async def run_page(visit: Visit) -> Data:
    """Return the outcomes of a run, worst first, and the differences from another run."""
    runs = await _runs(visit)
    run = next((one for one in runs if one.id == visit.path("run")), None)
    if run is None:
        raise CallError("there is no such run", ErrorCode.NOT_FOUND)
    others = [one for one in runs if one.id != run.id and one.state != RUNNING]
    earlier = next((one.id for one in others if one.id < run.id and one.file == run.file), "")
    chosen = visit.text("before", earlier)
    before = next((one for one in others if one.id == chosen), None)
    differences = [] if before is None else [one.as_dict() for one in compare(before.outcomes, run.outcomes)]
    rows = [_row(one, one.question) for one in run.outcomes]
    return {
        "run": _summary(run),
        "items": sorted(rows, key=_badness),
        "before": before and _summary(before),
        "differences": differences,
        "_others": [_summary(one) for one in others],
    }


async def edit_page(visit: Visit) -> Data:
    """Return one question for a form, or a new one."""
    files = await visit.run(question_files)
    name, line = visit.text("file", DEFAULT_NAME), visit.number("line")
    file = next((one for one in files if one.name == name), None)
    found = next((one for one in file.questions if one.line == line), None) if file and line else None
    if line and found is None:
        raise CallError("there is no such question; it was changed or removed", ErrorCode.NOT_FOUND)
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
    name, line = form.get("file") or DEFAULT_NAME, form.get("line", "")
    if not (answers or form.get("nowhere") or form.get("delete")):
        return address(f"{PATH}/edit", text=text, file=name, line=line)
    question = None if form.get("delete") else Question(text, answers)

    def change(app: App) -> None:
        number = int(line) if line.isdecimal() else None
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


async def run(visit: Visit) -> str:
    """Start a run of all questions, of a file's questions, or of one."""
    name, line = visit.form.get("file", ""), visit.form.get("line", "")
    files = await visit.run(question_files)
    every = (one for file in files if name in ("", file.name) for one in file.questions)
    chosen = [one for one in every if line in ("", str(one.line))]
    label = f"{name}:{line}" if line else name
    with failing():
        started = runs_of(visit.settings.data_folder).start(visit.view, chosen, label, _owner(visit))
    return address(f"{PATH}/runs/{started.id}")


async def cancel(visit: Visit) -> str:
    """Stop a run of the visitor."""
    if any(one.id == visit.path("run") for one in await _runs(visit)):
        runs_of(visit.settings.data_folder).cancel(visit.path("run"))
    return address(f"{PATH}/runs/{visit.path('run')}")


DECLARED = (
    WebPage(PATH, questions, "questions.html", "npl", "Questions"),
    WebPage(f"{PATH}/edit", edit_page, "question.html", "npl"),
    WebPage(f"{PATH}/runs/{{run}}", run_page, "question_run.html", "npl"),
    Action(f"{PATH}/save", save),
    Action(f"{PATH}/run", run),
    Action(f"{PATH}/runs/{{run}}/cancel", cancel),
)
