"""Folding of an outline into a budget: headings without room are folded into the heading above them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from npl_index.answer.outline import OutlineNode


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded outline.

    :param nodes: the shown nodes, with the number of folded headings as ``more``.
    :param hidden: number of headings without a shown ancestor.
    """

    nodes: tuple[OutlineNode, ...]
    hidden: int


@dataclass(slots=True)
class _Row:
    """A node during folding.

    :param depth: number of nodes above it.
    :param children: the rows of its children.
    :param shown: tokens of the node with its children shown.
    :param folded: tokens of the node with its children folded.
    :param below: tokens of all nodes below it, unfolded.
    :param inside: number of headings below it.
    """

    node: OutlineNode
    depth: int
    children: list[_Row]
    shown: int
    folded: int
    below: int
    inside: int
    is_folded: bool = False

    @property
    def cost(self) -> int:
        return self.folded if self.is_folded else self.shown

    def result(self) -> OutlineNode:
        """Return the node with its children folded or shown."""
        if self.is_folded:
            return replace(self.node, children=(), more=self.inside)
        return replace(self.node, children=tuple(child.result() for child in self.children))


def fold(
    nodes: Sequence[OutlineNode], cost: Callable[[OutlineNode, int], int], fits: Callable[[int], bool]
) -> Folded:
    """Fold nodes until the outline fits: deepest first, then largest; finally drop the last top sections.

    :param cost: returns the tokens of a node without its children, from the node and its depth.
    :param fits: returns whether a number of tokens fits.
    """
    rows: list[_Row] = []
    tops = [_add_rows(rows, node, 0, cost) for node in nodes]
    title = None
    if len(tops) == 1 and tops[0].children:
        # The title alone is no outline.
        title = tops[0]
        tops += title.children
        title.children, title.shown = [], title.folded
    total = sum(row.cost for row in rows)
    folding = sorted((row for row in rows if row.children), key=lambda row: (-row.depth, -row.below))
    for row in folding:
        if fits(total):
            break
        row.is_folded = True
        total += row.folded - row.shown - sum(child.cost for child in row.children)
    kept = len(tops)
    while kept and not fits(total):
        kept -= 1
        total -= tops[kept].cost
    hidden = sum(1 + top.inside for top in tops[kept:] if top is not title)
    if title is None:
        return Folded(tuple(top.result() for top in tops[:kept]), hidden)
    if not kept:
        return Folded((), 1 + hidden)
    children = tuple(top.result() for top in tops[1:kept])
    return Folded((replace(title.node, children=children, more=hidden or title.node.more),), 0)


def _add_rows(
    rows: list[_Row], node: OutlineNode, depth: int, cost: Callable[[OutlineNode, int], int]
) -> _Row:
    """Add the rows of a node and all nodes below it; return its own."""
    row = _Row(node, depth, [], cost(node, depth), 0, 0, node.more or 0)
    rows.append(row)
    row.children = [_add_rows(rows, child, depth + 1, cost) for child in node.children]
    row.below = sum(child.shown + child.below for child in row.children)
    row.inside += sum(1 + child.inside for child in row.children)
    row.folded = cost(replace(node, more=row.inside), depth) if node.children else row.shown
    return row
