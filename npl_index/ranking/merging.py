"""Several segments become one, without the documents that are dead in them.

Documents stay in the order of the segments, so that nothing has to be sorted: the postings of a term are
those of the first segment, then those of the next. What reads the result brings equal scores into the order
of the documents' names (:meth:`npl_index.ranking.indexing.Collection.in_order`).

The result is written array by array, each of them block by block. So what is in memory is a few numbers for
each section and each text, whatever the segments have: they may lie in mapped files, and so may the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.columns import Append, Arrays, Columns
from npl_index.ranking.segments import Lists, Segment, ends
from npl_index.ranking.strings import Strings, pack

_TOGETHER = 1 << 17
"""Numbers that are looked at together, so that a few megabytes hold what is made of them."""

_STRINGS = 1 << 14
"""Texts that are compared together: as objects they take a hundred bytes each."""

_BY_SECTION = ("lengths", "levels", "sizes")
"""Fields of a segment that have one number for each section and stay as they are."""


class Table(NamedTuple):
    """Sections, and more about each, listed for texts.

    :param starts: where the list of each text begins, and where the last one ends.
    :param columns: of all lists, one after another; the first one has the sections.
    """

    texts: Strings
    starts: NDArray[Any]
    columns: tuple[NDArray[Any], ...]


class Survivor(NamedTuple):
    """What is left of a segment.

    :param numbers: new number of each section, -1 for a dead one.
    :param sections: those that are alive.
    :param documents: the documents that are.
    """

    segment: Segment
    numbers: NDArray[Any]
    sections: NDArray[Any]
    documents: NDArray[Any]

    @property
    def whole(self) -> bool:
        """Whether nothing of it is dead."""
        return len(self.sections) == self.segment.size


def survivors(parts: Sequence[tuple[Segment, NDArray[Any] | None]]) -> list[Survivor]:
    """Number the living sections of some segments through.

    :param parts: segments, and which of their sections are alive; ``None`` where all are.
    """
    found, size = [], 0
    for segment, alive in parts:
        living = np.ones(segment.size, bool) if alive is None else alive
        numbers = np.cumsum(living, dtype=np.int32)
        numbers += size - 1
        numbers[~living] = -1
        sections = np.flatnonzero(living).astype(np.uint32)
        documents = np.flatnonzero(living[segment.documents[:-1]])
        found.append(Survivor(segment, numbers, sections, documents))
        size += len(sections)
    return found


def dead_since(living: Sequence[Survivor], alive: Sequence[NDArray[Any] | None]) -> NDArray[Any]:
    """Return the new numbers of the sections that have died since some segments' sections were numbered.

    :param alive: which sections of each segment are now; ``None`` where all are.
    """
    dead = [
        np.zeros(0, np.int32) if now is None else one.numbers[one.sections[~now[one.sections]]]
        for one, now in zip(living, alive, strict=True)
    ]
    return np.concatenate(dead)


def merge(living: Sequence[Survivor]) -> Segment:
    """Return the living documents of some segments as one in memory; there must be one at least."""
    arrays = Arrays()
    write_merged(living, arrays)
    return arrays.segment()


def joined(living: Sequence[Survivor]) -> Segment | None:
    """Return the same; ``None`` where no document is left."""
    return merge(living) if any(len(one.sections) for one in living) else None


def write_merged(living: Sequence[Survivor], target: Columns) -> None:
    """Write the living documents of some segments as one; there must be one at least."""
    rows, terms = _write_terms(living, target)
    _write_sections(living, target)
    for name in ("bodies", "headings", "named"):
        _write_lists(name, living, [one.sections for one in living], rows, target)
    _write_lists("files", living, [one.documents for one in living], rows, target)
    for name in ("titles", "records", "tokens"):
        _write_lists(name, living, [one.documents for one in living], None, target)
    spelt = _write_listed("spelt", living, target)
    _write_headings_by_term(spelt, living, rows, terms, target)
    for name in ("labels", "folds", "written"):
        _write_listed(name, living, target)


def _write_terms(living: Sequence[Survivor], target: Columns) -> tuple[list[NDArray[Any]], int]:
    """Write terms and postings; return the new row of each segment's terms, and how many there are."""
    names = ("sections", "in_heading", "in_path", "in_body")
    tables = [
        Table(one.segment.terms, one.segment.starts, tuple(getattr(one.segment, name) for name in names))
        for one in living
    ]
    merging = _Merging("terms", tables, living, target)
    common = np.zeros(len(merging.starts) - 1)
    for one, own, count in zip(living, merging.rows, merging.counts, strict=True):
        common[own[count > 0]] = one.segment.common[count > 0]
    target.column("common", common.dtype)(common)
    target.column("starts", merging.starts.dtype)(merging.starts)
    columns = [
        target.column(name, column.dtype, merging.size)
        for name, column in zip(names, tables[0].columns, strict=True)
    ]
    holders: dict[str, list[NDArray[Any]]] = {"own": [], "path": []}
    for starts, (_, in_heading, in_path, in_body) in merging.written(columns):
        for name, held in (("own", (in_heading > 0) | (in_body > 0)), ("path", in_path > 0)):
            holders[name].append(np.add.reduceat(held, starts, dtype=np.int32))
    for name, pieces in holders.items():
        target.column(name, "int32")(np.concatenate([np.zeros(0, np.int32), *pieces]))
    return merging.rows, len(common)


