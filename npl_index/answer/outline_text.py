"""An outline as text: one line a heading, for models, and its folding into a budget.

::

    lines tokens c code t table e example; selector guide > ## A > ### B
    1-60 905 cte # Garden Guide
    12-30 310 c+2 ## Watering
    31-60 410 ## Pruning

A line begins with our numbers and letters, never with the text of a heading, except for a heading that is
shown only for its subsections. Headings without room are folded into the heading above them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import chain, count
from posixpath import basename, commonprefix

from npl_index.answer.outline import OutlineNode, in_folders, inside
from npl_index.cached import cached_property
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.selectors.grammar import quoted, spell
from npl_index.selectors.labels import fold_document, heading_label, label
from npl_index.tokens.counting import TokenCounter, count_tokens


def opening(nodes: Sequence[OutlineNode]) -> str:
    """Return the beginning of a hint, if there are folders."""
    return "file=path opens a folder; " if any(node.files for node in nodes) else ""


_LETTERS = {
    "has_code": ("c", "code"),
    "has_tables": ("t", "table"),
    "has_examples": ("e", "example"),
    "has_definitions": ("d", "definitions"),
}
"""Letter and word of each trait."""
_PATH = re.compile(r"[\w./-]*\.\w+")  # its suffix distinguishes it from the letters before it
_ORDINAL = re.compile(r" \[\d+\]\Z")  # in the text of a heading it would be in quotes


@dataclass(frozen=True)
class OutlineText:
    """The outline of one or several documents as text.

    :param documents: nodes of level 0.
    :param several: whether each document has a line.
    :param titled: whether the first heading of the single document is its title.
    :param version: version of the document, if it has one.
    :param remarks: lines at the end of the text.
    :param unfolding: hint for showing hidden headings; ``None`` if the first line has it.
    """

    documents: Sequence[OutlineNode]
    several: bool
    titled: bool = False
    version: str | None = None
    remarks: tuple[str, ...] = ()
    unfolding: str | None = "a higher depth shows them"

    def write(
        self, budget: int | None, counter: TokenCounter, clock: Deadline = NO_DEADLINE
    ) -> tuple[str, tuple[OutlineNode, ...]]:
        """Return the text, and the shown nodes.

        :param budget: maximum tokens of the text; ``None`` for no limit.
        :raises DocumentTimeoutError: the deadline has passed.
        """
        count = partial(count_tokens, counter=counter, clock=clock)
        nodes = self.nodes
        everything = 0
        if budget is None or len(nodes) <= budget:
            whole = self._text(nodes, self.remarks, self.unfolding)
            everything = counter.upper_bound(count(whole))
            if budget is None or everything <= budget:
                return whole, nodes
        tops = in_folders(nodes) if self.several else nodes
        unfolding = f"{opening(tops)}token_budget={everything} shows all"
        remarks = self.remarks
        if 2 * counter.upper_bound(count("\n".join(remarks))) > budget:
            remarks, unfolding = (), f"{unfolding}, with {len(remarks)} remarks"
        used = count(self._text((), remarks, unfolding, _headings_in(nodes)))
        folded = fold(
            tops,
            lambda node, depth: count(self.line(node, depth) + "\n"),
            lambda tokens: counter.upper_bound(used + tokens) <= budget,
        )
        if not folded.nodes:
            return f"{_headings_in(nodes)} headings; {unfolding}\n", ()
        return self._text(folded.nodes, remarks, unfolding, folded.hidden), folded.nodes

    def _text(
        self, nodes: Sequence[OutlineNode], remarks: Sequence[str], unfolding: str | None, hidden: int = 0
    ) -> str:
        if not self.documents:
            return "\n".join((*remarks, ""))
        files = sum(not node.files for node in nodes)
        if self.several and files < len(self.documents):
            more, what = len(self.documents) - files, "files"
        else:
            above = () if self.several else self.documents
            more, what = hidden + _folded(nodes) + sum(one.more or 0 for one in above), "headings"
        notes = [f"+{more}: {what} not shown; {unfolding}"] if more and unfolding else []
        return "\n".join((self.first, *self._lines(nodes, 0), *notes, *remarks, ""))

    @property
    def nodes(self) -> tuple[OutlineNode, ...]:
        """The top nodes with a line."""
        if self.several:
            return tuple(self.documents)
        return tuple(child for document in self.documents for child in document.children)

    @cached_property
    def first(self) -> str:
        """The legend of the lines, with the form of a selector."""
        if not self.several:
            version = f"version {label(self.version)}; " if self.version else ""
            root = self.documents[0].selector if self.documents else ""
            title = "" if self.titled or not self.documents else _title(self.documents[0], "title {}; ")
            rule = f"{root} > ## A" if self._is_flat else f"{root} > ## A > ### B"
            return f"{title}{version}lines tokens{self._legend}; selector {rule}"
        tokens = sum(document.token_count for document in self.documents)
        shared = f"path is {self._shared} + what is written; " if self._shared else ""
        named = 'path "title"' if any(_title(one) for one in self.documents) else "path"
        lines = ", of headings lines tokens" if any(one.children for one in self.documents) else ""
        return (
            f"{len(self.documents)} files {tokens} tokens; tokens{self._legend} +headings {named}{lines}; "
            f"{shared}file=path shows headings; selector path > ## A > ### B"
        )

    @property
    def _is_flat(self) -> bool:
        """Whether no section except the title has subsections."""
        tops = self.nodes
        below = (*tops[0].children, *tops[1:]) if self.titled and tops else tops
        return not any(node.children or node.more for node in below)

    @property
    def _legend(self) -> str:
        """The meaning of the letters that occur."""
        used = {letter for document in self.documents for letter in _letters(document)}
        said = [f"{letter} {what}" for letter, what in _LETTERS.values() if letter in used]
        legend = " ".join((*said, "=digest") if any(node.digest for node in self.nodes) else said)
        return legend and f" {legend}"

    @cached_property
    def _shared(self) -> str:
        """The common prefix of all paths, up to the end of a word."""
        paths = [document.name for document in self.documents]
        shared = commonprefix(paths) if len(paths) > 1 and all(map(_is_plain, paths)) else ""
        return shared[: max(map(shared.rfind, "/-_"), default=-1) + 1]

    def line(self, node: OutlineNode, depth: int) -> str:
        """Return a node's line.

        :param depth: number of nodes above it.
        """
        is_document = self.several and not depth
        marks = _letters(node) + (f"+{node.more}" if node.more else "")
        marks += f" ={node.digest}" if node.digest else ""
        lines = "" if is_document else f"{node.start_line}-{max(node.start_line, node.end_line - 1)} "
        numbers = f"{lines}{node.token_count} {marks} ".replace("  ", " ")
        if is_document:
            path = node.name.removeprefix(self._shared)
            name = (
                path if _is_plain(path.removesuffix("/") + ".md" * bool(node.files)) else quoted(label(path))
            )
            return numbers + name + (f" {node.files} files" if node.files else _title(node, " {}"))
        return _step(node) if node.matches is False else numbers + _step(node)

    def _lines(self, nodes: Sequence[OutlineNode], depth: int) -> Iterator[str]:
        for node in nodes:
            yield self.line(node, depth)
            yield from self._lines(node.children, depth + 1)


def _letters(node: OutlineNode) -> str:
    return "".join(letter for name, (letter, _) in _LETTERS.items() if getattr(node, name))


def _step(node: OutlineNode) -> str:
    """Return a node as a step of a selector."""
    name = heading_label(node.name)
    ordinal = _ORDINAL.search(node.selector)
    step = f"{'#' * node.level} {spell(name)}" if node.level else quoted(name)
    return step + (ordinal[0] if ordinal else "")


def _title(document: OutlineNode, form: str = "{}") -> str:
    """Return a document's title if it differs from its name, else ``""``."""
    title = heading_label(document.heading)
    said = fold_document(title) == fold_document(basename(document.name))
    return "" if said or not title else form.format(quoted(title))


