"""Worklogs: their entries."""

from __future__ import annotations

from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.visits import Visit

SHOWN = 100
"""Entries on a page."""


async def worklog(visit: Visit) -> Data:
    """Return the latest entries of a worklog, or those around or after an entry; no cursor moves."""
    name = visit.path("worklog")
    session = await visit.call("worklog_status", session_id=name)
    latest = max(0, session["entry_count"] - SHOWN)
    entry = visit.number("entry")
    since = visit.number("since", latest) if entry is None else entry - SHOWN // 2
    reader = {"session_id": name, "agent_id": visit.who or "page", "peek": True}
    read = await visit.call("worklog_read", **reader, since=min(latest, max(0, since or 0)), limit=SHOWN)
    return {
        "session": session,
        "name": name,
        "items": read["items"],
        "earlier": read["offset"],
        "later": read["remaining"],
        "_back": max(0, read["offset"] - SHOWN),
    }


# Names of archived worklogs contain a slash, so no path may follow them.
DECLARED = (WebPage("/worklogs/{worklog:path}", worklog, "worklog.html", "worklog", entry=TEAM),)
