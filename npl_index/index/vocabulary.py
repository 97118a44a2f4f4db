"""The terms of the requested documents, from the index.

Counts depend on these documents alone, not on other indexed ones or on the order of indexing: equal files
give equal scores.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import Any

from npl_index.cached import cached_property
from npl_index.index.database import DamagedIndexError
from npl_index.index.reading import IndexReader
from npl_index.index.writing import AMONG, DAMAGED_FILES, DAMAGED_TOTALS, TEXTS, verified
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts, Sections, counts_in, summed
from npl_index.ranking.vocabulary import LAST, Vocabulary, parts_of

_MAX_PARTS = 64
_PART = 32
"""Maximum parts of a count before they are summed, and documents of a part."""

_COUNTS = 'sum(own), sum("any"), sum(path), sum(pages)'
_NUMBER = len(Counts._fields)


class IndexVocabulary(Vocabulary):
    """The terms of documents in the index; safe for several threads.

    The index has the sums over all documents of a root. They are used while the requested documents are just
    these; otherwise their terms are counted. Both give the same numbers.

    :param sums: numbers of sections, pages and words of the documents, if they are known.
    """

    def __init__(self, reader: IndexReader, sums: NDArray[Any] | None = None) -> None:
        super().__init__()
        self._reader, self._members = reader, reader.members
        self.sums = self._read_sums() if sums is None else sums
        self.sections, self.pages, self.words = self.sums.tolist()

    def _read_sums(self) -> NDArray[Any]:
        select = f"SELECT total(sections), total(pages), total(words), {DAMAGED_FILES} FROM file"
        select += f" WHERE root {self._members.in_roots}"
        with self._reader.reading():
            among = () if self._is_whole() else (self._members.as_json,)
            ((*sums, damaged),) = self._reader.rows(
                f"{select} AND document {AMONG}" if among else select, *among
            )
        if damaged:
            raise DamagedIndexError("the checksum of a file is wrong")
        return np.array(sums, np.int64)

    def resume(self, former: IndexVocabulary, rows: NDArray[Any], added: NDArray[Any]) -> None:
        """Keep what a vocabulary knew before documents changed.

        :param rows: terms whose counts changed.
        :param added: the sections that each of them has more in any field.
        """
        now, kept = self.counts(rows).any, dict(former.known)
        for row in rows.tolist():
            kept.pop(-row, None)
        if ((now == 0) != (now == added)).any():  # a term that came or went may be a variant of others
            kept = {key: result for key, result in kept.items() if isinstance(key, int)}
        self.known, self.frequencies = kept | self.known, former.frequencies.copy()
        self.frequencies_to(int(rows.max(initial=0)))[rows] = np.nan

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` if no section has it."""
        return self.once(term, lambda: self._rows_of([term])[term])

    def learn(self, terms: Iterable[str], *, parts: bool = True) -> None:
        """Look up terms, and their parts, by one query."""
        needed = dict.fromkeys(text for term in terms for text in (term, *(parts_of(term) if parts else ())))
        if unknown := [text for text in needed if text not in self.known]:
            self.remember(self._rows_of(unknown))

    def _rows_of(self, terms: Sequence[str]) -> dict[str, int | None]:
        select = f"SELECT id, text, checksum FROM term WHERE text {AMONG}"
        rows = self._reader.verified(select, json.dumps(terms))
        return dict.fromkeys(terms) | {term: row for row, term in self._there(rows)}

    def _there(self, rows: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Return those rows and terms that some section of the documents has."""
        if not rows:
            return iter(())
        return compress(rows, self.counts(np.array([row for row, _ in rows], np.intp)).any.tolist())

    def alike(self, first: str, lengths: range) -> list[str]:
        """Return the terms of some lengths with a first character, of all documents."""
        # These are many: one value is read faster than a row for each. A term has no space.
        select = "SELECT group_concat(text, ' ') FROM term WHERE text >= ? AND text < ?"
        bounds = (first, first + LAST, lengths[0], lengths[-1])
        ((terms,),) = self._reader.rows(f"{select} AND length(text) BETWEEN ? AND ?", *bounds)
        return terms.split(" ") if terms else []

    def between(self, low: str, high: str, limit: int | None = None) -> list[tuple[int, str]]:
        """Return the first rows and terms from ``low`` (included) to ``high`` (excluded), sorted by term."""
        select = "SELECT id, text, checksum FROM term WHERE text >= ? AND text < ?"
        with self._reader.reading():
            if self._is_whole():
                there = f'SELECT 1 FROM total WHERE term = id AND root {self._members.in_roots} AND "any" > 0'
                select = f"{select} AND EXISTS ({there}) ORDER BY text LIMIT ?"
                return self._reader.verified(select, low, high, limit or -1)
            return list(self._there(self._reader.verified(f"{select} ORDER BY text", low, high)))[:limit]

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""
        kept = self.known
        read: dict[int, str] = {}
        if missing := [row for row in set(rows) if ("text", row) not in kept]:
            read = dict(self._reader.verified(TEXTS, json.dumps(missing)))
            if len(read) < len(missing):
                raise self._reader.lost()
            self._keep_texts(read.items())
        return [read[row] if row in read else kept["text", row] for row in rows]

    def _keep_texts(self, terms: Iterable[tuple[int, str]]) -> None:
        self.remember({("text", row): text for row, text in terms})

    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return the numbers of sections with the terms of some rows."""
        asked = rows.tolist()
        with self._reader.reading():
            if not self._is_whole():
                terms, counts = self._counted
                at = terms.searchsorted(rows)
                return Counts(*np.where(terms[at] == rows, counts[:, at], 0))
            sums = {row: self.known.get(-row) for row in asked}
            if missing := [row for row, values in sums.items() if values is None]:
                sums |= self._sums_of(missing)
        columns = np.array([sums[row] for row in asked], np.int64)
        return Counts(*columns.reshape(-1, _NUMBER).T)

    def _sums_of(self, rows: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return the index's sums over all documents of the roots, and remember them."""
        read = self._reader.rows(
            f"SELECT {_COUNTS}, {DAMAGED_TOTALS}, id, text, term.checksum"
            f" FROM total JOIN term ON id = term WHERE root {self._members.in_roots} AND term {AMONG}"
            " GROUP BY term",
            json.dumps(rows),
        )
        if any(values[_NUMBER] for values in read):
            raise DamagedIndexError("the checksum of a sum is wrong")
        terms = verified(values[_NUMBER + 1 :] for values in read)
        self._keep_texts(terms)  # most callers ask for the texts of counted terms
        sums: dict[int, tuple[int, ...]] = dict.fromkeys(rows, (0,) * _NUMBER)
        sums |= {row: values[:_NUMBER] for (row, _), values in zip(terms, read, strict=True)}
        self.remember({-row: counts for row, counts in sums.items()})
        return sums

    def _is_whole(self) -> bool:
        return self._members.complete and self._reader.is_current()

    @cached_property
    def _counted(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The rows of all terms of the documents, ascending, with their counts; then a row above all."""
        parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
        numbers = self._members.documents.tolist()
        for first in range(0, len(numbers), _PART):
            packed = self._reader.documents(numbers[first : first + _PART], "terms").values()
            sections = zip(*(Sections.unpacked(data) for *_, data in packed), strict=True)
            terms, columns = counts_in(Sections(*map(np.concatenate, sections)))
            parts.append((terms, np.array(columns)))
            if len(parts) == _MAX_PARTS:
                parts = [summed(parts)]
        rows, counts = summed(parts)
        last = np.iinfo(np.uint32).max
        return np.append(rows, last).astype(np.uint32), np.pad(counts, ((0, 0), (0, 1))).astype(np.uint32)
