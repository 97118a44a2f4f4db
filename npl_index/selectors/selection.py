"""From a selector to the sections it means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from npl_index.errors import InvalidRequestError, SectionNotFoundError
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.explaining import Failure, shown, source_of
from npl_index.selectors.grammar import Selector, Step
from npl_index.selectors.matching import Scope
from npl_index.selectors.names import Node


@dataclass(frozen=True, slots=True)
class Selected:
    """One match of a selector.

    :param tree: position of the tree among those given.
    :param head: first section that matched.
    :param sections: the sections whose own text is selected, in document order, each once.
    :param lines: of the head's own text, if not all of it is selected.
    """

    tree: int
    head: int
    sections: tuple[int, ...]
    lines: Span | None = None


def select(
    trees: Sequence[SectionTree],
    selector: Selector,
    *,
    names: Sequence[Collection[str]] | None = None,
) -> tuple[Selected, ...]:
    """Find the sections a selector means, in document order.

    At each step names are compared as written; if no section has the name, loosely
    (:func:`npl_index.selectors.labels.fold`); and if still none has, as the beginning of a single one. A
    match inside what an earlier match selects is joined to that, so no section is selected twice.

    :param trees: the documents to look in.
    :param names: further names of each document, such as its path.
    :raises SectionNotFoundError: a step matches nothing, or begins several names (``near`` holds
        selectors that do work), or no match has the lines asked for.
    :raises InvalidRequestError: a range ends before it starts.
    """
    return select_in(Scope(trees, names or [()] * len(trees)), selector)


def select_in(scope: Scope, selector: Selector) -> tuple[Selected, ...]:
    """Find the sections a selector means, as :func:`select` does, in a scope that serves several.

    :raises DocumentTimeoutError: the scope's deadline has passed.
    """
    heads = _find(scope, selector, selector.steps, range(len(scope.trees)))
    if selector.until:
        return _ranges(scope, selector, heads)
    selected = _joined(scope, heads, selector.depth)
    return selected if selector.lines is None else _clipped(scope, selector, selected, *selector.lines)


def heads_in(scope: Scope, selector: Selector) -> tuple[Node, ...]:
    """Return the sections that the path of a selector leads to, in document order.

    One inside another counts, too: unlike in :func:`select_in` nothing is joined.

    :raises SectionNotFoundError: see :func:`select`.
    """
    return tuple(_find(scope, selector, selector.steps, range(len(scope.trees))))


def _ranges(scope: Scope, selector: Selector, starts: Iterable[Node]) -> tuple[Selected, ...]:
    """Return one range per tree: from its first start up to the end of the first section that may end it."""
    first: dict[int, int] = {}
    for tree, index in starts:
        first.setdefault(tree, index)
    last: dict[int, int] = {}
    for tree, index in _find(scope, selector, selector.until, first):
        if index >= first[tree]:
            last.setdefault(tree, index)
    if not last:
        start, end = source_of(selector, selector.steps), source_of(selector, selector.until)
        problem = f"the range ends before it starts: {shown(end)} comes before {shown(start)}"
        raise InvalidRequestError(problem, parameter="selectors", hint=f"write {end}...{start}")
    return tuple(
        Selected(tree, first[tree], tuple(range(first[tree], scope.trees[tree].subtree(end).stop)))
        for tree, end in last.items()
    )


def _find(scope: Scope, selector: Selector, steps: Sequence[Step], trees: Iterable[int]) -> list[Node]:
    """Walk a path from some documents."""
    context = [(tree, 0) for tree in trees]
    for number, step in enumerate(steps):
        found = scope.follow(step, context)
        if not found:
            raise Failure(scope, selector, steps[: number + 1], steps[number + 1 :], context).error()
        context = found
    return context


def _joined(scope: Scope, heads: Iterable[Node], depth: int | None) -> tuple[Selected, ...]:
    """Return the matches with what each selects; a match inside another's share joins that share."""
    shares: list[tuple[Node, set[int]]] = []
    owned: dict[Node, set[int]] = {}
    for node in heads:
        share = owned.get(node)
        if share is None:
            share = set()
            shares.append((node, share))
        elif depth is None:
            continue
        tree, head = node
        for index in scope.hierarchy(tree).reach(head, depth):
            share.add(index)
            owned[tree, index] = share
    return tuple(Selected(tree, head, tuple(sorted(share))) for (tree, head), share in shares)


def _clipped(
    scope: Scope, selector: Selector, selected: Iterable[Selected], first: int, last: int
) -> tuple[Selected, ...]:
    """Narrow matches to some lines, counted from 1; drop those that have none of them."""
    clipped = []
    for match in selected:
        own = scope.trees[match.tree].sections[match.head].own
        lines = Span(max(own.start, first - 1), min(own.stop, last))
        if lines.start < lines.stop:
            clipped.append(replace(match, lines=lines))
    if not clipped:
        raise SectionNotFoundError(
            f"no section that matches {shown(selector.text)} has lines {first} to {last}"
        )
    return tuple(clipped)
