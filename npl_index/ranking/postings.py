"""Which section holds which term, how often, in which field: the terms of sections in their order, as arrays.

The fields of a section are its heading, its path (the headings above it and the words of the file's name) and
its body. A question is answered from the sections of at most a few hundred documents, so that all terms of
these are looked through: that takes less time than to keep lists of the sections that hold each term.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

from npl_index.cached import cached_property
from npl_index.markdown.sections import SectionTree
from npl_index.ranking.arrays import NDArray, np
from npl_index.selectors.names import LEVEL, held

FIELDS = 3
_COLUMNS = FIELDS + 3
BEGINS_PAGE = 128
"""Bit of :attr:`Sections.levels` of a section that begins a page. A page is a document, or within a document
that has several headings of level 1 the part below one of them."""

_MOST_WORDS = 1 << 17
"""Words of sections whose postings are all found at once; that takes some 10 ms, and 40 bytes a posting."""

_BLANK = re.compile(r"\s*\Z")


class Sections(NamedTuple):
    """The sections of one document as arrays.

    :param shape: one row a section, uint32: terms of heading, path and body; number of its parent, or its own
        number without a parent; bytes of its own text, 0 for a heading alone; heading level with the traits
        of its own text (:func:`npl_index.selectors.names.held`) and :data:`BEGINS_PAGE`.
    :param rows: the terms of all fields, one field after another, as rows of a vocabulary, uint32.
    """

    shape: NDArray[Any]
    rows: NDArray[Any]

    @property
    def size(self) -> int:
        """Number of sections."""
        return len(self.shape)

    @property
    def lengths(self) -> NDArray[Any]:
        """Terms of heading, path and body of each section, one after another."""
        return self.shape[:, :FIELDS].ravel()

    @property
    def parents(self) -> NDArray[Any]:
        """The parent of each section; a section without a parent has its own number."""
        return self.shape[:, FIELDS]

    @property
    def sizes(self) -> NDArray[Any]:
        """Bytes of each section's own text; 0 where it is nothing but the heading."""
        return self.shape[:, FIELDS + 1]

    @property
    def levels(self) -> NDArray[Any]:
        """Heading level of each section, what its own text holds, and whether it begins a page."""
        return self.shape[:, FIELDS + 2]

    @property
    def page_count(self) -> int:
        """Number of pages."""
        return int(np.count_nonzero(self.levels & BEGINS_PAGE))

    @property
    def words(self) -> int:
        """Terms of all bodies."""
        return int(self.shape[:, 2].sum(dtype=np.int64))

    @property
    def headings(self) -> int:
        """How many sections have a heading."""
        return int(np.count_nonzero(self.levels & LEVEL))

    def field(self, section: int, field: int) -> NDArray[Any]:
        """Return the rows of the terms of a section's heading (0), path (1) or body (2)."""
        before = self.shape[section, :FIELDS].tolist()
        begin = int(self.shape[:section, :FIELDS].sum(dtype=np.int64)) + sum(before[:field])
        return self.rows[begin : begin + before[field]]

    def packed(self) -> bytes:
        """Return the arrays as bytes, for :meth:`unpacked`."""
        size = self.size.to_bytes(4, "little")
        return b"".join([size, *(one.astype("<u4").tobytes() for one in self)])

    @classmethod
    def unpacked(cls, data: bytes) -> Sections:
        """Return the arrays that :meth:`packed` wrote."""
        numbers = np.frombuffer(data, "<u4", offset=4)
        end = int.from_bytes(data[:4], "little") * _COLUMNS
        return cls(numbers[:end].reshape(-1, _COLUMNS), numbers[end:])


class Counts(NamedTuple):
    """How many sections of a vocabulary's documents hold terms; one number a term.

    :param own: in heading or body.
    :param any: anywhere.
    :param path: in their path.
    :param pages: pages that have one of those.
    """

    own: NDArray[Any]
    any: NDArray[Any]
    path: NDArray[Any]
    pages: NDArray[Any]


