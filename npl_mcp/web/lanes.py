"""Charts of events over time: a lane for each kind or agent, with a bar for each interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from npl_mcp.stores.base.activity import seconds_of

HEIGHT = 28
"""Height of a lane, in pixels."""

_LEAST = 4
"""Minimum height of a bar, in pixels, so that a single event stays visible."""

_NARROWEST, _WIDEST = 0.4, 6.0
"""Width limits of a bar in percent of the lane: a pixel on a phone, and the widest mark of a moment."""


@dataclass(frozen=True, slots=True)
class LaneBar:
    """A bar; horizontal lengths are percent of the lane, so that it fits any window."""

    x: str
    width: str
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a chart.

    :param name: the subject of the lane.
    :param total: the number of its events.
    """

    name: str
    total: int
    bars: Sequence[LaneBar]


def lanes(counts: Mapping[str, Sequence[Mapping[str, Any]]], seconds: int) -> list[Lane]:
    """Return lanes with a common time scale and a common height scale.

    :param counts: the intervals by name; each has its start time and its number of events.
    :param seconds: the length of an interval.
    """
    flat = [one for row in counts.values() for one in row]
    if not flat:
        return []
    begins = [seconds_of(one["at"]) for one in flat]
    start, span = min(begins), max(begins) - min(begins) + seconds
    most = max(one["count"] for one in flat)

    def bar(one: Mapping[str, Any]) -> LaneBar:
        height = _LEAST + (HEIGHT - 2 - _LEAST) * sqrt(one["count"] / most)
        width = min(_WIDEST, max(_NARROWEST, 100 * seconds / span - 0.15))
        left = min(100 * (seconds_of(one["at"]) - start) / span, 100 - width)
        title = f"{one['count']:,}, {one['at'].replace('T', ' ')} UTC"
        return LaneBar(f"{left:.2f}%", f"{width:.2f}%", round(HEIGHT - height, 1), round(height, 1), title)

    return [
        Lane(name, sum(one["count"] for one in row), [bar(one) for one in row])
        for name, row in counts.items()
    ]
