"""The first page: the visitor's inbox, the agents at work, and new entries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from npl_mcp.stores.base.paging import later, now
from npl_mcp.web.browsers import SEEN_COOKIE, kept_in
from npl_mcp.web.pages.search import TITLES, leads
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.visits import Visit

NEWEST = 5
"""Entries of each kind on the page."""

_RECENT = 50
"""Entries of each kind that are read to find the agents at work."""

_AT_WORK = timedelta(hours=1)
"""Maximum time since the last act of an agent at work."""

_APART = timedelta(minutes=30)
"""Minimum time between requests of different visits."""


async def start(visit: Visit) -> Data:
    """Return the visitor's inbox, the last acts of agents, and new entries since the previous visit."""
    waiting = await inbox(visit)
    since, kept = _visits(visit)
    data = {**waiting, "since": since, "_keeps": {SEEN_COOKIE: kept}, "_titles": TITLES}
    if not visit.sees("search"):
        return {**data, "items": [], "places": [], "at_work": [], "_groups": {}}
    found = await visit.call("search_newest", limit=_RECENT)
    hits = [{**hit, "href": leads(hit)} for hit in found["items"]]
    groups: dict[str, list[Data]] = {}
    for hit in hits:
        groups.setdefault(hit["kind"], []).append(hit)
    recent = later(now(), -_AT_WORK)
    acts: dict[str, Data] = {}
    for hit in sorted(hits, key=lambda hit: str(hit.get("at", "")), reverse=True):
        if "by" in hit and hit["at"] > recent:
            acts.setdefault(hit["by"], hit)
    shown = {kind: some[:NEWEST] for kind, some in groups.items()}
    items = [hit for some in shown.values() for hit in some]
    return {**data, **found, "items": items, "at_work": list(acts.values()), "_groups": shown}


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


def _visits(visit: Visit) -> tuple[str, str]:
    """Return the end of the previous visit, and the cookie with both times; empty at the first visit."""
    at = now()
    before, _, latest = kept_in(visit.cookies, SEEN_COOKIE).partition(" ")
    if latest and latest < later(at, -_APART):
        before = latest
    return before.strip("-"), f"{before or '-'} {at}"


DECLARED = (WebPage("/", start, "start.html"),)
