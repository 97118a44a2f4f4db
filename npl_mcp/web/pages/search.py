"""Search: one box over everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npl_mcp.web.marking import marked, sought
from npl_mcp.web.pages.documents import to_document
from npl_mcp.web.routing import Data, Page
from npl_mcp.web.visits import Visit, address

SHOWN = 20
"""Hits of a page."""

TITLES = {
    "document": "Documents",
    "message": "Messages",
    "worklog": "Worklogs",
    "artifact": "Artifacts",
    "cr": "Change requests",
}
"""What kinds of hits are called."""


async def search(visit: Visit) -> Data:
    """Return what fits a question."""
    query, kinds = visit.text("q"), visit.texts("kind")
    if not query:
        return {"query": "", "_titles": TITLES, "_kinds": kinds, "_hits": [], "items": [], "total": 0}
    given = {"limit": visit.number("limit", SHOWN), "offset": visit.number("offset")}
    found = await visit.call("search", query=query, kinds=",".join(kinds) or None, **given)
    terms = sought(query)
    hits = [{**hit, "href": leads(hit), "marked": marked(hit["text"], terms)} for hit in found["items"]]
    return {"query": query, **found, "_titles": TITLES, "_kinds": kinds, "_hits": hits}


def leads(hit: Mapping[str, Any]) -> str:
    """Return the address of what was found."""
    kind = hit["kind"]
    if kind == "message":
        event = hit["event_id"]
        return address(f"/rooms/{hit['room_id']}", event=event) + f"#event-{event}"
    if kind == "worklog":
        entry = hit["seq"]
        return address(f"/worklogs/{hit['session_id']}", entry=entry) + f"#entry-{entry}"
    if kind == "artifact":
        return address(f"/artifacts/{hit['artifact_id']}/revisions/{hit['revision']}")
    if kind == "cr":
        return address(f"/changes/{hit['key']}")
    return to_document(hit["file"], selector=hit.get("selector"))


DECLARED = (Page("/search", search, "search.html", "search"),)
