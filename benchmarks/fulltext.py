"""A plain full-text search to compare with: SQLite FTS5."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping

from npl_index.ranking.wordlists import stop_words

STANDARD = "porter unicode61"


def words(text: str) -> list[str]:
    """Return the words of a question, without those that every question has."""
    found = re.findall(r"\w+", text.lower())
    return list(dict.fromkeys(word for word in found if word not in stop_words())) or found


class FullText:
    """Rows in a table of FTS5, found by any word of a question.

    :param weights: of the columns, by name.
    :param rows: a text for each column.
    :param tokenizer: of the table; ``trigram`` finds any three characters.
    """

    def __init__(
        self, weights: Mapping[str, float], rows: Iterable[tuple[str, ...]], tokenizer: str = STANDARD
    ) -> None:
        self._weights, self._trigram = list(weights.values()), tokenizer == "trigram"
        self._table = sqlite3.connect(":memory:")
        self._table.execute(
            f"CREATE VIRTUAL TABLE t USING fts5({', '.join(weights)}, tokenize='{tokenizer}')"
        )
        values = ", ".join("?" * len(weights))
        self._table.executemany(f"INSERT INTO t VALUES ({values})", rows)

    def find(self, question: str, limit: int) -> list[tuple[int, str]]:
        """Return the numbers of the best rows, with the found words of the last column between marks.

        These marks are the characters 1 and 2.
        """
        wanted = words(question)
        if self._trigram:
            wanted = [word[at : at + 3] for word in wanted for at in range(max(1, len(word) - 2))]
        match = " OR ".join(f'"{word}"' for word in wanted)
        if not match:
            return []
        last, marks = len(self._weights) - 1, ", ".join("?" * len(self._weights))
        return self._table.execute(
            f"SELECT rowid - 1, highlight(t, {last}, char(1), char(2)) FROM t WHERE t MATCH ?"
            f" ORDER BY bm25(t, {marks}), rowid LIMIT ?",
            (match, *self._weights, limit),
        ).fetchall()
