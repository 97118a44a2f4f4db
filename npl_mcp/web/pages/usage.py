"""Usage: one table of the calls of agents, by default of the questions without a full answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from npl_index.errors import NPLError
from npl_index.ranking.analysis import terms
from npl_mcp.app.usage import latest
from npl_mcp.calls.arguments import validator
from npl_mcp.questions.files import question_files
from npl_mcp.stores.calls import KEPT_DAYS, LoggedCall
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.npl import npl_load_tailored
from npl_mcp.web.pages.ask import to_ask
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.tables import paged
from npl_mcp.web.visits import Visit, address

TABS: Mapping[str, tuple[str, Callable[[LoggedCall], object]]] = {
    "": ("Not answered", lambda call: call.context and call.outcome in ("nothing", "weak")),
    "failed": ("Failed", lambda call: call.error),
    "all": ("All calls", lambda call: call),
}
"""Titles of the tabs and conditions of their calls, by the parameter ``show``."""

COLUMNS = {
    "call": "Call",
    "answer": "Answer",
    "reason": "Reason",
    "who": "Caller",
    "used": "Tokens",
    "micros": "ms",
    "created_at": "When",
}

SHOWN = 50
"""Rows on a page."""


async def usage(visit: Visit) -> Data:
    """Return the calls of a tab, each with its question in the question files."""
    show = visit.text("show") if visit.text("show") in TABS else "all"
    files = await visit.run(question_files) if visit.sees("npl") else ()
    places = {_key(known.text): (file.name, known.line) for file in files for known in file.questions}
    rows = [
        {
            **as_dict(call),
            "call": call.context or call.tool,
            "answer": call.error or call.outcome,
            "reason": call.message or ", ".join(call.absent or ()),
            "href": _again(call),
            "saved": places.get(_key(call.context)) if call.context else None,
        }
        for call in await visit.run(latest)
        if TABS[show][1](call)
    ]
    return {
        **paged(visit, rows, COLUMNS, SHOWN),
        "recording": visit.settings.log_calls,
        "days": KEPT_DAYS,
        "_show": show,
        "_tabs": {name: title for name, (title, _) in TABS.items()},
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
