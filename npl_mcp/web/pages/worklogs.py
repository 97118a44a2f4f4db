"""Worklogs: entries, live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npl_mcp.web.routing import WAIT_SECONDS, Data, NewsRow, Stream, WebPage
from npl_mcp.web.visits import Visit, address

SHOWN = 100
"""Entries on a page."""


async def worklog(visit: Visit) -> Data:
    """Return the latest entries of a worklog, or those around or after an entry."""
    name = visit.path("worklog")
    session = await visit.call("worklog_status", session_id=name)
    latest = max(0, session["entry_count"] - SHOWN)
    entry = visit.number("entry")
    since = visit.number("since", latest) if entry is None else entry - SHOWN // 2
    read = await _read(visit, name, since=min(latest, max(0, since or 0)), limit=SHOWN)
    items = read["items"]
    return {
        "session": session,
        "name": name,
        "items": items,
        "earlier": read["offset"],
        "later": read["remaining"],
        "_back": max(0, read["offset"] - SHOWN),
        "_news": address("/worklog-news", worklog=name, since=items[-1]["seq"] if items else 0),
    }


async def news(visit: Visit, since: str) -> Sequence[NewsRow]:
    """Return the entries after an entry."""
    name = visit.text("worklog")
    read = await _read(visit, name, since=since or 0, wait=WAIT_SECONDS)
    return [NewsRow((entry, name), str(entry["seq"])) for entry in read["items"]]


async def _read(visit: Visit, name: str, **given: Any) -> Any:
    """Read entries without moving a cursor."""
    return await visit.call("worklog_read", session_id=name, agent_id=visit.who or "page", peek=True, **given)


DECLARED = (
    # Names of archived worklogs contain a slash, so no path may follow them.
    WebPage("/worklogs/{worklog:path}", worklog, "worklog.html", "worklog"),
    Stream("/worklog-news", news, "logged.html", "entry"),
)
