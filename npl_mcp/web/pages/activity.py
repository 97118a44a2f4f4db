"""Activity: what agents did, in one list in time, by day and agent; the page of a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any

from npl_mcp.app.context import Context
from npl_mcp.app.usage import latest
from npl_mcp.stores import activity as store
from npl_mcp.stores.base.paging import later, now
from npl_mcp.stores.calls import KEPT_DAYS, LoggedCall
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.visits import CallError, Visit, address

SHOWN = 200
"""Entries on a page."""


async def activity(visit: Visit) -> Data:
    """Return the newest entries, by default of all agents, with the numbers of each agent and day."""
    return await visit.run("search", partial(_read, visit=visit, session=None))


async def session(visit: Visit) -> Data:
    """Return the entries of a session, with its rooms, artifacts and worklog."""
    parts = await visit.call("session_get", session_id=visit.path("session"))
    read = partial(_read, visit=visit, session=parts["session"]["id"])
    return {**await visit.run("session", read), **parts}


def _read(app: Context, visit: Visit, session: str | None) -> Data:
    day, by = visit.text("day"), visit.text("by")
    since = None if session else later(now(), timedelta(days=-KEPT_DAYS))
    shown = {"day": day, "by": by, "days": {}, "agents": [], "items": [], "total": 0}
    if not app.database.is_made():
        return shown
    kinds = [kind for kind in store.KINDS if visit.sees(kind)]
    whole = store.Period(app.project, session, since)
    period = store.Period(app.project, session, *_bounds(day)) if day else whole
    with app.database.read() as tx:
        entries = store.entries(tx, kinds, period, by or None, SHOWN)
        counted = store.counts(tx, kinds, whole)
    days, agents = Counter[str](), Counter[str]()
    for row in counted:
        days[row["day"]] += row["entries"] if by in ("", row["by"]) else 0
        agents[row["by"]] += row["entries"] if day in ("", row["day"]) else 0
    calls = [] if session else latest(app, until=period.until)
    calls = [call for call in calls if call.created_at.startswith(day)]
    return {
        **shown,
        "days": dict(sorted((+days).items(), reverse=True)),
        "agents": _agents(agents, calls),
        "items": [{**as_dict(entry), "href": leads(entry)} for entry in entries],
        "total": days[day] if day else days.total(),
    }


def _bounds(day: str) -> tuple[str, str]:
    """Return the first moments of a day and of the next.

    :raises CallError: this is not a day.
    """
    try:
        first = date.fromisoformat(day)
        return first.isoformat(), (first + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        raise CallError(f"day is {day[:64]!r}; write it as 2026-01-31", parameter="day") from None


def _agents(entries: Mapping[str, int], calls: Sequence[LoggedCall]) -> list[dict[str, Any]]:
    """Return the numbers of each agent: its entries, questions and failed calls."""
    questions = Counter(call.who for call in calls if call.outcome)
    failed = Counter(call.who for call in calls if call.error)
    return [
        {"by": name, "entries": entries.get(name, 0), "questions": questions[name], "failed": failed[name]}
        for name in sorted({*entries, *questions, *failed})
        if entries.get(name) or questions[name] or failed[name]
    ]


def at_work(app: Context, visit: Visit) -> list[Data]:
    """Return the last act of each agent in the last hour."""
    if not app.database.is_made():
        return []
    kinds = [kind for kind in store.KINDS if visit.sees(kind)]
    period = store.Period(app.project, None, later(now(), timedelta(hours=-1)))
    acts: dict[str, Data] = {}
    for entry in app.database.reading(store.entries, kinds, period, None, SHOWN):
        acts.setdefault(entry.by, {**as_dict(entry), "href": leads(entry)})
    return list(acts.values())


def leads(entry: store.Entry) -> str:
    """Return the address of an entry."""
    if entry.kind == "chat":
        return address(f"/rooms/{entry.place}", event=entry.number) + f"#event-{entry.number}"
    if entry.kind == "worklog":
        return address(f"/worklogs/{entry.place}", entry=entry.number) + f"#entry-{entry.number}"
    if entry.kind == "artifact":
        return f"/artifacts/{entry.place}/revisions/{entry.number}"
    return f"/reviews/{entry.place}"


DECLARED = (
    WebPage("/activity", activity, "activity.html", "search", "Activity", entry=TEAM),
    WebPage("/sessions/{session}", session, "activity.html", "session", entry=TEAM),
)
