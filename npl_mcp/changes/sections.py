"""How the sections of a change request are addressed: by paths of headings, which the selector engine reads.

A path is the chain of headings a section stands below, ``#`` marks included, joined by `` / ``:
``# Title / ## 2. Rationale / ### Notes``. Equal headings below the same one are numbered: ``### Notes [2]``.
Clients have always sent and received this form; :meth:`Outline.find` translates it into steps of selectors.

Two sections can have one path: a heading may end in ``[2]`` or hold `` / `` itself. The path of both is then
their selector (:mod:`npl_index.selectors.grammar`), in which such names stand in quotes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from npl_index.errors import SectionNotFoundError
from npl_index.library.references import near_names
from npl_index.markdown.sections import SectionTree
from npl_index.selectors.grammar import Combinator, Step
from npl_index.selectors.labels import fold, label
from npl_index.selectors.matching import Node, Scope
from npl_index.selectors.predicates import Conditions
from npl_index.selectors.writing import selectors_of
from npl_mcp.stores.base import checks

SEPARATOR = " / "

_MARKS = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_ORDINAL = re.compile(r"(.*\S) \[([0-9]{1,9})\]")
_NUMBERING = re.compile(r"(\d+(?:\.\d+)*)[.)]?[ \t]+(?=\S)")
_MOST_LISTED = 10
_MOST_CANDIDATES = 20
_MOST_FREE = 3
"""Separators in a path of which each is tried as part of a heading, too: eight readings at most."""

Match = Callable[[Scope, Sequence[Node], str], Iterable[Node]]
"""Chooses the sections that a name may mean."""


@dataclass(frozen=True, slots=True)
class Place:
    """A section and its path.

    :param index: of the section in its tree.
    :param level: of its heading.
    :param address: its full path; no other section has it.
    :param shown: the path without the title, which all sections have in common.
    """

    index: int
    level: int
    address: str
    shown: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The sections of a change request.

    :param places: in document order.
    """

    tree: SectionTree = field(repr=False)
    places: tuple[Place, ...]
    _scope: Scope = field(repr=False)
    _paths: dict[str, Place] = field(repr=False)

    def content(self, index: int) -> str:
        """Return the text below a section's heading, subsections included, without blank lines around it."""
        section = self.tree.sections[index]
        starts = self.tree.line_starts
        text = self.tree.source[starts[section.heading_lines.stop] : starts[section.whole.stop]]
        kept = text.rstrip()
        blank = re.match(r"(?:[ \t]*\n)*", kept)
        return kept[blank.end() :] if blank else kept

    def address(self, index: int) -> str:
        """Return a section's full path."""
        return self._place(index).address

    def shown(self, index: int) -> str:
        """Return a section's path without the title."""
        return self._place(index).shown

    def at(self, address: str) -> int | None:
        """Return the section that has just this path."""
        place = self._paths.get(address)
        return None if place is None else place.index

    def _place(self, index: int) -> Place:
        return next(place for place in self.places if place.index == index)

    def find(self, wanted: str, key: str, *, whole: bool = False) -> Place:
        """Find the section that is meant: the strictest reading that fits any section decides.

        :param wanted: a path from a list, or the end of one; see :meth:`_readings` for what it may leave out.
        :param key: of the change request, for messages.
        :param whole: a part of a name is not enough, since what is found will be replaced.
        :raises MissingRequestError: ``wanted`` is blank.
        :raises SectionNotFoundError: no section fits, or several do; ``near`` holds paths that work.
        """
        clean = label(checks.text(wanted, "section"))
        place = self._paths.get(clean)
        if place is not None:
            return place
        for found in self._readings(clean, whole):
            if len(found) == 1:
                return found[0]
            if found:
                near, lines = _listed(found)
                problem = f"{len(found)} sections of {key} match {clean!r}"
                raise SectionNotFoundError(problem, near=near, hint=f"give the path of one:{lines}")
        near, lines = _listed(self._alike(clean, whole))
        hint = f"sections like it:{lines}" if near else "it has no sections"
        if whole and near:
            hint += "\na new section is added by append to the section above it"
        raise SectionNotFoundError(f"section {clean!r} not found in {key}", near=near, hint=hint)

    def _readings(self, wanted: str, whole: bool) -> Iterator[list[Place]]:
        """Return what each reading finds, the strictest first.

        These are: names as selectors compare them; also without the numbering of headings; both at any level;
        the title, which is meant only where no other section could be, since it holds them all; a part of
        each name.
        """
        title = self.tree.title
        titles: dict[int, Place] = {}
        for any_level in (False, True):
            for match in (Scope.called, _numbered):
                found = self._matching(wanted, match, any_level)
                titles.update((place.index, place) for place in found if place.index == title)
                yield [place for place in found if place.index != title]
        yield list(titles.values())
        if not whole:
            yield self._holding(wanted)

    def _holding(self, wanted: str) -> list[Place]:
        found = self._matching(wanted, _holding, any_level=True)
        return [place for place in found if place.index != self.tree.title]

    def _matching(self, wanted: str, match: Match, any_level: bool) -> list[Place]:
        """Return the sections to which any reading of a path leads, in document order."""
        chains = [chain for chain in _chains(wanted) if self._may_exist(chain)]
        found = {node for chain in chains for node in self._walk(chain, match, any_level)}
        return [place for place in self.places if (0, place.index) in found]

    def _may_exist(self, chain: Iterable[str]) -> bool:
        """Return whether some heading holds each name with a separator: in most documents none does."""
        steps = [list(_steps(line, "child", any_level=True))[-1] for line in chain if SEPARATOR in line]
        joined = [fold(_without_numbering(step.name or "")) for step in steps]
        names = [self._scope.folded((0, place.index)) for place in self.places] if joined else []
        return all(any(part in name for name in names) for part in joined)

    def _walk(self, chain: Iterable[str], match: Match, any_level: bool) -> Sequence[Node]:
        scope, context = self._scope, [(0, 0)]
        combinator: Combinator = "descendant"
        for line in chain:
            context = sorted(
                {
                    node
                    for step in _steps(line, combinator, any_level)
                    for node in match(scope, scope.pool(step, context), step.name or "")
                    if scope.fulfils(node, step.conditions)
                }
            )
            combinator = "child"
        return context

    def _alike(self, wanted: str, whole: bool) -> Sequence[Place]:
        """Return sections that may have been meant, or all where they are few."""
        if len(self.places) <= _MOST_LISTED:
            return self.places
        held = self._holding(wanted) if whole else []
        if held:
            return held
        names = {
            place.index: _without_numbering(self.tree.sections[place.index].name) for place in self.places
        }
        last = _MARKS.sub("", wanted.rpartition(SEPARATOR)[2], count=1)
        near = near_names(_without_numbering(last), names.values())
        alike = [place for name in near for place in self.places if names[place.index] == name]
        return alike or [place for place in self.places if place.level <= 2][:_MOST_LISTED]


