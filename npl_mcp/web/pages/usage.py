"""Usage: what agents asked without a full answer, failed calls with their reasons, and all calls."""

from __future__ import annotations

from contextlib import suppress

from npl_index.errors import NPLError
from npl_index.ranking.analysis import terms
from npl_mcp.app.usage import latest, unanswered
from npl_mcp.calls.arguments import validator
from npl_mcp.questions.files import question_files
from npl_mcp.stores.calls import KEPT_DAYS, LoggedCall
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.npl import npl_load_tailored
from npl_mcp.web.pages.ask import to_ask
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.tables import paged
from npl_mcp.web.visits import Visit, address

TABS = {"": "Not answered", "failed": "Failed", "all": "All calls"}
"""Titles of the tabs, by the parameter ``show``."""

COLUMNS = {
    "": {
        "question": "Question",
        "answer": "Answer",
        "lacking": "No section has",
        "times": "Times",
        "who": "Asked by",
        "last": "Last",
    },
    "failed": {
        "call": "Call",
        "message": "Reason",
        "arguments": "Arguments",
        "who": "Caller",
        "created_at": "When",
    },
    "all": {"call": "Call", "who": "Caller", "used": "Tokens", "micros": "ms", "created_at": "When"},
}
"""Columns of the table of each tab."""

SHOWN = 50
"""Rows on a page."""


async def usage(visit: Visit) -> Data:
    """Return the rows of a tab; each unanswered question with its place in the question files."""
    show = visit.text("show")
    if show:
        calls = [call for call in await visit.run(latest) if show != "failed" or call.error]
        rows = [{**as_dict(call), "call": call.context or call.tool, "href": _again(call)} for call in calls]
    else:
        files = await visit.run(question_files) if visit.sees("npl") else ()
        places = {_key(known.text): (file.name, known.line) for file in files for known in file.questions}
        groups = await visit.run(unanswered)
        rows = [{**group, "saved": places.get(_key(group["question"]))} for group in groups]
    return {
        **paged(visit, rows, COLUMNS.get(show, COLUMNS["all"]), SHOWN),
        "recording": visit.settings.log_calls,
        "days": KEPT_DAYS,
        "_show": show if show in TABS else "all",
        "_tabs": TABS,
    }


def _key(question: str) -> frozenset[str]:
    """Return what questions with the same words have in common."""
    return frozenset(terms(question))


def _again(call: LoggedCall) -> str | None:
    """Return the address that shows what a call got; ``None`` for a call without a question."""
    if call.tool == "npl_load_tailored":
        asked = {"context": call.context, "file": call.file}
        with suppress(ValueError, NPLError):  # a log of earlier versions, too long, or not valid
            given = validator(npl_load_tailored).validate_json(call.arguments or "")
            asked = {name: value for name, value in given.items() if value is not None}
        return to_ask(asked) if call.context or call.arguments else None
    return address("/search", q=call.context) if call.tool == "search" and call.context else None


DECLARED = (WebPage("/usage", usage, "usage.html", None, "Usage"),)
