"""Resolution of one step of a selector to sections of the searched trees."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import Protocol

from npl_index.markdown.sections import Section, SectionTree
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.selectors.grammar import Step
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import fold, fold_document, heading_label, label
from npl_index.selectors.predicates import Conditions

_MIN_COLLECTED = 2_000
"""Sections above which all names are collected once, so that most selectors need not check each section."""

Node = tuple[int, int]
"""Position of a tree among the searched trees, and index of a section in it."""


class Register(Protocol):
    """An index of section names, which saves parsing all searched documents."""

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""

    def size(self, tree: int) -> int:
        """Return the number of sections of a document."""

    def level(self, node: Node) -> int:
        """Return the heading level of a section."""

    def fold(self, node: Node) -> str:
        """Return the folded form of a section's name."""

    def called(self, fold: str) -> Iterable[Node]:
        """Return the sections whose name, visible or as written, has this folded form."""

    def beginning(self, fold: str) -> Iterable[Node]:
        """Return the sections whose name, visible or as written, begins with this folded form."""

    def holding(self, level: int | None, traits: Sequence[str]) -> Iterable[Node]:
        """Return the sections of a level whose own text has all given traits, in document order."""


class Scope:
    """The documents in which selectors are resolved; results are cached across selectors.

    :param trees: section trees of the documents.
    :param names: further names of each document, besides the tree's name.
    :param clock: the deadline.
    :param addresses: names of each document that take precedence over the names of other documents; messages
        use the first one.
    :param register: an index of section names. With it, only trees with a possible match are parsed; the
        result is the same.
    """

    def __init__(
        self,
        trees: Sequence[SectionTree],
        names: Sequence[Collection[str]],
        clock: Deadline = NO_DEADLINE,
        addresses: Sequence[Sequence[str]] = (),
        register: Register | None = None,
    ) -> None:
        self.trees = trees
        self.clock = clock
        self._register = register
        self.addresses = [tuple(map(label, own)) for own in addresses] or [()] * len(trees)
        if register is None:
            titles = [(tree.name, tree.sections[0].name) for tree in trees]
        else:
            titles = [register.title(tree) for tree in range(len(trees))]
        self.names = [
            tuple(dict.fromkeys(map(label, (*title, *sorted(more, key=len), *own))))
            for title, more, own in zip(titles, names, self.addresses, strict=True)
        ]
        self._hierarchies: dict[int, Hierarchy] = {}
        self._labels: dict[Node, str] = {}
        self._folds: dict[Node, str] = {}
        self._known_near: dict[str, frozenset[Node]] = {}

    def hierarchy(self, tree: int) -> Hierarchy:
        """Return the hierarchy of one tree."""
        if tree not in self._hierarchies:
            self.clock.check()
            self._hierarchies[tree] = Hierarchy(self.trees[tree])
        return self._hierarchies[tree]

    @cached_property
    def _nodes(self) -> list[Node]:
        return self.everything(range(len(self.trees)))

    @cached_property
    def _all_seen(self) -> frozenset[str]:
        return frozenset(map(self.seen, self._nodes)).union(*self.names)

    @cached_property
    def _all_written(self) -> frozenset[str]:
        return frozenset(heading_label(self.section(node).heading) for node in self._nodes)

    @cached_property
    def _all_folds(self) -> list[str]:
        return sorted(set(map(self.folded, self._nodes)))

    @cached_property
    def _all_loose(self) -> frozenset[str]:
        return frozenset(self._all_folds).union(*self.folded_names)

    @cached_property
    def folded_names(self) -> list[frozenset[str]]:
        """The folded forms of each document's names."""
        return [frozenset(map(fold_document, names)) for names in self.names]

    @cached_property
    def documents_called(self) -> Counter[str]:
        """Number of documents with each name."""
        return Counter(chain.from_iterable(self.names))

    def section(self, node: Node) -> Section:
        """Return the section of a node."""
        return self.trees[node[0]].sections[node[1]]

    def everything(self, trees: Iterable[int]) -> list[Node]:
        """Return all sections of some trees, the documents included."""
        return [(tree, index) for tree in trees for index in range(self._size(tree))]

    def _size(self, tree: int) -> int:
        return len(self.trees[tree].sections) if self._register is None else self._register.size(tree)

    def level(self, node: Node) -> int:
        """Return the level of a section's heading."""
        return self.section(node).level if self._register is None else self._register.level(node)

    def follow(self, step: Step, context: Sequence[Node]) -> list[Node]:
        """Return the sections that a step selects, in document order.

        :param context: the previous step's sections, in document order.
        """
        conditions = step.conditions
        unnamed = self._unnamed(step, context, conditions.traits)
        if unnamed is None:
            named = self.named(self.pool(step, context), step.name)
        else:
            named, conditions = unnamed, replace(conditions, traits=())
        return [node for node in named if self.fulfils(node, conditions)]

    def _unnamed(self, step: Step, context: Sequence[Node], traits: Sequence[str] = ()) -> list[Node] | None:
        """Return the sections of whole documents that a step without a name selects.

        :param traits: required traits of the sections' own text.
        :returns: ``None`` if only the trees can answer.
        """
        register = self._register
        if register is None or step.name is not None or step.combinator == "child":
            return None
        if any(index for _, index in context):
            return None
        self.clock.check()
        trees = {tree for tree, _ in context}
        if step.combinator == "start":  # the documents and their parts, which alone have level 0
            return [node for node in register.holding(0, traits) if node[0] in trees]
        return [node for node in register.holding(step.level, traits) if node[1] and node[0] in trees]

    def pool(self, step: Step, context: Sequence[Node]) -> list[Node]:
        """Return the sections from which a step selects, in document order.

        A register excludes sections that cannot have the step's name.
        """
        self.clock.check()
        unnamed = self._unnamed(step, context)
        if unnamed is not None:
            return unnamed
        if step.combinator == "start":
            return self._starts(step.name, [tree for tree, _ in context])
        near = self._near(step.name)
        if near is not None:
            there = {tree for tree, _ in near}
            context = [node for node in context if node[0] in there]
        found: list[Node] = []
        for tree, nodes in groupby(context, itemgetter(0)):
            heads = [index for _, index in nodes]
            inside = (
                self._children(tree, heads, step) if step.combinator == "child" else self._below(tree, heads)
            )
            found += [(tree, index) for index in inside if near is None or (tree, index) in near]
        return [node for node in found if step.level is None or self.level(node) == step.level]

    def _near(self, name: str | None) -> frozenset[Node] | None:
        """Return the sections whose names may match or begin with a name; ``None`` without a register."""
        if self._register is None or name is None:
            return None
        if name not in self._known_near:
            self._known_near[name] = frozenset(self._register.beginning(fold(heading_label(name))))
        return self._known_near[name]

    def _starts(self, name: str | None, trees: Sequence[int]) -> list[Node]:
        """Return the documents with a name, or else all sections; for ``*`` the documents and their parts."""
        if name is None:
            return [(tree, index) for tree in trees for index in (0, *self.hierarchy(tree).parts)]
        addressed = [(tree, 0) for tree in trees if name in self.addresses[tree]]
        called = addressed or [(tree, 0) for tree in trees if name in self.names[tree]]
        return called or self.like(trees, name)

    def like(self, trees: Iterable[int], name: str) -> list[Node]:
        """Return the sections of some trees, the documents included, whose names may resemble a name."""
        near = self._near(name)
        if near is None:
            return self.everything(trees)
        searched = set(trees)
        inside = {node for node in near if node[0] in searched}
        return sorted(inside.union((tree, 0) for tree in searched))

    def _children(self, tree: int, heads: Sequence[int], step: Step) -> Iterable[int]:
        hierarchy = self.hierarchy(tree)
        children = {child for head in heads for child in hierarchy.children(head)}
        if step.name is None and step.level is None:
            children -= hierarchy.titles  # a title counts as its document, not as a section below it
        return sorted(children)

    def _below(self, tree: int, heads: Sequence[int]) -> Iterable[int]:
        stop = 0
        for head in heads:
            inside = self.trees[tree].subtree(head) if head else range(self._size(tree))
            if inside.stop > stop:
                yield from range(head + 1, inside.stop)
                stop = inside.stop

    def named(self, pool: Sequence[Node], name: str | None) -> list[Node]:
        """Return the sections with a name, by the strictest comparison with a match.

        A prefix counts as a name if it is the beginning of exactly one name.
        """
        if name is None:
            return list(pool)
        found = self.called(pool, name)
        if found:
            return found
        found = self.beginning(pool, name)
        return found if len({self.folded(node) for node in found}) == 1 else []

    def called(self, pool: Sequence[Node], name: str) -> list[Node]:
        """Return the sections with a name: as visible, or else as written, or else compared loosely."""
        register = self._register
        if register is not None:
            called = set(register.called(fold(heading_label(name))))
            pool = [node for node in pool if node[1] == 0 or node in called]
        for names, wanted, matches in self._comparisons(name):
            self.clock.check()
            if register is None and len(pool) > _MIN_COLLECTED and wanted.isdisjoint(names()):
                continue
            found = [node for node in pool if matches(node)]
            if found:
                return self._best(found)
        return []

    def beginning(self, pool: Sequence[Node], name: str) -> list[Node]:
        """Return the sections whose names begin with a name."""
        start = fold(heading_label(name))
        if self._register is None and len(pool) > _MIN_COLLECTED:
            at = bisect_left(self._all_folds, start)
            if at == len(self._all_folds) or not self._all_folds[at].startswith(start):
                return []
        return self._best([node for node in pool if start and self.folded(node).startswith(start)])

    def _comparisons(
        self, name: str
    ) -> tuple[tuple[Callable[[], Collection[str]], set[str], Callable[[Node], bool]], ...]:
        """Return the comparisons, strictest first.

        Each consists of all existing names in its form, the requested names, and the test of a section.
        """
        wanted = heading_label(name)
        folded, document = fold(wanted), fold_document(name)

        def as_seen(node: Node) -> bool:
            if node[1] == 0:
                return name in self.names[node[0]]
            return self.seen(node) == wanted

        def as_written(node: Node) -> bool:
            if node[1] == 0:
                return False
            section = self.section(node)
            # A heading without markup has already been compared by its visible name.
            return section.heading != section.name and heading_label(section.heading) == wanted

        def loosely(node: Node) -> bool:
            if node[1] == 0:
                return document in self.folded_names[node[0]]
            return self.folded(node) == folded

        return (
            (lambda: self._all_seen, {name, wanted}, as_seen),
            (lambda: self._all_written, {wanted}, as_written),
            (lambda: self._all_loose, {folded, document}, loosely),
        )

    def _best(self, nodes: Sequence[Node]) -> list[Node]:
        """Keep the documents, else the versioned sections, else the headings."""
        ranks = [0 if node[1] == 0 else 1 if self.level(node) == 0 else 2 for node in nodes]
        first = min(ranks, default=0)
        return [node for node, rank in zip(nodes, ranks, strict=True) if rank == first]

    def seen(self, node: Node) -> str:
        """Return the label of a section's name."""
        if node not in self._labels:
            self._labels[node] = heading_label(self.section(node).name)
        return self._labels[node]

    def folded(self, node: Node) -> str:
        """Return the folded form of a section's name."""
        if node not in self._folds:
            self._folds[node] = self._fold(node)
        return self._folds[node]

    def _fold(self, node: Node) -> str:
        if node[1] == 0:
            return fold_document(self.names[node[0]][0])
        return fold(self.seen(node)) if self._register is None else self._register.fold(node)

    def fulfils(self, node: Node, conditions: Conditions) -> bool:
        """Return whether a section fulfils a step's predicates."""
        tree, index = node
        if conditions.unknown:
            return False
        if not all(getattr(self.section(node).own_traits, name) for name in conditions.traits):
            return False
        ordinal = conditions.ordinal
        if ordinal is not None and self.hierarchy(tree).number(index)[0] != ordinal:
            return False
        return all(test.holds(self.hierarchy(tree).version(index)) for test in conditions.versions)

    def versions(self, nodes: Iterable[Node]) -> list[str]:
        """Return the versions that apply to some sections, each once."""
        found = (self.hierarchy(tree).version(index) for tree, index in nodes)
        return list(dict.fromkeys(filter(None, found)))
