"""Usage: what agents asked without a full answer, failed calls with their reasons, and all calls."""

from __future__ import annotations

from functools import partial

from npl_mcp.app.usage import latest, unanswered
from npl_mcp.questions.files import question_files
from npl_mcp.stores.calls import KEPT_DAYS
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.tables import paged
from npl_mcp.web.visits import Visit

TABS = {"": "Not answered", "failed": "Failed", "all": "All calls"}
"""Titles of the tabs, by the parameter ``show``."""

COLUMNS = {
    "": {
        "question": "Question",
        "times": "Times",
        "answer": "Answer",
        "lacking": "No section has",
        "last": "Last",
    },
    "failed": {
        "call": "Call",
        "message": "Reason",
        "arguments": "Arguments",
        "who": "Caller",
        "created_at": "When",
    },
    "all": {"call": "Call", "used": "Tokens", "who": "Caller", "micros": "ms", "created_at": "When"},
}
"""Columns of the table of each tab."""

SHOWN = 50
"""Rows on a page."""


async def usage(visit: Visit) -> Data:
    """Return the rows of a tab; each unanswered question with its place in the question files."""
    show = visit.text("show")
    if show:
        calls = await visit.run(partial(latest, chosen="failed" if show == "failed" else None))
        rows = [{**as_dict(call), "call": call.context or call.tool} for call in calls]
    else:
        files = await visit.run(question_files) if visit.sees("npl") else ()
        places = {known.text: (file.name, known.line) for file in files for known in file.questions}
        groups = await visit.run(unanswered)
        rows = [{**as_dict(group), "saved": places.get(group.question)} for group in groups]
    return {
        **paged(visit, rows, COLUMNS.get(show, COLUMNS["all"]), SHOWN),
        "recording": visit.settings.log_calls,
        "days": KEPT_DAYS,
        "_show": show if show in TABS else "all",
        "_tabs": TABS,
    }


DECLARED = (WebPage("/usage", usage, "usage.html", None, "Usage"),)
