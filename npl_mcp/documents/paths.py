"""Paths of headings, the addresses of a change request's sections.

A path joins the headings above a section and its own by `` / ``, with their ``#`` marks:
``# Title / ## 2. Rationale / ### Notes``. Equal headings with one parent are numbered: ``### Notes [2]``.

A heading may itself end in ``[2]`` or contain `` / ``, so that two sections would have the same path. Their
selectors replace such paths (:mod:`npl_index.selectors.grammar`): they quote these names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from operator import contains, eq

from npl_index.errors import SectionNotFoundError
from npl_index.library.references import near_names
from npl_index.markdown.sections import SectionTree
from npl_index.selectors.hierarchy import Hierarchy
from npl_index.selectors.labels import fold, heading_label, label
from npl_index.selectors.writing import selectors_of
from npl_mcp.stores.base import checks

SEPARATOR = " / "

_MARKS = re.compile(r"#{1,6}(?:[ \t]+|$)")
_NUMBERING = re.compile(r"^\d+(?:\.\d+)*[.)]?[ \t]+(?=\S)")
_MAX_LISTED = 20


def _unmarked(heading: str) -> str:
    return _MARKS.sub("", heading, count=1)


def _folded(heading: str) -> str:
    return fold(_unmarked(heading))


def _unnumbered(heading: str) -> str:
    return fold(_NUMBERING.sub("", _unmarked(heading), count=1))


Reading = tuple[Callable[[str], str], Callable[[str], str], Callable[[str, str], bool]]
"""The compared forms of a section's heading and of a heading in a path, and their comparison."""

READINGS: tuple[Reading, ...] = (
    (str, str, eq),  # with # marks
    (_unmarked, _unmarked, eq),
    (_folded, _folded, eq),  # without case and markup
    (_unnumbered, _folded, eq),  # without the numbering of the section
)
"""Readings of a path, the strictest first."""

PART: Reading = (_folded, _folded, contains)
"""The reading of a part of a heading: for reading a section, not for replacing it."""


class Outline:
    """The sections of a change request with their paths.

    :param tree: sections of the file.

    ``addresses`` are the full paths by index of the section, unique in the file; ``short`` has them without
    the title, the common first heading.
    """

    def __init__(self, tree: SectionTree) -> None:
        self.tree = tree
        hierarchy = Hierarchy(tree)
        self._spelled: dict[int, list[str]] = {}
        for section in tree.sections:
            if section.level:
                number, equals = hierarchy.number(section.index)
                ordinals = (f" [{number}]" if equals > 1 else "", "")
                texts = (label(section.heading), heading_label(section.name))
                marks = "#" * section.level
                own = [label(f"{marks} {text}{ordinal}") for text in texts for ordinal in ordinals]
                above = self._spelled.get(section.parent or 0)
                if above is not None:
                    own = [SEPARATOR.join(headings) for headings in zip(above, own, strict=True)]
                self._spelled[section.index] = own
        paths = {index: spelled[0] for index, spelled in self._spelled.items()}
        used = Counter(paths.values())
        selectors = selectors_of(tree) if len(used) < len(paths) else ()
        lead = "" if tree.title is None else paths[tree.title] + SEPARATOR
        self.addresses = {at: path if used[path] == 1 else selectors[at] for at, path in paths.items()}
        shorter = {index: path.removeprefix(lead) for index, path in self.addresses.items()}
        self.short = {at: self.addresses[at] if path in used else path for at, path in shorter.items()}
        self._known = {path: index for known in (self.short, self.addresses) for index, path in known.items()}

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
        if clean in self._known:
            return self._known[clean]
        title = [index for index in self.addresses if index == self.tree.title]
        others = [index for index in self.addresses if index != self.tree.title]
        # The title contains all others.
        attempts = [(sections, reading) for sections in (others, title) for reading in READINGS]
        for sections, reading in attempts if whole else [*attempts, (others, PART)]:
            matches = self._matching(sections, clean, reading)
            if len(matches) == 1:
                return matches[0]
            if matches:
                problem = f"{len(matches)} sections of {key} match {clean!r}"
                raise self._error(problem, "give the path of one", matches)
        end = "\nto add a new section, append it to the section above it" if whole else ""
        problem = f"section {clean!r} not found in {key}"
        raise self._error(problem, "similar sections", self._similar(clean), end)

    def _matching(self, sections: Sequence[int], wanted: str, reading: Reading) -> list[int]:
        """Return the sections of which a path, in one of its spellings, ends with the given headings."""
        known, given, same = reading
        parts = list(map(given, wanted.split(SEPARATOR)))

        def ends(path: str) -> bool:
            headings = path.split(SEPARATOR)[-len(parts) :]
            return len(headings) == len(parts) and all(map(same, map(known, headings), parts))

        return [index for index in sections if all(parts) and any(map(ends, {*self._spelled[index]}))]

    def _similar(self, wanted: str) -> list[int]:
        """Return sections with similar names, or all if none is similar or they are few."""
        every = list(self.addresses)
        names = {index: self.tree.sections[index].name for index in every}
        near = near_names(_unmarked(wanted.rpartition(SEPARATOR)[2]), names.values())
        similar = self._matching(every, wanted, PART) or [at for at in every if names[at] in near]
        return similar if similar and len(every) > _MAX_LISTED // 2 else every

    def _error(self, problem: str, lead: str, sections: Sequence[int], end: str = "") -> SectionNotFoundError:
        """Return an error with the paths of sections, also as lines of its hint, between two texts."""
        near = [self.addresses[index] for index in sections[:_MAX_LISTED]]
        more = [f"and {len(sections) - len(near)} more"] if len(sections) > len(near) else []
        lines = "".join(f"\n  - {line}" for line in (*near, *more))
        hint = f"{lead}:{lines}{end}" if near else "it has no sections"
        return SectionNotFoundError(problem, near=near, hint=hint)
