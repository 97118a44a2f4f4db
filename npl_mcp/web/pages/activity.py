"""The first page, with the inbox and the agents at work; what agents did, in one list in time; the pages of a
session and a worklog.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from npl_mcp.app.context import Context
from npl_mcp.browsing.places import roots_of
from npl_mcp.config.clients import CLIENTS, NAME
from npl_mcp.stores import activity as store
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import later, now
from npl_mcp.stores.calls import KEPT_DAYS, LoggedCall
from npl_mcp.tools.contract.responses import as_dict
from npl_mcp.web.pages.usage import latest
from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.visits import Visit, address

SHOWN = 200
"""Entries on a page."""

ENTRIES = 100
"""Entries on the page of a worklog."""


async def start(visit: Visit) -> Data:
    """Return the visitor's inbox, and the last acts of agents; a new visitor is told what to do."""
    return {
        "inbox": await inbox(visit),
        "new": not visit.who and visit.sees("npl"),
        "connect": _connecting(visit),
        "places": await visit.run(lambda app: as_dict([*roots_of(app)])) if visit.sees("npl") else [],
        "at_work": await visit.run(at_work, visit),
    }


async def inbox(visit: Visit) -> Data:
    """Return the visitor's inbox: notifications, todos, and open reviews of the visitor."""
    who = visit.who
    waiting: Data = {"notifications": None, "todos": [], "reviews": []}
    if who and visit.sees("chat") and (await visit.call("chat_list_rooms", persona=who, limit=1))["total"]:
        waiting["notifications"] = await visit.call("chat_get_notifications", persona=who, limit=20)
        todos = await visit.call("chat_list_todos", persona=who, filter="mine", limit=20)
        waiting["todos"] = todos["items"]
    if who and visit.sees("review"):
        reviews = await visit.call("review_list", reviewer_persona=who, status="in_progress", limit=20)
        waiting["reviews"] = reviews["items"]
    return waiting


def _connecting(visit: Visit) -> list[str]:
    """Return the command that connects Claude Code, and the entry for other clients."""
    url = f"{visit.settings.web_url or str(visit.request.base_url).rstrip('/')}/mcp"
    headers = {"Authorization": "Bearer $NPL_MCP_TOKEN"} if visit.is_signed_in else {}
    commands = (client.connecting(url, headers) for client in CLIENTS)
    entry = {"type": "http", "url": url} | ({"headers": headers} if headers else {})
    return [next(filter(None, commands), ""), json.dumps({"mcpServers": {NAME: entry}})]


async def activity(visit: Visit) -> Data:
    """Return the newest entries, by default of all agents, with the numbers of each agent and day."""
    return await visit.run(_read, visit)


async def session(visit: Visit) -> Data:
    """Return the entries of a session, with its rooms, artifacts and worklog."""
    parts = await visit.call("session_get", session_id=visit.path("session"))
    return {**await visit.run(_read, visit, parts["session"]["id"]), **parts}


def _acts(app: Context, visit: Visit, session: str | None, last: timedelta) -> store.Acts:
    """Return what the visitor sees: the entries of a session, or those of the last time."""
    kinds = [kind for kind in store.KINDS if visit.sees(kind) and app.database.is_made()]
    return store.Acts(kinds, app.project, session, None if session else later(now(), -last))


def _read(app: Context, visit: Visit, session: str | None = None) -> Data:
    by, day = ((text := visit.text(name)) and checks.name(text, name) for name in ("by", "day"))
    acts = _acts(app, visit, session, timedelta(days=KEPT_DAYS))
    entries, counts = [], []
    if acts.kinds:
        with app.database.read() as tx:
            entries, counts = acts.newest(tx, SHOWN, by or None, day or None), acts.counts(tx)
    days, agents = Counter[str](), Counter[str]()
    for row in counts:
        days[row["day"]] += row["entries"] if by in ("", row["by"]) else 0
        agents[row["by"]] += row["entries"] if day in ("", row["day"]) else 0
    calls = [] if session else latest(app, until=f"{day}~" if day else None)
    return {
        "day": day,
        "by": by,
        "days": dict(sorted((+days).items(), reverse=True)),
        "agents": _agents(+agents, [call for call in calls if call.created_at.startswith(day)]),
        "items": [{**entry, "href": leads(entry)} for entry in entries],
        "total": days[day] if day else days.total(),
    }


def _agents(entries: Mapping[str, int], calls: Sequence[LoggedCall]) -> list[dict[str, Any]]:
    """Return the numbers of each agent: its entries, questions and failed calls."""
    questions = Counter(call.who for call in calls if call.outcome)
    failed = Counter(call.who for call in calls if call.error)
    return [
        {"by": name, "entries": entries.get(name, 0), "questions": questions[name], "failed": failed[name]}
        for name in sorted({*entries, *questions, *failed})
    ]


async def worklog(visit: Visit) -> Data:
    """Return the latest entries of a worklog, or those around or after an entry; no cursor moves."""
    name = visit.path("worklog")
    session = await visit.call("worklog_status", session_id=name)
    latest = max(0, session["entry_count"] - ENTRIES)
    entry = visit.number("entry")
    since = visit.number("since", latest) if entry is None else entry - ENTRIES // 2
    reader = {"session_id": name, "agent_id": visit.who or "page", "peek": True}
    read = await visit.call("worklog_read", **reader, since=min(latest, max(0, since or 0)), limit=ENTRIES)
    return {
        "session": session,
        "name": name,
        "items": read["items"],
        "earlier": read["offset"],
        "later": read["remaining"],
        "_back": max(0, read["offset"] - ENTRIES),
    }


def at_work(app: Context, visit: Visit) -> list[Data]:
    """Return the last act of each agent in the last hour."""
    recent = _acts(app, visit, None, timedelta(hours=1))
    acts: dict[str, Data] = {}
    for entry in app.database.reading(recent.newest, SHOWN) if recent.kinds else ():
        acts.setdefault(entry["by"], {**entry, "href": leads(entry)})
    return list(acts.values())


def leads(entry: Mapping[str, Any]) -> str:
    """Return the address of an entry."""
    kind, place, number = entry["kind"], entry["place"], entry["number"]
    if kind in ("chat", "worklog"):
        page, part = ("rooms", "event") if kind == "chat" else ("worklogs", "entry")
        return address(f"/{page}/{place}", **{part: number}) + f"#{part}-{number}"
    return f"/artifacts/{place}/revisions/{number}" if kind == "artifact" else f"/reviews/{place}"


DECLARED = (
    WebPage("/", start, "start.html"),
    WebPage("/activity", activity, "activity.html", "search", "Activity", entry=TEAM),
    WebPage("/sessions/{session}", session, "activity.html", "session", entry=TEAM),
    # Names of archived worklogs contain a slash, so no path may follow them.
    WebPage("/worklogs/{worklog:path}", worklog, "worklog.html", "worklog", entry=TEAM),
)
