"""Worklogs: entries by agent, action and tag, live."""

from __future__ import annotations

from collections.abc import Sequence

from npl_mcp.web.routing import WAIT_SECONDS, Data, Row, Stream, WebPage
from npl_mcp.web.visits import Visit, address

SHOWN = 100
"""Entries on a page."""

_FILTERS = ("who", "action", "tag")


async def worklogs(visit: Visit) -> Data:
    """Return the worklogs of the server's project."""
    archived = visit.flag("archived")
    found = await visit.call("worklog_sessions", archived=archived or None)
    rows = [one for one in found["sessions"] if ("archived_as" in one) == archived]
    return {"items": rows, "archived": archived}


async def worklog(visit: Visit) -> Data:
    """Return the latest entries of a worklog, or those around or before an entry."""
    name = visit.path("worklog")
    chosen = _chosen(visit)
    entry = visit.number("entry")
    before = visit.number("before") or (None if entry is None else entry + SHOWN // 2)
    found = await visit.call("worklog_view", session_id=name, before=before, limit=SHOWN, **chosen)
    return {
        **found,
        "name": name,
        "chosen": {one: chosen.get(one, "") for one in _FILTERS},
        "_news": address(
            "/worklog-news", worklog=name, since=found["items"][-1]["seq"] if found["items"] else 0, **chosen
        ),
    }


def _chosen(visit: Visit) -> dict[str, str]:
    return {name: visit.text(name) for name in _FILTERS if visit.text(name)}


async def news(visit: Visit, since: str) -> Sequence[Row]:
    """Return the entries after an entry."""
    name = visit.text("worklog")
    entries = await visit.call(
        "worklog_news", session_id=name, since=since or 0, wait=WAIT_SECONDS, **_chosen(visit)
    )
    return [Row((entry, name), str(entry["seq"])) for entry in entries]


DECLARED = (
    WebPage("/worklogs", worklogs, "worklogs.html", "worklog", "Worklogs"),
    # Names of archived worklogs contain a slash, so no path may follow them.
    WebPage("/worklogs/{worklog:path}", worklog, "worklog.html", "worklog"),
    Stream("/worklog-news", news, "logged.html", "entry"),
)
