"""Selection of the sections that a selector matches, and errors with similar selectors that match."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from npl_index.errors import InvalidRequestError, SectionNotFoundError
from npl_index.library.references import near_names
from npl_index.markdown.sections import SectionTree, Span
from npl_index.selectors.grammar import Selector, Step
from npl_index.selectors.labels import fold, heading_label
from npl_index.selectors.matching import Scope
from npl_index.selectors.names import Place
from npl_index.selectors.predicates import KNOWN_PREDICATES
from npl_index.selectors.writing import selectors_of

_MAX_NEAR = 5
_MAX_COMPARED = 10_000
_MIN_SIMILARITY = 65
_MAX_SHOWN = 120


class Selected(NamedTuple):
    """A match of a selector.

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
    trees: Sequence[SectionTree], selector: Selector, *, names: Sequence[Collection[str]] | None = None
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
    if selector.lines is None:
        return selected
    # Matches without any of the lines, which count from 1, are dropped.
    (first, last), clipped = selector.lines, []
    for match in selected:
        own = scope.trees[match.tree].sections[match.head].own
        lines = Span(max(own.start, first - 1), min(own.stop, last))
        if lines.start < lines.stop:
            clipped.append(match._replace(lines=lines))
    if not clipped:
        problem = f"no section that matches {_shown(selector.text)} has lines {first} to {last}"
        raise SectionNotFoundError(problem)
    return tuple(clipped)


def heads_in(scope: Scope, selector: Selector) -> tuple[Place, ...]:
    """Return the sections that a selector's path matches, in document order.

    Unlike in :func:`select_in`, nested matches are not joined.

    :raises SectionNotFoundError: see :func:`select`.
    """
    return tuple(_find(scope, selector, selector.steps, range(len(scope.trees))))


def _ranges(scope: Scope, selector: Selector, starts: Iterable[Place]) -> tuple[Selected, ...]:
    """Return one range per tree: from the first start to the end of the first possible end section."""
    first: dict[int, int] = {}
    for tree, index in starts:
        first.setdefault(tree, index)
    last: dict[int, int] = {}
    for tree, index in _find(scope, selector, selector.until, first):
        if index >= first[tree]:
            last.setdefault(tree, index)
    if not last:
        start, end = _source_of(selector, selector.steps), _source_of(selector, selector.until)
        problem = f"the range ends before it starts: {_shown(end)} comes before {_shown(start)}"
        raise InvalidRequestError(problem, parameter="selectors", hint=f"write {end}...{start}")
    stops = {tree: scope.trees[tree].subtree(end).stop for tree, end in last.items()}
    return tuple(Selected(tree, first[tree], tuple(range(first[tree], stop))) for tree, stop in stops.items())


def _find(scope: Scope, selector: Selector, steps: Sequence[Step], trees: Iterable[int]) -> list[Place]:
    """Walk a path from documents."""
    context = [(tree, 0) for tree in trees]
    for number, step in enumerate(steps):
        places = scope.follow(step, context)
        if not places:
            raise _StepFailure(scope, selector, steps[: number + 1], steps[number + 1 :], context).error()
        context = places
    return context


def _merged_matches(scope: Scope, heads: Iterable[Place], depth: int | None) -> tuple[Selected, ...]:
    """Return the matches with their selected sections; a match inside another's selection joins it."""
    shares, owned = dict[Place, set[int]](), dict[Place, set[int]]()
    for place in heads:
        if depth is None and place in owned:
            continue
        (tree, head), share = place, owned.get(place) or shares.setdefault(place, set())
        for index in scope.hierarchy(tree).reach(head, depth):
            share.add(index)
            owned[tree, index] = share
    return tuple(Selected(tree, head, tuple(sorted(share))) for (tree, head), share in shares.items())


