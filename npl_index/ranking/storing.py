"""The sections of a document as bytes: an answer reads only the files that it shows.

Reading them back takes a fraction of the time of parsing. The first section can be read alone; the others,
and the file, are read when they are needed.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, overload

from npl_index.cached import cached_property
from npl_index.library.documents import Document
from npl_index.markdown.sections import Lines, Section, SectionTree, Span, decoded
from npl_index.markdown.traits import Traits
from npl_index.ranking.indexing import ParsedDocument

_PLAIN = attrgetter("level", "heading", "name", "version", "parent")
_SPANS = attrgetter("heading_lines", "own", "whole", "own_bytes", "whole_bytes")
_LENGTH = 4  # bytes of the length of the part that can be read alone


def dump_sections(parsed: ParsedDocument) -> bytes:
    """Return a document's sections and their selectors as bytes, for :func:`restore_sections`."""
    tree = parsed.tree
    first, *others = map(_row, tree.sections)
    head = {
        "name": tree.name,
        "front_matter": tree.front_matter,
        "dialect": tree.dialect,
        "title": tree.title,
        "doubtful_fences": tree.doubtful_fences,
        "first": first,
        "parents": [section.parent for section in tree.sections],
    }
    start = _json(head)
    rest = zlib.compress(_json({"sections": others, "steps": parsed.steps}), 1)
    return len(start).to_bytes(_LENGTH, "little") + start + rest


def _row(section: Section) -> list[Any]:
    spans = [(span.start, span.stop) for span in _SPANS(section)]
    return [*_PLAIN(section), spans, section.own_traits, section.whole_traits]


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def restore_sections(
    packed: bytes, known: Callable[[str], Document], read: Callable[[], bytes]
) -> ParsedDocument:
    """Return the document of which :func:`dump_sections` made these bytes.

    :param known: returns the document by its name; its bytes may be left out.
    :param read: returns them when the text is needed.
    """
    end = _LENGTH + int.from_bytes(packed[:_LENGTH], "little")
    head = json.loads(packed[_LENGTH:end])
    sections = _Sections(head["first"], head["parents"], packed[end:])
    tree = SectionTree(
        head["name"],
        sections,
        Lines(lambda: decoded(read(), head["name"])),
        head["front_matter"],
        head["dialect"],
        head["title"],
        tuple(head["doubtful_fences"]),
    )
    return ParsedDocument(known(head["name"]), tree, known_steps=lambda: tuple(sections.others["steps"]))


class _Sections(Sequence[Section]):
    """Sections that are restored one by one.

    :param first: the row of the first.
    :param parents: of each.
    :param packed: the other rows and the selectors, compressed.
    """

    def __init__(self, first: Sequence[Any], parents: Sequence[int], packed: bytes) -> None:
        self._first, self._packed = first, packed
        self._restored: dict[int, Section] = {}
        self._children: list[list[int]] = [[] for _ in parents]
        for number, parent in enumerate(parents[1:], 1):
            self._children[parent].append(number)

    @cached_property
    def others(self) -> dict[str, Any]:
        """The rows of the other sections, and the selectors of all."""
        others: dict[str, Any] = json.loads(zlib.decompress(self._packed))
        return others

    def __len__(self) -> int:
        return len(self._children)

    @overload
    def __getitem__(self, index: int) -> Section: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Section, ...]: ...

    def __getitem__(self, index: int | slice) -> Section | tuple[Section, ...]:
        numbers = range(len(self))[index]
        return self._at(numbers) if isinstance(numbers, int) else tuple(map(self._at, numbers))

    def _at(self, number: int) -> Section:
        if number not in self._restored:
            row = self.others["sections"][number - 1] if number else self._first
            level, heading, name, version, parent, spans, own_traits, whole_traits = row
            heading_lines, own, whole, own_bytes, whole_bytes = (Span(*pair) for pair in spans)
            self._restored[number] = Section(
                index=number,
                level=level,
                heading=heading,
                name=name,
                version=version,
                heading_lines=heading_lines,
                own=own,
                whole=whole,
                own_bytes=own_bytes,
                whole_bytes=whole_bytes,
                parent=parent,
                children=tuple(self._children[number]),
                own_traits=Traits(*own_traits),
                whole_traits=Traits(*whole_traits),
            )
        return self._restored[number]
