"""Rows that hold words: messages, worklog entries, artifacts.

A row holds a word or a phrase if its text does, whatever the case. Each engine keeps an index of the words of
all rows, which finds those in which a word begins with the one that is looked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.stores.base.database import Database, Row, Transaction

MOST = 1_000
"""Rows that are read of those that hold a word: with the most words first, then the newest."""

MOST_OF_A_WORD = 100_000
"""Rows that count of those that hold one word: the newest. A rarer word finds a row however old it is."""

# Scripts without spaces: a word stands in the middle of what the index takes for one.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True, slots=True)
class Match:
    """A row that holds words.

    :param row: its columns; those that are shown have the names of an answer's fields.
    :param text: what is shown of it.
    :param held: how many of the words it holds.
    """

    row: Mapping[str, Any]
    text: str
    held: int


@dataclass(frozen=True, slots=True)
class _Kind:
    """Rows of one kind.

    :param index: what has their words: a table of SQLite, a function of PostgreSQL.
    :param number: of a row in the index.
    :param columns: what is read of each.
    :param words: the text that holds their words.
    :param tables: where they are read.
    :param where: which are found at all.
    :param place: the condition that a row is that of ``hit.place``.
    :param order: the newest first.
    :param text_of: makes the text of a row.
    :param recent: which rows may be the newest, where rows of other kinds lie between.
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
        """Return rows that hold words: those with the most first, then the newest."""
        parts = []
        for at, word in enumerate(words):
            if _UNSPACED.search(word):
                given[f"w{at}"] = f"%{_escaped(word)}%"
                hits = f"{self.number} AS place FROM {self.tables} WHERE {self.where} AND"
                hits += f" {self.words} LIKE :w{at} ESCAPE '!'"
            else:
                given[f"w{at}"] = _query(word)
                hits = f"rowid AS place FROM {self.index}(:w{at})"
            newest = f"SELECT {hits} ORDER BY place DESC LIMIT {MOST_OF_A_WORD}"
            parts.append(f"SELECT place FROM ({newest}) AS hits_{at}")
        hit = f"SELECT place, count(*) AS held FROM ({' UNION ALL '.join(parts)}) AS hits GROUP BY place"
        found = self._read(
            tx,
            f"({hit}) AS hit CROSS JOIN {self.tables}",
            self.place,
            f"held DESC, {self.order}",
            MOST,
            given,
        )
        matches = [self.match(row, words) for row in found]
        # The index takes signs for spaces, so it finds more than there is.
        return sorted((one for one in matches if one.held), key=lambda one: -one.held)

    def newest(self, tx: Transaction, limit: int, **given: object) -> list[Match]:
        """Return the newest rows."""
        found = self._read(tx, self.tables, self.recent, self.order, limit, given)
        return [self.match(row, ()) for row in found]

    def _read(
        self, tx: Transaction, tables: str, where: str, order: str, most: int, given: Mapping[str, object]
    ) -> list[Row]:
        return tx.all(
            f"SELECT {self.columns}, {self.words} AS words FROM {tables} WHERE {self.where} AND {where}"
            f" ORDER BY {order} LIMIT :most",
            most=most,
            **given,
        )

    def match(self, row: Row, words: Sequence[str]) -> Match:
        """Return a row with what it holds of some words."""
        text = self.text_of(row)
        lower = text.lower()
        return Match(row, row.get("summary", text), sum(word.lower() in lower for word in words))


class SearchStore:
    """Looks through rows of the stores.

    :param database: where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def messages(self, words: Sequence[str]) -> list[Match]:
        """Return messages and todos of rooms that are not archived."""
        return self._found(_MESSAGES, words)

    def worklog(self, words: Sequence[str], project: str) -> list[Match]:
        """Return entries of a project's worklogs that are not archived."""
        return self._found(_ENTRIES, words, project=project)

    def artifacts(self, words: Sequence[str]) -> list[Match]:
        """Return artifacts that are not archived, by their names and what is said of their revisions."""
        return self._found(_ARTIFACTS, words)

    def newest(self, project: str, limit: int) -> dict[str, list[Match]]:
        """Return the newest messages, worklog entries and artifacts.

        :param limit: of each.
        """
        if not self._database.engine.exists():
            return {}
        with self._database.read() as tx:
            return {
                "message": _MESSAGES.newest(tx, limit),
                "worklog": _ENTRIES.newest(tx, limit, project=project),
                "artifact": _ARTIFACTS.newest(tx, limit),
            }

    def _found(self, kind: _Kind, words: Sequence[str], **given: object) -> list[Match]:
        if not words or not self._database.engine.exists():  # looking must not make a data folder
            return []
        with self._database.read() as tx:
            return kind.holding(tx, words, **given)


def _query(word: str) -> str:
    """Return what an index is asked for: a word or a phrase, whose last word is a beginning."""
    # A database may lower letters of ASCII alone.
    forms = (word,) if word.isascii() else (word.lower(), word.capitalize(), word.upper())
    quoted = (form.replace('"', '""') for form in dict.fromkeys(forms))
    return " OR ".join(f'"{form}" *' for form in quoted)


def _escaped(word: str) -> str:
    for mark in "!%_":
        word = word.replace(mark, f"!{mark}")
    return word


def _words(row: Row) -> str:
    return str(row["words"])


def _said(row: Row) -> str:
    """Return what an event says; what it tells of others is no words."""
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
