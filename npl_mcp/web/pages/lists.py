"""Lists of the work of agents in one form, and the page of a session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from npl_mcp.web.routing import TEAM, Data, WebPage
from npl_mcp.web.tables import Columns, paged
from npl_mcp.web.visits import Visit, address

SHOWN = 100
"""Rows of a page."""


class Listing(NamedTuple):
    """A list.

    :param title: title of the page.
    :param domain: domain of the tool with the items.
    :param made_by: tool that makes an item.
    :param rows: function that returns the items, or the archived ones.
    :param columns: columns after the name.
    :param archives: whether items are archived.
    """

    title: str
    domain: str
    made_by: str
    rows: Callable[[Visit, bool], Awaitable[list[Data]]]
    columns: Columns
    archives: bool = True


async def listed(listing: Listing, visit: Visit) -> Data:
    """Return a page of a list."""
    archived, columns = visit.flag("archived"), {"name": "Name", **listing.columns}
    rows = await listing.rows(visit, archived)
    return {**paged(visit, rows, columns, SHOWN), "archived": archived, "_listing": listing}


async def _sessions(visit: Visit, archived: bool) -> list[Data]:
    rows = await visit.every("session_list", status="archived" if archived else None)
    return [_row(one, f"/sessions/{one['id']}", one.get("title", one["id"]), "updated_at") for one in rows]


async def _rooms(visit: Visit, archived: bool) -> list[Data]:
    rows = await visit.every("chat_list_rooms", archived=archived)
    return [_row(one, f"/rooms/{one['id']}", one["name"], "created_at") for one in rows]


async def _artifacts(visit: Visit, archived: bool) -> list[Data]:
    verdicts = defaultdict[int, list[str]](list)
    for one in await visit.every("review_list") if visit.sees("review") else ():
        said = one.get("verdict", one["status"]).replace("_", " ")
        verdicts[one["artifact_id"]].append(f"{one['reviewer_persona']}: {said}")
    rows = await visit.every("artifact_list", archived=archived)
    return [
        _row(one, f"/artifacts/{one['id']}", one["name"], "created_at")
        | {"reviews": verdicts[one["id"]], "revisions": one["current_revision"] + 1}
        for one in rows
    ]


async def _reviews(visit: Visit, _: bool) -> list[Data]:
    artifacts = await visit.every("artifact_list") if visit.sees("artifact") else ()
    names = {one["id"]: one["name"] for one in artifacts}
    rows = []
    for one in await visit.every("review_list"):
        artifact = names.get(one["artifact_id"], f"artifact {one['artifact_id']}")
        name = f"{artifact}, revision {one['revision_num']}"
        rows.append(_row(one, f"/reviews/{one['id']}", name, "created_at"))
    return rows


async def _worklogs(visit: Visit, archived: bool) -> list[Data]:
    every = (await visit.call("worklog_sessions", archived=archived))["sessions"]
    rows = [one for one in every if ("archived_as" in one) == archived]
    ids = [f"archive/{one['archived_as']}" if archived else one["session_id"] for one in rows]
    names = [one.get("task", one["session_id"]) for one in rows]
    return [
        _row(one, f"/worklogs/{id_}", name, "last_entry")
        for one, id_, name in zip(rows, ids, names, strict=True)
    ]


def _row(item: Mapping[str, Any], path: str, name: str, time: str) -> Data:
    return {**item, "path": address(path), "name": name, "at": item.get(time)}


LISTS = {
    "/sessions": Listing(
        "Sessions",
        "session",
        "session_create",
        _sessions,
        {"status": "State", "at": "Last change", "room_count": "Rooms", "artifact_count": "Artifacts"},
    ),
    "/rooms": Listing(
        "Rooms",
        "chat",
        "chat_create_room",
        _rooms,
        {"members": "Members", "event_count": "Events", "description": "About", "at": "Created"},
    ),
    "/artifacts": Listing(
        "Artifacts",
        "artifact",
        "artifact_create",
        _artifacts,
        {"reviews": "Reviews", "revisions": "Revisions", "type": "Type", "at": "Created"},
    ),
    "/reviews": Listing(
        "Reviews",
        "review",
        "review_create",
        _reviews,
        {
            "verdict": "Verdict",
            "reviewer_persona": "Reviewer",
            "status": "State",
            "comment_count": "Comments",
            "at": "Begun",
        },
        archives=False,
    ),
    "/worklogs": Listing(
        "Worklogs",
        "worklog",
        "worklog_init",
        _worklogs,
        {"status": "State", "at": "Last entry", "agents": "Agents", "entry_count": "Entries"},
    ),
}
"""Lists by path, in the order of the tabs."""


async def session(visit: Visit) -> Data:
    """Return a session with its rooms, artifacts, reviews and worklog."""
    parts: Data = await visit.call("session_get", session_id=visit.path("session"))
    return parts


DECLARED = (
    *(
        WebPage(path, partial(listed, one), "list.html", one.domain, one.title, entry=TEAM)
        for path, one in LISTS.items()
    ),
    WebPage("/sessions/{session}", session, "session.html", "session"),
)
