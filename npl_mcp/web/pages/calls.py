"""The log of calls: what was asked for, what it cost, and whether what was offered was wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from npl_mcp.web.plots import Plot, plot
from npl_mcp.web.routing import Data, Page
from npl_mcp.web.visits import Visit

STEPS = {"day": 30, "hour": 48}
"""Days or hours that are plotted."""

FEWEST = 7
"""So that a bar is no wall."""

_FORMS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H"}
_LENGTHS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}

ACCEPTED, REDUCED, HIT = 50, 40, 70
"""Percent that are aimed at: of suggestions followed, of tokens saved, of indices at hand."""


async def calls(visit: Visit) -> Data:
    """Return logged calls, and sums over time."""
    who, tool = visit.text("who") or None, visit.text("tool") or None
    span = "hour" if visit.text("span") == "hour" else "day"
    listed = await visit.call("calls_list", who=who, tool=tool, offset=visit.number("offset"))
    figures = await visit.call("calls_figures", who=who, tool=tool, span=span)
    return {
        **listed,
        "who": who,
        "tool": tool,
        "span": span,
        "figures": figures,
        "rates": rates(figures["total"]),
        "_plots": partial(plots, figures["spans"], span),
        "_aims": {"accepted": ACCEPTED, "reduced": REDUCED, "hit": HIT},
    }


def rates(sums: Mapping[str, int]) -> dict[str, float | None]:
    """Return what sums mean, in percent; ``None`` where nothing was counted."""
    return {
        "used": percent(sums["used_of_asked"], sums["asked"]),
        "reduced": percent(sums["whole"] - sums["used_of_whole"], sums["whole"]),
        "accepted": percent(sums["followed"], sums["suggested"]),
        "more": percent(sums["more_followed"], sums["more"]),
        "hit": percent(sums["hits"], sums["hits"] + sums["misses"]),
    }


def percent(part: int, whole: int) -> float | None:
    """Return how much of a whole a part is."""
    return round(100 * part / whole, 1) if whole > 0 else None


def plots(spans: Mapping[str, Mapping[str, int]], span: str) -> list[Plot]:
    """Return what is plotted over time; without calls nothing."""
    labels = steps(sorted(spans), span)
    if not labels:
        return []
    sums: list[Mapping[str, int] | None] = [spans.get(label) for label in labels]
    shares = [None if one is None else rates(one) for one in sums]

    def counts(name: str) -> list[float | None]:
        return [None if one is None else one[name] for one in sums]

    def parts(name: str) -> list[float | None]:
        return [None if one is None else one[name] for one in shares]

    return [
        plot("Calls", labels, [("all", counts("calls")), ("failed", counts("errors"))]),
        plot("Tokens", labels, [("asked", counts("asked")), ("used", counts("used"))]),
        plot("Tokens saved", labels, [("saved", parts("reduced"))], " %", 100, REDUCED),
        plot("Suggestions followed", labels, [("followed", parts("accepted"))], " %", 100, ACCEPTED),
        plot("Indices at hand", labels, [("at hand", parts("hit"))], " %", 100, HIT),
    ]


def steps(names: Sequence[str], span: str) -> list[str]:
    """Return the days or hours up to the last one with a call, those without one as well."""
    if not names:
        return []
    form, length = _FORMS[span], _LENGTHS[span]
    last = datetime.strptime(names[-1], form)
    first = datetime.strptime(names[0], form)
    count = min(STEPS[span], max(FEWEST, (last - first) // length + 1))
    return [(last - length * (count - 1 - at)).strftime(form) for at in range(count)]


DECLARED = (Page("/calls", calls, "calls.html", None, "Calls"),)
