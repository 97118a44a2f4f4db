"""Paths of headings, the addresses of a change request's sections.

A path joins the headings above a section and its own by `` / ``, with their ``#`` marks:
``# Title / ## 2. Rationale / ### Notes``. Equal headings with one parent are numbered: ``### Notes [2]``.

A heading may itself end in ``[2]`` or contain `` / ``, so that two sections would have the same path. Their
selectors replace such paths (:mod:`npl_index.selectors.grammar`): they quote these names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from npl_index.errors import SectionNotFoundError
from npl_index.library.references import near_names
from npl_index.markdown.sections import Section, SectionTree
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import fold, heading_label, label
from npl_index.selectors.writing import selectors_of
from npl_mcp.stores.base import checks

SEPARATOR = " / "

_MARKS = re.compile(r"(#{1,6})(?:[ \t]+|$)")
_ORDINAL = re.compile(r"(.*\S) \[([0-9]{1,9})\]")
_NUMBERING = re.compile(r"(\d+(?:\.\d+)*)[.)]?[ \t]+(?=\S)")
_MAX_LISTED = 10
_MAX_CANDIDATES = 20
_MAX_FREE = 3
"""Separators in a path up to which each is also read as part of a heading: at most eight readings."""

PathHeading = tuple[int, Sequence[tuple[str, int]]]
"""One heading of a path: the number of its ``#`` marks, 0 without marks, and its readings as name and number.
A final ``[2]`` is the number, or part of a name with number 0.
"""

Matches = Callable[[Section, str], bool]
"""Function that compares a section with a name."""


@dataclass(frozen=True, slots=True)
class SectionPath:
    """A section and its path.

    :param index: index of the section in its tree.
    :param address: full path, unique in the file.
    :param shown: path without the title, the common first heading.
    """

    index: int
    address: str
    shown: str


class Outline:
    """The sections of a change request with their paths.

    :param tree: sections of the file.
    """

    def __init__(self, tree: SectionTree) -> None:
        self.tree = tree
        self._hierarchy = Hierarchy(tree)
        self._folded = cache(lambda name: fold(heading_label(name)))
        paths: dict[int, str] = {}
        for section in tree.sections:
            if section.level:
                number, equals = self._hierarchy.number(section.index)
                line = f"{'#' * section.level} {label(section.heading)}".rstrip()
                line += f" [{number}]" if equals > 1 else ""
                above = paths.get(section.parent or 0)
                paths[section.index] = line if above is None else f"{above}{SEPARATOR}{line}"
        used = Counter(paths.values())
        selectors = selectors_of(tree) if len(used) < len(paths) else ()
        lead = "" if tree.title is None else paths[tree.title] + SEPARATOR
        self.places: dict[int, SectionPath] = {}
        for index, path in paths.items():
            address = path if used[path] == 1 else selectors[index]
            short = address.removeprefix(lead)
            self.places[index] = SectionPath(index, address, address if short in used else short)
        self._by_path = {
            path: place for place in self.places.values() for path in (place.shown, place.address)
        }

    def shown(self, index: int) -> str:
        """Return a section's path without the title."""
        return self.places[index].shown if index in self.places else ""

    def content(self, index: int) -> str:
        """Return the text below a section's heading, with subsections, without blank lines around it."""
        section = self.tree.sections[index]
        starts = self.tree.line_starts
        text = self.tree.source[starts[section.heading_lines.stop] : starts[section.whole.stop]]
        return re.sub(r"\A(?:[ \t]*\n)+", "", text.rstrip())

    def find(self, wanted: str, key: str, *, whole: bool = False) -> SectionPath:
        """Find a section: the strictest reading of the path that matches any section decides.

        :param wanted: a path from a list, or the end of one; :meth:`_readings` lists the accepted forms.
        :param key: key of the change request, for messages.
        :param whole: whether names must be complete, because the section will be replaced.
        :raises MissingRequestError: ``wanted`` is blank.
        :raises SectionNotFoundError: no section matches, or several do; ``near`` holds valid paths.
        """
        clean = label(checks.text(wanted, "section"))
        place = self._by_path.get(clean)
        if place is not None:
            return place
        for found in self._readings(clean, whole):
            if len(found) == 1:
                return found[0]
            if found:
                near, lines = _near_and_hint(found)
                problem = f"{len(found)} sections of {key} match {clean!r}"
                raise SectionNotFoundError(problem, near=near, hint=f"give the path of one:{lines}")
        near, lines = _near_and_hint(self._suggested(clean, whole))
        hint = f"similar sections:{lines}" if near else "it has no sections"
        if whole and near:
            hint += "\nto add a new section, append it to the section above it"
        raise SectionNotFoundError(f"section {clean!r} not found in {key}", near=near, hint=hint)

    def _readings(self, wanted: str, whole: bool) -> Iterator[Sequence[SectionPath]]:
        """Yield the matches of each reading, the strictest first.

        The readings: exact names; names without case and markup; names without numbering as well; the same
        three at any level; the title, late because it contains all other sections; parts of names.
        """
        titles: dict[int, SectionPath] = {}
        for any_level in (False, True):
            for matches in (self._is_same, self._is_alike, self._is_numbered):
                found = self._matching(wanted, matches, any_level)
                titles.update((place.index, place) for place in found if place.index == self.tree.title)
                yield [place for place in found if place.index != self.tree.title]
        yield list(titles.values())
        if not whole:
            yield self._holding(wanted)

    def _holding(self, wanted: str) -> Sequence[SectionPath]:
        found = self._matching(wanted, self._holds, any_level=True)
        return [place for place in found if place.index != self.tree.title]

    def _matching(self, wanted: str, matches: Matches, any_level: bool) -> Sequence[SectionPath]:
        """Return the sections that match any reading of a path, in document order."""
        chains = [[_heading(line) for line in reversed(chain)] for chain in _chains(wanted)]
        return [
            place
            for place in self.places.values()
            if any(self._ends(place.index, chain, matches, any_level) for chain in chains)
        ]

    def _ends(
        self, index: int | None, chain: Sequence[PathHeading], matches: Matches, any_level: bool
    ) -> bool:
        """Return whether a section and its ancestors match the headings of a path, the last one first."""
        for level, names in chain:
            section = self.tree.sections[index or 0]
            if not section.level or not (any_level or level in (0, section.level)):
                return False
            numbers = [number for name, number in names if matches(section, name)]
            if not numbers or not {0, self._hierarchy.number(section.index)[0]}.intersection(numbers):
                return False
            index = section.parent
        return True

    def _is_same(self, section: Section, name: str) -> bool:
        return heading_label(name) in (heading_label(section.name), heading_label(section.heading))

    def _is_alike(self, section: Section, name: str) -> bool:
        return self._folded(name) == self._folded(section.name)

    def _is_numbered(self, section: Section, name: str) -> bool:
        """Return whether the names are equal without numbering; two different numberings do not match."""
        (wanted, text), (number, other) = _numbering(name), _numbering(section.name)
        same = not wanted or not number or wanted == number
        return same and self._folded(text) == self._folded(other)

    def _holds(self, section: Section, name: str) -> bool:
        return bool(self._folded(name)) and self._folded(name) in self._folded(section.name)

    def _suggested(self, wanted: str, whole: bool) -> Sequence[SectionPath]:
        """Return sections with similar names, or all if they are few."""
        places = list(self.places.values())
        if len(places) <= _MAX_LISTED:
            return places
        held = self._holding(wanted) if whole else []
        if held:
            return held
        sections = self.tree.sections
        names = {place.index: _numbering(sections[place.index].name)[1] for place in places}
        last = wanted.rpartition(SEPARATOR)[2].lstrip("#").strip()
        near = near_names(_numbering(last)[1], names.values())
        alike = [place for name in near for place in places if names[place.index] == name]
        return alike or [place for place in places if sections[place.index].level <= 2][:_MAX_LISTED]