def _write_sections(living: Sequence[Survivor], target: Columns) -> None:
    """Write what there is one number of for each section, page or document."""
    for name in _BY_SECTION:
        append = target.column(name, getattr(living[0].segment, name).dtype)
        for one in living:
            append(getattr(one.segment, name)[one.sections])
    append = target.column("parents", "uint32")
    for one in living:
        append(one.numbers[one.segment.parents[one.sections]].astype(np.uint32))
    for name in ("page_starts", "documents"):
        lengths = np.concatenate([_lengths(one, name) for one in living])
        target.column(name, "uint32")(ends(lengths).astype(np.uint32))


def _lengths(one: Survivor, name: str) -> NDArray[Any]:
    """Return how many sections each living page or document has."""
    starts: NDArray[Any] = getattr(one.segment, name)
    lengths: NDArray[Any] = np.diff(starts.astype(np.int64))[one.numbers[starts[:-1]] >= 0]
    return lengths


def _write_lists(
    name: str,
    living: Sequence[Survivor],
    chosen: Sequence[NDArray[Any]],
    rows: Sequence[NDArray[Any]] | None,
    target: Columns,
) -> None:
    """Write some lists of each segment, one after another.

    :param chosen: which lists of each segment.
    :param rows: what stands for each value; ``None`` where values stay.
    """
    every: list[Lists] = [getattr(one.segment, name) for one in living]
    lengths = [np.diff(lists.starts)[some] for lists, some in zip(every, chosen, strict=True)]
    starts = ends(np.concatenate(lengths))
    target.column(f"{name}.starts", starts.dtype)(starts)
    append = target.column(f"{name}.values", every[0].values.dtype, int(starts[-1]))
    for number, (lists, some, sizes) in enumerate(zip(every, chosen, lengths, strict=True)):
        for begin, end in _blocks(sizes.cumsum()):
            values = _gathered(lists, some[begin:end])
            append(values if rows is None else rows[number][values].astype(values.dtype))


def _gathered(lists: Lists, numbers: NDArray[Any]) -> NDArray[Any]:
    """Return some lists, ascending, one after another."""
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first + 1 == len(numbers):
        return lists.values[lists.starts[first] : lists.starts[last + 1]]
    return lists.gather(numbers)[0]


