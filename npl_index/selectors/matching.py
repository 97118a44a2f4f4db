"""Resolution of one step of a selector to sections of the searched trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter

from npl_index.cached import cached_property
from npl_index.markdown.sections import Section, SectionTree
from npl_index.markdown.state import NO_DEADLINE, Deadline
from npl_index.selectors.grammar import Step
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import fold, fold_document, heading_label, label
from npl_index.selectors.names import KnownNames, Names, Place
from npl_index.selectors.predicates import Conditions


class Scope:
    """The documents for the lookup of selectors, with results shared by all lookups.

    :param trees: sections of the documents.
    :param names: further names of each document.
    :param clock: time limit of the lookups.
    :param addresses: unique names of each document, which have precedence over other names; messages use the
        first one.
    :param register: names of the sections, so that only trees with a possible match are used; by default from
        the trees.
    """

    def __init__(
        self,
        trees: Sequence[SectionTree],
        names: Sequence[Collection[str]],
        clock: Deadline = NO_DEADLINE,
        addresses: Sequence[Sequence[str]] = (),
        register: Names | None = None,
    ) -> None:
        self.trees = trees
        self.clock = clock
        self._register = register or KnownNames.of(trees)
        self.addresses = [tuple(map(label, own)) for own in addresses] or [()] * len(trees)
        titles = map(self._register.title, range(len(trees)))
        self.names = [
            tuple(dict.fromkeys(map(label, (*title, *sorted(more, key=len), *own))))
            for title, more, own in zip(titles, names, self.addresses, strict=True)
        ]
        self._hierarchies: dict[int, Hierarchy] = {}
        self._folds: dict[Place, str] = {}
        self._known_near: dict[str, frozenset[Place]] = {}

    def hierarchy(self, tree: int) -> Hierarchy:
        """Return the hierarchy of one tree."""
        if tree not in self._hierarchies:
            self.clock.check()
            self._hierarchies[tree] = Hierarchy(self.trees[tree])
        return self._hierarchies[tree]

    @cached_property
    def folded_names(self) -> list[frozenset[str]]:
        """The folded forms of each document's names."""
        return [frozenset(map(fold_document, names)) for names in self.names]

    @cached_property
    def documents_called(self) -> Counter[str]:
        """Number of documents with each name."""
        return Counter(chain.from_iterable(self.names))

    def section(self, node: Place) -> Section:
        """Return the section of a node."""
        return self.trees[node[0]].sections[node[1]]

    def everything(self, trees: Iterable[int]) -> list[Place]:
        """Return all sections of some trees, the documents included."""
        return [(tree, index) for tree in trees for index in range(self._register.size(tree))]

    def follow(self, step: Step, context: Sequence[Place]) -> list[Place]:
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

    def _unnamed(
        self, step: Step, context: Sequence[Place], traits: Sequence[str] = ()
    ) -> list[Place] | None:
        """Return the sections of whole documents that a step without a name selects.

        :param traits: required traits of the sections' own text.
        :returns: ``None`` if only the trees can answer.
        """
        if step.name is not None or step.combinator == "child" or any(index for _, index in context):
            return None
        self.clock.check()
        trees = {tree for tree, _ in context}
        is_start = step.combinator == "start"  # the documents and their parts, which alone have level 0
        holding = self._register.holding(0 if is_start else step.level, traits)
        return [node for node in holding if node[0] in trees and (is_start or node[1])]

    def pool(self, step: Step, context: Sequence[Place]) -> list[Place]:
        """Return the sections among which a step chooses and which may have its name, in document order."""
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
        found: list[Place] = []
        for tree, nodes in groupby(context, itemgetter(0)):
            heads = [index for _, index in nodes]
            inside = (
                self._children(tree, heads, step) if step.combinator == "child" else self._below(tree, heads)
            )
            found += [(tree, index) for index in inside if near is None or (tree, index) in near]
        return [node for node in found if step.level is None or self._register.name(node)[0] == step.level]

    def _near(self, name: str | None) -> frozenset[Place] | None:
        """Return the sections whose names may match or begin with a name; ``None`` without a name."""
        if name is None:
            return None
        if name not in self._known_near:
            self._known_near[name] = frozenset(self._register.beginning(fold(heading_label(name))))
        return self._known_near[name]

    def _starts(self, name: str | None, trees: Sequence[int]) -> list[Place]:
        """Return the documents with a name, or else all sections; for ``*`` the documents and their parts."""
        if name is None:
            return [(tree, index) for tree in trees for index in (0, *self.hierarchy(tree).parts)]
        addressed = [(tree, 0) for tree in trees if name in self.addresses[tree]]
        called = addressed or [(tree, 0) for tree in trees if name in self.names[tree]]
        return called or self.like(trees, name)

    def like(self, trees: Iterable[int], name: str) -> list[Place]:
        """Return the sections of some trees, the documents included, whose names may resemble a name."""
        searched = set(trees)
        inside = {node for node in self._near(name) or () if node[0] in searched}
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
            inside = self.trees[tree].subtree(head) if head else range(self._register.size(tree))
            if inside.stop > stop:
                yield from range(head + 1, inside.stop)
                stop = inside.stop

    def named(self, pool: Sequence[Place], name: str | None) -> list[Place]:
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

    def called(self, pool: Sequence[Place], name: str) -> list[Place]:
        """Return the sections with a name: as visible, or else as written, or else compared loosely."""
        wanted = heading_label(name)
        folded, document = fold(wanted), fold_document(name)
        called = set(self._register.called(folded))
        documents = [node for node in pool if node[1] == 0]
        sections = [node for node in pool if node[1] and node in called]
        self.clock.check()
        found = [node for node in documents if name in self.names[node[0]]]
        found += [node for node in sections if heading_label(self.section(node).name) == wanted]
        found = found or [node for node in sections if heading_label(self.section(node).heading) == wanted]
        found = found or [
            *(node for node in documents if document in self.folded_names[node[0]]),
            *(node for node in sections if self.folded(node) == folded),
        ]
        return self._best(sorted(found))

    def beginning(self, pool: Sequence[Place], name: str) -> list[Place]:
        """Return the sections whose names begin with a name."""
        start = fold(heading_label(name))
        return self._best([node for node in pool if start and self.folded(node).startswith(start)])

    def _best(self, nodes: Sequence[Place]) -> list[Place]:
        """Keep the documents, else the versioned sections, else the headings."""
        ranks = [0 if node[1] == 0 else 1 if self._register.name(node)[0] == 0 else 2 for node in nodes]
        first = min(ranks, default=0)
        return [node for node, rank in zip(nodes, ranks, strict=True) if rank == first]

    def folded(self, node: Place) -> str:
        """Return the folded form of a section's name."""
        tree, index = node
        if node not in self._folds:
            self._folds[node] = self._register.name(node)[1] if index else fold_document(self.names[tree][0])
        return self._folds[node]

    def fulfils(self, node: Place, conditions: Conditions) -> bool:
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

    def versions(self, nodes: Iterable[Place]) -> list[str]:
        """Return the versions that apply to some sections, each once."""
        found = (self.hierarchy(tree).version(index) for tree, index in nodes)
        return list(dict.fromkeys(filter(None, found)))
