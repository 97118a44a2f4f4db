"""Sessions: a list, and the rooms, artifacts, reviews and worklog of one."""

from __future__ import annotations

from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.visits import Visit

SHOWN = 100
"""Sessions on a page."""


async def sessions(visit: Visit) -> Data:
    """Return the sessions."""
    status = visit.text("status") or None
    page = await visit.call("session_list", status=status, limit=SHOWN, offset=visit.number("offset"))
    return {**page, "status": status}


async def session(visit: Visit) -> Data:
    """Return a session with its rooms and artifacts."""
    found: Data = await visit.call("session_get", session_id=visit.path("session"))
    return found


DECLARED = (
    WebPage("/sessions", sessions, "sessions.html", "session", "Sessions", entry=TEAM),
    WebPage("/sessions/{session}", session, "session.html", "session"),
)