def _blocks(stops: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Divide lists into blocks of some numbers; a longer list is one of its own.

    :param stops: how many numbers all lists up to each have.
    """
    begin, before = 0, 0
    while begin < len(stops):
        end = max(begin + 1, int(stops.searchsorted(before + _TOGETHER, side="right")))
        yield begin, end
        begin, before = end, int(stops[end - 1])


def _write_listed(name: str, living: Sequence[Survivor], target: Columns) -> NDArray[Any]:
    """Write texts and their sections; return the first section of each text."""
    lists: list[Lists] = [getattr(one.segment, f"{name}_in") for one in living]
    texts = (getattr(one.segment, name) for one in living)
    tables = [Table(own, found.starts, (found.values,)) for own, found in zip(texts, lists, strict=True)]
    merging = _Merging(name, tables, living, target)
    target.column(f"{name}_in.starts", "int64")(merging.starts)
    append = target.column(f"{name}_in.values", lists[0].values.dtype, merging.size)
    firsts = [found[0][starts] for starts, found in merging.written([append])]
    return np.concatenate([np.zeros(0, np.uint32), *firsts])


class _Merging:
    """Tables that become one; its texts are written when it is made.

    :param name: of the strings.

    ``counts`` has for each table how many entries of each text are alive, ``rows`` the new row of each text,
    and of one of which nothing is left that of the text before; ``starts`` is that of the result.
    """

    def __init__(
        self, name: str, tables: Sequence[Table], living: Sequence[Survivor], target: Columns
    ) -> None:
        self._tables, self._living = tables, living
        self.counts = [_counts(table, one) for table, one in zip(tables, living, strict=True)]
        self.rows = [np.empty(len(count), np.int32) for count in self.counts]
        lengths, prefixes, totals = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        append, size = target.column(f"{name}.bytes", "uint8"), 0
        for ranges in _ranges([table.texts for table in tables]):
            texts, total = self._take(ranges, size)
            if texts:
                data, starts, own = pack(texts)
                append(data)
                lengths.append(np.diff(starts))
                prefixes.append(own)
                totals.append(total)
                size += len(texts)
        target.column(f"{name}.starts", "int64")(ends(np.concatenate(lengths)))
        target.column(f"{name}.prefixes", "uint64")(np.concatenate(prefixes))
        self.starts = ends(np.concatenate(totals))
        self.size = int(self.starts[-1])
        for own in self.rows:
            np.maximum.accumulate(own, out=own)

    def _take(self, ranges: Sequence[tuple[int, int]], size: int) -> tuple[list[str], NDArray[Any]]:
        """Give the next texts their rows; return them, and how many entries each has.

        :param size: row of the first.
        """
        there = []
        for table, count, (begin, end) in zip(self._tables, self.counts, ranges, strict=True):
            left = begin + np.flatnonzero(count[begin:end])
            there.append((left, table.texts.texts(left.tolist()) if len(left) else ()))
        texts = sorted(set().union(*(own for _, own in there)))
        row_of = {text: row for row, text in enumerate(texts)}
        total = np.zeros(len(texts), np.int64)
        for rows, count, (begin, end), (left, own) in zip(self.rows, self.counts, ranges, there, strict=True):
            rows[begin:end] = -1
            new = np.array([row_of[text] for text in own], np.int64)
            rows[left] = new + size
            total[new] += count[left]
        return texts, total

    def written(self, columns: Sequence[Append]) -> Iterator[tuple[NDArray[Any], list[NDArray[Any]]]]:
        """Write the entries; return them block by block, with where those of each text begin."""
        for begin, end in _blocks(self.starts[1:]):
            starts = self.starts[begin:end] - self.starts[begin]
            size = int(self.starts[end] - self.starts[begin])
            found = [np.empty(size, column.dtype) for column in self._tables[0].columns]
            at = starts.copy()
            for one, table, rows, count in zip(
                self._living, self._tables, self.rows, self.counts, strict=True
            ):
                low, high = rows.searchsorted((begin, end)).tolist()
                if low < high:
                    _place(one, table, slice(low, high), (rows[low:high] - begin, count[low:high], at), found)
            for append, values in zip(columns, found, strict=True):
                append(values)
            yield starts, found


def _ranges(every: Sequence[Strings]) -> Iterator[list[tuple[int, int]]]:
    """Divide sorted strings into ranges of rows, so that what stands in one of them stands in no other."""
    step = max(1, _STRINGS // len(every))
    begins = [0] * len(every)
    while pairs := [(texts, at) for texts, at in zip(every, begins, strict=True) if at < len(texts)]:
        last = min(texts.texts([min(at + step, len(texts)) - 1])[0] for texts, at in pairs)
        stops = [texts.first(f"{last}\0") for texts in every]  # no string lies between these two
        yield list(zip(begins, stops, strict=True))
        begins = stops


def _place(
    one: Survivor,
    table: Table,
    chosen: slice,
    where: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    found: Sequence[NDArray[Any]],
) -> None:
    """Put the entries of some texts of a table where they belong in a block.

    :param where: row of each text, how many of its entries are alive, and where those of each row go.
    """
    rows, count, at = where
    rows, count = rows[count > 0], count[count > 0].astype(np.int64)
    entries = slice(int(table.starts[chosen.start]), int(table.starts[chosen.stop]))
    numbers = one.numbers[table.columns[0][entries]]
    places = (at[rows] - (count.cumsum() - count)).repeat(count) + np.arange(int(count.sum()))
    values = [numbers, *(column[entries] for column in table.columns[1:])]
    if not one.whole:
        values = [column[numbers >= 0] for column in values]
    for target, column in zip(found, values, strict=True):
        target[places] = column
    at[rows] += count


def _counts(table: Table, one: Survivor) -> NDArray[Any]:
    """Return how many entries of each text are alive."""
    counts = np.diff(table.starts).astype(np.int32)
    for begin, end in () if one.whole else _blocks(table.starts[1:]):
        starts = table.starts[begin : end + 1]
        alive = one.numbers[table.columns[0][starts[0] : starts[-1]]] >= 0
        before = np.concatenate((np.zeros(1, np.int64), alive.cumsum()))
        counts[begin:end] = np.diff(before[starts - starts[0]])
    return counts


def _write_headings_by_term(
    firsts: NDArray[Any],
    living: Sequence[Survivor],
    rows: Sequence[NDArray[Any]],
    terms: int,
    target: Columns,
) -> None:
    """Write ``spelt_with``, as :func:`npl_index.ranking.segments.headings_by_term` makes it.

    :param firsts: first section of each heading.
    """
    size, chosen, begin = len(firsts), [], 0
    for one in living:
        headings = np.flatnonzero((firsts >= begin) & (firsts < begin + len(one.sections)))
        sections = one.sections[firsts[headings] - begin]
        lengths = np.diff(one.segment.named.starts)[sections]
        chosen.append((headings, sections, lengths))
        begin += len(one.sections)
    # A term and a heading are one number, so that sorting the numbers brings both into order.
    pairs = np.empty(sum(int(lengths.sum()) for *_, lengths in chosen), np.int64)
    at = 0
    for one, own, (headings, sections, lengths) in zip(living, rows, chosen, strict=True):
        for low, high in _blocks(lengths.cumsum()):
            values, sizes = one.segment.named.gather(sections[low:high])
            pairs[at : at + len(values)] = own[values].astype(np.int64) * size
            pairs[at : at + len(values)] += headings[low:high].repeat(sizes)
            at += len(values)
    pairs.sort()
    starts = pairs.searchsorted(np.arange(terms + 1) * size)
    target.column("spelt_with.starts", "int64")(starts)
    append = target.column("spelt_with.values", "uint32", len(pairs))
    for begin in range(0, len(pairs), _TOGETHER):
        append((pairs[begin : begin + _TOGETHER] % size).astype(np.uint32))