def outline(tree: SectionTree) -> Outline:
    """Read the paths of all sections."""
    scope = Scope([tree], [()])
    paths: dict[int, str] = {}
    for section in tree.sections:
        if section.level:
            number, equals = scope.hierarchy(0).number(section.index)
            line = f"{'#' * section.level} {label(section.heading)}".rstrip()
            line += f" [{number}]" if equals > 1 else ""
            above = paths.get(section.parent or 0)
            paths[section.index] = line if above is None else f"{above}{SEPARATOR}{line}"
    used = Counter(paths.values())
    selectors = selectors_of(tree) if len(used) < len(paths) else ()
    lead = "" if tree.title is None else paths[tree.title] + SEPARATOR
    places = []
    for index, path in paths.items():
        address = path if used[path] == 1 else selectors[index]
        short = address.removeprefix(lead)
        places.append(Place(index, tree.sections[index].level, address, address if short in used else short))
    by_path = {path: place for place in places for path in (place.shown, place.address)}
    return Outline(tree, tuple(places), scope, by_path)


def _chains(wanted: str) -> Iterator[list[str]]:
    """Return the ways to read a path: each `` / `` divides two headings, or stands inside one."""
    parts = wanted.split(SEPARATOR)
    inner = len(parts) - 1
    every = product((True, False), repeat=inner)
    for division in every if inner <= _MOST_FREE else ((True,) * inner, (False,) * inner):
        chain = parts[:1]
        for divides, part in zip(division, parts[1:], strict=True):
            if divides:
                chain.append(part)
            else:
                chain[-1] += SEPARATOR + part
        yield chain


def _steps(line: str, combinator: Combinator, any_level: bool) -> Iterator[Step]:
    """Translate one heading of a path into steps; ``[2]`` may be its number, or part of its name."""
    marks = _MARKS.match(line)
    name = line[marks.end() :] if marks else line
    level = len(marks[1]) if marks and not any_level else None
    yield Step(combinator, level, name, Conditions(), 0, 0, 0)
    ordinal = _ORDINAL.fullmatch(name)
    if ordinal:
        yield Step(combinator, level, ordinal[1], Conditions(ordinal=int(ordinal[2])), 0, 0, 0)


def _numbered(scope: Scope, pool: Sequence[Node], name: str) -> Iterator[Node]:
    """Return the sections of a name whatever their numbering; where both have one it must be equal."""
    number, wanted = _numbering(name), fold(_without_numbering(name))
    for node in pool:
        other = scope.section(node).name
        same_number = _numbering(other) == number or not number or not _numbering(other)
        if same_number and fold(_without_numbering(other)) == wanted:
            yield node


def _holding(scope: Scope, pool: Sequence[Node], name: str) -> Iterator[Node]:
    """Return the sections whose names hold a part."""
    part = fold(name)
    return (node for node in pool if part and part in scope.folded(node))


def _numbering(name: str) -> str:
    found = _NUMBERING.match(name)
    return found[1] if found else ""


def _without_numbering(name: str) -> str:
    found = _NUMBERING.match(name)
    return name[found.end() :] if found else name


def _listed(places: Sequence[Place]) -> tuple[list[str], str]:
    """Return the paths of some sections, and these as lines of a hint."""
    near = [place.address for place in places[:_MOST_CANDIDATES]]
    more = [f"and {len(places) - len(near)} more"] if len(places) > len(near) else []
    return near, "".join(f"\n  - {line}" for line in (*near, *more))
