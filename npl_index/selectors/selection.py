"""Selectors against section trees, and from sections back to selectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from npl_index.errors import InvalidRequestError, SectionNotFoundError
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import Selector, Step, spell
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import fold, heading_label, label
from npl_index.selectors.matching import Node, Scope
from npl_index.selectors.predicates import KNOWN_PREDICATES

_MAX_NEAR = 5
_MAX_COMPARED = 10_000
_MIN_SIMILARITY = 65
_MAX_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Selected:
    """What one match of a selector hands over.

    :param tree: position of the tree among those given.
    :param head: first section that matched.
    :param sections: the sections whose own text is handed over, in document order, each once.
    :param lines: of the head's own text, if not all of it is handed over.
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
    match inside what an earlier match hands over is joined to that, so no section is handed over twice.

    :param trees: the documents to look in.
    :param names: further names of each document, such as its path.
    :raises SectionNotFoundError: a step matches nothing, or begins several names (``near`` holds
        selectors that do work), or no match has the lines asked for.
    :raises InvalidRequestError: a range ends before it starts.
    """
    scope = Scope(trees, names or [()] * len(trees))
    heads = _find(scope, selector, selector.steps, range(len(trees)))
    if selector.until:
        return _ranges(scope, selector, heads)
    selected = _handed_over(scope, heads, selector.depth)
    return selected if selector.lines is None else _clipped(scope, selector, selected, *selector.lines)


def selector_for(tree: SectionTree, index: int, *, document: str | None = None, own: bool = False) -> str:
    """Write the selector of one section: it selects this section and no other of the tree.

    :param document: name of the document to write, instead of the tree's own.
    :param own: the section's own text only.
    """
    hierarchy = Hierarchy(tree)
    path = [index]
    while (parent := hierarchy.parent(path[-1])) is not None:
        path.append(parent)
    text = ""
    for step in reversed(path):
        text = _extended(text, hierarchy, step, document)
    return narrowed(text, own=own)


def selectors_of(tree: SectionTree, document: str | None = None) -> tuple[str, ...]:
    """Write the selectors of all sections, as :func:`selector_for` does, in linear time."""
    hierarchy = Hierarchy(tree)
    texts: list[str] = []
    for index in range(len(tree.sections)):
        parent = hierarchy.parent(index)
        texts.append(_extended("" if parent is None else texts[parent], hierarchy, index, document))
    return tuple(texts)


def narrowed(selector: str, *, own: bool = False, lines: Span | None = None) -> str:
    """Narrow the selector of a section.

    :param own: to the section's own text.
    :param lines: to these lines of its own text.
    """
    if lines is not None:
        return f"{selector} [lines={lines.start + 1}-{lines.stop}]"
    return f"{selector} [depth=0]" if own else selector


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
        start, end = _source(selector, selector.steps), _source(selector, selector.until)
        problem = f"the range ends before it starts: {_shown(end)} comes before {_shown(start)}"
        raise InvalidRequestError(problem, parameter="selectors", hint=f"write {end}...{start}")
    return tuple(
        Selected(tree, first[tree], tuple(range(first[tree], scope.trees[tree].subtree(end).stop)))
        for tree, end in last.items()
    )


def _extended(path: str, hierarchy: Hierarchy, index: int, document: str | None) -> str:
    """Write the selector of a section, given its parent's."""
    if index == 0:
        return spell(label(hierarchy.tree.name if document is None else document))
    section = hierarchy.tree.sections[index]
    name = spell(heading_label(section.name))
    if document is None and hierarchy.is_found_by_name(index):
        return name
    number, equals = hierarchy.number(index)
    marks = f"{'#' * section.level} " if section.level else ""
    return f"{path} > {marks}{name}" + (f" [{number}]" if equals > 1 else "")


def _find(scope: Scope, selector: Selector, steps: Sequence[Step], trees: Iterable[int]) -> list[Node]:
    """Walk a path from some documents."""
    context = [(tree, 0) for tree in trees]
    for number, step in enumerate(steps):
        pool = scope.pool(step, context)
        named = scope.named(pool, step.name)
        found = [node for node in named if scope.fulfils(node, step.conditions)]
        if not found:
            raise _Failure(scope, selector, steps[: number + 1], context).error(
                pool, named, steps[number + 1 :]
            )
        context = found
    return context


