"""How the sections of a change request are addressed.

A section's path is the chain of headings it stands below, hashes included, joined by `` / ``:
``# Title / ## 2. Rationale / ### Notes``. Equal headings below the same one are told apart by their number:
``### Notes [2]``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from npl_index.errors import SectionNotFoundError
from npl_index.markdown.sections import SectionTree
from npl_index.selectors.labels import label
from npl_mcp.stores.base import checks

SEPARATOR = " / "

_MARKS = re.compile(r"#{1,6}[ \t]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)*[.)]?[ \t]+")
_MOST_LISTED = 10
_MIN_SIMILARITY = 60


@dataclass(frozen=True, slots=True)
class Place:
    """A section and what leads to it.

    :param index: of the section in its tree.
    :param level: of its heading.
    :param path: the chain of headings; each with its number, where the same heading stands there twice.
    :param plain: the same without numbers.
    """

    index: int
    level: int
    path: tuple[str, ...]
    plain: tuple[str, ...]

    @property
    def address(self) -> str:
        """The full path as text."""
        return SEPARATOR.join(self.path)


@dataclass(frozen=True, slots=True)
class Outline:
    """The sections of a change request in document order.

    :param title: index of the section whose heading is the title, else ``None``.
    """

    tree: SectionTree = field(repr=False)
    places: tuple[Place, ...]
    title: int | None

    def shown(self, place: Place) -> str:
        """Return a section's path without the title, which all have in common."""
        inside = self.title is not None and place.index in self.tree.subtree(self.title)
        return SEPARATOR.join(place.path[1:] if inside and len(place.path) > 1 else place.path)

    def content(self, index: int) -> str:
        """Return the text below a section's heading, subsections included, without blank lines around it."""
        section = self.tree.sections[index]
        starts = self.tree.line_starts
        text = self.tree.source[starts[section.heading_lines.stop] : starts[section.whole.stop]]
        kept = text.rstrip()
        blank = re.match(r"(?:[ \t]*\n)*", kept)
        return kept[blank.end() :] if blank else kept

    def find(self, wanted: str, key: str) -> Place:
        """Find the section that is meant: the strictest reading that fits any section decides.

        These are, in order: a full path; one without the title; the end of a path; the same without numbers,
        then whatever the case, then also without the numbering of headings; a part of a single name. The
        title is meant only where no other section could be.

        :param key: of the change request, for messages.
        :raises MissingRequestError: nothing is wanted.
        :raises SectionNotFoundError: no section fits, or several do; ``near`` holds paths that work.
        """
        clean = label(checks.text(wanted, "section"))
        for found in self._readings(clean):
            if len(found) == 1:
                return found[0]
            if found:
                near = [place.address for place in found]
                lines = "".join(f"\n  - {address}" for address in near)
                raise SectionNotFoundError(
                    f"{len(found)} sections of {key} match {clean!r}",
                    near=near,
                    hint=f"give the path of one:{lines}",
                )
        near = self._alike(clean)
        lines = "".join(f"\n  - {address}" for address in near)
        hint = f"sections like it:{lines}" if near else "it has no sections"
        raise SectionNotFoundError(f"section {clean!r} not found in {key}", near=near, hint=hint)

    def _readings(self, wanted: str) -> Sequence[Sequence[Place]]:
        """Return what each reading finds, lazily enough: later ones matter only where earlier find nothing."""
        below = [place for place in self.places if place.index != self.title]
        titles = [place for place in self.places if place.index == self.title]
        exact = [
            [place for place in self.places if place.address == wanted],
            [place for place in below if self.shown(place) == wanted],
            [place for place in self.places if _ends(place.path, wanted)],
            [place for place in self.places if _ends(place.plain, wanted)],
        ]
        if any(exact):
            return exact
        return [
            _ending(below, wanted, _folded),
            _ending(below, wanted, _named),
            _ending(titles, wanted, _folded) or _ending(titles, wanted, _named),
            _holding(below, wanted),
        ]

    def _alike(self, wanted: str) -> list[str]:
        """Return the paths of sections with similar names, or of all where they are few."""
        if len(self.places) <= _MOST_LISTED:
            return [place.address for place in self.places]
        from rapidfuzz import fuzz, process  # only failures need it, and it is slow to import

        found = process.extract(
            _named(wanted.rpartition(SEPARATOR)[2]),
            {place.index: _named(place.plain[-1]) for place in self.places},
            scorer=fuzz.token_ratio,
            limit=_MOST_LISTED // 2,
            score_cutoff=_MIN_SIMILARITY,
        )
        by_index = {place.index: place.address for place in self.places}
        near = [by_index[index] for _, _, index in found]
        return near or [place.address for place in self.places if place.level <= 2][:_MOST_LISTED]


