"""Terms of sections in text order, as arrays, and the postings found in them.

The fields of a section are its heading, its path (the headings above it and the words of the file's name) and
its body. A question is answered from the sections of at most a few hundred documents. Scanning all their
terms takes less time than keeping a list of sections for each term.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from npl_index.cached import cached_property
from npl_index.markdown.sections import SectionTree
from npl_index.markdown.traits import FLAGS, LEVEL
from npl_index.ranking.arrays import NDArray, np

FIELDS = 3
_COLUMNS = FIELDS + 5
_BITS = 32
_LOW = (1 << _BITS) - 1
BEGINS_PAGE = (LEVEL + 1) << len(FLAGS)
"""Bit of a section's kind for the first section of a page. A page is a document, or in a document with
several headings of level 1 the part below one of them."""

_BLANK = re.compile(r"\s*\Z")


class Sections(NamedTuple):
    """The sections of one document as arrays.

    :param shape: one row per section, uint32: number of terms in heading, path and body; number of the
        parent, or its own number without a parent; bytes of its own text, 0 for a bare heading; its kind
        (:attr:`~npl_index.markdown.sections.Section.kind`) with :data:`BEGINS_PAGE`; the low bits
        of the digest of its text, 0 without one; number of terms at the end of the body that do not count
        for its length.
    :param rows: the terms of all fields in order, as rows of a vocabulary, uint32.
    """

    shape: NDArray[Any]
    rows: NDArray[Any]

    @property
    def size(self) -> int:
        """Number of sections."""
        return len(self.shape)

    @property
    def lengths(self) -> NDArray[Any]:
        """Number of terms in heading, path and body of each section, in one array."""
        return self.shape[:, :FIELDS].ravel()

    @property
    def parents(self) -> NDArray[Any]:
        """The parent of each section; a section without a parent has its own number."""
        return self.shape[:, FIELDS]

    @property
    def sizes(self) -> NDArray[Any]:
        """Bytes of each section's own text; 0 for a bare heading."""
        return self.shape[:, FIELDS + 1]

    @property
    def levels(self) -> NDArray[Any]:
        """Heading level of each section, with bits for the traits of its own text and for a new page."""
        return self.shape[:, FIELDS + 2]

    @property
    def page_count(self) -> int:
        """Number of pages."""
        return int(np.count_nonzero(self.levels & BEGINS_PAGE))

    @property
    def words(self) -> int:
        """Number of terms in all bodies that count for their lengths."""
        return int((self.shape[:, 2] - self.shape[:, -1]).sum(dtype=np.int64))

    def field(self, section: int, field: int) -> NDArray[Any]:
        """Return the rows of the terms of a section's heading (0), path (1) or body (2)."""
        before = self.shape[section, :FIELDS].tolist()
        begin = int(self.shape[:section, :FIELDS].sum(dtype=np.int64)) + sum(before[:field])
        return self.rows[begin : begin + before[field]]

    def packed(self) -> bytes:
        """Return the arrays as bytes, for :meth:`unpacked`."""
        return b"".join(numbers.astype("<u4").tobytes() for numbers in (np.array([self.size]), *self))

    @classmethod
    def unpacked(cls, data: bytes) -> Sections:
        """Return the arrays that :meth:`packed` wrote."""
        numbers = np.frombuffer(data, "<u4")
        end = 1 + int(numbers[0]) * _COLUMNS
        return cls(numbers[1:end].reshape(-1, _COLUMNS), numbers[end:])


class Counts(NamedTuple):
    """Numbers of sections with some terms; arrays have one number for each term.

    :param own: sections with the term in heading or body.
    :param any: sections with the term in any field.
    :param path: sections with the term in their path.
    :param pages: pages with such a section.
    """

    own: NDArray[Any]
    any: NDArray[Any]
    path: NDArray[Any]
    pages: NDArray[Any]


def sections_of(
    tree: SectionTree,
    fields: Sequence[Sequence[array[int]]],
    further: Sequence[int],
    copies: Sequence[int],
    row_of: NDArray[Any],
) -> Sections:
    """Return the sections of a document as arrays.

    :param fields: numbers of the terms of each section's heading, path and body.
    :param further: how many of each body do not count for its length.
    :param copies: digests of the texts.
    :param row_of: the row of each number.
    """
    several = sum(section.level == 1 for section in tree.sections) > 1
    sizes, levels = [], []
    for section in tree.sections:
        begin, end = tree.line_starts[section.heading_lines.stop], tree.line_starts[section.own.stop]
        blank = _BLANK.match(tree.source, begin, end)
        sizes.append(0 if blank else section.own_bytes.stop - section.own_bytes.start)
        begins = section.index == 0 or (several and section.level == 1)
        levels.append(section.kind | (BEGINS_PAGE if begins else 0))
    parents = [section.index if section.parent is None else section.parent for section in tree.sections]
    lengths = [list(map(len, section)) for section in fields]
    digests = [copy & _LOW for copy in copies]
    columns = [*zip(*lengths, strict=True), parents, sizes, levels, digests, further]
    numbers = np.frombuffer(b"".join(chain.from_iterable(fields)), np.uint32)
    return Sections(np.array(columns, np.uint32).T.copy(), row_of[numbers])


