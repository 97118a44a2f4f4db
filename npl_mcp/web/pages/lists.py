"""Lists of rooms and of artifacts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.tables import Columns, paged
from npl_mcp.web.visits import Visit

SHOWN = 100
"""Rows of a page."""

ROOMS = {"members": "Members", "event_count": "Events", "description": "About", "created_at": "Created"}
ARTIFACTS = {"reviews": "Reviews", "revisions": "Revisions", "type": "Type", "created_at": "Created"}


async def rooms(visit: Visit) -> Data:
    """Return a page of the current or the archived rooms."""
    return _listed(visit, await visit.every("chat_list_rooms", archived=visit.flag("archived")), ROOMS)


async def artifacts(visit: Visit) -> Data:
    """Return a page of the current or the archived artifacts, with their reviews."""
    verdicts = defaultdict[int, list[str]](list)
    for review in await visit.every("review_list") if visit.sees("review") else ():
        verdict = review.get("verdict", review["status"]).replace("_", " ")
        verdicts[review["artifact_id"]].append(f"{review['reviewer_persona']}: {verdict}")
    rows = [
        {**artifact, "reviews": verdicts[artifact["id"]], "revisions": artifact["current_revision"] + 1}
        for artifact in await visit.every("artifact_list", archived=visit.flag("archived"))
    ]
    return _listed(visit, rows, ARTIFACTS)


def _listed(visit: Visit, rows: Sequence[Data], columns: Columns) -> Data:
    page = paged(visit, [*rows], {"name": "Name", **columns}, SHOWN)
    return {**page, "archived": visit.flag("archived")}


DECLARED = (
    WebPage("/rooms", rooms, "list.html", "chat", "Rooms", entry=TEAM),
    WebPage("/artifacts", artifacts, "list.html", "artifact", "Artifacts", entry=TEAM),
)
