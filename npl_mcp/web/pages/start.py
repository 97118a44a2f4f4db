"""The first page: the visitor's inbox and the agents at work."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from npl_mcp.stores.base.paging import later, now
from npl_mcp.web.pages.search import leads
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.visits import Visit

_RECENT = 50
"""Entries of each kind that are read to find the agents at work."""

_AT_WORK = timedelta(hours=1)
"""Maximum time since the last act of an agent at work."""


async def start(visit: Visit) -> Data:
    """Return the visitor's inbox, and the last acts of agents."""
    waiting = await inbox(visit)
    if not visit.sees("search"):
        return {**waiting, "places": [], "at_work": []}
    newest = await visit.call("search_newest", limit=_RECENT)
    recent = later(now(), -_AT_WORK)
    acts: dict[str, Data] = {}
    for hit in sorted(newest["items"], key=lambda hit: str(hit["at"]), reverse=True):
        if hit["at"] > recent:
            acts.setdefault(hit["by"], {**hit, "href": leads(hit)})
    return {**waiting, "places": newest["places"], "at_work": list(acts.values())}


async def inbox(visit: Visit) -> Data:
    """Return the visitor's inbox: notifications, todos, and open reviews of the visitor."""
    who = visit.who
    found: Data = {"notifications": None, "todos": [], "reviews": []}
    if who and visit.sees("chat") and (await visit.call("chat_list_rooms", persona=who, limit=1))["total"]:
        found["notifications"] = await visit.call("chat_get_notifications", persona=who, limit=20)
        found["todos"] = (await visit.call("chat_list_todos", persona=who, filter="mine", limit=20))["items"]
    if who and visit.sees("review"):
        own: Any = await visit.call("review_list", reviewer_persona=who, status="in_progress", limit=20)
        found["reviews"] = own["items"]
    return {"inbox": found}


DECLARED = (WebPage("/", start, "start.html"),)