def sections_of(tree: SectionTree, fields: Sequence[Sequence[Sequence[int]]]) -> Sections:
    """Return the sections of a document as arrays.

    :param fields: rows of the terms of each section's heading, path and body.
    """
    several = sum(section.level == 1 for section in tree.sections) > 1
    sizes, levels = [], []
    for section in tree.sections:
        begin, end = tree.line_starts[section.heading_lines.stop], tree.line_starts[section.own.stop]
        blank = _BLANK.match(tree.source, begin, end)
        sizes.append(0 if blank else section.own_bytes.stop - section.own_bytes.start)
        begins = section.index == 0 or (several and section.level == 1)
        levels.append(section.level | held(section) | (BEGINS_PAGE if begins else 0))
    parents = [section.index if section.parent is None else section.parent for section in tree.sections]
    lengths = [list(map(len, one)) for one in fields]
    every = chain.from_iterable(fields)
    columns = [*zip(*lengths, strict=True), parents, sizes, levels]
    return Sections(
        np.array(columns, np.uint32).T.copy(),
        np.fromiter(chain.from_iterable(every), np.uint32, sum(map(sum, lengths))),
    )


def counts_in(sections: Sections) -> tuple[NDArray[Any], Counts]:
    """Return the different rows of a document's terms, ascending, and how many of its sections hold each."""
    # A document may have millions of words: each field's different ones are kept, and the rest is small.
    cells = sections.rows.astype(np.int64)
    cells <<= 32
    cells |= np.arange(len(sections.lengths), dtype=np.uint32).repeat(sections.lengths)
    cells = np.unique(cells)
    fields = cells & 0xFFFFFFFF
    found, rows = np.unique(cells >> 32, return_inverse=True)
    section, in_path = fields // FIELDS, fields % FIELDS == 1
    page = ((sections.levels & BEGINS_PAGE) > 0).cumsum()[section]

    def holders(rows: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
        first = begin_runs(rows << 32 | places)
        return np.bincount(rows[first], minlength=len(found))

    every = (rows[~in_path], section[~in_path]), (rows, section), (rows[in_path], section[in_path])
    return found, Counts(*[holders(*one) for one in (*every, (rows, page))])


def begin_runs(values: NDArray[Any]) -> NDArray[Any]:
    """Return whether each value differs from the one before it."""
    begins = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return begins


def ranges(begins: NDArray[Any], lengths: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers of some ranges, one after another."""
    # All ranges as one: number them through, then move each to where it begins.
    moves = begins - (lengths.cumsum() - lengths)
    numbers: NDArray[Any] = np.arange(int(lengths.sum())) + moves.repeat(lengths)
    return numbers


class Runs(NamedTuple):
    """Postings of some rows; arrays have one number for each posting.

    :param runs: which of the rows asked for it belongs to, ascending.
    :param sections: that hold the term, ascending within a run.
    :param in_heading: occurrences in the section's heading.
    :param in_path: occurrences in its path.
    :param in_body: occurrences in its body.
    """

    runs: NDArray[Any]
    sections: NDArray[Any]
    in_heading: NDArray[Any]
    in_path: NDArray[Any]
    in_body: NDArray[Any]


class Table(NamedTuple):
    """The postings of some rows, one row after another.

    :param rows: ascending.
    :param bounds: where the postings of each begin, and the end of the last ones.
    :param columns: section, and occurrences in heading, path and body, as in :class:`Runs`.
    """

    rows: NDArray[Any]
    bounds: NDArray[Any]
    columns: tuple[NDArray[Any], ...]

    def has(self, rows: NDArray[Any]) -> bool:
        """Return whether it has all of some rows."""
        at = self.rows.searchsorted(rows)
        return bool(len(self.rows)) and bool((self.rows[np.minimum(at, len(self.rows) - 1)] == rows).all())

    def places(self, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the postings of some rows, and which of these each belongs to."""
        at = self.rows.searchsorted(rows)
        begins = self.bounds[at]
        lengths = self.bounds[at + 1] - begins
        return np.arange(len(rows)).repeat(lengths), ranges(begins, lengths)


class Postings:
    """The sections of some documents side by side, numbered through.

    :param documents: at least one.
    :param lasting: they serve many questions.
    """

    _table: Table | None

    def __init__(self, documents: Sequence[Sections], *, lasting: bool = False) -> None:
        shape, self.rows = (
            one[0] if len(documents) == 1 else np.concatenate(one) for one in zip(*documents, strict=True)
        )
        self.counts = np.array([one.size for one in documents])
        self.firsts = self.counts.cumsum() - self.counts
        self.size = len(shape)
        *_, self.lengths, parents, self.sizes, levels = shape.T.astype(np.intp)
        self.parents = parents + self.firsts.repeat(self.counts)
        self.levels = levels & LEVEL
        self._begins = (levels & BEGINS_PAGE) > 0
        self._lengths = shape[:, :FIELDS].ravel().astype(np.int64)
        self._ends = self._lengths.cumsum()
        self._lasting, self._table = lasting, None

    @cached_property
    def stop(self) -> int:
        """Number above the highest row."""
        return int(self.rows.max(initial=0)) + 1

    @cached_property
    def pages(self) -> NDArray[Any]:
        """Number of each section's page."""
        pages: NDArray[Any] = self._begins.cumsum() - 1
        return pages

    @cached_property
    def positions(self) -> NDArray[Any]:
        """Where each section stands on its page: 0 for the first, towards 1 for the last."""
        starts = self._begins.nonzero()[0]
        sizes = np.diff(starts, append=self.size)
        positions: NDArray[Any] = (np.arange(self.size) - starts[self.pages]) / sizes[self.pages]
        return positions

    @cached_property
    def children(self) -> NDArray[Any]:
        """How many each section has."""
        inside = np.flatnonzero(self.parents != np.arange(self.size))
        children: NDArray[Any] = np.bincount(self.parents[inside], minlength=self.size)
        return children

    def table(self, rows: NDArray[Any]) -> Table:
        """Return a table that has some rows: of all rows where it serves many questions, else of these."""
        kept = self._table
        if kept is None or not kept.has(rows):
            every = self._lasting and len(self.rows) <= _MOST_WORDS
            kept = self._table = self._found(np.arange(self.stop) if every else np.unique(rows))
        return kept

    def find(self, rows: Sequence[int]) -> Runs:
        """Return the postings of some rows, one row after another; a row may be asked for several times."""
        asked = np.array(rows, np.intp)
        table = self.table(asked)
        runs, places = table.places(asked)
        return Runs(runs, *(column[places] for column in table.columns))

    def _found(self, wanted: NDArray[Any]) -> Table:
        marks = np.zeros(max(self.stop, int(wanted.max(initial=0)) + 1), np.int32)
        marks[wanted] = np.arange(1, len(wanted) + 1)
        places = (marks > 0).take(self.rows).nonzero()[0]  # a byte a word, of what may be millions
        found = marks[self.rows[places]]
        owners = self._ends.searchsorted(places, side="right")
        cells = (found.astype(np.int64) - 1) * len(self._ends) + owners
        cells.sort()
        begins = begin_runs(cells).nonzero()[0]
        times = np.diff(begins, append=len(cells))
        postings, fields = np.divmod(cells[begins], FIELDS)
        first = begin_runs(postings)
        in_fields = np.zeros((FIELDS, int(first.sum())), np.intp)
        in_fields[fields, first.cumsum() - 1] = times
        runs, sections = np.divmod(postings[first], self.size)
        return Table(wanted, runs.searchsorted(np.arange(len(wanted) + 1)), (sections, *in_fields))

    def bodies(self, numbers: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of some sections' bodies, one after another, and how many each has.

        :param most: rows of each at most.
        """
        return self._field(FIELDS * numbers + 2, most)

    def headings(self, numbers: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the same of their headings."""
        return self._field(FIELDS * numbers, most)

    def named(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the different rows of their headings, ascending for each, and which of them has each."""
        rows, lengths = self._field(FIELDS * numbers)
        cells = np.unique(np.arange(len(numbers)).repeat(lengths) << 32 | rows)
        return cells & 0xFFFFFFFF, cells >> 32

    def _field(self, fields: NDArray[Any], most: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        lengths = self._lengths[fields]
        begins = self._ends[fields] - lengths
        lengths = lengths if most is None else np.minimum(lengths, most)
        return self.rows[ranges(begins, lengths)], lengths
