"""Parses documents again after small changes: pieces that did not change are not parsed again.

A document is cut before lines that look like headings of level 2. Where such a line follows a piece, blocks
that are open at the piece's end close, unless the piece holds an open fence, comment or the like. To find
out, the piece is parsed with such a line after it; pieces that do not close are joined to the next.
A fence that is not closed where it should be may decide how all others are read: such a document is parsed
whole. Trees are the same as those of :func:`~npl_index.markdown.sections.parse_sections`.
"""

from __future__ import annotations

import re
import threading
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

from cachetools import LRUCache

from npl_index.markdown.front_matter import find_front_matter
from npl_index.markdown.newlines import with_line_feeds
from npl_index.markdown.sections import (
    KnownLines,
    Section,
    SectionTree,
    Span,
    find_title,
    nest,
    parse_sections,
    title_in,
)
from npl_index.markdown.state import MAX_LINES, MAX_SECTIONS, check_count, find_lines
from npl_index.markdown.traits import Traits

_CUT = re.compile(rb"(?<=\n)##(?=[ \t])")
_PROBE = b"## ?\n"
_MAX_JOINED = 8
_COST = 12  # bytes of memory per byte of text, roughly
# A link's definition counts everywhere, and marks of NPL decide how all fences are read.
_WHOLE = (b"]:", b"npl-instructions:", "⌜".encode(), b"\0")
_FRONT = (b"---", BOM_UTF8 + b"---")
_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece that was parsed.

    :param size: about how many bytes of memory it takes.
    :param sections: with positions in the piece; ``None`` if it cannot be read without the next.
    """

    size: int
    sections: Sequence[Section] | None


class PieceReader:
    """Parses documents, and caches them and the pieces they were made of. Safe to use from several threads.

    :param maxsize: about how many bytes of memory the cached documents may take, and the cached pieces.
    """

    def __init__(self, maxsize: int) -> None:
        self._lock = threading.Lock()
        self._trees: LRUCache[tuple[bytes, str], SectionTree] = LRUCache(
            maxsize, lambda tree: _COST * len(tree.source)
        )
        self._kept: LRUCache[tuple[bytes, bool], _Piece] = LRUCache(maxsize, lambda piece: piece.size)

    def read(self, data: bytes, name: str, deadline: float | None = None) -> SectionTree:
        """Parse a Markdown file; see :func:`~npl_index.markdown.sections.parse_sections`.

        :raises DocumentError: as there.
        """
        with self._lock:
            kept = self._trees.get((data, name))
        if kept is None:
            kept = None if any(mark in data for mark in _WHOLE) else self._read(data, name, deadline)
            kept = kept or parse_sections(data, name, deadline=deadline)
            with self._lock:
                if _COST * len(kept.source) <= self._trees.maxsize:
                    self._trees[data, name] = kept
        return kept

    def _read(self, data: bytes, name: str, deadline: float | None) -> SectionTree | None:
        """Parse what changed; return ``None`` if the whole document has to be parsed."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        source = with_line_feeds(text).removeprefix("\ufeff")
        check_count(name, source.count("\n"), MAX_LINES, "lines")
        lines, front = find_front_matter(source)
        begin = _end_of_lines(data, lines)
        starts = [found.start() for found in _CUT.finditer(data, begin)]
        # Such a piece would itself be taken for front matter.
        if not starts or data.startswith(_FRONT, begin):
            return None
        pieces = self._pieces(data, name, [begin, *starts, len(data)], deadline)
        return None if pieces is None else _joined(source, name, pieces, lines, front)

    def _pieces(
        self, data: bytes, name: str, cuts: Sequence[int], deadline: float | None
    ) -> list[tuple[int, Sequence[Section]]] | None:
        """Return where each piece begins, and its sections with positions in it.

        :returns: ``None`` where the pieces cannot be read without the others.
        """
        result = []
        at, last = 0, len(cuts) - 1
        while at < last:
            for end in (*range(at + 1, min(at + _MAX_JOINED, last)), last):
                found = self._piece(data[cuts[at] : cuts[end]], name, end == last, deadline)
                if found is not None:
                    result.append((cuts[at], found))
                    at = end
                    break
            else:
                return None
        return result

    def _piece(
        self, piece: bytes, name: str, is_last: bool, deadline: float | None
    ) -> Sequence[Section] | None:
        """Return the sections of a piece; ``None`` if it cannot be read without the next."""
        key = (piece, is_last)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None:
            return kept.sections
        tree = parse_sections(piece if is_last else piece + _PROBE, name, deadline=deadline)
        found: Sequence[Section] | None = tree.sections
        if tree.doubtful_fences or tree.dialect != "commonmark":
            found = None
        elif not is_last:
            probe = tree.sections[-1]
            found = tree.sections[:-1] if probe.own_bytes.start == len(piece) and probe.level == 2 else None
        size = _COST * len(piece)
        if size <= self._kept.maxsize:
            with self._lock:
                self._kept[key] = _Piece(size, found)
        return found


def _joined(
    source: str, name: str, pieces: Sequence[tuple[int, Sequence[Section]]], lines: int, front: str
) -> SectionTree:
    """Make one tree of the sections of all pieces.

    :param lines: before the first piece.
    :param front: the front matter.
    """
    found: list[tuple[Section, int, int]] = []
    for begin, sections in pieces:
        # Only the first piece has text before its first heading.
        found += ((section, lines, begin) for section in (sections[1:] if found else sections))
        lines += sections[-1].own.stop
    check_count(name, len(found), MAX_SECTIONS, "sections")
    parents, children, lasts = nest([section.level for section, _, _ in found])
    whole = [_placed(found, *place) for place in zip(count(), lasts, parents, children, strict=False)]
    whole[0] = replace(whole[0], heading=title_in(front))
    return SectionTree(
        name, tuple(whole), KnownLines(source, find_lines(source)), front, "commonmark", find_title(whole)
    )


def _end_of_lines(data: bytes, count: int) -> int:
    """Return the byte behind the first lines."""
    return next((found.end() for found in islice(_LINE_END.finditer(data), max(count - 1, 0), count)), 0)


def _placed(
    found: Sequence[tuple[Section, int, int]], index: int, last: int, parent: int, children: list[int]
) -> Section:
    """Return a section at its place in the document.

    :param found: all sections with positions in their pieces, and lines and bytes before these.
    :param last: index of its last descendant, or its own.
    """
    section, lines, begin = found[index]
    end, end_lines, end_begin = found[last]
    heading, own, own_bytes = section.heading_lines, section.own, section.own_bytes
    inside = section.level > 1
    return Section(
        index,
        section.level,
        section.heading,
        section.name,
        section.version,
        Span(heading.start + lines, heading.stop + lines),
        Span(own.start + lines, own.stop + lines),
        Span(own.start + lines, end.own.stop + end_lines),
        Span(own_bytes.start + begin, own_bytes.stop + begin),
        Span(own_bytes.start + begin, end.own_bytes.stop + end_begin),
        parent if index else None,
        tuple(children),
        section.own_traits,
        section.whole_traits if inside else _traits([part for part, _, _ in found[index : last + 1]]),
    )


def _traits(sections: Sequence[Section]) -> Traits:
    own = [section.own_traits for section in sections]
    return Traits(
        any(traits.has_examples for traits in own),
        any(traits.has_tables for traits in own),
        any(traits.has_code for traits in own),
        any(traits.has_definitions for traits in own),
        sum(traits.word_count for traits in own),
    )
