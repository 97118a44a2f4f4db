"""Indexed documents as text, for a cache that outlives the process.

A document's index is two JSON texts: its sections, and its terms with their counts (numbers as base64 of
little-endian arrays). Reading them back takes a fifth of the time that parsing and counting take. Nothing in
the texts is trusted: a cache file may be damaged, or written by somebody else.

Of a document of a set its sections alone are kept, within a segment whose checksum is compared. An answer
needs few of them, so that each is read when it is asked for, and the file when its text is.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, overload

from npl_index.library.documents import Document
from npl_index.markdown.newlines import with_line_feeds
from npl_index.markdown.sections import KnownLines, Lines, Section, SectionTree, Span
from npl_index.markdown.state import find_lines
from npl_index.markdown.traits import Traits
from npl_index.ranking.indexing import IndexedDocument, ParsedDocument
from npl_index.ranking.postings import Counts

INDEX_FORMAT = "7"
"""Version of what this module writes; a change of parsing or analysis changes it, too."""


class _Row(NamedTuple):
    """A section as it is stored; positions are pairs, traits are numbers."""

    level: int
    heading: str
    name: str
    version: str | None
    heading_lines: list[int]
    own: list[int]
    whole: list[int]
    own_bytes: list[int]
    whole_bytes: list[int]
    parent: int | None
    own_traits: list[int]
    whole_traits: list[int]


_PARENT = _Row._fields.index("parent")
_LENGTH = 4  # bytes of the number that says how long a text is


def dump(indexed: IndexedDocument) -> tuple[str, str]:
    """Write an indexed document down as two JSON texts: its sections, and its terms."""
    counts = indexed.counts
    keywords = {
        "terms": " ".join(counts.terms),
        **{name: b64encode(array.tobytes()).decode("ascii") for name, array in counts.arrays().items()},
    }
    return _json(_dump_tree(indexed.tree)), _json(keywords)


def dump_sections(parsed: ParsedDocument) -> bytes:
    """Write a document's sections down, and what selectors call them.

    What says most about the document as a whole comes first, so that it can be read alone.
    """
    tree = _dump_tree(parsed.tree)
    first, *others = tree.pop("sections")
    head = {**tree, "first": first, "parents": [row.parent for row in (first, *others)]}
    start = _json(head).encode()
    rest = zlib.compress(_json({"sections": others, "steps": parsed.steps}).encode(), 1)
    return len(start).to_bytes(_LENGTH, "little") + start + rest


def check_sections(packed: bytes) -> bool:
    """Return whether a text that :func:`dump_sections` wrote is whole."""
    try:
        return bool(_Later(_parts(packed)[1]).known)
    except ValueError:
        return False


def _parts(packed: bytes) -> tuple[bytes, bytes]:
    end = _LENGTH + int.from_bytes(packed[:_LENGTH], "little")
    return packed[_LENGTH:end], packed[end:]


def _dump_tree(tree: SectionTree) -> dict[str, Any]:
    return {
        "name": tree.name,
        "front_matter": tree.front_matter,
        "dialect": tree.dialect,
        "title": tree.title,
        "doubtful_fences": tree.doubtful_fences,
        "sections": [_row(section) for section in tree.sections],
    }


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _row(section: Section) -> _Row:
    return _Row(
        section.level,
        section.heading,
        section.name,
        section.version,
        _pair(section.heading_lines),
        _pair(section.own),
        _pair(section.whole),
        _pair(section.own_bytes),
        _pair(section.whole_bytes),
        section.parent,
        _numbers(section.own_traits),
        _numbers(section.whole_traits),
    )


def _pair(span: Span) -> list[int]:
    return [span.start, span.stop]


def _numbers(traits: Traits) -> list[int]:
    flags = (traits.has_examples, traits.has_tables, traits.has_code, traits.has_definitions)
    return [*map(int, flags), traits.word_count]


def restore(document: Document, index_json: str, keywords_json: str) -> IndexedDocument | None:
    """Read what :func:`dump` wrote of this very document; ``None`` if anything in it cannot be right."""
    try:
        source = _source(document.data)
        lines = KnownLines(source, find_lines(source))
        index = json.loads(index_json)
        rows = index["sections"]
        sections = _Sections(rows, [row[_PARENT] for row in rows], len(lines.starts), len(document.data) + 1)
        tree = _restore_tree(document.name, index, lines, sections)
        tree = replace(tree, sections=tuple(tree.sections))
        counts = _restore_counts(json.loads(keywords_json), len(tree.sections))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None
    return IndexedDocument(document, tree, counts)


def restore_sections(
    packed: bytes, known: Callable[[str], Document], read: Callable[[], bytes]
) -> ParsedDocument | None:
    """Read what :func:`dump_sections` wrote; ``None`` if it cannot be that.

    :param known: returns the document, by its name; its bytes may be left out.
    :param read: returns them when the text is needed.
    """
    try:
        head, rest = _parts(packed)
        index, later = json.loads(head), _Later(rest)
        document = known(_text(index["name"]))
        rows = _Rows(index["first"], len(index["parents"]), later)
        sections = _Sections(rows, index["parents"], sys.maxsize, sys.maxsize)
        tree = _restore_tree(document.name, index, UnreadLines(read), sections)
        return ParsedDocument(document, tree, known_steps=lambda: tuple(later.known["steps"]))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        return None


class _Later:
    """What :func:`dump_sections` wrote of all sections but the first; it is read when it is needed."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    @cached_property
    def known(self) -> dict[str, Any]:
        """The rows of the sections, and what selectors call all of them."""
        try:
            found = json.loads(zlib.decompress(self._packed))
        except zlib.error as error:
            raise ValueError(str(error)) from None
        _check(isinstance(found, dict))
        return dict(found)


