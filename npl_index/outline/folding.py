"""The folding of nodes into a budget: upper nodes are unfolded first, then small ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from glob import escape
from heapq import heappop, heappush
from itertools import chain, count
from posixpath import commonprefix
from typing import Any, NamedTuple, Protocol

from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.outline.nodes import FolderNode, Node, OutlineNode
from npl_index.tokens.counting import TokenCounter

MAX_ENTRIES, MIN_PATTERN = 128, 8
"""Entries of a folder that have lines of their own at most, and patterns for at least."""

MIN_LINE = 4
"""Tokens of the shortest line; more files than fit are folded without an attempt to show all of them."""

_MAX_TRIES = 6
_DEFAULT = 1_000  # a smaller budget hides no number of all tokens that the default shows


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections of one document, as parts for folding.

    :param document: its node.
    """

    document: OutlineNode
    files = 0

    def everything(self) -> Sequence[Node]:
        """Return the top nodes, whole."""
        return self.document.children

    def parts(self, node: Node | None) -> Iterator[Sequence[Node]]:
        """Yield the nodes below a node, or the top ones."""
        yield (node or self.document).children


class File(NamedTuple):
    """A document of a set.

    :param name: its name.
    :param start: length of the name of its root before the name, 0 without one.
    :param tokens: its tokens.
    :param headings: its counted headings.
    """

    name: str
    start: int = 0
    tokens: int = 0
    headings: int = 1


class Folders:
    """The documents of a set in their folders; the node of a document is made at its first use.

    The name of a folder's node selects exactly its documents: it is a path, or a pattern if a folder has
    too many entries for lines of their own.

    :param documents: the documents.
    :param make: returns the node of a document.
    :param patterns: whether patterns select some of the documents.
    """

    def __init__(self, documents: Sequence[File], make: Callable[[int], Node], *, patterns: bool) -> None:
        self.documents, self._make, self._patterns = documents, cache(make), patterns
        self.files = len(documents)
        self._below: dict[str, tuple[Sequence[int], int]] = {"": (range(self.files), 0)}

    def everything(self) -> Sequence[Node]:
        """Return the nodes of all documents."""
        return tuple(map(self._make, range(self.files)))

    def parts(self, node: Node | None) -> Iterator[Sequence[Node]]:
        """Yield the nodes below a node, or the top ones, in each division, finest first."""
        if isinstance(node, OutlineNode):
            yield node.children
            return
        path = node.name if node else ""
        own, above = self._below.get(path, ((), 0))
        entries = self._entries(own, above)
        while len(entries) == 1 < len(own):
            above = len(next(iter(entries)))
            entries = self._entries(own, above)
        if len(entries) <= MAX_ENTRIES or not self._patterns:
            yield self._nodes(entries, above)
        # Inside of another folder, a pattern tells less than the folder.
        if len(entries) > MIN_PATTERN and self._patterns and not path.endswith(("/", ":")):
            yield self._nodes(_grouped(entries), above)

    def _entries(self, own: Sequence[int], above: int) -> dict[str, list[int]]:
        """Return documents by the entries of their folder.

        :param above: length of the path of the folder.
        """
        entries: dict[str, list[int]] = {}
        for number in own:
            name, start, *_ = self.documents[number]
            end = start if above < start else name.find("/", above) + 1
            entries.setdefault(name[:end] or name, []).append(number)
        return entries

    def _nodes(self, entries: Mapping[str, list[int]], above: int) -> tuple[Node, ...]:
        """Return the nodes of entries; a folder with one document is the document."""
        nodes: list[Node] = []
        for path, own in entries.items():
            if len(own) == 1:
                nodes.append(self._make(own[0]))
            else:
                self._below[path] = own, len(path) if path.endswith(("/", ":")) else above
                files = [self.documents[number] for number in own]
                tokens, headings = sum(file.tokens for file in files), sum(file.headings for file in files)
                nodes.append(FolderNode(path, len(own), tokens, headings))
        return tuple(nodes)


