"""A plain full-text search to compare the ranking with: SQLite FTS5."""

from __future__ import annotations

import re
import sqlite3

from npl_index.markdown.sections import Span
from npl_index.ranking.collection import Collection
from npl_index.ranking.wordlists import stop_words
from npl_index.selectors.names import Place

HEADING_WEIGHT = 4.0
LIMIT = 80


class PlainSearch:
    """Headings and texts of a collection's sections in a table of FTS5."""

    def __init__(self, collection: Collection) -> None:
        self._places: list[Place] = []
        self._database = sqlite3.connect(":memory:")
        self._database.execute(
            "CREATE VIRTUAL TABLE t USING fts5(heading, body, tokenize='porter unicode61')"
        )
        rows = []
        for document, indexed in enumerate(collection.documents):
            tree = indexed.tree
            for section in tree.sections:
                self._places.append((document, section.index))
                rows.append(
                    (
                        section.name if section.level else "",
                        tree.text(Span(section.heading_lines.stop, section.own.stop)),
                    )
                )
        numbered = ((number, *row) for number, row in enumerate(rows, 1))
        self._database.executemany("INSERT INTO t(rowid, heading, body) VALUES (?, ?, ?)", numbered)

    def rank(self, question: str) -> list[Place]:
        """Return the best sections for a question, best first."""
        words = re.findall(r"\w+", question.lower())
        wanted = [word for word in words if word not in stop_words()] or words
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(wanted))
        found = self._database.execute(
            "SELECT rowid - 1 FROM t WHERE t MATCH ? ORDER BY bm25(t, ?, 1.0), rowid LIMIT ?",
            (match, HEADING_WEIGHT, LIMIT),
        )
        return [self._places[number] for (number,) in found]
