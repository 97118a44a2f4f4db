"""Plots over time, as SVG whose shapes are worked out here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 320, 80
"""Of the area that is drawn on; the page scales it."""

_GAP = 0.25
"""Of a step, between two bars."""

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle.

    :param kind: 0 for the first row of values, 1 for the second.
    :param tip: what it stands for.
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

    :param title: what is plotted.
    :param names: of the rows of values.
    :param top: the value at the upper edge.
    :param bars: those of the first row stand behind those of the second.
    :param target: height of a line, if there is one to reach.
    :param first: label of the first step.
    :param last: label of the last one.
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

    :param labels: of the steps.
    :param rows: names and values; ``None`` leaves a step out.
    :param unit: behind each value.
    :param most: the value at the upper edge; by default the greatest.
    :param target: a value to reach.
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
