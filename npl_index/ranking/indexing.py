"""A document with everything that searching needs, and collections of such documents."""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from npl_index.errors import DocumentTimeoutError
from npl_index.library.documents import Document
from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
from npl_index.ranking.analysis import terms
from npl_index.ranking.bm25f import WeightedPostings, weigh
from npl_index.ranking.postings import Counts, count
from npl_index.selectors.labels import heading_label
from npl_index.selectors.writing import steps_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FILE_WORDS = re.compile(r"[/\s]|--+")
_PIECE = 1 << 16
_SECTION_BYTES = 1_200
_POSTING_BYTES = 14
_TERM_BYTES = 120
_BLANK = re.compile(r"\s*\Z")


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
    def steps(self) -> tuple[str, ...]:
        """What follows the document's name in the selector of each section."""
        return steps_of(self.tree)

    @cached_property
    def headings(self) -> tuple[tuple[int, str], ...]:
        """Level and label of each section, as selectors compare them."""
        return tuple((section.level, heading_label(section.name)) for section in self.tree.sections)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest section's own text."""
        return max(section.own_bytes.stop - section.own_bytes.start for section in self.tree.sections)

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
    """Split a long text after line ends or spaces, so that the deadline is checked and memory stays small."""
    begin = 0
    while len(text) - begin > _PIECE:
        end = begin + _PIECE
        space = max(text.rfind("\n", begin, end), text.rfind(" ", begin, end))
        end = end if space < 0 else space + 1
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _heading_terms(section: Section) -> list[str]:
    """Terms of a heading; one of stop words only ("How to") keeps them."""
    return terms(section.name) or terms(section.name, keep_stop_words=True)


@dataclass(frozen=True)
class Collection:
    """Documents that are searched together; their sections are numbered through.

    :param offsets: number of each document's first section, and the number of all sections.
    :param postings: of all documents, with common statistics.
    :param parents: number of each section's parent; its own number where there is none.
    :param inherits: 1.0 for sections that have a parent, else 0.0.
    :param children: how many each section has.
    :param positions: where each section stands on its page: 0 for the first, towards 1 for the last.
    :param pages: number of each section's page. A page is a document, or within a document that has
        several headings of level 1 the part below one of them.
    :param page_starts: first section of each page.
    :param headings: sections by the terms of their heading, joined by spaces.
    :param headings_with: for each term the keys of ``headings`` that hold it.
    """

    documents: tuple[IndexedDocument, ...]
    offsets: tuple[int, ...]
    postings: WeightedPostings
    parents: NDArray[Any]
    inherits: NDArray[Any]
    children: NDArray[Any]
    positions: NDArray[Any]
    pages: NDArray[Any]
    page_starts: tuple[int, ...]
    headings: dict[str, list[int]]
    headings_with: dict[str, list[str]]

    @classmethod
    def build(cls, documents: Sequence[IndexedDocument]) -> Collection:
        """Join documents, at least one; their texts are not analysed again."""
        import numpy as np  # slow to import, see postings.count

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
        pages = np.searchsorted(page_starts, numbers, side="right") - 1
        lengths = np.diff([*page_starts, len(parents)])
        inherits = (np.array(parents) != numbers).astype(float)
        return cls(
            documents=tuple(documents),
            offsets=offsets,
            postings=weigh([indexed.counts for indexed in documents]),
            parents=np.array(parents),
            inherits=inherits,
            children=np.bincount(parents, inherits, len(parents)),
            positions=(numbers - np.array(page_starts)[pages]) / lengths[pages],
            pages=pages,
            page_starts=tuple(page_starts),
            headings=headings,
            headings_with=headings_with,
        )

    @cached_property
    def unique_headings(self) -> frozenset[tuple[int, str]]:
        """Levels and labels of the headings that no other section of any document is called like."""
        known = Counter(heading for indexed in self.documents for heading in indexed.headings)
        return frozenset(heading for heading, count in known.items() if count == 1)

    def place(self, number: int) -> tuple[int, int]:
        """Return the document and the section in it that has this number."""
        document = bisect_right(self.offsets, number) - 1
        return document, number - self.offsets[document]

    def locate(self, numbers: NDArray[Any]) -> tuple[list[int], list[int]]:
        """Return the documents and the sections in them that have these numbers."""
        places = [self.place(number) for number in numbers.tolist()]
        return [document for document, _ in places], [section for _, section in places]

    def has_text(self, document: int, section: int) -> bool:
        """Tell whether a section has text of its own below its heading."""
        tree = self.documents[document].tree
        one = tree.sections[section]
        begin, end = tree.line_starts[one.heading_lines.stop], tree.line_starts[one.own.stop]
        return not _BLANK.match(tree.source, begin, end)

    def __len__(self) -> int:
        """Number of sections."""
        return self.offsets[-1]

    @property
    def nbytes(self) -> int:
        """Bytes of memory it takes beside its documents; an estimate."""
        postings = self.postings
        texts = postings.headings.rows.nbytes + postings.bodies.rows.nbytes
        own = 64 * len(self) + _TERM_BYTES * len(postings.terms) + _POSTING_BYTES * len(postings.ids)
        return own + texts
