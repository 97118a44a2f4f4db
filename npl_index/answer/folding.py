"""Folding of an outline into a budget: upper nodes are unfolded first, then small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import chain, count
from typing import Any, NamedTuple, Protocol

from npl_index.answer.outline import FolderNode, Folders, Node, OutlineNode, Sections, counted, inside
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.tokens.counting import TokenCounter

MIN_LINE = 4
"""Tokens of the shortest line; more files than fit are folded without an attempt to show all of them."""

_MAX_TRIES = 6
_DEFAULT = 1_000  # a smaller budget hides no number of all tokens that the default shows

Parts = Callable[[Node | None], Iterable[Sequence[Node]]]
"""Returns the nodes below a node, or the top ones, in each possible division, finest first."""


class Shown(NamedTuple):
    """The shown part of an outline.

    :param nodes: the shown nodes.
    :param note: number of the others, and how to show them; ``None`` if nothing is folded.
    :param remarks: whether there is room for remarks.
    """

    nodes: Sequence[Node]
    note: str | None = None
    remarks: bool = True


class Form(Protocol):
    """A form of an outline: text or fields."""

    def line(self, node: Node, depth: int) -> str:
        """Return a node without those below it, on one line.

        :param depth: number of nodes above it.
        """

    def answer(self, shown: Shown) -> str:
        """Return the whole answer as it is sent."""


def fitted(
    outline: Sections | Folders,
    form: Form,
    budget: int | None,
    counter: TokenCounter,
    clock: Deadline = NO_DEADLINE,
) -> Shown:
    """Fold an outline until the whole answer fits a budget.

    :param outline: a document, or the documents of a set.
    :param budget: maximum tokens of the answer; ``None`` for no limit.
    :raises DocumentTimeoutError: the deadline has passed.
    """

    def cost_of(text: str) -> int:
        return counter.upper_bound(counter.count(text, clock))

    def cost(node: Node, depth: int) -> int:
        return max(1, counter.count(form.line(node, depth) + "\n", clock))

    whole, everything = Shown(()), ""
    if budget is None or outline.files <= max(budget, _DEFAULT) // MIN_LINE:
        whole = Shown(outline.everything())
        if budget is None:
            return whole
        tokens = cost_of(form.answer(whole))
        if tokens <= budget:
            return whole
        everything = f"token_budget={tokens} shows all"

    def note_of(nodes: Sequence[Node], hidden: int) -> str:
        number, what = hidden + folded_below(nodes), "headings"
        files = sum(isinstance(node, OutlineNode) for node in nodes)
        if outline.files > files:
            number, what = outline.files - files, "files"
        folder = any(isinstance(node, FolderNode) for node in nodes)
        hints = ["file=path opens a folder"] * folder + [everything] * bool(everything)
        return f"+{number}: {what} not shown; {'; '.join(hints) or 'a higher token_budget shows more'}"

    empty = Shown((), note_of((), sum(map(counted, whole.nodes))))
    empty = empty._replace(remarks=2 * cost_of(form.answer(empty)) <= budget)
    used, spare = counter.count(form.answer(empty), clock), 0
    for _ in range(_MAX_TRIES):
        room = budget - spare
        nodes, hidden = fold(outline.parts, cost, lambda tokens: counter.upper_bound(used + tokens) <= room)  # noqa: B023
        shown = Shown(nodes, note_of(nodes, hidden), empty.remarks)
        over = cost_of(form.answer(shown)) - budget
        if over <= 0:
            return shown
        # The counts of parts may add up to less than the count of the whole.
        spare = 2 * spare + over
    return empty


def folded_below(nodes: Sequence[Node]) -> int:
    """Return the number of hidden headings below shown nodes."""
    below = (folded_below(node.children) for node in nodes if isinstance(node, OutlineNode))
    return sum(node.more or 0 for node in nodes) + sum(below)


Cost = Callable[[Node, int], int]


class _Row:
    """A node during folding.

    :param node: the node; ``None`` for the root above the top nodes.
    :param depth: number of nodes above it.
    :ivar shown: the shown nodes below it.
    :ivar hidden: number of the other headings below it.
    """

    def __init__(self, node: Node | None, depth: int, cost: Cost) -> None:
        self.node, self.depth = node, depth
        self.shown: list[_Row] = []
        self.inside = self.hidden = inside(node) if node else 0
        self.cost = sum(cost(row, depth) for row in self.result())

    def open_cost(self, cost: Cost) -> int:
        """Return the tokens of the node without its children if none of them is hidden."""
        if not isinstance(self.node, OutlineNode):
            return 0
        return cost(replace(self.node, children=(), more=None), self.depth)

    def result(self) -> tuple[Node, ...]:
        """Return the node with its shown children; for an unfolded folder, its content."""
        node, below = self.node, tuple(chain.from_iterable(row.result() for row in self.shown))
        if isinstance(node, OutlineNode) and node.children:
            children: Any = below
            return (replace(node, children=children, more=self.hidden or None),)
        return below if self.shown or node is None else (node,)


def fold(parts: Parts, cost: Cost, fits: Callable[[int], bool]) -> tuple[tuple[Node, ...], int]:
    """Unfold nodes while the outline fits: upper ones first, then small ones.

    If not even the folded top nodes fit, or those below a title, the last ones are left out.

    :param cost: returns the tokens of a node without its children, from the node and its depth; at least 1.
    :param fits: returns whether a number of tokens fits.
    :returns: the shown nodes, and the number of headings without a shown ancestor.
    """
    root = _Row(None, -1, cost)
    numbers, total, is_whole = count(), 0, True
    waiting = [(root.depth, root.inside, next(numbers), root)]
    while waiting and is_whole:
        *_, row = heappop(waiting)
        nodes: Sequence[Node] = ()
        for nodes in filter(None, parts(row.node)):
            below, used = list[_Row](), total - row.cost + row.open_cost(cost)
            for node in nodes:
                child = _Row(node, row.depth + 1, cost)
                if not fits(used + child.cost):
                    break
                below.append(child)
                used += child.cost
            is_whole = len(below) == len(nodes)
            if is_whole:
                break
        # The title alone is not an outline.
        is_top = row is root or (len(root.shown) == 1 and row in root.shown)
        if nodes and (is_whole or is_top):
            row.shown, row.hidden, total = below, sum(map(counted, nodes[len(below) :])), used
            for child in below:
                heappush(waiting, (child.depth, child.inside, next(numbers), child))
    return root.result(), root.hidden