class _StepFailure(NamedTuple):
    """A step of a selector without a match.

    :param path: the steps up to and including the failing step.
    :param rest: the steps after it.
    :param context: the sections that the previous step selected.
    """

    scope: Scope
    selector: Selector
    path: Sequence[Step]
    rest: Sequence[Step]
    context: Sequence[Place]

    def error(self) -> SectionNotFoundError:
        """Return the error to raise; ``near`` holds selectors that match."""
        pool = self.scope.pool(self.step, self.context)
        named = self.scope.named(pool, self.step.name)
        if named:
            return self._unfulfilled(named)
        begun = [] if self.step.name is None else self.scope.beginning(pool, self.step.name)
        if begun:
            near = self._selectors(begun)
            rest = f", and {len(begun) - len(near)} more" if len(begun) > len(near) else ""
            problem = f"{_shown(self.source)} is the beginning of {len(begun)} names"
            return SectionNotFoundError(problem, near=near, hint=f"write one of {_listed(near)}{rest}")
        near = self._selectors([self._completed(place) for place in self._alike()])
        hints = [f"did you mean {_listed(near, ' or ')}"] if near else []
        is_alone = len(self.context) == 1 and self.step.combinator != "start"
        if not near and is_alone and (others := self.scope.pool(self.step._replace(name=None), self.context)):
            hints = [f"it has {_listed(self._selectors(others))}" + ", …" * (len(others) > _MAX_NEAR)]
        hint = "; ".join(hints + self._misreadings()) or None
        return SectionNotFoundError(self._problem(), near=near, hint=hint)

    @property
    def step(self) -> Step:
        """The failing step."""
        return self.path[-1]

    @property
    def source(self) -> str:
        """The failing step as written, without its predicates."""
        return self.selector.text[self.step.start : self.step.bracket].rstrip()

    def _problem(self) -> str:
        """Describe the missing name and where it was searched."""
        if self.step.combinator == "start":
            return f"no document and no heading is called {_shown(self.source)}"
        where = " directly below it" if self.step.combinator == "child" else ""
        if len(self.path) > 1:
            above = _shown(_source_of(self.selector, self.path[:-1]))
        elif len(self.context) == 1:
            above = _shown(self.scope.names[self.context[0][0]][0])
        else:
            return f"none of {len(self.context)} documents has a section {_shown(self.source)}{where}"
        return f"{above} has no section {_shown(self.source)}{where}"

    def _unfulfilled(self, named: Sequence[Place]) -> SectionNotFoundError:
        """Return the error for predicates that hold for none of the sections with the name."""
        predicates = _shortened(self.selector.text[self.step.bracket : self.step.stop])
        if not self.source:
            kind = "document" if self.step.combinator == "start" else "section"
            problem = f"no {kind} fulfils {predicates}"
        elif len(named) == 1:
            problem = f"the section for {_shown(self.source)} does not fulfil {predicates}"
        else:
            problem = f"none of the {len(named)} sections for {_shown(self.source)} fulfils {predicates}"
        near = () if self.step.name is None else self._selectors(named)
        return SectionNotFoundError(problem, near=near, hint=self._unmet(named))

    def _unmet(self, named: Sequence[Place]) -> str | None:
        """Return a hint: the known predicates if one is unknown, or the existing versions."""
        conditions = self.step.conditions
        if conditions.unknown:
            return _unknown(conditions.unknown[0])
        versions = self.scope.versions(named) if conditions.versions else []
        return f"versions found: {', '.join(map(_shortened, versions[:_MAX_NEAR]))}" if versions else None

    def _alike(self) -> list[Place]:
        """Return sections of the searched documents with the name elsewhere, or with a similar name."""
        scope, step = self.scope, self.step
        if step.name is None:
            looser = step._replace(combinator="descendant")
            return scope.pool(looser, self.context) or scope.pool(looser._replace(level=None), self.context)
        trees = list(dict.fromkeys(tree for tree, _ in self.context))
        near = scope.like(trees, step.name)
        return (
            scope.called(near, step.name)
            or scope.beginning(near, step.name)
            or self._similar(scope.everything(trees)[:_MAX_COMPARED], step.name)
        )

    def _similar(self, places: Sequence[Place], name: str) -> list[Place]:
        # Only failures need it, and it is slow to import.
        from rapidfuzz import fuzz, process

        first: dict[str, Place] = {}
        for place in places:
            first.setdefault(self.scope.folded(place), place)
        wanted, scorer, least = fold(heading_label(name)), fuzz.token_ratio, _MIN_SIMILARITY
        similar = process.extract(wanted, first.keys(), scorer=scorer, limit=_MAX_NEAR, score_cutoff=least)
        return [first[text] for text, _, _ in similar]

    def _completed(self, place: Place) -> Place:
        """Follow the remaining steps from a similar section; return the section reached, or the given one."""
        context = [place]
        for step in self.rest:
            context = self.scope.follow(step, context)
            if not context:
                return place
        return context[0]

    def _selectors(self, places: Sequence[Place]) -> tuple[str, ...]:
        """Return selectors that find these sections among all searched documents."""
        return tuple(dict.fromkeys(self._address(place) for place in places[:_MAX_NEAR]))

    def _address(self, place: Place) -> str:
        tree, index = place
        self.scope.clock.check()
        names = self.scope.names[tree]
        unique = (name for name in names if self.scope.documents_called[name] == 1)
        document = next(chain(self.scope.addresses[tree], unique), names[0])
        return selectors_of(self.scope.trees[tree], document)[index]

    def _misreadings(self) -> list[str]:
        """Return hints about parts of the step's name that may be misread operators."""
        name, hints = self.step.name or "", []
        if "..." in name or "…" in name:
            hints.append("a range is written ## Start...## End")
        if "[" in name:
            hints.append(f"[ was read as part of the name, known predicates are {KNOWN_PREDICATES}")
        return hints


def _unknown(predicate: str) -> str:
    """Describe an unknown predicate, and list the known ones."""
    similar = near_names(predicate, KNOWN_PREDICATES.split(", "), 1)
    near = f", did you mean {similar[0]}" if similar else ""
    return f"{_shortened(predicate)} is unknown{near}; known: {KNOWN_PREDICATES}"


def _source_of(selector: Selector, steps: Sequence[Step]) -> str:
    """Return steps of a selector as written."""
    return selector.text[steps[0].start : steps[-1].stop]


def _shown(source: str) -> str:
    """Return a part of a selector as messages show it: quoted and shortened."""
    return _quoted(_shortened(source))


def _shortened(text: str) -> str:
    """Return a text, with the middle omitted if it is long."""
    half = _MAX_SHOWN // 2
    return text if len(text) <= _MAX_SHOWN else f"{text[:half]}…{text[-half:]}"


def _quoted(text: str) -> str:
    """Return a text in quotation marks that it does not contain."""
    return f"`{text}`" if '"' in text else f'"{text}"'


def _listed(texts: Sequence[str], last: str = ", ") -> str:
    *first, end = map(_quoted, texts)
    return last.join(filter(None, (", ".join(first), end)))
