"""Answers of the index to one question: candidates, terms and names of the requested documents.

They depend on these documents alone, not on other indexed ones and not on the order of indexing: equal files
give equal scores.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress
from math import log
from operator import itemgetter
from typing import Any

from npl_index.cached import cached_property
from npl_index.index.database import DamagedIndexError
from npl_index.index.scope import ScopeReader
from npl_index.index.writing import AMONG, DAMAGED_FILES, DAMAGED_TOTALS, TEXTS, unsealed, verified
from npl_index.markdown.traits import LEVEL, bits_of
from npl_index.ranking.arrays import NDArray, np, top_positions
from npl_index.ranking.postings import Counts, Sections, counts_in, summed
from npl_index.ranking.vocabulary import LAST, Vocabulary, parts_of
from npl_index.selectors.labels import fold as folded
from npl_index.selectors.names import Place

MAX_CANDIDATES = 200
"""Maximum documents whose sections are ranked."""

MAX_HOLDERS = 1_000
"""Maximum documents to search for a quoted phrase."""

MAX_WORDS = 2_000_000
"""Maximum words of the ranked documents together."""

MAX_POSTINGS = 50_000
"""Maximum postings for the choice of candidates: those of the question's rarest terms, at least of
:data:`MIN_TERMS`. More postings improve one question in 400 with 23,000 files."""

MIN_TERMS = 4

_MAX_PARTS = 64
_PART = 32
"""Maximum parts of a count before they are summed, and documents of a part."""

_COUNTS = 'sum(own), sum("any"), sum(path), sum(pages)'
_NUMBER = len(Counts._fields)


def candidates(
    reader: ScopeReader, terms: Sequence[tuple[str, int]], among: NDArray[Any] | None
) -> list[int]:
    """Return the positions of the best documents, best first.

    A term of a document counts by its rarity in the scope. This keeps more of the best sections than FTS5's
    ``bm25()``, whose statistics are those of all roots.

    :param terms: the question's terms with their numbers of pages.
    :param among: whether each document may be a candidate; ``None`` for all.
    """
    worth = np.zeros(len(reader.scope.documents))
    postings = 0
    for number, (term, pages) in enumerate(sorted(terms, key=itemgetter(1))):
        if number < MIN_TERMS or postings + pages <= MAX_POSTINGS:
            postings += pages
            anywhere = reader.matching(quoted(term))
            worth[anywhere] += log(1 + len(worth) / max(1, len(anywhere)))
    if among is not None:
        worth *= among
    best: list[int] = top_positions(worth, MAX_CANDIDATES).tolist()
    return best


def holders(reader: ScopeReader, terms: Sequence[str]) -> list[int]:
    """Return the positions of the first documents with all of some terms."""
    positions: list[int] = reader.matching(" AND ".join(map(quoted, terms))).tolist()
    return sorted(positions)[:MAX_HOLDERS]


def quoted(term: str) -> str:
    """Return a term as a string of FTS5's query language."""
    return '"' + term.replace('"', '""') + '"'


