"""A document with everything that searching needs, and collections of such documents."""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from npl_index.errors import DocumentTimeoutError
from npl_index.library.documents import Document
from npl_index.markdown.newlines import with_line_feeds
from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
from npl_index.markdown.state import find_lines
from npl_index.markdown.traits import Traits
from npl_index.ranking.analysis import terms
from npl_index.ranking.postings import Counts, Postings, count, merge
from npl_index.selectors.selection import selectors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

INDEX_FORMAT = "1"
"""Version of what :func:`dump` writes; a change of parsing or analysis changes it, too."""

_FILE_WORDS = re.compile(r"[/\s]|--+")
_PIECE = 1 << 16
_SECTION_BYTES = 1_200
_POSTING_BYTES = 14
_TERM_BYTES = 120


@dataclass(frozen=True)
class IndexedDocument:
    """One document, its sections and its terms.

    :param counts: terms per section; section numbers are those of the tree.
    """

    document: Document
    tree: SectionTree
    counts: Counts

    @cached_property
    def collection(self) -> Collection:
        """The document alone, ready to be searched."""
        return Collection.build([self])

    @cached_property
    def selectors(self) -> tuple[str, ...]:
        """The selector of each section, within the document."""
        return selectors_of(self.tree)

    @cached_property
    def qualified_selectors(self) -> tuple[str, ...]:
        """The selector of each section, with the document's path, for use among several documents."""
        return selectors_of(self.tree, self.document.path)

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes, its collection included; an estimate."""
        texts = len(self.document.data) + len(self.tree.source)
        return texts + _SECTION_BYTES * len(self.tree.sections) + 2 * self.counts.nbytes


def index_document(document: Document, *, deadline: float | None = None) -> IndexedDocument:
    """Parse a document and count its terms.

    :param deadline: value of ``time.monotonic()`` after which indexing gives up.
    :raises UnreadableDocumentError: not UTF-8 or binary.
    :raises DocumentTooLargeError: too many sections.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    tree = parse_sections(document.data, document.name, npl=document.npl, deadline=deadline)
    return IndexedDocument(document, tree, _count(document, tree, deadline))


def _count(document: Document, tree: SectionTree, deadline: float | None) -> Counts:
    file_words = terms(" ".join(_FILE_WORDS.split(document.path.removesuffix(".md"))))
    headings: list[list[str]] = []
    paths: list[list[str]] = []
    bodies: list[list[str]] = []
    for section in tree.sections:
        above = file_words if section.parent is None else paths[section.parent] + headings[section.parent]
        paths.append(above)
        headings.append(_heading_terms(section) if section.level else [])
        body: list[str] = []
        for piece in _pieces(tree.text(Span(section.heading_lines.stop, section.own.stop))):
            if deadline is not None and time.monotonic() > deadline:
                raise DocumentTimeoutError(f"indexing {document.name} took too long")
            body += terms(piece)
        bodies.append(body)
    return count(headings, paths, bodies)


def _pieces(text: str) -> Iterator[str]:
    """Part a long text after line ends or blanks, so that the clock is looked at and memory stays small."""
    begin = 0
    while len(text) - begin > _PIECE:
        end = begin + _PIECE
        blank = max(text.rfind("\n", begin, end), text.rfind(" ", begin, end))
        end = end if blank < 0 else blank + 1
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _heading_terms(section: Section) -> list[str]:
    """Terms of a heading; one of stop words only ("How to") keeps them."""
    return terms(section.name) or terms(section.name, keep_stop_words=True)


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents that are searched together; their sections are numbered through.

    :param offsets: number of each document's first section, and the number of all sections.
    :param postings: of all documents, with common statistics.
    :param parents: number of each section's parent; its own number where there is none.
    :param inherits: 1.0 for sections that have a parent, else 0.0.
    :param pages: number of each section's page. A page is a document, or within a document that has
        several headings of level 1 the part below one of them.
    :param page_starts: first section of each page.
    :param headings: sections by the terms of their heading, joined by blanks.
    :param headings_with: for each term the keys of ``headings`` that hold it.
    """

    documents: tuple[IndexedDocument, ...]
    offsets: tuple[int, ...]
    postings: Postings
    parents: NDArray[Any]
    inherits: NDArray[Any]
    pages: NDArray[Any]
    page_starts: tuple[int, ...]
    headings: dict[str, list[int]]
    headings_with: dict[str, list[str]]

    @classmethod
    def build(cls, documents: Sequence[IndexedDocument]) -> Collection:
        """Join documents, at least one; their texts are not analysed again."""
        import numpy as np  # see postings.count

        offsets = tuple(accumulate((len(indexed.tree.sections) for indexed in documents), initial=0))
        parents: list[int] = []
        page_starts: list[int] = []
        headings: dict[str, list[int]] = {}
        for offset, indexed in zip(offsets, documents, strict=False):
            sections = indexed.tree.sections
            several = sum(section.level == 1 for section in sections) > 1
            for section, heading in zip(sections, indexed.counts.spelt_headings(), strict=True):
                number = offset + section.index
                if section.index == 0 or (several and section.level == 1):
                    page_starts.append(number)
                parents.append(number if section.parent is None else offset + section.parent)
                if heading:
                    headings.setdefault(heading, []).append(number)
        headings_with: dict[str, list[str]] = {}
        for heading in headings:
            for term in set(heading.split(" ")):
                headings_with.setdefault(term, []).append(heading)
        numbers = np.arange(len(parents))
        return cls(
            documents=tuple(documents),
            offsets=offsets,
            postings=merge([indexed.counts for indexed in documents]),
            parents=np.array(parents),
            inherits=(np.array(parents) != numbers).astype(float),
            pages=np.searchsorted(page_starts, numbers, side="right") - 1,
            page_starts=tuple(page_starts),
            headings=headings,
            headings_with=headings_with,
        )

    def locate(self, numbers: NDArray[Any]) -> tuple[list[int], list[int]]:
        """Return the documents and the sections in them that have these numbers."""
        listed: list[int] = numbers.tolist()
        documents = [bisect_right(self.offsets, number) - 1 for number in listed]
        return documents, [
            number - self.offsets[document] for number, document in zip(listed, documents, strict=True)
        ]

    def __len__(self) -> int:
        """Number of sections."""
        return self.offsets[-1]

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes beside its documents; an estimate."""
        postings = self.postings
        return 64 * len(self) + _TERM_BYTES * len(postings.terms) + _POSTING_BYTES * len(postings.ids)


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
    tree, counts = indexed.tree, indexed.counts
    index = {
        "name": tree.name,
        "front_matter": tree.front_matter,
        "dialect": tree.dialect,
        "title": tree.title,
        "sections": [_row(section) for section in tree.sections],
    }
    keywords = {
        "terms": " ".join(counts.terms),
        "headings": counts.headings,
        "bodies": counts.bodies,
        **{name: b64encode(array.tobytes()).decode("ascii") for name, array in counts.arrays().items()},
    }
    return _json(index), _json(keywords)


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
    return SectionTree(document.name, sections, source, starts, _text(index["front_matter"]), dialect, title)


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
    headings, bodies = (tuple(map(_text, keywords[name])) for name in ("headings", "bodies"))
    arrays = {name: b64decode(_text(keywords[name]), validate=True) for name in Counts.ARRAYS}
    counts = Counts.restore(words, headings, bodies, arrays)
    _check(len(headings) == len(bodies) == sections and counts.is_sound())
    return counts
