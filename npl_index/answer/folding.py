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

    def note_of(folded: Folded) -> str:
        number, what = folded.hidden + folded_below(folded.nodes), "headings"
        files = sum(isinstance(one, OutlineNode) for one in folded.nodes)
        if outline.files > files:
            number, what = outline.files - files, "files"
        folder = any(isinstance(one, FolderNode) for one in folded.nodes)
        hints = ["file=path opens a folder"] * folder + [everything] * bool(everything)
        return f"+{number}: {what} not shown; {'; '.join(hints) or 'a higher token_budget shows more'}"

    empty = Shown((), note_of(Folded((), sum(map(counted, whole.nodes)))))
    empty = empty._replace(remarks=2 * cost_of(form.answer(empty)) <= budget)
    used, spare = counter.count(form.answer(empty), clock), 0
    for _ in range(_MAX_TRIES):
        room = budget - spare
        folded = fold(outline.parts, cost, lambda tokens: counter.upper_bound(used + tokens) <= room)  # noqa: B023
        shown = Shown(folded.nodes, note_of(folded), empty.remarks)
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


class Folded(NamedTuple):
    """A folded outline.

    :param nodes: the shown nodes, with the number of folded headings as ``more``.
    :param hidden: number of headings without a shown ancestor.
    """

    nodes: tuple[Node, ...]
    hidden: int


Cost = Callable[[Node, int], int]


class _Row:
    """A node during folding.

    :param depth: number of nodes above it.
    """

    def __init__(self, node: Node, depth: int, cost: Cost) -> None:
        self.node, self.depth = node, depth
        self.inside = inside(node)
        self.folded = _alone(node, self.inside)
        self.cost = cost(self.folded, depth)
        self.shown: list[_Row] | None = None

    def result(self) -> tuple[Node, ...]:
        """Return the node with its children folded or shown; for an unfolded folder, its content."""
        if self.shown is None:
            return (self.folded,)
        below: Any = tuple(chain.from_iterable(row.result() for row in self.shown))
        return (replace(self.node, children=below),) if isinstance(self.node, OutlineNode) else below


def _alone(node: Node, more: int | None = None) -> Node:
    """Return a node without its children.

    :param more: number of headings in them.
    """
    if isinstance(node, OutlineNode) and node.children:
        return replace(node, children=(), more=more)
    return node


def fold(parts: Parts, cost: Cost, fits: Callable[[int], bool]) -> Folded:
    """Unfold nodes while the outline fits: upper ones first, then small ones.

    If not even the folded top nodes fit, the last ones are left out.

    :param cost: returns the tokens of a node without its children, from the node and its depth; at least 1.
    :param fits: returns whether a number of tokens fits.
    """
    title: OutlineNode | None = None
    depth = total = titled = 0
    rows: list[_Row] = []
    for nodes in parts(None):
        if len(nodes) == 1 and isinstance(nodes[0], OutlineNode) and nodes[0].children:
            # The title alone is not an outline.
            title, depth, nodes = nodes[0], 1, nodes[0].children
            titled = cost(_alone(title, inside(title)), 0)
            if not fits(titled):
                return Folded((), counted(title))
        rows = [_Row(node, depth, cost) for node in nodes]
        total = titled + sum(row.cost for row in rows)
        if fits(total):
            break
    left: list[_Row] = []
    while rows and not fits(total):
        left.append(rows.pop())
        total -= left[-1].cost
    numbers = count()
    waiting = [(row.depth, row.inside, next(numbers), row) for row in rows if not left]
    waiting.sort()
    while waiting:
        *_, row = heappop(waiting)
        rest = total - row.cost
        rest += 0 if isinstance(row.node, FolderNode) else cost(_alone(row.node), row.depth)
        nodes = ()
        for nodes in filter(None, parts(row.node)):
            below = [_Row(node, row.depth + 1, cost) for node in nodes] if fits(rest + len(nodes)) else []
            if below and fits(whole := rest + sum(one.cost for one in below)):
                total, row.shown = whole, below
                break
        if row.shown is None and nodes:
            break
        for one in row.shown or ():
            heappush(waiting, (one.depth, one.inside, next(numbers), one))
    shown: Any = tuple(chain.from_iterable(row.result() for row in rows))
    hidden = sum(counted(row.node) for row in left)
    if title is None:
        return Folded(shown, hidden)
    return Folded((replace(title, children=shown, more=hidden or title.more),), 0)
