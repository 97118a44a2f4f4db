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
from functools import lru_cache

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
_MAX_FREE = 8
"""Separators at the end of a path that may each be part of a heading."""


class Outline:
    """The sections of a change request with their paths.

    :param tree: sections of the file.

    ``addresses`` are the full paths by index of the section, unique in the file.
    """

    def __init__(self, tree: SectionTree) -> None:
        self.tree = tree
        self._hierarchy = Hierarchy(tree)
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
        self.addresses = {
            index: path if used[path] == 1 else selectors[index] for index, path in paths.items()
        }
        short = {index: address.removeprefix(lead) for index, address in self.addresses.items()}
        self._shown = {
            index: self.addresses[index] if path in used else path for index, path in short.items()
        }
        self._known = {
            path: index for paths in (self._shown, self.addresses) for index, path in paths.items()
        }

    def shown(self, index: int) -> str:
        """Return a section's path without the title, the common first heading."""
        return self._shown.get(index, "")

    def content(self, index: int) -> str:
        """Return the text below a section's heading, with subsections, without blank lines around it."""
        section = self.tree.sections[index]
        starts = self.tree.line_starts
        text = self.tree.source[starts[section.heading_lines.stop] : starts[section.whole.stop]]
        return re.sub(r"\A(?:[ \t]*\n)+", "", text.rstrip())

    def find(self, wanted: str, key: str, *, whole: bool = False) -> int:
        """Find a section: the strictest reading of the path that matches any section decides.

        :param wanted: a path from a list, or the end of one, read as :data:`READINGS` says.
        :param key: key of the change request, for messages.
        :param whole: whether names must be complete, because the section will be replaced.
        :raises MissingRequestError: ``wanted`` is blank.
        :raises SectionNotFoundError: no section matches, or several do; ``near`` holds valid paths.
        """
        clean = label(checks.text(wanted, "section"))
        for matches in self._readings(clean, whole):
            if len(matches) == 1:
                return matches[0]
            if matches:
                near, lines = self._near_and_hint(matches)
                problem = f"{len(matches)} sections of {key} match {clean!r}"
                raise SectionNotFoundError(problem, near=near, hint=f"give the path of one:{lines}")
        near, lines = self._near_and_hint(self._suggested(clean))
        hint = f"similar sections:{lines}" if near else "it has no sections"
        if whole and near:
            hint += "\nto add a new section, append it to the section above it"
        raise SectionNotFoundError(f"section {clean!r} not found in {key}", near=near, hint=hint)

    def _readings(self, wanted: str, whole: bool) -> Iterator[Sequence[int]]:
        """Yield the matches of each reading, the strictest first."""
        title = self.tree.title
        yield [self._known[wanted]] if wanted in self._known else []
        for is_title, readings in ((False, READINGS), (True, READINGS), (False, () if whole else PARTS)):
            sections = [index for index in self.addresses if (index == title) == is_title]
            for reading in readings:
                yield self._matching(sections, wanted, reading)

    def _matching(self, sections: Sequence[int], wanted: str, reading: Reading) -> list[int]:
        """Return the sections whose paths end with some headings."""
        parts = wanted.rsplit(SEPARATOR, _MAX_FREE)
        return [index for index in sections if self._ends(index, parts, *reading)]

    def _ends(self, index: int, parts: Sequence[str], same: Same, any_level: bool) -> bool:
        """Return whether the last headings of a path consist of some parts; each has one or several."""
        section, left = self.tree.sections[index], {len(parts)}
        while section.level and left:
            number = self._hierarchy.number(section.index)[0]
            lines = ((start, SEPARATOR.join(parts[start:stop])) for stop in left for start in range(stop))
            left = {
                start
                for start, line in lines
                for level, name, ordinal in _headings(line)
                if (any_level or level in (0, section.level))
                and ordinal in (0, number)
                and same(name, section)
            }
            if 0 in left:
                return True
            section = self.tree.sections[section.parent or 0]
        return False

    def _suggested(self, wanted: str) -> Sequence[int]:
        """Return sections with similar names, or all if they are few."""
        every, sections = list(self.addresses), self.tree.sections
        if len(every) <= _MAX_LISTED:
            return every
        names = {index: _numbering(sections[index].name)[1] for index in every}
        last = wanted.rpartition(SEPARATOR)[2].lstrip("#").strip()
        near = near_names(_numbering(last)[1], names.values())
        return (
            self._matching(every, wanted, PARTS[0])
            or [index for index in every if names[index] in near]
            or [index for index in every if sections[index].level <= 2][:_MAX_LISTED]
        )

    def _near_and_hint(self, sections: Sequence[int]) -> tuple[list[str], str]:
        """Return the paths of sections, and the same paths as lines of a hint."""
        near = [self.addresses[index] for index in sections[:_MAX_CANDIDATES]]
        more = [f"and {len(sections) - len(near)} more"] if len(sections) > len(near) else []
        return near, "".join(f"\n  - {line}" for line in (*near, *more))


@lru_cache(1024)
def _headings(line: str) -> tuple[tuple[int, str, int], ...]:
    """Return the readings of a heading: level, or 0 for any; name; number, or 0 for any.

    A final ``[2]`` is the number, or part of the name.
    """
    marks = _MARKS.match(line)
    name = line[marks.end() :] if marks else line
    level, numbered = len(marks[1]) if marks else 0, _ORDINAL.fullmatch(name)
    return ((level, name, 0), *([(level, numbered[1], int(numbered[2]))] if numbered else ()))


@lru_cache(4096)
def _folded(name: str) -> str:
    return fold(heading_label(name))


def _numbering(name: str) -> tuple[str, str]:
    """Return the number at the beginning of a name, or ``""``, and the rest of the name."""
    match = _NUMBERING.match(name)
    return (match[1], name[match.end() :]) if match else ("", name)


def _is_same(name: str, section: Section) -> bool:
    return heading_label(name) in (heading_label(section.name), heading_label(section.heading))


def _is_alike(name: str, section: Section) -> bool:
    return _folded(name) == _folded(section.name)


def _is_unnumbered(name: str, section: Section) -> bool:
    (wanted, text), (number, other) = _numbering(name), _numbering(section.name)
    return wanted in ("", number or wanted) and _folded(text) == _folded(other)


def _is_part(name: str, section: Section) -> bool:
    return bool(_folded(name)) and _folded(name) in _folded(section.name)


Same = Callable[[str, Section], bool]
"""Function that compares a name with a section's."""

Reading = tuple[Same, bool]

READINGS: tuple[Reading, ...] = (
    (_is_same, False),  # the name
    (_is_alike, False),  # without case and markup
    (_is_unnumbered, False),  # without numbering; two different numberings do not match
    (_is_same, True),  # the same three with other # marks
    (_is_alike, True),
    (_is_unnumbered, True),
)
"""Readings of a heading, the strictest first: the comparison, and whether its level may differ.

The title is matched only if nothing else is, because it contains all other sections.
"""

PARTS: tuple[Reading, ...] = ((_is_part, True),)
"""Readings of a part of a heading: for reading, not for replacing."""
