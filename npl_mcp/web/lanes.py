"""Pictures of when something happened: a lane for each kind or agent, with a bar for each part of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from npl_mcp.stores.base.activity import seconds_of

HEIGHT = 28
"""Pixels of a lane."""

_LEAST = 4
"""Pixels of a bar of one: it has to be seen."""

_NARROWEST, _WIDEST = 0.4, 6.0
"""Percent of the lane: a pixel on a phone, and what still looks like a moment."""


@dataclass(frozen=True, slots=True)
class LaneBar:
    """A bar; lengths across are percent of the lane, so that it fits any window."""

    x: str
    width: str
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of a picture.

    :param name: what it is of.
    :param total: how much happened.
    """

    name: str
    total: int
    bars: Sequence[LaneBar]


def lanes(counts: Mapping[str, Sequence[Mapping[str, Any]]], seconds: int) -> list[Lane]:
    """Return lanes that have one scale of time and one of height.

    :param counts: by name; each has how its times begin and how much there was.
    :param seconds: length of a part of time.
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
