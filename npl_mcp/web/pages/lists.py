"""Lists of the work of agents in one form, and the page of a session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.tables import Columns, paged
from npl_mcp.web.visits import Visit, address

SHOWN = 100
"""Rows of a page."""


class Listing(NamedTuple):
    """A list.

    :param title: title of the page.
    :param domain: domain of the tool with the items.
    :param items: function that returns the items, or the archived ones, each with ``id`` and ``name``.
    :param columns: columns after the name.
    :param archives: whether items are archived.
    """

    title: str
    domain: str
    items: Callable[[Visit, bool], Awaitable[list[Data]]]
    columns: Columns
    archives: bool = True


async def listed(path: str, visit: Visit) -> Data:
    """Return a page of a list."""
    listing, archived = LISTS[path], visit.flag("archived")
    items = await listing.items(visit, archived)
    rows = [{**row, "path": address(f"{path}/{row['id']}")} for row in items]
    page = paged(visit, rows, {"name": "Name", **listing.columns}, SHOWN)
    return {**page, "archived": archived, "_listing": listing}


async def _sessions(visit: Visit, archived: bool) -> list[Data]:
    return [
        {**session, "name": session.get("title", session["id"])}
        for session in await visit.every("session_list")
        if (session["status"] == "archived") == archived
    ]


async def _rooms(visit: Visit, archived: bool) -> list[Data]:
    return await visit.every("chat_list_rooms", archived=archived)


async def _artifacts(visit: Visit, archived: bool) -> list[Data]:
    verdicts = defaultdict[int, list[str]](list)
    for review in await visit.every("review_list") if visit.sees("review") else ():
        verdict = review.get("verdict", review["status"]).replace("_", " ")
        verdicts[review["artifact_id"]].append(f"{review['reviewer_persona']}: {verdict}")
    return [
        {**artifact, "reviews": verdicts[artifact["id"]], "revisions": artifact["current_revision"] + 1}
        for artifact in await visit.every("artifact_list", archived=archived)
    ]


async def _reviews(visit: Visit, _: bool) -> list[Data]:
    artifacts = await visit.every("artifact_list") if visit.sees("artifact") else ()
    names = {artifact["id"]: artifact["name"] for artifact in artifacts}
    reviews = await visit.every("review_list")
    for review in reviews:
        artifact = names.get(review["artifact_id"], f"artifact {review['artifact_id']}")
        review["name"] = f"{artifact}, revision {review['revision_num']}"
        review.setdefault("verdict", review["status"])
    return reviews


async def _worklogs(visit: Visit, archived: bool) -> list[Data]:
    worklogs = await visit.call("worklog_sessions", archived=archived)
    return [
        {**log, "id": f"archive/{log['archived_as']}" if archived else own, "name": log.get("task", own)}
        for log in worklogs
        if ("archived_as" in log) == archived and (own := log["session_id"])
    ]


LISTS = {
    "/sessions": Listing(
        "Sessions",
        "session",
        _sessions,
        {"status": "State", "updated_at": "Changed", "room_count": "Rooms", "artifact_count": "Artifacts"},
    ),
    "/rooms": Listing(
        "Rooms",
        "chat",
        _rooms,
        {"members": "Members", "event_count": "Events", "description": "About", "created_at": "Created"},
    ),
    "/artifacts": Listing(
        "Artifacts",
        "artifact",
        _artifacts,
        {"reviews": "Reviews", "revisions": "Revisions", "type": "Type", "created_at": "Created"},
    ),
    "/reviews": Listing(
        "Reviews",
        "review",
        _reviews,
        {
            "reviewer_persona": "Reviewer",
            "verdict": "Verdict",
            "comment_count": "Comments",
            "created_at": "Begun",
        },
        archives=False,
    ),
    "/worklogs": Listing(
        "Worklogs",
        "worklog",
        _worklogs,
        {"status": "State", "last_entry": "Last entry", "agents": "Agents", "entry_count": "Entries"},
    ),
}
"""Lists by path, in the order of the tabs."""


async def session(visit: Visit) -> Data:
    """Return a session with its rooms, artifacts, reviews and worklog."""
    parts: Data = await visit.call("session_get", session_id=visit.path("session"))
    return parts


DECLARED = (
    *(
        WebPage(path, partial(listed, path), "list.html", listing.domain, listing.title, entry=TEAM)
        for path, listing in LISTS.items()
    ),
    WebPage("/sessions/{session}", session, "session.html", "session"),
)