def _is_plain(path: str) -> bool:
    """Return whether a path needs no quotes in selectors and lines."""
    return bool(_PATH.fullmatch(path)) and spell(path) == path


def _headings_in(nodes: Sequence[OutlineNode]) -> int:
    """Return the number of headings, shown or hidden."""
    return sum((node.level > 0) + (node.more or 0) + _headings_in(node.children) for node in nodes)


def _folded(nodes: Sequence[OutlineNode]) -> int:
    """Return the number of hidden headings."""
    return sum((node.more or 0) + _folded(node.children) for node in nodes)


@dataclass(frozen=True, slots=True)
class Folded:
    """A folded outline.

    :param nodes: the shown nodes, with the number of folded headings as ``more``.
    :param hidden: number of headings without a shown ancestor.
    """

    nodes: tuple[OutlineNode, ...]
    hidden: int


Cost = Callable[[OutlineNode, int], int]


class _Row:
    """A node during folding.

    :param depth: number of nodes above it.
    """

    def __init__(self, node: OutlineNode, depth: int, cost: Cost) -> None:
        self.node, self.depth = node, depth
        self.inside = inside(node)
        self.folded = replace(node, children=(), more=self.inside) if node.children else node
        self.cost = cost(self.folded, depth)
        self.shown: list[_Row] | None = None

    def result(self) -> tuple[OutlineNode, ...]:
        """Return the node with its children folded or shown; for an unfolded folder, what is in it."""
        if self.shown is None:
            return (self.folded,)
        children = tuple(chain.from_iterable(row.result() for row in self.shown))
        return children if self.node.files else (replace(self.node, children=children),)


def fold(nodes: Sequence[OutlineNode], cost: Cost, fits: Callable[[int], bool]) -> Folded:
    """Unfold nodes while the outline fits: upper ones first, then small ones.

    If not even the folded top nodes fit, the last ones are left out.

    :param cost: returns the tokens of a node without its children, from the node and its depth; at least 1.
    :param fits: returns whether a number of tokens fits.
    """
    title, depth, total = None, 0, 0
    if len(nodes) == 1 and nodes[0].children:
        # The title alone is not an outline.
        title, depth = _Row(nodes[0], 0, cost), 1
        nodes, total = title.node.children, title.cost
        if not fits(total):
            return Folded((), 1 + title.inside)
    rows: list[_Row] = []
    for node in nodes:
        row = _Row(node, depth, cost)
        if not fits(total + row.cost):
            break
        rows.append(row)
        total += row.cost
    numbers = count()
    waiting = [(row.depth, row.inside, next(numbers), row) for row in rows if len(rows) == len(nodes)]
    waiting.sort()
    while waiting:
        *_, row = heappop(waiting)
        if not row.node.children:
            continue
        total += (0 if row.node.files else cost(replace(row.node, children=()), row.depth)) - row.cost
        if not fits(total + len(row.node.children)):
            break
        children = [_Row(child, row.depth + 1, cost) for child in row.node.children]
        total += sum(child.cost for child in children)
        if not fits(total):
            break
        row.shown = children
        for child in children:
            heappush(waiting, (child.depth, child.inside, next(numbers), child))
    shown = tuple(chain.from_iterable(row.result() for row in rows))
    hidden = sum((node.level > 0) + inside(node) for node in nodes[len(rows) :])
    if title is None:
        return Folded(shown, hidden)
    return Folded((replace(title.node, children=shown, more=hidden or title.node.more),), 0)
