"""Maps, plots and lanes as SVG. Positions are shares of the width, so that a drawing fits any window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

from markupsafe import Markup

from npl_mcp.stores.base.activity import seconds_of
from npl_mcp.web.markdown import visible

ROW = 26
"""Height of a row of a map, in pixels."""

_NARROW, _WIDE = 300, 1_000
"""Minimum widths of a map on a small and on a large screen, in pixels."""

_LETTER = 7.5
"""Width of a letter in a map's names, in pixels, with a margin."""

_AREA = Markup(
    '<a href="{href}" data-leaf{rest} aria-label="{label}"><title>{label}</title>'
    '<rect class="d{depth}" x="{x:.3f}%" y="{y}" width="{width:.3f}%" height="{height}"/>{name}</a>\n'
)
_REST = Markup('<rect class="rest" x="{x:.3f}%" y="{y}" width="{width:.3f}%" height="{height}"/>{name}\n')
_NAME = Markup(
    '<svg class="{kind}" x="{x:.3f}%" y="{y}" width="{width:.3f}%" height="{height}">'
    '<text x="5" y="17">{name}</text></svg>'
)

WIDTH, HEIGHT = 320, 80
"""Size of a plot; the page scales it."""

_GAP = 0.25
"""Gap between two bars of a plot, as a share of a step."""

LANE_HEIGHT = 28
"""Height of a lane, in pixels."""

_MIN_BAR = 4
"""Minimum height of a bar in a lane, in pixels, so that a single event stays visible."""

_MIN_WIDTH, _MAX_WIDTH = 0.4, 6.0
"""Width limits of a bar in percent of the lane: a pixel on a phone, and the widest mark of a moment."""

Data = dict[str, Any]


def icicle(area: Mapping[str, Any], href: Callable[[Mapping[str, Any]], str]) -> Markup:
    """Return a map of nested areas: each is as wide as its tokens, with its children below it.

    :param area: the root area with ``name``, ``tokens`` and ``children``.
    :param href: the function that returns the link of an area.
    """
    rows = _depth(area)
    parts = Markup("").join(_areas(area, href, area["tokens"] or 1, 0.0, 0))
    frame = Markup(
        '<svg class="map" height="{}" width="100%" role="group" aria-label="Map of tokens" data-tree>'
        "\n{}</svg>"
    )
    return frame.format(rows * ROW, parts)


def _depth(area: Mapping[str, Any]) -> int:
    return 1 + max((_depth(child) for child in area["children"]), default=int("smaller" in area))


def _named(name: str, share: float, place: Mapping[str, float]) -> Markup:
    """Return the name of an area, visible where the window has room for it."""
    wanted = _LETTER * len(name) + 8
    kind = "always" if wanted <= share * _NARROW else "wide" if wanted <= share * _WIDE else None
    return Markup("") if kind is None else _NAME.format(kind=kind, name=name, **place)


def _areas(
    area: Mapping[str, Any], href: Callable[[Mapping[str, Any]], str], total: int, start: float, depth: int
) -> Iterator[Markup]:
    share = area["tokens"] / total
    name, tokens = visible(area["name"]), area["tokens"]
    place = {"x": 100 * start, "y": depth * ROW, "width": 100 * share, "height": ROW - 2}
    shown = _named(name, share, place)
    label = f"{name}: {tokens:,} tokens, {share:.0%}"
    # A single tab stop; arrow keys lead on from there.
    rest = Markup(' tabindex="-1"') if depth else ""
    yield _AREA.format(rest=rest, href=href(area), label=label, depth=min(depth, 5), name=shown, **place)
    for child in area["children"]:
        yield from _areas(child, href, total, start, depth + 1)
        start += child["tokens"] / total
    if "smaller" in area:
        share = area.get("rest", 0) / total
        row = {"x": 100 * start, "y": (depth + 1) * ROW, "width": 100 * share, "height": ROW - 2}
        yield _REST.format(name=_named(f"{area['smaller']:,} smaller", share, row), **row)


def plot(
    title: str,
    labels: Sequence[str],
    rows: Sequence[tuple[str, Sequence[float | None]]],
    unit: str = "",
    most: float | None = None,
    target: float | None = None,
) -> Data:
    """Return a plot over time, with its bars; those of the first row are behind those of the second.

    :param labels: the labels of the steps.
    :param rows: the names and values of the rows; ``None`` leaves out a step.
    :param unit: the unit after each value.
    :param most: the value at the upper edge; by default the greatest value.
    :param target: the value to reach.
    """
    top = most or max((value or 0 for _, values in rows for value in values), default=0) or 1
    step = WIDTH / max(1, len(labels))
    bars = [
        {
            "x": round(at * step + step * _GAP / 2, 2),
            "y": round(HEIGHT - height, 2),
            "width": round(step * (1 - _GAP), 2),
            "height": round(height, 2),
            "kind": kind,
            "tip": f"{labels[at]}: {name} {value:,.0f}{unit}",
        }
        for kind, (name, values) in enumerate(rows)
        for at, value in enumerate(values)
        if value is not None
        for height in (HEIGHT * min(value, top) / top,)
    ]
    return {
        "title": title,
        "names": [name for name, _ in rows],
        "top": f"{top:,.0f}{unit}",
        "bars": bars,
        "target": None if target is None else round(HEIGHT * (1 - target / top), 2),
        "first": labels[0] if labels else "",
        "last": labels[-1] if labels else "",
    }


def lanes(counts: Mapping[str, Sequence[Mapping[str, Any]]], seconds: int) -> list[Data]:
    """Return a lane for each kind or agent, with a bar for each interval with events.

    All lanes have one time scale and one height scale. Horizontal lengths are percent of the lane.

    :param counts: the intervals by name; each has its start time and its number of events.
    :param seconds: the length of an interval.
    """
    flat = [one for row in counts.values() for one in row]
    if not flat:
        return []
    begins = [seconds_of(one["at"]) for one in flat]
    start, span = min(begins), max(begins) - min(begins) + seconds
    most = max(one["count"] for one in flat)
    width = min(_MAX_WIDTH, max(_MIN_WIDTH, 100 * seconds / span - 0.15))

    def bar(one: Mapping[str, Any]) -> Data:
        height = _MIN_BAR + (LANE_HEIGHT - 2 - _MIN_BAR) * sqrt(one["count"] / most)
        left = min(100 * (seconds_of(one["at"]) - start) / span, 100 - width)
        return {
            "x": f"{left:.2f}%",
            "width": f"{width:.2f}%",
            "y": round(LANE_HEIGHT - height, 1),
            "height": round(height, 1),
            "title": f"{one['count']:,}, {one['at'].replace('T', ' ')} UTC",
        }

    return [
        {"name": name, "total": sum(one["count"] for one in row), "bars": [bar(one) for one in row]}
        for name, row in counts.items()
    ]
