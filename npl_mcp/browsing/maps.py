"""The distribution of tokens as nested areas for a map; small areas are omitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.markdown.sections import SectionTree
from npl_mcp.app.app import Gathered
from npl_mcp.browsing.places import Crumb, Measure, place
from npl_mcp.browsing.relations import below, folder_name

MIN_SHARE = 0.004
"""Smallest area's share of all tokens: about three pixels of a wide window."""

MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Area:
    """An area of a map.

    :param name: name for people.
    :param address: value of ``file`` for a file or folder; absent for a section of the shown file.
    :param selector: selector of a section.
    :param tokens: number of tokens.
    :param children: areas in it, without small ones.
    :param smaller: number of areas in it that are too small to be drawn.
    :param rest: tokens of these areas.
    """

    name: str
    address: str | None
    selector: str | None
    tokens: int
    children: tuple[Area, ...]
    smaller: int | None = None
    rest: int | None = None


def areas_of_sections(tree: SectionTree, tokens: Sequence[int], selectors: Sequence[str]) -> Area | None:
    """Return the map of a file; ``None`` if it has no headings."""
    smallest = MIN_SHARE * tokens[0]

    def area(index: int, depth: int) -> Area:
        section = tree.sections[index]
        inside = section.children if depth < MAX_DEPTH else ()
        children = tuple(area(child, depth + 1) for child in inside if tokens[child] > smallest)
        small = [tokens[child] for child in inside if tokens[child] <= smallest]
        left = (len(small) or None, sum(small) or None)
        return Area(section.title, None, selectors[index], tokens[index], children, *left)

    # The section of a title spans the whole document.
    first = tree.title if tree.title is not None and tree.sections[0].children == (tree.title,) else 0
    return area(first, 0) if len(tree.sections) > 1 and tokens[0] else None


class _Node:
    def __init__(self) -> None:
        self.tokens = 0
        self.address: str | None = None
        self.inside: dict[str, _Node] = {}


def areas_of_files(top: Crumb, gathered: Gathered, files: Sequence[Measure]) -> Area | None:
    """Return the map of a folder."""
    first, path = place(top.address, gathered.founds)
    lead = f"{path}/" if path else ""
    root = _Node()
    for found, name, measure in zip(gathered.founds, gathered.files, files, strict=True):
        own = below(found)
        parts = own[len(lead) :].split("/") if found.root == first.root and own.startswith(lead) else [name]
        node, tokens = root, measure.tokens or 0
        node.tokens += tokens
        for at, part in enumerate(parts[:MAX_DEPTH], 1):
            node = node.inside.setdefault(part, _Node())
            node.tokens += tokens
            node.address = name if at == len(parts) else folder_name(first, lead + "/".join(parts[:at]))
    smallest = MIN_SHARE * root.tokens

    def area(name: str, node: _Node) -> Area:
        ordered = sorted(node.inside.items(), key=lambda item: -item[1].tokens)
        children = tuple(area(*item) for item in ordered if item[1].tokens > smallest)
        small = [one.tokens for _, one in ordered[len(children) :]]
        return Area(name, node.address, None, node.tokens, children, len(small) or None, sum(small) or None)

    root.address = top.address
    return area(top.name, root) if root.tokens else None
