"""Plots over time, as shapes for SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 320, 80
"""Size of the drawing area; the page scales it."""

_GAP = 0.25
"""Gap between two bars, as a share of a step."""

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle.

    :param kind: the row of values: 0 for the first, 1 for the second.
    :param tip: the label of the bar.
    """

    x: float
    y: float
    width: float
    height: float
    kind: int
    tip: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Bars over time.

    :param title: the subject of the plot.
    :param names: the names of the rows of values.
    :param top: the value at the upper edge.
    :param bars: the bars; those of the first row are behind those of the second.
    :param target: the height of a target line; ``None`` without a target.
    :param first: the label of the first step.
    :param last: the label of the last step.
    """

    title: str
    names: tuple[str, ...]
    top: str
    bars: tuple[Bar, ...]
    target: float | None
    first: str
    last: str


def plot(
    title: str,
    labels: Sequence[str],
    rows: Sequence[tuple[str, Values]],
    unit: str = "",
    most: float | None = None,
    target: float | None = None,
) -> Plot:
    """Return a plot.

    :param labels: the labels of the steps.
    :param rows: the names and values of the rows; ``None`` leaves out a step.
    :param unit: the unit after each value.
    :param most: the value at the upper edge; by default the greatest value.
    :param target: the value to reach.
    """
    top = most or max((value or 0 for _, values in rows for value in values), default=0) or 1
    step = WIDTH / max(1, len(labels))
    bars = tuple(
        Bar(
            round(at * step + step * _GAP / 2, 2),
            round(HEIGHT - height, 2),
            round(step * (1 - _GAP), 2),
            round(height, 2),
            kind,
            f"{labels[at]}: {name} {_number(value, unit)}",
        )
        for kind, (name, values) in enumerate(rows)
        for at, value in enumerate(values)
        if value is not None
        for height in (HEIGHT * min(value, top) / top,)
    )
    return Plot(
        title,
        tuple(name for name, _ in rows),
        _number(top, unit),
        bars,
        None if target is None else round(HEIGHT * (1 - target / top), 2),
        labels[0] if labels else "",
        labels[-1] if labels else "",
    )


def _number(value: float, unit: str) -> str:
    return f"{value:,.0f}{unit}"