class _Rows(Sequence[Sequence[Any]]):
    """The rows of a document's sections, of which the first is there."""

    def __init__(self, first: Sequence[Any], size: int, later: _Later) -> None:
        self._first, self._size, self._later = first, size, later

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Sequence[Any]:  # type: ignore[override]
        row: Sequence[Any] = self._later.known["sections"][index - 1] if index else self._first
        return row


class UnreadLines:
    """A text that is read when it is needed; see :class:`npl_index.markdown.sections.Lines`.

    :param read: returns the bytes of the file.
    """

    def __init__(self, read: Callable[[], bytes]) -> None:
        self._read = read

    @cached_property
    def source(self) -> str:
        """The text."""
        return _source(self._read())

    @cached_property
    def starts(self) -> array[int]:
        """Where its lines start."""
        return find_lines(self.source)


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError


def _text(value: object) -> str:
    _check(isinstance(value, str))
    return str(value)


def _number(value: object, stop: int) -> int:
    _check(type(value) is int and 0 <= value < stop)
    return int(str(value))


def _source(data: bytes) -> str:
    return with_line_feeds(data.decode("utf-8")).removeprefix("\ufeff")


def _restore_tree(name: str, index: dict[str, Any], lines: Lines, sections: _Sections) -> SectionTree:
    """Read a tree."""
    _check(bool(sections))
    title = None if index["title"] is None else _number(index["title"], len(sections))
    dialect = _text(index["dialect"])
    _check(index["name"] == name and dialect in ("commonmark", "npl"))
    front = _text(index["front_matter"])
    doubtful = tuple(_number(line, sections.line_stop) for line in index["doubtful_fences"])
    return SectionTree(name, sections, lines, front, dialect, title, doubtful)


class _Sections(Sequence[Section]):
    """Sections that are read when they are asked for.

    :param rows: what :func:`_row` makes of each.
    :param parents: of each.
    :param line_stop: what positions of lines are below, and ``byte_stop`` what those of bytes are below.
    """

    def __init__(
        self, rows: Sequence[Sequence[Any]], parents: Sequence[Any], line_stop: int, byte_stop: int
    ) -> None:
        self._rows, self.line_stop, self._bytes = rows, line_stop, byte_stop
        self._read: dict[int, Section] = {}
        self._children: list[list[int]] = [[] for _ in parents]
        for number, parent in enumerate(parents):
            if number:
                self._children[_number(parent, number)].append(number)
            else:
                _check(parent is None)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Section: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Section, ...]: ...

    def __getitem__(self, index: int | slice) -> Section | tuple[Section, ...]:
        if isinstance(index, slice):
            return tuple(map(self._at, range(len(self._rows))[index]))
        return self._at(range(len(self._rows))[index])

    def _at(self, number: int) -> Section:
        section = self._read.get(number)
        if section is None:
            section = self._read[number] = self._section(number, _Row(*self._rows[number]))
        return section

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def _section(self, number: int, row: _Row) -> Section:
        lines, bytes_ = self.line_stop, self._bytes
        return Section(
            index=number,
            level=_number(row.level, 7),
            heading=_text(row.heading),
            name=_text(row.name),
            version=None if row.version is None else _text(row.version),
            heading_lines=_span(row.heading_lines, lines),
            own=_span(row.own, lines),
            whole=_span(row.whole, lines),
            own_bytes=_span(row.own_bytes, bytes_),
            whole_bytes=_span(row.whole_bytes, bytes_),
            parent=row.parent,
            children=tuple(self._children[number]),
            own_traits=_traits(row.own_traits),
            whole_traits=_traits(row.whole_traits),
        )


def _span(pair: Sequence[int], limit: int) -> Span:
    start, stop = pair
    _check(type(start) is int and type(stop) is int and 0 <= start <= stop < limit)
    return Span(start, stop)


def _traits(values: Sequence[int]) -> Traits:
    examples, tables, code, definitions, words = values
    _check(type(words) is int and words >= 0)
    return Traits(bool(examples), bool(tables), bool(code), bool(definitions), words)


def _restore_counts(keywords: dict[str, Any], sections: int) -> Counts:
    words = tuple(_text(keywords["terms"]).split(" ")) if keywords["terms"] else ()
    arrays = {name: b64decode(_text(keywords[name]), validate=True) for name in Counts.ARRAYS}
    return Counts.restore(words, sections, arrays)
