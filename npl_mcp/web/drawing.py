"""Plots and maps as SVG. Positions are shares of the width, so that a drawing fits any window."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from markupsafe import Markup

from npl_mcp.web.visible import visible

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
