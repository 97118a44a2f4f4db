"""How the sections of a change request are addressed: by paths of headings.

A path is the chain of headings a section stands below, ``#`` marks included, joined by `` / ``:
``# Title / ## 2. Rationale / ### Notes``. Equal headings below the same one are numbered: ``### Notes [2]``.

Two sections can have one path: a heading may end in ``[2]`` or hold `` / `` itself. The path of both is then
their selector (:mod:`npl_index.selectors.grammar`), in which such names stand in quotes.
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
"""Separators in a path of which each is tried as part of a heading, too: eight readings at most."""

Matches = Callable[[Section, str], bool]
"""Whether a section may be meant by a name."""


@dataclass(frozen=True, slots=True)
class SectionPath:
    """A section and its path.

    :param index: of the section in its tree.
    :param address: its full path; no other section has it.
    :param shown: the path without the title, which all sections have in common.
    """

    index: int
    address: str
    shown: str


@dataclass(frozen=True, slots=True)
class _Line:
    """One heading of a path.

    :param level: 0 if none is given.
    :param names: its name and number; ``[2]`` may be the number, or part of a name, whose number is 0.
    """

    level: int
    names: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, line: str) -> _Line:
        marks = _MARKS.match(line)
        name = line[marks.end() :] if marks else line
        numbered = _ORDINAL.fullmatch(name)
        names = ((name, 0), *([(numbered[1], int(numbered[2]))] if numbered else ()))
        return cls(len(marks[1]) if marks else 0, names)


class Outline:
    """The sections of a change request, named by their paths.

    :param tree: the sections.
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
        """Return the text below a section's heading, subsections included, without blank lines around it."""
        section = self.tree.sections[index]
        starts = self.tree.line_starts
        text = self.tree.source[starts[section.heading_lines.stop] : starts[section.whole.stop]]
        return re.sub(r"\A(?:[ \t]*\n)+", "", text.rstrip())

    def find(self, wanted: str, key: str, *, whole: bool = False) -> SectionPath:
        """Find the section that is meant: the strictest reading that fits any section decides.

        :param wanted: a path from a list, or the end of one; see :meth:`_readings` for what it may leave out.
        :param key: of the change request, for messages.
        :param whole: a part of a name is not enough, since what is found will be replaced.
        :raises MissingRequestError: ``wanted`` is blank.
        :raises SectionNotFoundError: no section fits, or several do; ``near`` holds paths that work.
        """
        clean = label(checks.text(wanted, "section"))
        place = self._by_path.get(clean)
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

    def _readings(self, wanted: str, whole: bool) -> Iterator[Sequence[SectionPath]]:
        """Return what each reading finds, the strictest first.

        These are: names as they stand; without case and markup; also without the numbering of headings; all
        three at any level; the title, which is meant only where no other section could be, since it holds
        them all; a part of each name.
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
        """Return the sections to which any reading of a path leads, in document order."""
        chains = [[_Line.of(line) for line in reversed(chain)] for chain in _chains(wanted)]
        return [
            place
            for place in self.places.values()
            if any(self._ends(place.index, chain, matches, any_level) for chain in chains)
        ]

    def _ends(self, index: int | None, chain: Sequence[_Line], matches: Matches, any_level: bool) -> bool:
        """Return whether a section and those above it match the headings of a path, the last one first."""
        for line in chain:
            section = self.tree.sections[index or 0]
            if not section.level or not (any_level or line.level in (0, section.level)):
                return False
            numbers = [number for name, number in line.names if matches(section, name)]
            if not numbers or not {0, self._hierarchy.number(section.index)[0]}.intersection(numbers):
                return False
            index = section.parent
        return True

    def _is_same(self, section: Section, name: str) -> bool:
        return heading_label(name) in (heading_label(section.name), heading_label(section.heading))

    def _is_alike(self, section: Section, name: str) -> bool:
        return self._folded(name) == self._folded(section.name)

    def _is_numbered(self, section: Section, name: str) -> bool:
        """Return whether the names are alike without their numbering, which is equal where both have one."""
        (wanted, text), (number, other) = _numbering(name), _numbering(section.name)
        same = not wanted or not number or wanted == number
        return same and self._folded(text) == self._folded(other)

    def _holds(self, section: Section, name: str) -> bool:
        return bool(self._folded(name)) and self._folded(name) in self._folded(section.name)

    def _alike(self, wanted: str, whole: bool) -> Sequence[SectionPath]:
        """Return sections that may have been meant, or all where they are few."""
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
    """Return the ways to read a path: each `` / `` divides two headings, or stands inside one."""
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


def _numbering(name: str) -> tuple[str, str]:
    """Return the number that a name begins with, or ``""``, and the rest of it."""
    found = _NUMBERING.match(name)
    return (found[1], name[found.end() :]) if found else ("", name)


def _listed(places: Sequence[SectionPath]) -> tuple[list[str], str]:
    """Return the paths of some sections, and these as lines of a hint."""
    near = [place.address for place in places[:_MAX_CANDIDATES]]
    more = [f"and {len(places) - len(near)} more"] if len(places) > len(near) else []
    return near, "".join(f"\n  - {line}" for line in (*near, *more))
