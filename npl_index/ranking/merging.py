"""Several segments become one, without the documents that are dead in them.

Documents stay in the order of the segments, so that nothing has to be sorted: the postings of a term are
those of the first segment, then those of the next. What reads the result brings equal scores into the order
of the documents' names (:meth:`npl_index.ranking.indexing.Collection.in_order`).

Segments are read one after another and written where their numbers belong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from npl_index.ranking.segments import Lists, Segment, ends, headings_by_term
from npl_index.ranking.strings import KeptStrings, PackedStrings, Strings, pack

if TYPE_CHECKING:
    from numpy.typing import NDArray

"""Makes an array of so many numbers of some type, of any value."""

_TERMS = 1 << 14
"""Terms whose postings are looked at together, so that a few megabytes hold what is made of them."""


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
    sections, in_heading, in_path, in_body = terms.columns
    common = np.zeros(len(terms.texts))
    for one, own in zip(living, rows, strict=True):
        common[own[own >= 0]] = one.segment.common[own >= 0]
    spelt, labels = (_listed(living, name) for name in ("spelt", "labels"))
    folds, written = (_listed(living, name) for name in ("folds", "written"))
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
        own=_holders(terms.starts, in_heading, in_body),
        path=_holders(terms.starts, in_path),
        lengths=np.concatenate([one.kept("lengths") for one in living]),
        bodies=_rows("bodies", living, rows),
        headings=_rows("headings", living, rows),
        named=named,
        files=_rows("files", living, rows),
        parents=np.concatenate([one.numbers[one.kept("parents")].astype(np.uint32) for one in living]),
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


def _holders(starts: NDArray[Any], *columns: NDArray[Any]) -> NDArray[Any]:
    """Return how many postings of each term have a number above 0; every term has some postings."""
    import numpy as np

    found = np.zeros(len(starts) - 1, np.int32)
    for begin in range(0, len(found), _TERMS):
        own = starts[begin : begin + _TERMS + 1]
        chosen = np.zeros(int(own[-1] - own[0]), bool)
        for column in columns:
            chosen |= column[own[0] : own[-1]] > 0
        found[begin : begin + _TERMS] = np.add.reduceat(chosen, own[:-1] - own[0], dtype=np.int32)
    return found


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
    chosen = [one.documents if name == "files" else one.sections for one in living]
    return _joined(name, living, chosen, rows)


def _bytes(name: str, living: Sequence[Survivor]) -> Lists:
    """Return the byte strings of living documents."""
    return _joined(name, living, [one.documents for one in living], [None] * len(living))


def _joined(
    name: str,
    living: Sequence[Survivor],
    chosen: Sequence[NDArray[Any]],
    rows: Sequence[NDArray[Any] | None],
) -> Lists:
    """Return some lists of each segment, one after another.

    :param rows: what stands for each value; ``None`` where values stay.
    """
    import numpy as np

    every: list[Lists] = [getattr(one.segment, name) for one in living]
    lengths = [np.diff(lists.starts)[some] for lists, some in zip(every, chosen, strict=True)]
    starts = ends(np.concatenate(lengths))
    values = np.empty(int(starts[-1]), every[0].values.dtype)
    at = 0
    for lists, some, own in zip(every, chosen, rows, strict=True):
        old, _ = lists.gather(some)
        values[at : at + len(old)] = old if own is None else own[old]
        at += len(old)
    return Lists(values, starts)


def _merged(tables: Sequence[Table], living: Sequence[Survivor]) -> tuple[Table, list[NDArray[Any]]]:
    """Merge tables.

    :returns: the result, and for each table the new row of each text; -1 where nothing is left of it.
    """
    import numpy as np

    counts = [
        _counts(table.starts, one.numbers[table.columns[0]] >= 0)
        for one, table in zip(living, tables, strict=True)
    ]
    different: set[str] = set()
    for table, count in zip(tables, counts, strict=True):
        different.update(_there(table, count))
    texts = sorted(different)
    different.clear()  # a million headings as objects take more than all else here
    known = KeptStrings(texts)
    rows = [np.full(len(count), -1, np.int32) for count in counts]
    total = np.zeros(len(texts), np.int64)
    for table, own, count in zip(tables, rows, counts, strict=True):
        own[count > 0] = known.rows(_there(table, count))
        total[own[count > 0]] += count[count > 0]
    del known
    packed = PackedStrings(*pack(texts))
    del texts
    starts = ends(total)
    columns = [np.empty(int(starts[-1]), column.dtype) for column in tables[0].columns]
    at = starts[:-1].copy()
    for one, table, own, every in zip(living, tables, rows, counts, strict=True):
        left, count = own[every > 0], every[every > 0]
        numbers = one.numbers[table.columns[0]]
        mask = numbers >= 0
        where = (at[left] - (count.cumsum() - count)).repeat(count) + np.arange(int(count.sum()))
        columns[0][where] = numbers[mask]
        for target, source in zip(columns[1:], table.columns[1:], strict=True):
            target[where] = source[mask]
        at[left] += count
    return Table(packed, starts, tuple(columns)), rows


def _there(table: Table, count: NDArray[Any]) -> list[str]:
    """Return the texts of which something is left."""
    import numpy as np

    return table.texts.texts(np.flatnonzero(count).tolist())


def _counts(starts: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
    """Return how many of each list's entries are alive."""
    import numpy as np

    before = np.zeros(len(mask) + 1, np.int64)
    np.cumsum(mask, out=before[1:])
    counts: NDArray[Any] = before[starts[1:]] - before[starts[:-1]]
    return counts
