"""Plots as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT = 320, 80
"""Size of a plot; the page scales it."""

_GAP = 0.25
"""Gap between two bars of a plot, as a share of a step."""

Data = dict[str, Any]


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
