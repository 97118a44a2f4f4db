"""The section tree that selectors use.

A document (or a versioned section) and its title count as one: the sections below the title are direct
children of both. Equal headings, with the same parent, level and text, are numbered.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from npl_index.cached import cached_property
from npl_index.markdown.sections import SectionTree
from npl_index.selectors.labels import heading_label
from npl_index.selectors.versions import NO_VERSION


class Hierarchy:
    """Parents, children and numbers of one tree's sections."""

    def __init__(self, tree: SectionTree) -> None:
        self.tree = tree
        sections = tree.sections
        self.parts = tuple(child for child in sections[0].children if sections[child].level == 0)
        titles = ((top, self._find_title(top)) for top in (0, *self.parts))
        self._titles = {top: title for top, title in titles if title is not None}
        self._tops = {title: top for top, title in self._titles.items()}
        self.titles = self._tops.keys()

    def children(self, index: int) -> tuple[int, ...]:
        """Return the direct children, in document order."""
        below = self.tree.sections[index].children
        title = self._titles.get(index)
        return below if title is None else tuple(sorted(below + self.tree.sections[title].children))

    def parent(self, index: int) -> int | None:
        """Return the parent; for a child of the title, the document."""
        parent = self.tree.sections[index].parent
        return parent if parent is None else self._tops.get(parent, parent)

    def reach(self, head: int, depth: int | None) -> Iterable[int]:
        """Return a section and its descendants down to a depth below it; ``None`` for all."""
        if depth is None:
            return self.tree.subtree(head)
        reached, newest = {head}, {head}
        while newest and depth:
            newest = {child for index in newest for child in self.children(index)} - reached
            reached |= newest
            depth -= 1
        return sorted(reached)

    def number(self, index: int) -> tuple[int, int]:
        """Return a section's number among equal headings, from 1, and the number of equal headings."""
        return self._numbers.get(index, (1, 1))

    def version(self, index: int) -> str | None:
        """Return the version that applies to a section, as written.

        Without a declared version it is 0.0.0. In a file of versioned sections, text outside of these
        sections has no version.
        """
        sections = self.tree.sections
        top = index
        while sections[top].level and (parent := sections[top].parent) is not None:
            top = parent
        has_none = sections[top].version is None and top == 0 and self.parts
        return None if has_none else sections[top].version or NO_VERSION

    def _find_title(self, top: int) -> int | None:
        sections = self.tree.sections
        if self.tree.title is not None and sections[self.tree.title].parent == top:
            return self.tree.title
        children = sections[top].children
        headings = [child for child in children if sections[child].level == 1]
        return headings[0] if top and len(headings) == 1 and headings[0] == children[0] else None

    @cached_property
    def _numbers(self) -> dict[int, tuple[int, int]]:
        equals = defaultdict(list)
        for section in self.tree.sections[1:]:
            name = self.parent(section.index), section.level, heading_label(section.name)
            equals[name].append(section.index)
        groups = equals.values()
        return {index: (number, len(group)) for group in groups for number, index in enumerate(group, 1)}
