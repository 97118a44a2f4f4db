"""The log of calls: questions with their costs and outcomes, totals over time, and traces by session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from npl_mcp.web.drawing import plot
from npl_mcp.web.routing import Data, WebPage
from npl_mcp.web.tables import Column, Table, part
from npl_mcp.web.visits import Visit, address

STEPS = {"day": 30, "hour": 48}
"""Maximum days or hours in a plot."""

FEWEST = 7
"""Minimum steps in a plot: a single bar would fill it."""

CHOSEN = {
    "": "All calls",
    "questions": "Questions",
    "nothing": "Found nothing",
    "weak": "Weak",
    "failed": "Failed",
    "again": "Asked again",
}
"""Kinds of calls, and the titles of their tabs."""

COLUMNS = (
    Column("context", "Question"),
    Column("tool", "Tool", "minor"),
    Column("found", "Found", "number minor"),
    Column("used", "Tokens", "number"),
    Column("micros", "ms", "number"),
    Column("who", "Caller", "minor"),
    Column("id", "When", "minor"),
)

SHOWN = 50
TRACED = 200
"""Calls on a page, and latest calls grouped by session."""

IDLE = timedelta(minutes=30)
"""Idle time after which a caller's next call begins a new session."""

_FORMS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_LENGTHS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}

ACCEPTED, REDUCED, HIT = 50, 40, 70
"""Targets in percent: suggestions followed, tokens saved, index cache hits."""


async def calls(visit: Visit) -> Data:
    """Return logged calls, and totals over time."""
    who, tool = visit.text("who") or None, visit.text("tool") or None
    span = "hour" if visit.text("span") == "hour" else "day"
    given = {"who": who, "tool": tool, "chosen": visit.text("show") or None}
    by_session = visit.flag("sessions")
    rows = {"limit": TRACED} if by_session else part(visit, SHOWN) | {"sort": visit.text("sort", "-id")}
    rows.pop("filter", None)
    listed = await visit.call("calls_list", **given, **rows)
    figures = await visit.call("calls_figures", **given, span=span)
    return {
        **listed,
        "who": who,
        "tool": tool,
        "span": span,
        "sessions": traces(listed["items"]) if by_session else None,
        "_show": given["chosen"] or "",
        "_figures": visit.flag("figures"),
        "_chosen": CHOSEN,
        "_table": Table(visit, COLUMNS, listed),
        "_opened": opened,
        "_answers": answers,
        "figures": figures,
        "rates": rates(figures["total"]),
        "_plots": partial(plots, figures["spans"], span),
        "_aims": {"accepted": ACCEPTED, "reduced": REDUCED, "hit": HIT},
    }


def opened(call: Mapping[str, Any]) -> str:
    """Return the address of Ask with the question of a call."""
    file = call.get("file") or ""
    return address(
        "/ask", context=call["context"], file="" if ", " in file else file, budget=call.get("asked")
    )


def answers(call: Mapping[str, Any]) -> list[str]:
    """Return the selectors of a call's taken sections."""
    pairs = (one.partition(": ") for one in call.get("taken") or ())
    return [rest if rest and file.endswith(".md") else f"{file}{mark}{rest}" for file, mark, rest in pairs]


def traces(items: Sequence[Mapping[str, Any]]) -> list[Data]:
    """Return calls by session, each with the position of its bar on the session's time axis, in percent.

    :param items: the calls, newest first.
    """
    groups: list[list[tuple[datetime, datetime, Mapping[str, Any]]]] = []
    last: dict[tuple[str, str | None], list[Any]] = {}
    for call in reversed(items):
        end = datetime.fromisoformat(call["created_at"].replace("Z", "+00:00"))
        begin = end - timedelta(milliseconds=call["ms"])
        key = call["who"], call.get("session")
        group = last.get(key)
        if group is None or begin - group[-1][1] > IDLE:
            group = last[key] = []
            groups.append(group)
        group.append((begin, end, call))
    return [_trace(group) for group in sorted(groups, key=lambda group: group[-1][1], reverse=True)]


def _trace(group: Sequence[tuple[datetime, datetime, Mapping[str, Any]]]) -> Data:
    first, last = min(begin for begin, _, _ in group), max(end for _, end, _ in group)
    seconds = max((last - first).total_seconds(), 0.001)
    return {
        "who": group[0][2]["who"],
        "begun": first.isoformat(),
        "seconds": round(seconds, 3),
        "tokens": sum(call.get("used") or 0 for _, _, call in group),
        "calls": [
            {
                **call,
                "begin": round(100 * (begin - first).total_seconds() / seconds, 2),
                "width": round(100 * (end - begin).total_seconds() / seconds, 2),
            }
            for begin, end, call in group
        ],
    }


def rates(sums: Mapping[str, int]) -> dict[str, float | None]:
    """Return the rates behind some totals, in percent; ``None`` without counted events."""
    return {
        "used": percent(sums["used_of_asked"], sums["asked"]),
        "reduced": percent(sums["whole"] - sums["used_of_whole"], sums["whole"]),
        "accepted": percent(sums["followed"], sums["suggested"]),
        "more": percent(sums["more_followed"], sums["more"]),
        "hit": percent(sums["hits"], sums["hits"] + sums["misses"]),
    }


def percent(part: int, whole: int) -> float | None:
    """Return the share of a part in a whole, in percent."""
    return round(100 * part / whole, 1) if whole > 0 else None


def plots(spans: Mapping[str, Mapping[str, int]], span: str) -> list[Data]:
    """Return the plots over time; an empty list without calls."""
    labels = steps(sorted(spans), span)
    if not labels:
        return []
    sums = [spans.get(label, {}) for label in labels]
    shown: list[dict[str, float | None]] = [{**rates(one), **one} if one else {} for one in sums]

    def row(title: str, name: str) -> tuple[str, list[float | None]]:
        return title, [one.get(name) for one in shown]

    return [
        plot("Calls", labels, [row("all", "calls"), row("failed", "errors")]),
        plot("Tokens", labels, [row("asked", "asked"), row("used", "used")]),
        plot("Tokens saved", labels, [row("saved", "reduced")], " %", 100, REDUCED),
        plot("Suggestions followed", labels, [row("followed", "accepted")], " %", 100, ACCEPTED),
        plot("Index cache hits", labels, [row("hits", "hit")], " %", 100, HIT),
    ]


def steps(names: Sequence[str], span: str) -> list[str]:
    """Return the days or hours up to the last one with a call, including those without calls."""
    if not names:
        return []
    form, length = _FORMS[span], _LENGTHS[span]
    last = datetime.strptime(names[-1], form)
    first = datetime.strptime(names[0], form)
    count = min(STEPS[span], max(FEWEST, (last - first) // length + 1))
    return [(last - length * (count - 1 - at)).strftime(form) for at in range(count)]


DECLARED = (WebPage("/calls", calls, "calls.html", None, "Calls"),)