def _chains(wanted: str) -> Iterator[list[str]]:
    """Yield the readings of a path: each `` / `` separates two headings or is part of one."""
    parts = wanted.split(SEPARATOR)
    inner = len(parts) - 1
    every = product((True, False), repeat=inner)
    for division in every if inner <= _MAX_FREE else ((True,) * inner, (False,) * inner):
        chain = parts[:1]
        for divides, part in zip(division, parts[1:], strict=True):
            if divides:
                chain.append(part)
            else:
                chain[-1] += SEPARATOR + part
        yield chain


def _heading(line: str) -> PathHeading:
    marks = _MARKS.match(line)
    name = line[marks.end() :] if marks else line
    numbered = _ORDINAL.fullmatch(name)
    names = ((name, 0), *([(numbered[1], int(numbered[2]))] if numbered else ()))
    return len(marks[1]) if marks else 0, names


def _numbering(name: str) -> tuple[str, str]:
    """Return the number at the beginning of a name, or ``""``, and the rest of the name."""
    found = _NUMBERING.match(name)
    return (found[1], name[found.end() :]) if found else ("", name)


def _near_and_hint(places: Sequence[SectionPath]) -> tuple[list[str], str]:
    """Return the paths of sections, and the same paths as lines of a hint."""
    near = [place.address for place in places[:_MAX_CANDIDATES]]
    more = [f"and {len(places) - len(near)} more"] if len(places) > len(near) else []
    return near, "".join(f"\n  - {line}" for line in (*near, *more))
