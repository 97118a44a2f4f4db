"""Tables in a README and pictures, as the benchmarks that keep their figures write them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

Points = Sequence[tuple[float, float]]


def put_between(readme: Path, marks: tuple[str, str], text: str) -> None:
    """Replace the text between two marks of a file."""
    before, rest = readme.read_text(encoding="utf-8").split(marks[0])
    after = rest.split(marks[1])[1]
    readme.write_text(f"{before}{marks[0]}\n{text}{marks[1]}{after}", encoding="utf-8")


def text_at(x: float, y: float, text: str, more: str = "") -> str:
    """Return a text at a place.

    :param more: attributes of it.
    """
    return f'<text x="{x:g}" y="{y:g}"{more and " " + more}>{escape(text)}</text>'


def drawing(title: str, size: tuple[int, int], left: int, parts: Sequence[str]) -> str:
    """Return a picture of parts below a title."""
    width, height = size
    head = text_at(left, 18, title, 'font-size="15"')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="13" fill="#333" aria-label="{title}">\n'
        f'<rect width="100%" height="100%" fill="#fff"/>\n'
        f"{head}\n" + "\n".join(parts) + "\n</svg>\n"
    )


class LogPlot:
    """Lines on two logarithmic axes.

    :param title: what is shown.
    :param across: what the horizontal axis counts; ``up`` is on the other one.
    :param lines: points of each line, by its name; all are greater than 0.
    :param colors: of the lines.
    """

    LEFT, TOP, WIDTH, HEIGHT, RIGHT = 76, 44, 430, 330, 190

    def __init__(
        self, title: str, across: str, up: str, lines: Mapping[str, Points], colors: Mapping[str, str]
    ) -> None:
        self._title, self._across, self._up = title, across, up
        self._lines, self._colors = lines, colors
        self._across_at, heights = (
            sorted({point[axis] for line in lines.values() for point in line}) for axis in (0, 1)
        )
        self._x, self._y = _around(self._across_at), _around(heights)

    def svg(self) -> str:
        """Return the picture."""
        size = (self.LEFT + self.WIDTH + self.RIGHT, self.TOP + self.HEIGHT + 48)
        return drawing(self._title, size, self.LEFT, [*self._axes(), *self._drawn()])

    def _place(self, x: float, y: float) -> tuple[float, float]:
        return (
            round(self.LEFT + self.WIDTH * _share(x, self._x), 1),
            round(self.TOP + self.HEIGHT * (1 - _share(y, self._y)), 1),
        )

    def _axes(self) -> Iterator[str]:
        bottom, right = self.TOP + self.HEIGHT, self.LEFT + self.WIDTH
        for value in self._across_at:
            x = round(self.LEFT + self.WIDTH * _share(value, self._x), 1)
            yield f'<path d="M{x:g} {self.TOP}V{bottom}" stroke="#e3e6e9"/>'
            yield text_at(x, bottom + 18, f"{value:,.0f}", 'text-anchor="middle"')
        for power in range(math.ceil(self._y[0]), math.floor(self._y[1]) + 1):
            y = round(bottom - self.HEIGHT * _share(10.0**power, self._y), 1)
            yield f'<path d="M{self.LEFT} {y:g}H{right}" stroke="#e3e6e9"/>'
            shown = f"{10.0**power:,.0f}" if power >= 0 else f"{10.0**power:g}"
            yield text_at(self.LEFT - 8, y + 4, shown, 'text-anchor="end"')
        yield text_at(self.LEFT + self.WIDTH / 2, bottom + 38, self._across, 'text-anchor="middle"')
        yield text_at(self.LEFT, self.TOP - 8, self._up)

    def _drawn(self) -> Iterator[str]:
        lowest = float(self.TOP + self.HEIGHT + 16)
        names = sorted(self._lines, key=lambda name: self._lines[name][-1][1])
        for name in names:
            places = [self._place(*point) for point in self._lines[name]]
            path = " ".join(f"{x:g},{y:g}" for x, y in places)
            yield f'<polyline points="{path}" fill="none" stroke="{self._colors[name]}" stroke-width="2"/>'
            for x, y in places:
                yield f'<circle cx="{x:g}" cy="{y:g}" r="3" fill="{self._colors[name]}"/>'
            # Names from below, none upon another.
            lowest = min(lowest - 16, places[-1][1] + 4)
            yield text_at(places[-1][0] + 9, lowest, name, f'style="fill:{self._colors[name]}"')


def _around(values: Sequence[float]) -> tuple[float, float]:
    """Return the logarithms between which values lie, with a little room."""
    return math.log10(min(values)) - 0.2, math.log10(max(values)) + 0.2


def _share(value: float, ends: tuple[float, float]) -> float:
    return (math.log10(value) - ends[0]) / (ends[1] - ends[0])
