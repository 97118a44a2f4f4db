"""Selection of the sections that a selector matches."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from npl_index.errors import InvalidRequestError, SectionNotFoundError
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.explaining import StepFailure, shown, source_of
from npl_index.selectors.grammar import Selector, Step
from npl_index.selectors.matching import Scope
from npl_index.selectors.names import Node


@dataclass(frozen=True, slots=True)
class Selected:
    """One match of a selector.

    :param tree: position of the tree among the given trees.
    :param head: first section that matched.
    :param sections: the sections whose own text is selected, in document order, each once.
    :param lines: the selected lines of the head's own text; ``None`` for all.
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
    """Find the sections that a selector matches, in document order.

    Each step compares names as written. Without a match it compares them loosely
    (:func:`npl_index.selectors.labels.fold`), and finally as the beginning of a single name. A match inside
    an earlier match's selection is joined with it, so no section is selected twice.

    :param trees: the documents to search.
    :param names: further names of each document, such as its path.
    :raises SectionNotFoundError: a step matches nothing or is the beginning of several names (``near`` holds
        selectors that match), or no match has the requested lines.
    :raises InvalidRequestError: a range ends before it starts.
    """
    return select_in(Scope(trees, names or [()] * len(trees)), selector)


def select_in(scope: Scope, selector: Selector) -> tuple[Selected, ...]:
    """Find the sections that a selector matches, like :func:`select`, in a scope for several selectors.

    :raises DocumentTimeoutError: the scope's deadline has passed.
    """
    heads = _find(scope, selector, selector.steps, range(len(scope.trees)))
    if selector.until:
        return _ranges(scope, selector, heads)
    selected = _merged_matches(scope, heads, selector.depth)
    return selected if selector.lines is None else _clipped(scope, selector, selected, *selector.lines)


def heads_in(scope: Scope, selector: Selector) -> tuple[Node, ...]:
    """Return the sections that a selector's path matches, in document order.

    Unlike in :func:`select_in`, nested matches are not joined.

    :raises SectionNotFoundError: see :func:`select`.
    """
    return tuple(_find(scope, selector, selector.steps, range(len(scope.trees))))


def _ranges(scope: Scope, selector: Selector, starts: Iterable[Node]) -> tuple[Selected, ...]:
    """Return one range per tree: from the first start to the end of the first possible end section."""
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
        nodes = scope.follow(step, context)
        if not nodes:
            raise StepFailure(scope, selector, steps[: number + 1], steps[number + 1 :], context).error()
        context = nodes
    return context


def _merged_matches(scope: Scope, heads: Iterable[Node], depth: int | None) -> tuple[Selected, ...]:
    """Return the matches with their selected sections; a match inside another's selection joins it."""
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
    """Narrow matches to some lines, counted from 1; drop the matches without any of them."""
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