def counts_in(sections: Sections) -> tuple[NDArray[Any], Counts]:
    """Return the different rows of a document's terms, ascending, and the numbers of sections with each."""
    # A document may have millions of words; the different words of each field are few.
    places = np.arange(len(sections.lengths), dtype=np.uint32).repeat(sections.lengths)
    rows, fields = distinct_pairs(sections.rows.astype(np.int64), places)
    begins = begin_runs(rows)
    different, rows = rows[begins], begins.cumsum() - 1
    section, in_path = fields // FIELDS, fields % FIELDS == 1
    page = ((sections.levels & BEGINS_PAGE) > 0).cumsum()[section]

    def holders(rows: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
        first = begin_runs(rows << _BITS | places)
        return np.bincount(rows[first], minlength=len(different))

    own, path = holders(rows[~in_path], section[~in_path]), holders(rows[in_path], section[in_path])
    return different, Counts(own, holders(rows, section), path, holders(rows, page))


def summed(parts: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the different rows of several parts, ascending, and the sums of their counts.

    :param parts: rows, and a column of counts for each.
    """
    rows, places = np.unique(np.concatenate([rows for rows, _ in parts]), return_inverse=True)
    columns = np.concatenate([counts for _, counts in parts], axis=1)
    return rows, np.array([np.bincount(places, column, len(rows)) for column in columns]).astype(np.int64)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values, ascending."""
    values = np.sort(values)  # ``numpy.unique`` takes ten times as long
    return values[begin_runs(values)]


def distinct_pairs(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the different pairs of numbers below ``1 << 32``, ascending."""
    cells = distinct(first << _BITS | second)
    return cells >> _BITS, cells & _LOW


def begin_runs(values: NDArray[Any]) -> NDArray[Any]:
    """Return whether each value differs from the one before it."""
    begins = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins


def ranges(begins: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of some ranges in one array."""
    # Build one range of the total length, then move each part to its start.
    moves = begins - (lengths.cumsum() - lengths)
    return np.arange(int(lengths.sum())) + moves.repeat(lengths)


class PostingRuns(NamedTuple):
    """Postings of some rows; arrays have one number for each posting.

    :param runs: number of the requested row, ascending.
    :param sections: section with the term, ascending within a run.
    :param in_heading: occurrences in the section's heading.
    :param in_path: occurrences in its path.
    :param in_body: occurrences in its body.
    """

    runs: NDArray[Any]
    sections: NDArray[Any]
    in_heading: NDArray[Any]
    in_path: NDArray[Any]
    in_body: NDArray[Any]


class Positions(NamedTuple):
    """Positions of some rows in text order.

    :param numbers: number of the requested row at each position.
    :param fields: field of each position: three for each section, heading, path and body.
    :param places: the positions, ascending; neighbours in a field have consecutive ones.
    """

    numbers: NDArray[Any]
    fields: NDArray[Any]
    places: NDArray[Any]


class _Lookup(NamedTuple):
    """Postings and positions of some rows.

    :param rows: the rows, ascending.
    :param bounds: the start of each row's postings, and the end of the last ones.
    :param columns: as in :class:`PostingRuns`, without the first.
    """

    rows: NDArray[Any]
    bounds: NDArray[Any]
    columns: tuple[NDArray[Any], ...]
    positions: Positions


class Postings:
    """The sections of some documents side by side, numbered consecutively.

    :param documents: at least one.
    """

    def __init__(self, documents: Sequence[Sections]) -> None:
        shape, self.rows = (
            parts[0] if len(documents) == 1 else np.concatenate(parts)
            for parts in zip(*documents, strict=True)
        )
        self.counts = np.array([sections.size for sections in documents])
        self.firsts = self.counts.cumsum() - self.counts
        self.size = len(shape)
        *_, bodies, parents, self.sizes, self.kinds, self.copies, further = shape.T.astype(np.intp)
        self.lengths = bodies - further
        self.parents = parents + self.firsts.repeat(self.counts)
        self.levels = self.kinds & LEVEL
        self._begins = (self.kinds & BEGINS_PAGE) > 0
        self._lengths = shape[:, :FIELDS].ravel().astype(np.int64)
        self._ends = self._lengths.cumsum()
        nothing = np.zeros(0, np.intp)
        self._last_lookup = _Lookup(
            nothing, np.zeros(1, np.intp), (nothing,) * (FIELDS + 1), Positions(nothing, nothing, nothing)
        )

    @cached_property
    def stop(self) -> int:
        """Number above the highest row."""
        return int(self.rows.max(initial=0)) + 1

    @cached_property
    def pages(self) -> NDArray[Any]:
        """Number of each section's page."""
        return self._begins.cumsum() - 1

    @cached_property
    def first_texts(self) -> NDArray[Any]:
        """Number of each section; of a title without text, that of the first text on its page."""
        numbers = np.arange(self.size)
        with_text = np.where(self.sizes > 0, numbers, self.size - 1)
        following = np.minimum.accumulate(with_text[::-1])[::-1]
        is_title = (self.levels <= 1) & (self.pages[following] == self.pages)
        return np.where(is_title, following, numbers)

    @cached_property
    def introduces(self) -> NDArray[Any]:
        """1 for the sections before the subsections of a page, else 0."""
        has_subsections = np.maximum.reduceat(self.levels, self._begins.nonzero()[0]) > 1
        return 1.0 * ((self.levels <= 1) & has_subsections[self.pages])

    def find(self, rows: Sequence[int]) -> PostingRuns:
        """Return the postings of some rows, row by row; rows may be repeated."""
        asked = np.array(rows, np.intp)
        at, (_, bounds, columns, _) = self._looked_up(asked)
        lengths = bounds[at + 1] - bounds[at]
        places = ranges(bounds[at], lengths)
        return PostingRuns(np.arange(len(asked)).repeat(lengths), *(column[places] for column in columns))

    def positions(self, rows: Sequence[int]) -> Positions:
        """Return the positions of some different rows, in text order."""
        at, (kept, _, _, (numbers, fields, places)) = self._looked_up(np.array(rows, np.intp))
        number_of = np.full(len(kept), -1)
        number_of[at] = np.arange(len(at))
        asked = number_of[numbers]
        return Positions(*(column[asked >= 0] for column in (asked, fields, places)))

    def _looked_up(self, asked: NDArray[Any]) -> tuple[NDArray[Any], _Lookup]:
        """Return the last lookup, or a new one if rows are missing, and the position of each row in it.

        One question looks up the same rows several times.
        """
        lookup = self._last_lookup
        at = lookup.rows.searchsorted(asked)
        if not len(lookup.rows) or (lookup.rows.take(at, mode="clip") != asked).any():
            lookup = self._last_lookup = self._look_up(distinct(asked))
            at = lookup.rows.searchsorted(asked)
        return at, lookup

    def _look_up(self, wanted: NDArray[Any]) -> _Lookup:
        """Look up some rows.

        :param wanted: the rows, ascending.
        """
        marks = np.zeros(max(self.stop, int(wanted.max(initial=0)) + 1), np.int32)
        marks[wanted] = np.arange(1, len(wanted) + 1)
        places = (marks > 0).take(self.rows).nonzero()[0]  # one byte per word, of possibly millions
        numbers = marks[self.rows[places]].astype(np.int64) - 1
        owners = self._ends.searchsorted(places, side="right")
        cells = numbers * len(self._ends) + owners
        cells.sort()
        begins = begin_runs(cells).nonzero()[0]
        times = np.diff(begins, append=len(cells))
        postings, fields = np.divmod(cells[begins], FIELDS)
        first = begin_runs(postings)
        in_fields = np.zeros((FIELDS, int(first.sum())), np.intp)
        in_fields[fields, first.cumsum() - 1] = times
        runs, sections = np.divmod(postings[first], self.size)
        bounds = runs.searchsorted(np.arange(len(wanted) + 1))
        return _Lookup(wanted, bounds, (sections, *in_fields), Positions(numbers, owners, places))

    def terms(
        self, numbers: NDArray[Any], field: int, limit: int | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of the terms in one field of some sections, and how many each section has.

        :param field: heading (0), path (1) or body (2).
        :param limit: maximum rows of one section.
        """
        fields = FIELDS * numbers + field
        lengths = self._lengths[fields]
        begins = self._ends[fields] - lengths
        lengths = lengths if limit is None else np.minimum(lengths, limit)
        return self.rows[ranges(begins, lengths)], lengths

    def heading_terms(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the different rows of the terms in some headings, and the position of each heading."""
        rows, lengths = self.terms(numbers, 0)
        owners, rows = distinct_pairs(np.arange(len(numbers)).repeat(lengths), rows)
        return rows, owners