def _handed_over(scope: Scope, heads: Iterable[Node], depth: int | None) -> tuple[Selected, ...]:
    """Return what the matches hand over; the share of a match inside another's joins that."""
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
        for index in scope.hierarchies[tree].reach(head, depth):
            share.add(index)
            owned[tree, index] = share
    return tuple(Selected(tree, head, tuple(sorted(share))) for (tree, head), share in shares)


def _clipped(
    scope: Scope, selector: Selector, selected: Iterable[Selected], first: int, last: int
) -> tuple[Selected, ...]:
    """Narrow what is handed over to some lines, counted from 1; drop what has none of them."""
    clipped = []
    for match in selected:
        own = scope.trees[match.tree].sections[match.head].own
        lines = Span(max(own.start, first - 1), min(own.stop, last))
        if lines.start < lines.stop:
            clipped.append(replace(match, lines=lines))
    if not clipped:
        raise SectionNotFoundError(
            f"no section that matches {_shown(selector.text)} has lines {first} to {last}"
        )
    return tuple(clipped)


@dataclass(frozen=True, slots=True)
class _Failure:
    """Says why a path leads nowhere, and what leads somewhere.

    :param path: the steps up to and including the one that fails.
    :param context: what the step before it found.
    """

    scope: Scope
    selector: Selector
    path: Sequence[Step]
    context: Sequence[Node]

    @property
    def step(self) -> Step:
        return self.path[-1]

    def error(
        self, pool: Sequence[Node], named: Sequence[Node], rest: Sequence[Step]
    ) -> SectionNotFoundError:
        """Return the error to raise.

        :param pool: the sections among which the step chose.
        :param named: those of them that have its name.
        :param rest: the steps that would have followed.
        """
        if named:
            return self.unfulfilled(named)
        begun = [] if self.step.name is None else self.scope.beginning(pool, self.step.name)
        if begun:
            near = self.selectors(begun)
            more = f", and {len(begun) - len(near)} more" if len(begun) > len(near) else ""
            problem = f"{_shown(self.source)} is the beginning of {len(begun)} names"
            return SectionNotFoundError(problem, near=near, hint=f"write one of {_listed(near)}{more}")
        near = self.selectors([self.completed(node, rest) for node in self.alike()])
        hints = [f"did you mean {_listed(near, ' or ')}"] if near else []
        hint = "; ".join(hints + self.misreadings()) or None
        return SectionNotFoundError(self.problem(), near=near, hint=hint)

    @property
    def source(self) -> str:
        """The step as written, without its predicates."""
        return self.selector.text[self.step.start : self.step.bracket].rstrip()

    def problem(self) -> str:
        if self.step.combinator == "start":
            return f"no document and no heading is called {_shown(self.source)}"
        where = "directly below" if self.step.combinator == "child" else "below"
        above = f"any of {len(self.context)} documents"
        if len(self.path) > 1:
            above = _shown(_source(self.selector, self.path[:-1]))
        elif len(self.context) == 1:
            above = _shown(self.scope.names[self.context[0][0]][0])
        return f"no section matches {_shown(self.source)} {where} {above}"

    def unfulfilled(self, named: Sequence[Node]) -> SectionNotFoundError:
        """Report that the predicates hold for none of the sections that have the name."""
        predicates = _shortened(self.selector.text[self.step.bracket : self.step.stop])
        if not self.source:
            what = "document" if self.step.combinator == "start" else "section"
            problem = f"no {what} fulfils {predicates}"
        elif len(named) == 1:
            problem = f"the section for {_shown(self.source)} does not fulfil {predicates}"
        else:
            problem = f"none of the {len(named)} sections for {_shown(self.source)} fulfils {predicates}"
        near = () if self.step.name is None else self.selectors(named)
        return SectionNotFoundError(problem, near=near, hint=self.unmet(named))

    def unmet(self, named: Sequence[Node]) -> str | None:
        """Name the known predicates if one is unknown, or the versions there are."""
        conditions = self.step.conditions
        if conditions.unknown:
            return _unknown(conditions.unknown[0])
        versions = self.scope.versions(named) if conditions.versions else []
        return f"versions found: {', '.join(map(_shortened, versions[:_MAX_NEAR]))}" if versions else None

    def alike(self) -> list[Node]:
        """Return sections of the documents searched that have the name elsewhere, or a similar one."""
        scope, step = self.scope, self.step
        if step.name is None:
            looser = replace(step, combinator="descendant")
            return scope.pool(looser, self.context) or scope.pool(replace(looser, level=None), self.context)
        anywhere = scope.everything(dict.fromkeys(tree for tree, _ in self.context))
        return (
            scope.called(anywhere, step.name)
            or scope.beginning(anywhere, step.name)
            or self.similar(anywhere[:_MAX_COMPARED], step.name)
        )

    def similar(self, nodes: Sequence[Node], name: str) -> list[Node]:
        # Only failures need it, and it is slow to import.
        from rapidfuzz import fuzz, process

        first: dict[str, Node] = {}
        for node in nodes:
            first.setdefault(self.scope.folded(node), node)
        found = process.extract(
            fold(heading_label(name)),
            first.keys(),
            scorer=fuzz.token_ratio,
            limit=_MAX_NEAR,
            score_cutoff=_MIN_SIMILARITY,
        )
        return [first[text] for text, _, _ in found]

    def completed(self, node: Node, rest: Sequence[Step]) -> Node:
        """Walk the rest of the path from a section that should have matched, as far as that goes."""
        context = [node]
        for step in rest:
            named = self.scope.named(self.scope.pool(step, context), step.name)
            context = [found for found in named if self.scope.fulfils(found, step.conditions)]
            if not context:
                return node
        return context[0]

    def selectors(self, nodes: Sequence[Node]) -> tuple[str, ...]:
        """Write selectors that find these sections among all documents searched."""
        return tuple(dict.fromkeys(self.address(node) for node in nodes[:_MAX_NEAR]))

    def address(self, node: Node) -> str:
        tree, index = node
        names = self.scope.names
        if len(names) == 1:
            return selector_for(self.scope.trees[tree], index)
        others = {name for other, known in enumerate(names) if other != tree for name in known}
        unique = (name for name in names[tree] if name not in others)
        return selector_for(self.scope.trees[tree], index, document=next(unique, names[tree][0]))

    def misreadings(self) -> list[str]:
        """Name what in the step's name may have been meant as an operator."""
        name, hints = self.step.name or "", []
        if "..." in name or "…" in name:
            hints.append("a range is written ## Start...## End")
        if "[" in name:
            hints.append(f"[ was read as part of the name, known predicates are {KNOWN_PREDICATES}")
        return hints


def _unknown(predicate: str) -> str:
    """Say that nobody knows a predicate, and which are known."""
    # Only failures need it, and it is slow to import.
    from rapidfuzz import process

    found = process.extractOne(predicate, KNOWN_PREDICATES.split(", "), score_cutoff=_MIN_SIMILARITY)
    near = f", did you mean {found[0]}" if found else ""
    return f"{_shortened(predicate)} is unknown{near}; known are {KNOWN_PREDICATES}"


def _source(selector: Selector, steps: Sequence[Step]) -> str:
    return selector.text[steps[0].start : steps[-1].stop]


def _shown(source: str) -> str:
    return _quoted(_shortened(source))


def _shortened(text: str) -> str:
    """Leave out the middle of a long text."""
    half = _MAX_SHOWN // 2
    return text if len(text) <= _MAX_SHOWN else f"{text[:half]}…{text[-half:]}"


def _quoted(text: str) -> str:
    """Put a text in quotes of a kind it does not hold itself."""
    return f"`{text}`" if '"' in text else f'"{text}"'


def _listed(texts: Sequence[str], last: str = ", ") -> str:
    *first, end = map(_quoted, texts)
    return last.join(filter(None, (", ".join(first), end)))
