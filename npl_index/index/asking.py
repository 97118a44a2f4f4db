"""What the index says to one question: candidates, terms and names, of the documents that are asked for.

All of it is of one state: who asks holds a transaction (:meth:`~npl_index.index.database.Database.reading`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from npl_index.cached import cached_property
from npl_index.index.database import Database
from npl_index.index.writing import AMONG, texts_of
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Counts
from npl_index.ranking.vocabulary import LAST, Vocabulary
from npl_index.selectors.labels import fold as folded
from npl_index.selectors.names import LEVEL, Node, bits_of

CANDIDATES = 200
"""Documents whose sections are ranked."""

MOST_HOLDERS = 1_000
"""Documents that are looked through for a phrase in quotes."""

MOST_WORDS = 2_000_000
"""Words of these documents, all together."""

MOST_POSTINGS = 50_000
"""Postings that candidates are taken from: those of a question's rarest terms, :data:`LEAST_TERMS` at least.
What more of them finds was worth no more than a question in 400 with 23,000 files."""

LEAST_TERMS = 4

_COUNTS = 'sum(own), sum("any"), sum(path), sum(pages)'
_ASKED = "root IN (SELECT value FROM json_each(?))"
_WEIGHTS = "2.0, 2.0, 1.0"  # of heading, path and body


@dataclass(frozen=True)
class Scope:
    """The documents that are asked for: those of some roots, all or some of them.

    :param version: of the roots' content; what is known of a scope holds as long as it.
    :param documents: numbers of the documents in their order.
    :param complete: these are all documents of their roots.
    :param alone: there are no other roots.
    """

    version: tuple[tuple[int, int], ...]
    documents: NDArray[Any]
    complete: bool
    alone: bool

    @cached_property
    def roots(self) -> str:
        """Numbers of the roots, whose statistics are taken, as JSON."""
        return json.dumps([root for root, _ in self.version])

    @cached_property
    def places(self) -> dict[int, int]:
        """Where each document stands among them."""
        return {number: place for place, number in enumerate(self.documents.tolist())}

    @cached_property
    def numbers(self) -> str:
        """The numbers of the documents, as JSON."""
        return json.dumps(self.documents.tolist())

    @property
    def condition(self) -> tuple[str, tuple[str, ...]]:
        """Return what a row of ``word`` has to fulfil besides the match; nothing where all are asked for.

        With ``+`` FTS5 goes through its own rows; without it, it looks each of these up by itself, which
        takes a hundred times as long.
        """
        if self.complete and self.alone:
            return "", ()
        if self.complete:
            return f" AND +rowid IN (SELECT document FROM file WHERE root {AMONG})", (self.roots,)
        return f" AND +rowid {AMONG}", (self.numbers,)


def candidates(database: Database, scope: Scope, terms: Sequence[tuple[str, int]]) -> list[int]:
    """Return the places of the documents that answer best by ``bm25()``, best first.

    :param terms: with the pages that hold each.
    """
    asked: list[str] = []
    postings = 0
    for term, pages in sorted(terms, key=lambda one: one[1]):
        if len(asked) < LEAST_TERMS or postings + pages <= MOST_POSTINGS:
            asked.append(quoted(term))
            postings += pages
    return _best(database, scope, " OR ".join(asked), CANDIDATES)


def holders(database: Database, scope: Scope, terms: Sequence[str]) -> list[int]:
    """Return the places of the documents that hold all of some terms, those that answer best first."""
    return _best(database, scope, " AND ".join(map(quoted, terms)), MOST_HOLDERS)


def _best(database: Database, scope: Scope, expression: str, most: int) -> list[int]:
    if not expression:
        return []
    condition, given = scope.condition
    rows = database.rows(
        f"SELECT rowid FROM word WHERE word MATCH ?{condition}"
        f" ORDER BY bm25(word, {_WEIGHTS}), rowid LIMIT ?",
        *(expression, *given, most),
    )
    places = scope.places
    return [places[number] for (number,) in rows if number in places]


def quoted(term: str) -> str:
    """Write a term as FTS5 reads it."""
    return '"' + term.replace('"', '""') + '"'


class KeptVocabulary(Vocabulary):
    """The terms of a scope; safe for several threads.

    What was asked for is kept: questions repeat their words, and a scope its headings.
    """

    def __init__(self, database: Database, scope: Scope) -> None:
        super().__init__()
        self.database, self.scope = database, scope
        self._rows: dict[str, int | None] = {}
        self._texts: dict[int, str] = {}
        self._counts: dict[int, tuple[int, int, int, int]] = {}

    @cached_property
    def _sums(self) -> tuple[int, int, int]:
        sums = "SELECT total(sections), total(pages), total(words) FROM root WHERE id"
        sections, pages, words = map(int, self.database.rows(f"{sums} {AMONG}", self.scope.roots)[0])
        return sections, pages, words

    @property
    def sections(self) -> int:  # type: ignore[override]
        """Sections of the roots."""
        return self._sums[0]

    @property
    def pages(self) -> int:  # type: ignore[override]
        """Pages of the roots."""
        return self._sums[1]

    @property
    def words(self) -> int:  # type: ignore[override]
        """Words of all bodies of the roots."""
        return self._sums[2]

    def row(self, term: str) -> int | None:
        """Return the row of a term, ``None`` where no section holds it."""
        if term not in self._rows:
            self._rows[term] = self._row(term)
        return self._rows[term]

    def _row(self, term: str) -> int | None:
        with self.database.reading():
            found = self.database.rows(
                f"SELECT id, {_COUNTS} FROM term LEFT JOIN total ON term = id AND {_ASKED} WHERE text = ?",
                self.scope.roots,
                term,
            )
            row, *counts = found[0]
            if not counts[1]:
                return None
            self._counts[row] = counts[0], counts[1], counts[2], counts[3]
            if not self.scope.complete:
                condition, given = self.scope.condition
                holds = f"SELECT 1 FROM word WHERE word MATCH ?{condition} LIMIT 1"
                if not self.database.rows(holds, quoted(term), *given):
                    return None
            return int(row)

    def between(self, low: str, high: str, limit: int | None = None) -> list[tuple[int, str]]:
        """Return rows and terms from ``low`` up to ``high``, the first ones, in the order of the terms."""
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
        """Return how many sections of the roots hold the terms of some rows."""
        asked = rows.tolist()
        if missing := set(asked).difference(self._counts):
            found = self.database.rows(
                f"SELECT term, {_COUNTS} FROM total WHERE {_ASKED} AND term {AMONG} GROUP BY term",
                *(self.scope.roots, json.dumps(list(missing))),
            )
            self._counts.update(dict.fromkeys(missing, (0, 0, 0, 0)))
            self._counts.update((row, tuple(counts)) for row, *counts in found)
        columns = np.array([self._counts[row] for row in asked], np.int64).reshape(-1, len(Counts._fields))
        return Counts(*columns.T)


class KeptNames:
    """What the sections of a scope are called; see :class:`~npl_index.selectors.names.Names`."""

    def __init__(self, database: Database, scope: Scope) -> None:
        self._database, self._scope = database, scope

    @cached_property
    def _titles(self) -> list[tuple[str, str, int]]:
        """Names of each document and of its first section, and how many sections it has."""
        rows = self._database.rows(
            f"SELECT document, title, heading, sections FROM file WHERE root {AMONG}", self._scope.roots
        )
        known = {document: (title, heading, sections) for document, title, heading, sections in rows}
        return [known.get(number, ("", "", 1)) for number in self._scope.documents.tolist()]

    def title(self, tree: int) -> tuple[str, str]:
        """Return the names of a document and of its first section."""
        return self._titles[tree][:2]

    def size(self, tree: int) -> int:
        """Return how many sections a document has."""
        return self._titles[tree][2]

    def level(self, node: Node) -> int:
        """Return the heading level of a section."""
        return int(self._one(node)[0]) & LEVEL

    def fold(self, node: Node) -> str:
        """Return the loose form of a section's name."""
        return str(self._one(node)[1])

    def called(self, fold: str) -> list[Node]:
        """Return the sections whose name, seen or written, has a loose form."""
        return self._nodes("fold = ?1 OR (written > '' AND written = ?1)", fold)

    def beginning(self, fold: str) -> list[Node]:
        """Return those whose name, seen or written, begins with it."""
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
        """Return the different headings, spelt in terms; of some documents those of their roots."""
        return self._spelt

    def spelt_with(self, words: Collection[str]) -> Iterable[str]:
        """Return the headings, spelt in terms, that hold one of some words."""
        return dict.fromkeys(spelt for word in sorted(words) for spelt in self._spelt_by_word.get(word, ()))

    def headed(self, spelt: str) -> list[tuple[Node, str]]:
        """Return the sections whose heading has these terms, and the loose forms of their names."""
        rows = self._database.rows(
            f"SELECT document, section, fold FROM name WHERE root {AMONG} AND spelt = ?",
            *(self._scope.roots, spelt),
        )
        places = self._scope.places
        return sorted(((places[one], section), fold) for one, section, fold in rows if one in places)

    def is_unique(self, level: int, label: str) -> bool:
        """Tell whether one section alone has a label, at its level."""
        found = self._nodes(f"fold = ? AND label = ? AND kind & {LEVEL} = ?", folded(label), label, level)
        return len(found) == 1

    def _one(self, node: Node) -> tuple[int, str]:
        rows = self._database.rows(
            "SELECT kind, fold FROM name WHERE document = ? AND section = ?",
            *(int(self._scope.documents[node[0]]), node[1]),
        )
        return rows[0] if rows else (0, "")

    def _nodes(self, condition: str, *given: object) -> list[Node]:
        rows = self._database.rows(f"SELECT document, section FROM name WHERE {condition}", *given)
        places = self._scope.places
        return sorted((places[one], section) for one, section in rows if one in places)
