"""Full-text search over rows: messages, worklog entries, artifacts.

A row contains a word or a phrase if its text does, ignoring case. Each engine has an index of the words of
all rows, which finds rows by the prefix of a word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.stores.base.database import Database, Row, Transaction

MAX_MATCHES = 1_000
"""Maximum matching rows to read: those with the most words first, then the newest."""

MAX_OF_A_WORD = 100_000
"""Maximum rows considered per word: the newest. A rarer word finds rows of any age."""

# Scripts without spaces: a word can occur inside a token of the index.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")

_SIGN = re.compile("[!%_]")
"""Signs with a meaning in LIKE."""


@dataclass(frozen=True, slots=True)
class Match:
    """A row with words of a query.

    :param row: columns of the row; displayed columns have the names of an answer's fields.
    :param text: text of the row.
    :param held: number of the query's words in the text.
    """

    row: Mapping[str, Any]
    text: str
    held: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """Search of rows of one kind.

    :param index: the index of their words: a table of SQLite, a function of PostgreSQL.
    :param number: column with the number of a row in the index.
    :param columns: the columns to read.
    :param words: SQL expression of the indexed text.
    :param tables: the tables to read from.
    :param where: condition for searchable rows.
    :param place: condition for the row of ``hit.place``.
    :param order: order of rows, newest first.
    :param text_of: function from a row to its text.
    :param recent: condition that limits the newest rows, if rows of other kinds lie between them.
    """

    index: str
    number: str
    columns: str
    words: str
    tables: str
    where: str
    place: str
    order: str
    text_of: Callable[[Row], str]
    recent: str = "1 = 1"

    def holding(self, tx: Transaction, words: Sequence[str], **given: object) -> list[Match]:
        """Return rows that contain words: those with the most words first, then the newest."""
        parts = []
        for at, word in enumerate(words):
            if _UNSPACED.search(word):
                given[f"w{at}"] = "%" + _SIGN.sub(r"!\g<0>", word) + "%"
                hits = f"{self.number} AS place FROM {self.tables} WHERE {self.where} AND"
                hits += f" {self.words} LIKE :w{at} ESCAPE '!'"
            else:
                given[f"w{at}"] = _query(word)
                hits = f"rowid AS place FROM {self.index}(:w{at})"
            newest = f"SELECT {hits} ORDER BY place DESC LIMIT {MAX_OF_A_WORD}"
            parts.append(f"SELECT place FROM ({newest}) AS hits_{at}")
        hit = f"SELECT place, count(*) AS held FROM ({' UNION ALL '.join(parts)}) AS hits GROUP BY place"
        tables, order = f"({hit}) AS hit CROSS JOIN {self.tables}", f"held DESC, {self.order}"
        found = self._read(tx, tables, self.place, order, MAX_MATCHES, given)
        matches = [self.match(row, words) for row in found]
        # The index treats punctuation as spaces, so it also returns rows without the exact phrase.
        return sorted((one for one in matches if one.held), key=lambda one: -one.held)

    def newest(self, tx: Transaction, limit: int, **given: object) -> list[Match]:
        """Return the newest rows."""
        found = self._read(tx, self.tables, self.recent, self.order, limit, given)
        return [self.match(row, ()) for row in found]

    def _read(
        self, tx: Transaction, tables: str, where: str, order: str, most: int, given: Mapping[str, object]
    ) -> list[Row]:
        sql = (
            f"SELECT {self.columns}, {self.words} AS words FROM {tables} WHERE {self.where} AND {where}"
            f" ORDER BY {order} LIMIT :most"
        )
        return tx.all(sql, most=most, **given)

    def match(self, row: Row, words: Sequence[str]) -> Match:
        """Return the match of a row with some words."""
        text = self.text_of(row)
        lower = text.lower()
        return Match(row, row.get("summary", text), sum(word.lower() in lower for word in words))


class SearchStore:
    """Full-text search over the rows of the stores.

    :param database: the database that stores them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def matching(self, kind: str, words: Sequence[str], project: str) -> list[Match]:
        """Return the rows of a kind that contain words: of open rooms, unarchived artifacts and worklogs.

        :param kind: one of :data:`KINDS`; empty for any other.
        :param project: the project of the worklogs.
        """
        # A search must not create a data folder.
        if kind not in KINDS or not words or not self._database.engine.exists():
            return []
        with self._database.read() as tx:
            return KINDS[kind].holding(tx, words, project=project)

    def newest(self, project: str, limit: int) -> dict[str, list[Match]]:
        """Return the newest messages and worklog entries.

        :param limit: the maximum of each kind.
        """
        if not self._database.engine.exists():
            return {}
        with self._database.read() as tx:
            newest = ("message", "worklog")
            return {kind: KINDS[kind].newest(tx, limit, project=project) for kind in newest}


def _query(word: str) -> str:
    """Return the index query for a word or a phrase; the last word is a prefix."""
    # A database may convert only ASCII letters to lower case.
    forms = (word,) if word.isascii() else (word.lower(), word.capitalize(), word.upper())
    quoted = (form.replace('"', '""') for form in dict.fromkeys(forms))
    return " OR ".join(f'"{form}" *' for form in quoted)


def _words(row: Row) -> str:
    return str(row["words"])


def _said(row: Row) -> str:
    """Return the text of an event without the names of other records in it."""
    try:
        data = json.loads(row["words"])
    except ValueError:
        return ""
    said = (data.get(name) for name in ("message", "description")) if isinstance(data, dict) else ()
    return " ".join(text for text in said if isinstance(text, str))


_MESSAGES = _Kind(
    index="event_words",
    number="event.id",
    columns='event.id AS event_id, room_id, room.name AS title, persona AS "by", timestamp AS at',
    words="data",
    tables="event JOIN room ON room.id = room_id",
    where="archived_at IS NULL AND event_type IN ('message', 'handoff', 'todo_create')",
    place="event.id = hit.place",
    order="event.id DESC",
    text_of=_said,
    recent="event.id > (SELECT coalesce(max(id), 0) FROM event) - 100000",
)

_ENTRIES = _Kind(
    index="worklog_entry_words",
    number="session_number * 1000000000 + seq",
    columns='session.id AS session_id, seq, ts AS at, agent_id AS "by", action AS title, summary',
    words="action || ' ' || summary || ' ' || coalesce(tags, '')",
    tables="worklog_entry AS entry JOIN worklog_session AS session ON session.number = entry.session_number",
    where="project = :project AND archived_as IS NULL",
    place="entry.session_number = hit.place / 1000000000 AND seq = hit.place % 1000000000",
    order="entry.session_number DESC, seq DESC",
    text_of=_words,
)

_ARTIFACTS = _Kind(
    index="revision_words",
    number="revision.id",
    columns="artifact.id AS artifact_id, name AS title, revision_num AS revision, revision.created_at AS at,"
    " filename || ': ' || purpose AS summary",
    words="name || ' ' || filename || ' ' || purpose || ' ' || coalesce(notes, '')",
    tables="artifact JOIN revision ON artifact.id = artifact_id AND revision_num = revision_count - 1",
    where="archived_at IS NULL",
    place="revision.id = hit.place",
    order="artifact.id DESC",
    text_of=_words,
)

KINDS: Mapping[str, _Kind] = {"message": _MESSAGES, "worklog": _ENTRIES, "artifact": _ARTIFACTS}
"""The kinds of rows that a search finds."""
