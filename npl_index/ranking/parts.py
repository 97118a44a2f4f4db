"""The postings of a set of documents: segments side by side, and statistics that hold for all of them.

The first segment is the base; later ones hold what was added since. A document that is gone stays in its
segment and is dead: none of its sections is found, and its counts are taken off the statistics, which are
whole numbers. So statistics, and with them every score, are those of a set that was made anew.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.segments import LEVEL, Lists, Segment, holds, ranges
from npl_index.ranking.strings import Strings
from npl_index.ranking.terms import Terms
from npl_index.ranking.variants import Variants, variant_finder

_FEW = 2_048
"""Sections of a set that are all looked at, whatever they hold."""


class Statistics(NamedTuple):
    """What holds for all living sections together; arrays have one number per row.

    :param sections: how many there are.
    :param pages: of how many pages.
    :param words: terms of all bodies.
    :param own: sections that hold each term in heading or body.
    :param any: sections that hold it anywhere.
    :param path: sections that hold it in their path.
    :param common: share of sections of ordinary prose that hold it.
    """

    sections: int
    pages: int
    words: int
    own: NDArray[Any]
    any: NDArray[Any]
    path: NDArray[Any]
    common: NDArray[Any]

    @classmethod
    def of(cls, segment: Segment) -> Statistics:
        """Return those of one segment."""
        words = int(segment.lengths.sum(dtype=np.int64))
        holders = np.diff(segment.starts)
        return cls(
            segment.size, segment.page_count, words, segment.own, holders, segment.path, segment.common
        )

    def plus(self, rows: NDArray[Any], more: Statistics, fresh: int) -> Statistics:
        """Return the sum with further ones.

        :param rows: of their terms here.
        :param fresh: how many of those are new.
        """
        own, holders, path = (
            np.concatenate((array, np.zeros(fresh, array.dtype))) for array in (self.own, self.any, self.path)
        )
        for total, counts in ((own, more.own), (holders, more.any), (path, more.path)):
            total[rows] += counts
        common = self.common
        if fresh:
            common = np.concatenate((common, np.zeros(fresh)))
            common[rows] = more.common
        sizes = self.sections + more.sections, self.pages + more.pages, self.words + more.words
        return Statistics(*sizes, own, holders, path, common)


@dataclass(frozen=True)
class Part:
    """A segment among others.

    :param first: number of its first section.
    :param alive: which of its sections are; ``None`` where all are.
    :param rows: row of each of its terms among all; ``None`` where they are the same.
    :param own_rows: the other way round.
    """

    segment: Segment
    first: int
    alive: NDArray[Any] | None = None
    rows: NDArray[Any] | None = None
    own_rows: Mapping[int, int] | None = None

    def own(self, rows: Sequence[int]) -> NDArray[Any]:
        """Return the segment's rows of rows among all, -1 where it has none."""
        if self.own_rows is not None:
            return np.array([self.own_rows.get(row, -1) for row in rows], dtype=np.int64)
        own = np.array(rows, dtype=np.int64)
        own[own >= len(self.segment.terms)] = -1
        return own

    def spans(self, rows: Sequence[int]) -> list[tuple[int, int]]:
        """Return where the postings of rows among all begin and end; those of rows it lacks are empty."""
        starts = self.segment.starts
        own = self.own(rows).tolist()
        return [(int(starts[row]), int(starts[row + 1])) if row >= 0 else (0, 0) for row in own]

    def among_all(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows among all of some of the segment's."""
        return rows if self.rows is None else self.rows[rows]

    def living(self, sections: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers among all of some of the segment's sections, without the dead ones."""
        numbers: NDArray[Any] = sections.astype("int64")
        return (numbers if self.alive is None else numbers[self.alive[numbers]]) + self.first


class Runs(NamedTuple):
    """Postings of some rows, one row after another; sections are numbered through all segments.

    :param runs: for each posting which of the rows asked for it belongs to.
    """

    runs: NDArray[Any]
    sections: NDArray[Any]
    in_heading: NDArray[Any]
    in_path: NDArray[Any]
    in_body: NDArray[Any]


@dataclass(frozen=True)
class Postings:
    """Which sections of a set hold which terms.

    Rows of the base's terms are those of the base; terms that only later segments have come behind them.

    :param added: rows of those.
    """

    parts: tuple[Part, ...]
    statistics: Statistics
    added: Mapping[str, int]

    @classmethod
    def of(cls, segment: Segment) -> Postings:
        """Return the postings of one segment."""
        return cls((Part(segment, 0),), Statistics.of(segment), {})

    @cached_property
    def size(self) -> int:
        """Number of sections, the dead ones included."""
        return self.parts[-1].first + self.parts[-1].segment.size

    @cached_property
    def alive(self) -> NDArray[Any] | None:
        """Which sections are; ``None`` where all are."""
        if all(part.alive is None for part in self.parts):
            return None
        return np.concatenate(
            [np.ones(p.segment.size, bool) if p.alive is None else p.alive for p in self.parts]
        )

    @cached_property
    def alone(self) -> Segment | None:
        """The segment that these are, where it is one, nothing in it is dead, and others have no terms."""
        base, *others = self.parts
        return None if others or self.added or base.alive is not None else base.segment

    @cached_property
    def terms(self) -> Terms:
        """The terms that living sections hold."""
        holders = self.statistics.any if self.alone is None else None
        return Terms(self.parts[0].segment.terms, self.added, holders)

    @cached_property
    def variants(self) -> Callable[[str], Variants]:
        """From a query's term to the rows that stand for it."""
        return variant_finder(self.terms)

    def find(self, rows: Sequence[int]) -> Runs:
        """Return the postings of some rows; a row may be asked for several times."""
        found = [_find(part, rows) for part in self.parts]
        if len(found) == 1:
            return found[0]
        return Runs(*map(np.concatenate, zip(*found, strict=True)))

    def holders(self, rows: Sequence[int], also: Sequence[int] = ()) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the sections that hold one of some rows (of few sections all), and their places.

        :param also: further sections that are among them.
        :returns: their numbers, ascending; for each section of the set its place, -1 where it has none.
        """
        if self.size <= _FEW:
            numbers = np.arange(self.size)
            return numbers, numbers
        marks = np.zeros(self.size, bool)
        for part in self.parts:
            segment, here = part.segment, marks[part.first : part.first + part.segment.size]
            for begin, end in part.spans(rows):
                here[segment.sections[begin:end]] = True
            if part.alive is not None:
                here &= part.alive
        marks[list(also)] = True
        numbers = marks.nonzero()[0]
        places = np.full(self.size, -1, np.int32)
        places[numbers] = np.arange(len(numbers), dtype=np.int32)
        return numbers, places

    @cached_property
    def lengths(self) -> NDArray[Any]:
        """Terms of each section's body."""
        if len(self.parts) == 1:
            return self.parts[0].segment.lengths
        return np.concatenate([part.segment.lengths for part in self.parts])

    def bodies(self, numbers: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of some sections' bodies, one after another, and how many each has.

        :param most: rows of each at most.
        """
        return self._lists("bodies", numbers, most)

    def headings(self, numbers: NDArray[Any], most: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the same of their headings."""
        return self._lists("headings", numbers, most)

    def named(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the different rows of their headings, in the order of the terms."""
        return self._lists("named", numbers)

    def _lists(
        self, name: str, numbers: NDArray[Any], most: int | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        if len(self.parts) == 1:
            lists: Lists = getattr(self.parts[0].segment, name)
            return lists.gather(numbers, most)
        lengths = np.zeros(len(numbers), dtype=np.int64)
        pieces = []
        for part in self.parts:
            inside = np.flatnonzero((numbers >= part.first) & (numbers < part.first + part.segment.size))
            if len(inside):
                values, lengths[inside] = getattr(part.segment, name).gather(
                    numbers[inside] - part.first, most
                )
                pieces.append((inside, part.among_all(values)))
        begins = lengths.cumsum() - lengths
        rows = np.zeros(int(lengths.sum()), dtype=np.int64)
        for inside, values in pieces:
            rows[ranges(begins[inside], lengths[inside])] = values
        return rows, lengths

    def listed(self, name: str, text: str) -> NDArray[Any]:
        """Return the living sections that a segment's table lists for a text."""
        found = []
        for part in self.parts:
            row = getattr(part.segment, name).row(text)
            if row is not None:
                found.append(part.living(getattr(part.segment, f"{name}_in").of(row)))
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.zeros(0, np.int64)

    def beginning(self, name: str, text: str) -> NDArray[Any]:
        """Return the living sections that a segment's table lists for texts that begin with one."""
        found = []
        for part in self.parts:
            texts: Strings = getattr(part.segment, name)
            lists: Lists = getattr(part.segment, f"{name}_in")
            begin, end = texts.first(text), texts.first(text + chr(sys.maxunicode))
            found.append(part.living(lists.values[lists.starts[begin] : lists.starts[end]]))
        return np.concatenate(found)

    def fold_of(self, number: int) -> str:
        """Return the name of a section, compared loosely."""
        part = self._part(number)
        (text,) = part.segment.folds.texts([int(part.segment.fold_row[number - part.first])])
        return text

    @cached_property
    def levels(self) -> NDArray[Any]:
        """Heading level of each section."""
        return np.concatenate([part.segment.levels for part in self.parts]) & LEVEL

    def level_of(self, number: int) -> int:
        """Return the heading level of a section."""
        part = self._part(number)
        return int(part.segment.levels[number - part.first]) & LEVEL

    def headings_in(self, first: int, size: int) -> int:
        """Return how many sections of a document have a heading, by the number of its first section."""
        part = self._part(first)
        begin = first - part.first
        return int(np.count_nonzero(part.segment.levels[begin : begin + size] & LEVEL))

    def holding(self, level: int | None, traits: Sequence[str]) -> NDArray[Any]:
        """Return the living sections of a level whose own text has some traits."""
        bits = holds(traits)
        mask, wanted = np.uint8(bits if level is None else bits | LEVEL), np.uint8(bits | (level or 0))
        found = (np.flatnonzero(part.segment.levels & mask == wanted) for part in self.parts)
        return np.concatenate([part.living(some) for part, some in zip(self.parts, found, strict=True)])

    def title(self, first: int) -> tuple[str, str]:
        """Return the names of a document and of its first section, by the number of the latter."""
        names = self._of_document("titles", first).tobytes().decode(errors="surrogatepass")
        name, _, title = names.partition("\0")
        return name, title

    def spelt_with(self, rows: Sequence[int]) -> set[str]:
        """Return the headings, spelt in terms, that hold one of some rows; dead ones may be among them."""
        found: set[str] = set()
        for part in self.parts:
            segment, own = part.segment, part.own(rows)
            headings, _ = segment.spelt_with.gather(own[own >= 0])
            found.update(segment.spelt.texts(sorted(set(headings.tolist()))))
        return found

    def size_of(self, number: int) -> int:
        """Return the bytes of a section's own text; 0 where it is nothing but the heading."""
        part = self._part(number)
        return int(part.segment.sizes[number - part.first])

    def record(self, first: int) -> bytes:
        """Return what the segment has of the sections of a document, by the number of its first section."""
        return self._of_document("records", first).tobytes()

    def tokens(self, first: int) -> array[int]:
        """Return what the segment has of the tokens of a document's sections, by the same number."""
        return array("I", self._of_document("tokens", first).tobytes())

    def _of_document(self, name: str, first: int) -> NDArray[Any]:
        part = self._part(first)
        # Of another type it would make all of them that type first.
        ordinal = part.segment.documents.searchsorted(np.uint32(first - part.first))
        lists: Lists = getattr(part.segment, name)
        return lists.of(int(ordinal))

    def _part(self, number: int) -> Part:
        return next(part for part in reversed(self.parts) if part.first <= number)


def _find(part: Part, rows: Sequence[int]) -> Runs:
    segment, spans = part.segment, part.spans(rows)
    # As slices, one behind the other, and not by number: what is asked for of a large set are long runs.
    columns = [
        np.concatenate([array[begin:end] for begin, end in spans] or [array[:0]])
        for array in (segment.sections, segment.in_heading, segment.in_path, segment.in_body)
    ]
    runs = np.arange(len(spans)).repeat([end - begin for begin, end in spans])
    if part.alive is not None:
        living = np.flatnonzero(part.alive[columns[0]])
        runs, columns = runs[living], [column[living] for column in columns]
    sections, *counts = columns
    return Runs(runs, sections.astype(np.int64) + part.first, *counts)


def with_segment(postings: Postings, segment: Segment) -> Postings:
    """Return postings with one more segment."""
    added = dict(postings.added)
    part = _part(segment, postings.size, postings, added)
    rows, fresh = part.among_all(np.arange(len(segment.terms))), len(added) - len(postings.added)
    statistics = postings.statistics.plus(rows, Statistics.of(segment), fresh)
    return Postings((*postings.parts, part), statistics, added)


def with_merged(
    postings: Postings, chosen: slice, segment: Segment | None, alive: NDArray[Any] | None
) -> Postings:
    """Return postings where one segment, or none, has the place of some, but not of the first of all.

    :param alive: which of its sections are; ``None`` where all are.
    """
    begin, parts = postings.parts[chosen.start].first, list(postings.parts[: chosen.start])
    if segment is not None:
        parts.append(replace(_part(segment, begin, postings, dict(postings.added)), alive=alive))
        begin += segment.size
    for part in postings.parts[chosen.stop :]:
        parts.append(replace(part, first=begin))
        begin += part.segment.size
    return replace(postings, parts=tuple(parts))


def _part(segment: Segment, first: int, postings: Postings, added: dict[str, int]) -> Part:
    """Make a segment a part behind others; terms that are new are added to ``added``."""
    rows = _rows(segment.terms.all(), postings, added)
    return Part(segment, first, None, rows, {row: own for own, row in enumerate(rows.tolist())})


def _rows(terms: Sequence[str], postings: Postings, added: dict[str, int]) -> NDArray[Any]:
    """Return the rows of terms among all; those that are new are added to ``added``."""
    base = postings.parts[0].segment.terms
    rows = np.array(base.rows(terms), dtype=np.int64)
    for place in np.flatnonzero(rows < 0).tolist():
        rows[place] = added.setdefault(terms[place], len(base) + len(added))
    return rows


def without(postings: Postings, firsts: NDArray[Any]) -> Postings:
    """Return postings without the documents whose first sections have these numbers."""
    if not len(firsts):
        return postings
    known = postings.statistics
    own, any_, path = known.own.copy(), known.any.copy(), known.path.copy()
    sections, pages, words = known.sections, known.pages, known.words
    parts = list(postings.parts)
    for number, part in enumerate(parts):
        segment = part.segment
        here = firsts[(firsts >= part.first) & (firsts < part.first + segment.size)] - part.first
        if not len(here):
            continue
        alive = np.ones(segment.size, bool) if part.alive is None else part.alive.copy()
        for document in segment.documents.searchsorted(here.astype(np.uint32)).tolist():
            begin, end = int(segment.documents[document]), int(segment.documents[document + 1])
            alive[begin:end] = False
            sections -= end - begin
            pages -= int(np.diff(segment.page_starts.searchsorted(np.array([begin, end], np.uint32)))[0])
            words -= int(segment.lengths[begin:end].sum(dtype=np.int64))
            for total, (rows, counts) in zip((own, any_, path), held_by(segment, document), strict=True):
                total[part.among_all(rows)] -= counts
        parts[number] = replace(part, alive=alive)
    statistics = Statistics(sections, pages, words, own, any_, path, known.common)
    return Postings(tuple(parts), statistics, postings.added)


def held_by(segment: Segment, document: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Return what a document adds to the statistics: rows, and how many of its sections hold each.

    :returns: in heading or body; anywhere; in the path.
    """
    numbers = np.arange(int(segment.documents[document]), int(segment.documents[document + 1]))
    words, lengths = segment.bodies.gather(numbers)
    names, name_lengths = segment.named.gather(numbers)
    size = len(segment.terms)
    own = np.concatenate((_cells(numbers, words, lengths, size), _cells(numbers, names, name_lengths, size)))
    path = _path_cells(segment, document, numbers, size)
    return [
        np.unique(np.unique(cells) % size, return_counts=True)
        for cells in (own, np.concatenate((own, path)), path)
    ]


def _cells(numbers: NDArray[Any], rows: NDArray[Any], lengths: NDArray[Any], size: int) -> NDArray[Any]:
    """Number pairs of a section and a row."""
    cells: NDArray[Any] = numbers.repeat(lengths) * size + rows
    return cells


def _path_cells(segment: Segment, document: int, numbers: NDArray[Any], size: int) -> NDArray[Any]:
    first = int(numbers[0])
    paths = [segment.files.of(document).astype(np.int64)]
    below: dict[int, NDArray[Any]] = {}
    for parent in (segment.parents[numbers[1:]].astype(np.int64) - first).tolist():
        if parent not in below:
            below[parent] = np.concatenate((paths[parent], segment.named.of(first + parent)))
        paths.append(below[parent])
    lengths = np.array(list(map(len, paths)))
    return _cells(numbers, np.concatenate(paths), lengths, size)
