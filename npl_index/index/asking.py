"""Answers of the index to one question: candidates, terms and names of the requested documents.

All of them describe one state, because the caller holds a transaction
(:meth:`~npl_index.index.database.IndexDatabase.reading`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from npl_index.cached import cached_property
from npl_index.index.database import IndexDatabase
from npl_index.index.writing import AMONG, texts_of
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts
from npl_index.ranking.vocabulary import LAST, Vocabulary
from npl_index.selectors.labels import fold as folded
from npl_index.selectors.names import LEVEL, Node, bits_of

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

_COUNTS = 'sum(own), sum("any"), sum(path), sum(pages)'
_IN_ROOTS = "root IN (SELECT value FROM json_each(?))"
_WEIGHTS = "2.0, 2.0, 1.0"  # of heading, path and body


@dataclass(frozen=True)
class DocumentScope:
    """The requested documents: all or some documents of some roots.

    :param version: numbers and versions of the roots; facts about a scope hold for one version.
    :param documents: numbers of the documents, in order.
    :param complete: these are all documents of their roots.
    :param alone: there are no other roots.
    """

    version: tuple[tuple[int, int], ...]
    documents: NDArray[Any]
    complete: bool
    alone: bool

    @cached_property
    def roots(self) -> str:
        """Numbers of the roots, as JSON."""
        return json.dumps([root for root, _ in self.version])

    @cached_property
    def places(self) -> dict[int, int]:
        """Positions of the documents, by number."""
        return {number: place for place, number in enumerate(self.documents.tolist())}

    @cached_property
    def numbers(self) -> str:
        """Numbers of the documents, as JSON."""
        return json.dumps(self.documents.tolist())

    @property
    def condition(self) -> tuple[str, tuple[str, ...]]:
        """The condition for a row of ``word`` besides the match, and its values.

        With ``+``, FTS5 scans its own matches. Without it, FTS5 looks up each document separately, which
        takes a hundred times as long.
        """
        if self.complete and self.alone:
            return "", ()
        if self.complete:
            return f" AND +rowid IN (SELECT document FROM file WHERE root {AMONG})", (self.roots,)
        return f" AND +rowid {AMONG}", (self.numbers,)


def candidates(database: IndexDatabase, scope: DocumentScope, terms: Sequence[tuple[str, int]]) -> list[int]:
    """Return the positions of the best documents by ``bm25()``, best first.

    :param terms: the question's terms with their numbers of pages.
    """
    chosen: list[str] = []
    postings = 0
    for term, pages in sorted(terms, key=lambda one: one[1]):
        if len(chosen) < MIN_TERMS or postings + pages <= MAX_POSTINGS:
            chosen.append(quoted(term))
            postings += pages
    return _best(database, scope, " OR ".join(chosen), MAX_CANDIDATES)


def holders(database: IndexDatabase, scope: DocumentScope, terms: Sequence[str]) -> list[int]:
    """Return the positions of the documents with all of some terms, best first."""
    return _best(database, scope, " AND ".join(map(quoted, terms)), MAX_HOLDERS)


def _best(database: IndexDatabase, scope: DocumentScope, expression: str, limit: int) -> list[int]:
    if not expression:
        return []
    condition, given = scope.condition
    rows = database.rows(
        f"SELECT rowid FROM word WHERE word MATCH ?{condition}"
        f" ORDER BY bm25(word, {_WEIGHTS}), rowid LIMIT ?",
        *(expression, *given, limit),
    )
    return [scope.places[number] for (number,) in rows if number in scope.places]


def quoted(term: str) -> str:
    """Return a term as a string of FTS5's query language."""
    return '"' + term.replace('"', '""') + '"'


