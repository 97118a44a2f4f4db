"""Resolution of a step of a selector to sections of the searched trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain, groupby
from operator import itemgetter

from npl_index.cached import cached_property
from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.library.references import name_and_part
from npl_index.markdown.links import slugs
from npl_index.markdown.sections import Section, SectionTree
from npl_index.selectors.grammar import Step
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import fold, fold_document, heading_label, label
from npl_index.selectors.names import KnownNames, Names, Place, names_of
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
        self._register = register or KnownNames(
            [(tree.name, tree.sections[0].name) for tree in trees], list(map(names_of, trees))
        )
        self.addresses = [tuple(map(label, unique)) for unique in addresses] or [()] * len(trees)
        titles = map(self._register.title, range(len(trees)))
        self.names = [
            tuple(dict.fromkeys(map(label, (*title, *sorted(further, key=len), *unique))))
            for title, further, unique in zip(titles, names, self.addresses, strict=True)
        ]
        self.hierarchy, self.folded = cache(self._hierarchy), cache(self._folded)
        self._near = cache(self._near_to)

    def _hierarchy(self, tree: int) -> Hierarchy:
        """Return the hierarchy of one tree."""
        self.clock.check()
        return Hierarchy(self.trees[tree])

    @cached_property
    def folded_names(self) -> list[frozenset[str]]:
        """The folded forms of each document's names."""
        return [frozenset(map(fold_document, names)) for names in self.names]

    @cached_property
    def documents_called(self) -> Counter[str]:
        """Number of documents with each name."""
        return Counter(chain.from_iterable(self.names))

    def section(self, place: Place) -> Section:
        """Return the section of a place."""
        return self.trees[place[0]].sections[place[1]]

    def everything(self, trees: Iterable[int]) -> list[Place]:
        """Return all sections of trees, the documents included."""
        return [(tree, index) for tree in trees for index in range(self._register.size(tree))]

    def follow(self, step: Step, context: Sequence[Place]) -> list[Place]:
        """Return the sections that a step selects, in document order.

        :param context: the previous step's sections, in document order.
        """
        conditions = step.conditions
        unnamed = self._unnamed(step, context, conditions.traits)
        if unnamed is None:
            named = self.named(self.pool(step, context), step.name) or self._parts_of_pages(step, context)
        else:
            named, conditions = unnamed, conditions._replace(traits=())
        return [place for place in named if self.fulfils(place, conditions)]

    def _parts_of_pages(self, step: Step, context: Sequence[Place]) -> list[Place]:
        """Return the sections with the anchor or the line after a document's name, or else the document."""
        if step.name is None or step.combinator != "start":
            return []
        name, part = name_and_part(step.name)
        pages = self.called([(tree, 0) for tree, _ in context], name)
        return [(tree, _section_at(self.trees[tree], part)) for tree, _ in pages]

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
        return [place for place in holding if place[0] in trees and (is_start or place[1])]

    def pool(self, step: Step, context: Sequence[Place]) -> list[Place]:
        """Return the sections among which a step chooses and which may have its name, in document order."""
        self.clock.check()
        unnamed = self._unnamed(step, context)
        if unnamed is not None:
            return unnamed
        if step.combinator == "start":
            return self._starts(step.name, [tree for tree, _ in context])
        near = None if step.name is None else self._near(step.name)
        if near is not None:
            there = {tree for tree, _ in near}
            context = [place for place in context if place[0] in there]
        pool: list[Place] = []
        for tree, places in groupby(context, itemgetter(0)):
            heads = [index for _, index in places]
            is_child = step.combinator == "child"
            inside = self._children(tree, heads, step) if is_child else self._below(tree, heads)
            pool += [(tree, index) for index in inside if near is None or (tree, index) in near]
        return [place for place in pool if step.level is None or self._register.name(place)[0] == step.level]

    def _near_to(self, name: str) -> frozenset[Place]:
        """Return the sections whose names may match or begin with a name."""
        return frozenset(self._register.called(fold(heading_label(name)), begins=True))

    def _starts(self, name: str | None, trees: Sequence[int]) -> list[Place]:
        """Return the documents with a name, or else all sections; for ``*`` the documents and their parts."""
        if name is None:
            return [(tree, index) for tree in trees for index in (0, *self.hierarchy(tree).parts)]
        addressed = [(tree, 0) for tree in trees if name in self.addresses[tree]]
        called = addressed or [(tree, 0) for tree in trees if name in self.names[tree]]
        return called or self.like(trees, name)

    def like(self, trees: Iterable[int], name: str) -> list[Place]:
        """Return the sections of trees, the documents included, whose names may resemble a name."""
        searched = set(trees)
        inside = {place for place in self._near(name) if place[0] in searched}
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
        if called := self.called(pool, name):
            return called
        begun = self.beginning(pool, name)
        return begun if len({self.folded(place) for place in begun}) == 1 else []

    def called(self, pool: Sequence[Place], name: str) -> list[Place]:
        """Return the sections with a name: as visible, or else as written, or else compared loosely."""
        wanted = heading_label(name)
        folded, document = fold(wanted), fold_document(name)
        called = set(self._register.called(folded))
        documents = [place for place in pool if place[1] == 0]
        sections = [place for place in pool if place[1] and place in called]
        self.clock.check()
        matches = [place for place in documents if name in self.names[place[0]]]
        matches += [place for place in sections if heading_label(self.section(place).name) == wanted]
        matches = matches or [
            place for place in sections if heading_label(self.section(place).heading) == wanted
        ]
        matches = matches or [
            *(place for place in documents if document in self.folded_names[place[0]]),
            *(place for place in sections if self.folded(place) == folded),
        ]
        return self._best(sorted(matches))

    def beginning(self, pool: Sequence[Place], name: str) -> list[Place]:
        """Return the sections whose names begin with a name."""
        start = fold(heading_label(name))
        return self._best([place for place in pool if start and self.folded(place).startswith(start)])

    def _best(self, places: Sequence[Place]) -> list[Place]:
        """Keep the documents, else the versioned sections, else the headings."""
        ranks = [0 if place[1] == 0 else 1 if self._register.name(place)[0] == 0 else 2 for place in places]
        first = min(ranks, default=0)
        return [place for place, rank in zip(places, ranks, strict=True) if rank == first]

    def _folded(self, place: Place) -> str:
        """Return the folded form of a section's name."""
        tree, index = place
        return self._register.name(place)[1] if index else fold_document(self.names[tree][0])

    def fulfils(self, place: Place, conditions: Conditions) -> bool:
        """Return whether a section fulfils a step's predicates."""
        tree, index = place
        if conditions.unknown:
            return False
        if not all(getattr(self.section(place).own_traits, name) for name in conditions.traits):
            return False
        ordinal = conditions.ordinal
        if ordinal is not None and self.hierarchy(tree).number(index)[0] != ordinal:
            return False
        return all(test.holds(self.hierarchy(tree).version(index)) for test in conditions.versions)

    def versions(self, places: Iterable[Place]) -> list[str]:
        """Return the versions that apply to sections, each once."""
        versions = (self.hierarchy(tree).version(index) for tree, index in places)
        return list(dict.fromkeys(filter(None, versions)))


def _section_at(tree: SectionTree, part: str) -> int:
    """Return the section with an anchor, or with a line from 1; 0 without one."""
    if part.startswith("#"):
        headings = [section for section in tree.sections if section.level]
        anchors = zip(slugs(headings), headings, strict=True)
        return next((section.index for slug, section in anchors if slug == part[1:].lower()), 0)
    line = int(part.split(":")[1]) - 1 if part else -1
    owns = (section.index for section in tree.sections if section.own.start <= line < section.own.stop)
    return next(owns, 0)
