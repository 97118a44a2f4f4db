"""Several segments become one, without the documents that are dead in them.

Documents stay in the order of the segments, so that nothing has to be sorted: the postings of a term are
those of the first segment, then those of the next. What reads the result brings equal scores into the order
of the documents' names (:meth:`npl_index.ranking.indexing.Collection.in_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from npl_index.ranking.segments import Lists, Segment, ends, headings_by_term
from npl_index.ranking.strings import KeptStrings, Strings

if TYPE_CHECKING:
    from numpy.typing import NDArray


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

    def kept(self, name: str) -> NDArray[Any]:
        """Return an array about sections without the dead ones."""
        kept: NDArray[Any] = getattr(self.segment, name)[self.sections]
        return kept


def survivors(parts: Sequence[tuple[Segment, NDArray[Any] | None]]) -> list[Survivor]:
    """Number the living sections of some segments through.

    :param parts: segments, and which of their sections are alive; ``None`` where all are.
    """
    import numpy as np

    found, size = [], 0
    for segment, alive in parts:
        living = np.ones(segment.size, bool) if alive is None else alive
        numbers = np.where(living, np.cumsum(living) - 1 + size, -1)
        sections = np.flatnonzero(living)
        documents = np.flatnonzero(living[segment.documents[:-1]])
        found.append(Survivor(segment, numbers, sections, documents))
        size += len(sections)
    return found


def merge(living: Sequence[Survivor]) -> Segment:
    """Return the living documents of some segments as one; there must be one at least."""
    import numpy as np

    columns = ("sections", "in_heading", "in_path", "in_body")
    tables = [
        Table(one.segment.terms, one.segment.starts, tuple(getattr(one.segment, name) for name in columns))
        for one in living
    ]
    terms, rows = _merged(tables, living)
    owners = np.arange(len(terms.texts)).repeat(np.diff(terms.starts))
    sections, in_heading, in_path, in_body = terms.columns
    common = np.zeros(len(terms.texts))
    for one, own in zip(living, rows, strict=True):
        common[own[own >= 0]] = one.segment.common[own >= 0]
    spelt, labels, folds, written = (
        _listed(living, name) for name in ("spelt", "labels", "folds", "written")
    )
    pages = [_lengths(one, "page_starts") for one in living]
    named, spelt_in = _rows("named", living, rows), Lists(spelt.columns[0], spelt.starts)
    return Segment(
        terms=terms.texts,
        common=common,
        starts=terms.starts,
        sections=sections,
        in_heading=in_heading,
        in_path=in_path,
        in_body=in_body,
        own=np.bincount(owners[(in_heading > 0) | (in_body > 0)], minlength=len(common)).astype(np.int32),
        path=np.bincount(owners[in_path > 0], minlength=len(common)).astype(np.int32),
        lengths=np.concatenate([one.kept("lengths") for one in living]),
        bodies=_rows("bodies", living, rows),
        headings=_rows("headings", living, rows),
        named=named,
        files=_rows("files", living, rows),
        parents=np.concatenate([one.numbers[one.kept("parents")] for one in living]).astype(np.uint32),
        page_starts=ends(np.concatenate(pages)).astype(np.uint32),
        documents=ends(np.concatenate([_lengths(one, "documents") for one in living])).astype(np.uint32),
        spelt=spelt.texts,
        spelt_in=spelt_in,
        spelt_with=headings_by_term(named, spelt_in, len(common)),
        labels=labels.texts,
        labels_in=Lists(labels.columns[0], labels.starts),
        folds=folds.texts,
        folds_in=Lists(folds.columns[0], folds.starts),
        written=written.texts,
        written_in=Lists(written.columns[0], written.starts),
        levels=np.concatenate([one.kept("levels") for one in living]),
        titles=_bytes("titles", living),
        sizes=np.concatenate([one.kept("sizes") for one in living]),
        records=_bytes("records", living),
    )


def _listed(living: Sequence[Survivor], name: str) -> Table:
    lists: list[Lists] = [getattr(one.segment, f"{name}_in") for one in living]
    texts = (getattr(one.segment, name) for one in living)
    tables = [Table(own, found.starts, (found.values,)) for own, found in zip(texts, lists, strict=True)]
    return _merged(tables, living)[0]


def _lengths(one: Survivor, name: str) -> NDArray[Any]:
    """Return how many sections each living page or document has."""
    import numpy as np

    starts: NDArray[Any] = getattr(one.segment, name)
    lengths: NDArray[Any] = np.diff(starts.astype(np.int64))[one.numbers[starts[:-1]] >= 0]
    return lengths


def _rows(name: str, living: Sequence[Survivor], rows: Sequence[NDArray[Any]]) -> Lists:
    """Return lists of rows of what is alive, in merged rows."""
    import numpy as np

    values, lengths = [], []
    for one, own in zip(living, rows, strict=True):
        lists: Lists = getattr(one.segment, name)
        old, counts = lists.gather(one.documents if name == "files" else one.sections)
        values.append(own[old].astype(np.uint32))
        lengths.append(counts)
    return Lists(np.concatenate(values), ends(np.concatenate(lengths)))


def _bytes(name: str, living: Sequence[Survivor]) -> Lists:
    """Return the byte strings of living documents."""
    import numpy as np

    values, lengths = zip(*(getattr(one.segment, name).gather(one.documents) for one in living), strict=True)
    return Lists(np.concatenate(values), ends(np.concatenate(lengths)))


def _merged(tables: Sequence[Table], living: Sequence[Survivor]) -> tuple[Table, list[NDArray[Any]]]:
    """Merge tables.

    :returns: the result, and for each table the new row of each text; -1 where nothing is left of it.
    """
    import numpy as np

    alive = [one.numbers[table.columns[0]] >= 0 for one, table in zip(living, tables, strict=True)]
    counts = [_counts(table.starts, mask) for table, mask in zip(tables, alive, strict=True)]
    there = [
        table.texts.texts(np.flatnonzero(count).tolist()) for table, count in zip(tables, counts, strict=True)
    ]
    texts = sorted(set().union(*there))
    known = KeptStrings(texts)
    rows = [np.full(len(count), -1, np.int64) for count in counts]
    total = np.zeros(len(texts), np.int64)
    for own, count, words in zip(rows, counts, there, strict=True):
        own[count > 0] = known.rows(words)
        total[own[count > 0]] += count[count > 0]
    starts = ends(total)
    columns = [np.empty(int(starts[-1]), column.dtype) for column in tables[0].columns]
    at = starts[:-1].copy()
    for one, table, mask, own, count in zip(living, tables, alive, rows, counts, strict=True):
        left, count = own[count > 0], count[count > 0]
        where = (at[left] - (count.cumsum() - count)).repeat(count) + np.arange(int(count.sum()))
        for target, source in zip(columns, table.columns, strict=True):
            target[where] = one.numbers[source[mask]] if source is table.columns[0] else source[mask]
        at[left] += count
    return Table(known, starts, tuple(columns)), rows


def _counts(starts: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
    """Return how many of each list's entries are alive."""
    import numpy as np

    before = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(mask, out=before[1:])
    counts: NDArray[Any] = before[starts[1:]] - before[starts[:-1]]
    return counts
