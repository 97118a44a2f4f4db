"""The log of calls: questions with their outcomes and costs, and failed calls with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from npl_mcp.web.routing import Data, Moved, WebPage
from npl_mcp.web.tables import Column, Table, part
from npl_mcp.web.visits import Visit, address

CHOSEN = {
    "": "All calls",
    "questions": "Questions",
    "nothing": "Found nothing",
    "weak": "Weak",
    "failed": "Failed",
}
"""Kinds of calls, and the titles of their tabs."""

COLUMNS = (
    Column("context", "Call"),
    Column("used", "Tokens", "number"),
    Column("micros", "ms", "number"),
    Column("who", "Caller", "minor"),
    Column("id", "When", "minor"),
)

SHOWN = 50
"""Calls on a page."""


async def calls(visit: Visit) -> Data:
    """Return logged calls."""
    given = {"who": visit.text("who") or None, "tool": visit.text("tool") or None}
    rows = part(visit, SHOWN) | {"sort": visit.text("sort", "-id")}
    del rows["filter"]
    listed = await visit.call("calls_list", **given, chosen=visit.text("show") or None, **rows)
    return {
        **listed,
        **given,
        "_show": visit.text("show"),
        "_chosen": CHOSEN,
        "_table": Table(visit, COLUMNS, listed),
        "_opened": opened,
    }


def opened(call: Mapping[str, Any]) -> str:
    """Return the address of Ask with the question of a call."""
    file = call.get("file") or ""
    return address("/ask", context=call["context"], file="" if ", " in file else file)


DECLARED = (WebPage("/usage", calls, "calls.html", None, "Usage"), Moved("/calls", "/usage"))