def _grouped(entries: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Return entries by patterns of the first letter in which they differ."""
    first = len(commonprefix(list(entries))) + 1
    groups: dict[str, list[str]] = {}
    for path in entries:
        begin = escape(path[:first]).replace(",", "?")  # a comma would separate names
        groups.setdefault(begin + ("*/**" if path.endswith("/") else "*"), []).append(path)
    return {
        pattern if len(paths) > 1 else paths[0]: [number for path in paths for number in entries[path]]
        for pattern, paths in groups.items()
    }


def inside(node: Node) -> int:
    """Return the number of headings below a node, shown or hidden; with a filter, of matching ones."""
    return (node.more or 0) + sum(map(counted, node.children))


def counted(node: Node) -> int:
    """Return the number of headings in a node, with its own."""
    own = isinstance(node, OutlineNode) and node.level > 0 and node.matches is None
    return own + inside(node)


class Shown(NamedTuple):
    """The shown part of an outline.

    :param nodes: the shown nodes.
    :param note: number of the others, and how to show them; ``None`` if nothing is folded.
    :param has_remarks: whether there is room for remarks.
    """

    nodes: Sequence[Node]
    note: str | None = None
    has_remarks: bool = True


class OutlineForm(Protocol):
    """A form of an outline: text or fields."""

    def line(self, node: Node, depth: int) -> str:
        """Return a node without those below it, on one line.

        :param depth: number of nodes above it.
        """

    def answer(self, shown: Shown) -> str:
        """Return the whole answer as it is sent."""


Outline = Sections | Folders


def fitted(
    outline: Outline,
    form: OutlineForm,
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

    whole, for_all = Shown(()), ""
    if budget is None or outline.files <= max(budget, _DEFAULT) // MIN_LINE:
        whole = Shown(outline.everything())
        if budget is None:
            return whole
        tokens = cost_of(form.answer(whole))
        if tokens <= budget:
            return whole
        for_all = f"token_budget={tokens} shows all"

    def note_of(nodes: Sequence[Node], hidden: int) -> str:
        number, what = hidden + folded_below(nodes), "headings"
        files = sum(isinstance(node, OutlineNode) for node in nodes)
        if outline.files > files:
            number, what = outline.files - files, "files"
        folder = any(isinstance(node, FolderNode) for node in nodes)
        hints = ["file=path opens a folder"] * folder + [for_all] * bool(for_all)
        return f"+{number}: {what} not shown; {'; '.join(hints) or 'a higher token_budget shows more'}"

    empty = Shown((), note_of((), sum(map(counted, whole.nodes))))
    empty = empty._replace(has_remarks=2 * cost_of(form.answer(empty)) <= budget)
    used, spare = counter.count(form.answer(empty), clock), 0
    for _ in range(_MAX_TRIES):
        room = budget - spare
        nodes, hidden = _unfolded(outline, cost, lambda tokens: counter.upper_bound(used + tokens) <= room)  # noqa: B023
        shown = Shown(nodes, note_of(nodes, hidden), empty.has_remarks)
        over = cost_of(form.answer(shown)) - budget
        if over <= 0:
            return shown
        # The counts of parts may add up to less than the count of the whole.
        spare = 2 * spare + over
    return empty


def folded_below(nodes: Sequence[Node]) -> int:
    """Return the number of hidden headings below shown nodes."""
    return sum((node.more or 0) + folded_below(node.children) for node in nodes)


Cost = Callable[[Node, int], int]


class _Row:
    """A node during folding.

    :param node: the node; ``None`` for the root above the top nodes.
    :param depth: number of nodes above it.
    :ivar shown: the shown nodes below it.
    :ivar hidden: number of the other headings below it.
    :ivar cost: tokens of its line if nothing below it is shown.
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


def _unfolded(outline: Outline, cost: Cost, fits: Callable[[int], bool]) -> tuple[tuple[Node, ...], int]:
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
        for nodes in filter(None, outline.parts(row.node)):
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