class IndexVocabulary(Vocabulary):
    """The terms of a scope; safe for several threads.

    Results are cached, because questions repeat their words, and a scope its headings.
    """

    def __init__(self, database: IndexDatabase, scope: DocumentScope) -> None:
        super().__init__()
        self.database, self.scope = database, scope
        self._rows: dict[str, int | None] = {}
        self._texts: dict[int, str] = {}
        self._counts: dict[int, tuple[int, ...]] = {}
        sums = "SELECT total(sections), total(pages), total(words) FROM root WHERE id"
        (found,) = database.rows(f"{sums} {AMONG}", scope.roots)
        self.sections, self.pages, self.words = map(int, found)

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` if no section has it."""
        if term not in self._rows:
            with self.database.reading():
                self._rows[term] = self._find_row(term)
        return self._rows[term]

    def _find_row(self, term: str) -> int | None:
        ((row, *counts),) = self.database.rows(
            f"SELECT id, {_COUNTS} FROM term LEFT JOIN total ON term = id AND {_IN_ROOTS} WHERE text = ?",
            *(self.scope.roots, term),
        )
        if not counts[1]:
            return None
        self._counts[row] = tuple(counts)
        condition, given = self.scope.condition
        match = f"SELECT 1 FROM word WHERE word MATCH ?{condition} LIMIT 1"
        held = self.scope.complete or self.database.rows(match, quoted(term), *given)
        return int(row) if held else None

    def between(self, low: str, high: str, limit: int | None = None) -> list[tuple[int, str]]:
        """Return the first rows and terms from ``low`` (included) to ``high`` (excluded), sorted by term."""
        return self.database.rows(
            "SELECT id, text FROM term WHERE text >= ? AND text < ? AND EXISTS (SELECT 1 FROM total"
            f' WHERE term = id AND "any" > 0 AND root {AMONG}) ORDER BY text LIMIT ?',
            *(low, high, self.scope.roots, -1 if limit is None else limit),
        )

    def texts(self, rows: Sequence[int]) -> list[str]:
        """Return the terms of some rows."""
        if missing := set(rows).difference(self._texts):
            with self.database.reading() as connection:
                self._texts.update(texts_of(connection, missing))
        return [self._texts[row] for row in rows]

    def counts(self, rows: NDArray[Any]) -> Counts:
        """Return the numbers of sections of the roots with the terms of some rows."""
        asked = rows.tolist()
        if missing := set(asked).difference(self._counts):
            found = self.database.rows(
                f"SELECT term, {_COUNTS} FROM total WHERE {_IN_ROOTS} AND term {AMONG} GROUP BY term",
                *(self.scope.roots, json.dumps(list(missing))),
            )
            self._counts.update(dict.fromkeys(missing, (0, 0, 0, 0)))
            self._counts.update((row, tuple(counts)) for row, *counts in found)
        columns = np.array([self._counts[row] for row in asked], np.int64).reshape(-1, len(Counts._fields))
        return Counts(*columns.T)


class IndexNames:
    """The names of a scope's sections; see :class:`~npl_index.selectors.names.Names`."""

    def __init__(self, database: IndexDatabase, scope: DocumentScope) -> None:
        self._database, self._scope = database, scope

    @cached_property
    def _titles(self) -> list[tuple[str, str, int]]:
        """Names of each document and of its first section, and its number of sections."""
        rows = self._database.rows(
            f"SELECT document, title, heading, sections FROM file WHERE root {AMONG}", self._scope.roots
        )
        known = {document: (title, heading, sections) for document, title, heading, sections in rows}
        return [known.get(number, ("", "", 1)) for number in self._scope.documents.tolist()]

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._titles[tree][:2]

    def size(self, tree: int) -> int:
        """Return the number of a document's sections."""
        return self._titles[tree][2]

    def name(self, node: Node) -> tuple[int, str]:
        """Return the heading level of a section, and the folded form of its name."""
        rows = self._database.rows(
            f"SELECT kind & {LEVEL}, fold FROM name WHERE document = ? AND section = ?",
            *(int(self._scope.documents[node[0]]), node[1]),
        )
        return rows[0] if rows else (0, "")

    def called(self, fold: str) -> list[Node]:
        """Return the sections whose name, visible or as written, has a folded form."""
        return self._nodes("fold = ?1 OR (written > '' AND written = ?1)", fold)

    def beginning(self, fold: str) -> list[Node]:
        """Return the sections whose name, visible or as written, has a folded form with this prefix."""
        return self._nodes(
            "(fold >= ?1 AND fold < ?2) OR (written > '' AND written >= ?1 AND written < ?2)",
            *(fold, fold + LAST),
        )

    def holding(self, level: int | None, traits: Sequence[str]) -> list[Node]:
        """Return the sections of a level whose own text has some traits, in document order."""
        bits = bits_of(traits)
        if level is None:
            return self._nodes("kind & ?1 = ?1", bits)
        return self._nodes(f"kind & ?1 = ?1 AND kind & {LEVEL} = ?2", bits, level)

    @cached_property
    def _spelt(self) -> list[str]:
        rows = self._database.rows(
            f"SELECT DISTINCT spelt FROM name WHERE spelt > '' AND root {AMONG}", self._scope.roots
        )
        return [spelt for (spelt,) in rows]

    @cached_property
    def _spelt_by_word(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for spelt in self._spelt:
            for word in dict.fromkeys(spelt.split(" ")):
                found.setdefault(word, []).append(spelt)
        return found

    def spelt(self) -> Sequence[str]:
        """Return the different headings of the roots, each as its terms."""
        return self._spelt

    def spelt_with(self, words: Collection[str]) -> Iterable[str]:
        """Return the headings, each as its terms, with one of some words."""
        return dict.fromkeys(spelt for word in sorted(words) for spelt in self._spelt_by_word.get(word, ()))

    def headed(self, spelt: str) -> list[tuple[Node, str]]:
        """Return the sections whose heading has these terms, with the folded forms of their names."""
        rows = self._database.rows(
            f"SELECT document, section, fold FROM name WHERE root {AMONG} AND spelt = ?",
            *(self._scope.roots, spelt),
        )
        places = self._scope.places
        return sorted(((places[one], section), fold) for one, section, fold in rows if one in places)

    def is_unique(self, level: int, label: str) -> bool:
        """Return whether exactly one section has a level and a label."""
        found = self._nodes(f"fold = ? AND label = ? AND kind & {LEVEL} = ?", folded(label), label, level)
        return len(found) == 1

    def _nodes(self, condition: str, *given: object) -> list[Node]:
        rows = self._database.rows(f"SELECT document, section FROM name WHERE {condition}", *given)
        places = self._scope.places
        return sorted((places[one], section) for one, section in rows if one in places)