class IndexVocabulary(Vocabulary):
    """The terms of a scope; safe for several threads.

    The index has the sums over all documents of a root. They are used while the scope is exactly these
    documents; otherwise the terms of its documents are counted. Both give the same numbers.
    """

    def __init__(self, reader: ScopeReader) -> None:
        super().__init__()
        self._reader, self._scope = reader, reader.scope
        select = f"SELECT total(sections), total(pages), total(words), {DAMAGED_FILES} FROM file"
        select += f" WHERE root {self._scope.in_roots}"
        with reader.reading():
            if self._is_whole():
                (sums,) = reader.rows(select)
            else:
                (sums,) = reader.rows(f"{select} AND document {AMONG}", self._scope.numbers)
            self.sections, self.pages, self.words, damaged = map(int, sums)
            if damaged:
                raise DamagedIndexError("the checksum of a file is wrong")

    def resume(self, former: IndexVocabulary, rows: NDArray[Any], added: NDArray[Any]) -> None:
        """Keep what a vocabulary knew before documents changed.

        :param rows: terms whose counts changed.
        :param added: the sections that each of them has more in any field.
        """
        now, kept = self.counts(rows).any, dict(former.known)
        for row in rows.tolist():
            kept.pop(row, None)
            kept.pop(-row, None)
        if ((now == 0) != (now == added)).any():  # a term that came or went may be a variant of others
            kept = {key: result for key, result in kept.items() if isinstance(key, int)}
        self.known = kept | self.known

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` if no section has it."""
        return self.once(term, lambda: self._rows_of([term])[term])

    def learn(self, terms: Iterable[str], *, parts: bool = True) -> None:
        """Look up terms, and their parts, by one query."""
        needed = dict.fromkeys(text for term in terms for text in (term, *(parts_of(term) if parts else ())))
        self.remember(self._rows_of([text for text in needed if text not in self.known]))

    def _rows_of(self, terms: Sequence[str]) -> dict[str, int | None]:
        select = f"SELECT id, text, checksum FROM term WHERE text {AMONG}"
        rows = self._reader.verified(select, json.dumps(terms))
        return dict.fromkeys(terms) | {term: row for row, term in self._there(rows)}

    def _there(self, rows: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Return those rows and terms that some section of the scope has."""
        return compress(rows, self.counts(np.array([row for row, _ in rows], np.intp)).any.tolist())

    def alike(self, first: str, lengths: range) -> list[tuple[int, str]]:
        """Return rows and terms of some lengths with a first character, sorted by term, of all documents."""
        # These are many; a term that an answer uses is verified by :meth:`texts`.
        select = "SELECT id, text FROM term WHERE text >= ? AND text < ? AND length(text) BETWEEN ? AND ?"
        return self._reader.rows(f"{select} ORDER BY text", first, first + LAST, lengths[0], lengths[-1])

    def between(self, low: str, high: str, limit: int | None = None) -> list[tuple[int, str]]:
        """Return the first rows and terms from ``low`` (included) to ``high`` (excluded), sorted by term."""
        select = "SELECT id, text, checksum FROM term WHERE text >= ? AND text < ?"
        with self._reader.reading():
            if self._is_whole():
                there = f'SELECT 1 FROM total WHERE term = id AND root {self._scope.in_roots} AND "any" > 0'
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
            sums = {row: self.known.get(-row) for row in asked}  # for its idf, a row itself is the key
            if missing := [row for row, values in sums.items() if values is None]:
                sums |= self._sums_of(missing)
        columns = np.array([sums[row] for row in asked], np.int64)
        return Counts(*columns.reshape(-1, _NUMBER).T)

    def _sums_of(self, rows: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return the index's sums over all documents of the roots, and remember them."""
        read = self._reader.rows(
            f"SELECT {_COUNTS}, {DAMAGED_TOTALS}, id, text, term.checksum"
            f" FROM total JOIN term ON id = term WHERE root {self._scope.in_roots} AND term {AMONG}"
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
        return self._scope.complete and self._reader.is_current()

    @cached_property
    def _counted(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The rows of all terms of the documents, ascending, with their counts; then a row above all."""
        parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
        for part in self._parts():
            terms, columns = counts_in(part)
            parts.append((terms, np.array(columns)))
            if len(parts) == _MAX_PARTS:
                parts = [summed(parts)]
        rows, counts = summed(parts)
        last = np.iinfo(np.uint32).max
        return np.append(rows, last).astype(np.uint32), np.pad(counts, ((0, 0), (0, 1))).astype(np.uint32)

    def _parts(self) -> Iterator[Sections]:
        """Yield the sections of some documents together, until all are counted."""
        numbers = self._scope.documents.tolist()
        for first in range(0, len(numbers), _PART):
            part = numbers[first : first + _PART]
            select = f"SELECT terms, digest, language FROM document WHERE id {AMONG}"
            packed = self._reader.rows(select, json.dumps(part))
            if len(packed) < len(part):
                raise self._reader.lost()
            sections = (Sections.unpacked(unsealed(*row)) for row in packed)
            yield Sections(*map(np.concatenate, zip(*sections, strict=True)))


class IndexNames:
    """The names of a scope's sections; see :class:`~npl_index.selectors.names.Names`."""

    def __init__(self, reader: ScopeReader) -> None:
        self._rows, self._scope = reader.rows, reader.scope

    @cached_property
    def _titles(self) -> list[tuple[str, str, int]]:
        """Names of each document and of its first section, and its number of sections."""
        rows = self._rows(
            f"SELECT document, title, heading, sections FROM file WHERE root {self._scope.in_roots}"
        )
        title_of = {document: (title, heading, sections) for document, title, heading, sections in rows}
        return [title_of.get(number, ("", "", 1)) for number in self._scope.documents.tolist()]

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._titles[tree][:2]

    def size(self, tree: int) -> int:
        """Return the number of a document's sections."""
        return self._titles[tree][2]

    def name(self, place: Place) -> tuple[int, str]:
        """Return the heading level of a section, and the folded form of its name."""
        select = f"SELECT kind & {LEVEL}, fold FROM name WHERE document = ? AND section = ?"
        rows = self._rows(select, int(self._scope.documents[place[0]]), place[1])
        return rows[0] if rows else (0, "")

    def called(self, fold: str, *, begins: bool = False) -> list[Place]:
        """Return the sections whose name, visible or as written, has a folded form, or begins with it."""
        if begins:
            return self._places(
                "(fold >= ?1 AND fold < ?2) OR (written > '' AND written >= ?1 AND written < ?2)",
                *(fold, fold + LAST),
            )
        return self._places("fold = ?1 OR (written > '' AND written = ?1)", fold)

    def holding(self, level: int | None, traits: Sequence[str]) -> list[Place]:
        """Return the sections of a level whose own text has some traits, in document order."""
        bits = bits_of(traits)
        if level is None:
            return self._places("kind & ?1 = ?1", bits)
        return self._places(f"kind & ?1 = ?1 AND kind & {LEVEL} = ?2", bits, level)

    @cached_property
    def _spelt(self) -> list[str]:
        rows = self._rows(f"SELECT DISTINCT spelt FROM name WHERE spelt > '' AND root {self._scope.in_roots}")
        return [spelt for (spelt,) in rows]

    @cached_property
    def _spelt_by_word(self) -> dict[str, list[str]]:
        headings: dict[str, list[str]] = {}
        for spelt in self._spelt:
            for word in dict.fromkeys(spelt.split(" ")):
                headings.setdefault(word, []).append(spelt)
        return headings

    def spelt(self) -> Sequence[str]:
        """Return the different headings of the roots, each as its terms."""
        return self._spelt

    def spelt_with(self, words: Collection[str]) -> Iterable[str]:
        """Return the headings, each as its terms, with one of some words."""
        return dict.fromkeys(spelt for word in sorted(words) for spelt in self._spelt_by_word.get(word, ()))

    def headed(self, spelt: str) -> list[tuple[Place, str]]:
        """Return the sections whose heading has these terms, with the folded forms of their names."""
        rows = self._rows(
            f"SELECT document, section, fold FROM name WHERE root {self._scope.in_roots} AND spelt = ?",
            spelt,
        )
        positions = self._scope.positions
        return sorted(
            ((positions[number], section), fold) for number, section, fold in rows if number in positions
        )

    def is_unique(self, level: int, label: str) -> bool:
        """Return whether exactly one section has a level and a label."""
        places = self._places(f"fold = ? AND label = ? AND kind & {LEVEL} = ?", folded(label), label, level)
        return len(places) == 1

    def _places(self, condition: str, *parameters: object) -> list[Place]:
        rows = self._rows(f"SELECT document, section FROM name WHERE {condition}", *parameters)
        positions = self._scope.positions
        return sorted((positions[number], section) for number, section in rows if number in positions)
