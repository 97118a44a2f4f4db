"""Indexed documents as text, for a cache that outlives the process.

A document's index is two JSON texts: its sections, and its terms with their counts (numbers as base64 of
little-endian arrays). Reading them back takes a fifth of the time that parsing and counting take. Nothing in
the texts is trusted: a cache file may be damaged, or written by somebody else.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, NamedTuple

from npl_index.library.documents import Document
from npl_index.markdown.newlines import with_line_feeds
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.markdown.state import find_lines
from npl_index.markdown.traits import Traits
from npl_index.ranking.indexing import IndexedDocument
from npl_index.ranking.postings import Counts

INDEX_FORMAT = "4"
"""Version of what :func:`dump` writes; a change of parsing or analysis changes it, too."""


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


def dump(indexed: IndexedDocument) -> tuple[str, str]:
    """Write an indexed document down as two JSON texts: its sections, and its terms."""
    counts = indexed.counts
    keywords = {
        "terms": " ".join(counts.terms),
        **{name: b64encode(array.tobytes()).decode("ascii") for name, array in counts.arrays().items()},
    }
    return dump_tree(indexed.tree), _json(keywords)


def dump_tree(tree: SectionTree) -> str:
    """Write sections down as JSON text."""
    index = {
        "name": tree.name,
        "front_matter": tree.front_matter,
        "dialect": tree.dialect,
        "title": tree.title,
        "doubtful_fences": tree.doubtful_fences,
        "sections": [_row(section) for section in tree.sections],
    }
    return _json(index)


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
        tree = _restore_tree(document, json.loads(index_json))
        counts = _restore_counts(json.loads(keywords_json), len(tree.sections))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
    return IndexedDocument(document, tree, counts)


def restore_tree(document: Document, index_json: str) -> SectionTree | None:
    """Read what :func:`dump_tree` wrote of this very document; ``None`` if anything in it cannot be right."""
    try:
        return _restore_tree(document, json.loads(index_json))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError


def _text(value: object) -> str:
    _check(isinstance(value, str))
    return str(value)


def _number(value: object, stop: int) -> int:
    _check(type(value) is int and 0 <= value < stop)
    return int(str(value))


def _restore_tree(document: Document, index: dict[str, Any]) -> SectionTree:
    source = with_line_feeds(document.data.decode("utf-8")).removeprefix("\ufeff")
    starts = find_lines(source)
    rows = [_Row(*row) for row in index["sections"]]
    _check(bool(rows) and rows[0].parent is None)
    children: list[list[int]] = [[] for _ in rows]
    for number, row in enumerate(rows[1:], 1):
        children[_number(row.parent, number)].append(number)
    restore_one = _section_reader(len(starts), len(document.data) + 1)
    sections = tuple(restore_one(number, row, children[number]) for number, row in enumerate(rows))
    title = None if index["title"] is None else _number(index["title"], len(rows))
    dialect = _text(index["dialect"])
    _check(index["name"] == document.name and dialect in ("commonmark", "npl"))
    front = _text(index["front_matter"])
    doubtful = tuple(_number(line, len(starts)) for line in index["doubtful_fences"])
    return SectionTree(document.name, sections, source, starts, front, dialect, title, doubtful)


def _section_reader(line_stop: int, byte_stop: int) -> Callable[[int, _Row, list[int]], Section]:
    def span(pair: list[int], limit: int) -> Span:
        start, stop = pair
        _check(type(start) is int and type(stop) is int and 0 <= start <= stop < limit)
        return Span(start, stop)

    def traits(values: list[int]) -> Traits:
        examples, tables, code, definitions, words = values
        _check(type(words) is int and words >= 0)
        return Traits(bool(examples), bool(tables), bool(code), bool(definitions), words)

    def read(number: int, row: _Row, children: list[int]) -> Section:
        return Section(
            index=number,
            level=_number(row.level, 7),
            heading=_text(row.heading),
            name=_text(row.name),
            version=None if row.version is None else _text(row.version),
            heading_lines=span(row.heading_lines, line_stop),
            own=span(row.own, line_stop),
            whole=span(row.whole, line_stop),
            own_bytes=span(row.own_bytes, byte_stop),
            whole_bytes=span(row.whole_bytes, byte_stop),
            parent=row.parent,
            children=tuple(children),
            own_traits=traits(row.own_traits),
            whole_traits=traits(row.whole_traits),
        )

    return read


def _restore_counts(keywords: dict[str, Any], sections: int) -> Counts:
    words = tuple(_text(keywords["terms"]).split(" ")) if keywords["terms"] else ()
    arrays = {name: b64decode(_text(keywords[name]), validate=True) for name in Counts.ARRAYS}
    return Counts.restore(words, sections, arrays)
