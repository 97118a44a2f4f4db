"""Usage: one table of the calls of agents, by default of the questions without a full answer.

A token for some domains shows only calls of their tools, about documents of these domains. Because calls name
files, a token for some folders shows only the caller's own calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from npl_index.errors import NPLError
from npl_index.ranking.analysis import terms
from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.context import Context
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.calls.arguments import validator
from npl_mcp.questions.files import question_files
from npl_mcp.stores import calls
from npl_mcp.stores.calls import KEPT_DAYS, LoggedCall
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.tools.npl import npl_load_tailored
from npl_mcp.web.pages.ask import to_ask
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.tables import columns, paged
from npl_mcp.web.visits import Visit, address

TABS: Mapping[str, Callable[[LoggedCall], object]] = {
    "": lambda call: call.context and call.outcome in ("nothing", "weak"),
    "failed": lambda call: call.error,
    "all": lambda call: call,
}
"""Conditions of the calls in a tab, by the parameter ``show``."""

COLUMNS = columns("call", "answer", "reason", who="Caller", used="Tokens", micros="ms", created_at="When")

SHOWN = 50
"""Rows on a page."""


LATEST = 5_000
"""Maximum calls to read: the latest."""


def latest(app: Context, until: str | None = None) -> Sequence[LoggedCall]:
    """Return the latest calls that the caller may see, the newest first.

    :param until: a time; only earlier calls.
    """
    if not app.database.is_made():
        return ()
    caller, permissions = CALLER.get().identity, app.permissions
    owner = caller.name if caller is not None and permissions.roots is not None else None
    hidden = [f"{name}:" for name, scheme in SCHEMES.items() if not permissions.has_domain(scheme.domain)]
    rows = app.database.reading(calls.latest, LATEST, permissions.domains, owner, until)
    return [row for row in rows if not any(start in text for text in _texts(row) for start in hidden)]


def _texts(call: LoggedCall) -> Iterator[str]:
    """Yield the logged texts that may name a document."""
    yield from filter(None, (call.file, call.context, call.message, call.arguments, *(call.taken or ())))


async def usage(visit: Visit) -> Data:
    """Return the calls of a tab, each with its question in the question files."""
    return await visit.run(_read, visit)


def _read(app: Context, visit: Visit) -> Data:
    show = visit.text("show") if visit.text("show") in TABS else "all"
    files = question_files(app) if visit.sees("npl") else ()
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
        for call in latest(app)
        if TABS[show](call)
    ]
    about = {"recording": visit.settings.log_calls, "days": KEPT_DAYS, "_show": show}
    return {**paged(visit, rows, COLUMNS, SHOWN), **about}


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