def outline(tree: SectionTree) -> Outline:
    """Read the paths of all sections."""
    above = [_above(tree, section.parent) for section in tree.sections]
    lines = [f"{'#' * section.level} {label(section.heading)}".rstrip() for section in tree.sections]
    equal = Counter(zip(above, lines, strict=True))
    number: Counter[tuple[int | None, str]] = Counter()
    places: dict[int, Place] = {}
    for section in tree.sections:
        if section.level:
            same = above[section.index], lines[section.index]
            number[same] += 1
            mark = f" [{number[same]}]" if equal[same] > 1 else ""
            parent = None if same[0] is None else places[same[0]]
            path, plain = (parent.path, parent.plain) if parent else ((), ())
            places[section.index] = Place(
                section.index, section.level, (*path, same[1] + mark), (*plain, same[1])
            )
    return Outline(tree, tuple(places.values()), tree.title)


def _above(tree: SectionTree, parent: int | None) -> int | None:
    """Return the heading a section stands below; the document and its parts are none."""
    while parent is not None and not tree.sections[parent].level:
        parent = tree.sections[parent].parent
    return parent


def _ends(path: Sequence[str], wanted: str) -> bool:
    """Return whether some last headings of a path are what is wanted."""
    return any(SEPARATOR.join(path[start:]) == wanted for start in range(len(path)))


def _folded(name: str) -> str:
    """Return a heading's text without its marks, whatever its case; of several, of each."""
    return SEPARATOR.join(
        " ".join(_MARKS.sub("", part, count=1).split()).casefold() for part in name.split(SEPARATOR)
    )


def _named(name: str) -> str:
    """Return the same without numbering."""
    return SEPARATOR.join(_NUMBER.sub("", part, count=1) or part for part in _folded(name).split(SEPARATOR))


def _numbers(name: str) -> list[str]:
    """Return the numbering of each part of a name, ``""`` where there is none."""
    found = (_NUMBER.match(part) for part in _folded(name).split(SEPARATOR))
    return ["" if number is None else number[0].strip(" \t.)") for number in found]


def _ending(places: Sequence[Place], wanted: str, form: Callable[[str], str]) -> list[Place]:
    """Return the sections whose paths, each heading in a looser form, end as wanted; numbers do not differ."""
    meant, numbers = form(wanted), _numbers(wanted)

    def fits(path: Sequence[str]) -> bool:
        ends = (SEPARATOR.join(path[start:]) for start in range(len(path)))
        return any(
            form(end) == meant
            and all(
                not (one and other) or one == other for one, other in zip(_numbers(end), numbers, strict=True)
            )
            for end in ends
        )

    return [place for place in places if fits(place.plain) or fits(place.path)]


def _holding(places: Sequence[Place], wanted: str) -> list[Place]:
    """Return the sections whose names hold what is wanted, those above them too where a path is given."""
    parts = _folded(wanted).split(SEPARATOR)
    if not all(parts):
        return []
    return [
        place
        for place in places
        if len(place.plain) >= len(parts)
        and all(part in _folded(line) for part, line in zip(parts, place.plain[-len(parts) :], strict=True))
    ]
