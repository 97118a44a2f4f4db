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
class _Text:
    """Text of a table that has an index.

    :param table: its name.
    :param place: the number of what is found by it.
    :param words: the text; the expression of PostgreSQL's index.
    :param where: the condition of that index.
    :param hit: the same number as ``place``, from SQLite's index.
    """

    table: str
    place: str
    words: str
    where: str = "1 = 1"
    hit: str = "rowid"

    def holding(self, dialect: str, word: str, name: str) -> tuple[str, dict[str, str]]:
        """Return SQL for the places of texts that hold a word, and its parameters.

        :param name: how the names of the parameters begin.
        """
        select = f"SELECT {self.place} AS place FROM {self.table} WHERE {self.where}"
        if _UNSPACED.search(word):
            text = self.words.replace("said(data)", "data")
            return f"{select} AND {text} LIKE :{name} ESCAPE '!'", {name: f"%{_escaped(word)}%"}
        if dialect == "sqlite":
            index, quoted = f"{self.table}_words", word.replace('"', '""')
            sql = f"SELECT {self.hit} AS place FROM {index} WHERE {index} MATCH :{name}"
            return sql, {name: f'"{quoted}" *'}
        forms = {f"{name}_{at}": form for at, form in enumerate(_forms(word))}
        tests = (f"words_of({self.words}) @@ words_like(:{one})" for one in forms)
        return f"{select} AND ({' OR '.join(tests)})", forms


@dataclass(frozen=True, slots=True)
class _Kind:
    """Rows of one kind.

    :param columns: what is read of each.
    :param tables: where it is read.
    :param where: which rows are found at all.
    :param place: the condition that a row is the one of ``hit.place``.
    :param order: the newest first.
    :param texts: what is looked through.
    :param text_of: makes the text of a row.
    :param recent: which rows may be the newest, where others lie between those that are found.
    """

    columns: str
    tables: str
    where: str
    place: str
    order: str
    texts: Sequence[_Text]
    text_of: Callable[[Row], str]
    recent: str = "1 = 1"

    def holding(self, tx: Transaction, dialect: str, words: Sequence[str], **given: object) -> list[Match]:
        """Return rows that hold words: those with the most first, then the newest."""
        parts, values = [], dict(given)
        for number, word in enumerate(words):
            for at, text in enumerate(self.texts):
                sql, parameters = text.holding(dialect, word, f"w{number}_{at}")
                newest = f"{sql} ORDER BY place DESC LIMIT {MOST_OF_A_WORD}"
                parts.append(f"SELECT place FROM ({newest}) AS w{number}_{at}")
                values |= parameters
        sql = (
            "WITH hit AS (SELECT place, count(*) AS held"
            f" FROM ({' UNION ALL '.join(parts)}) AS each_word GROUP BY place)"
            f" SELECT {self.columns} FROM hit CROSS JOIN {self.tables} WHERE {self.where} AND {self.place}"
            f" ORDER BY held DESC, {self.order} LIMIT :most"
        )
        found = [self.match(row, words) for row in tx.all(sql, most=MOST, **values)]
        # The index takes signs for spaces, so it finds more than there is.
        return sorted((one for one in found if one.held), key=lambda one: -one.held)

    def newest(self, tx: Transaction, limit: int, **given: object) -> list[Match]:
        """Return the newest rows."""
        sql = (
            f"SELECT {self.columns} FROM {self.tables} WHERE {self.where} AND {self.recent}"
            f" ORDER BY {self.order} LIMIT :most"
        )
        return [self.match(row, ()) for row in tx.all(sql, most=limit, **given)]

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
            return kind.holding(tx, self._database.engine.dialect, words, **given)


def _forms(word: str) -> list[str]:
    """Return a word as it may stand in rows, where a database lowers letters of ASCII alone."""
    return list(dict.fromkeys((word,) if word.isascii() else (word.lower(), word.capitalize(), word.upper())))


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


_SAYING = "event_type IN ('message', 'handoff', 'todo_create')"

_MESSAGES = _Kind(
    columns="""event.id AS event_id, room_id, room.name AS title, persona AS "by", timestamp AS at,
        data AS words""",
    tables="event JOIN room ON room.id = room_id",
    where=f"archived_at IS NULL AND {_SAYING}",
    place="event.id = hit.place",
    order="event.id DESC",
    texts=(_Text("event", "id", "said(data)", _SAYING),),
    text_of=_said,
    recent="event.id > (SELECT coalesce(max(id), 0) FROM event) - 100000",
)

_ENTRIES = _Kind(
    columns="""session.id AS session_id, seq, ts AS at, agent_id AS "by", action AS title, summary,
        action || ' ' || summary || ' ' || coalesce(tags, '') AS words""",
    tables="worklog_entry AS entry JOIN worklog_session AS session ON session.number = entry.session_number",
    where="project = :project AND archived_as IS NULL",
    place="entry.session_number = hit.place / 1000000000 AND seq = hit.place % 1000000000",
    order="entry.session_number DESC, seq DESC",
    texts=(
        _Text(
            "worklog_entry",
            "session_number * 1000000000 + seq",
            "action || ' ' || summary || ' ' || coalesce(tags, '')",
        ),
    ),
    text_of=_words,
)

_ARTIFACTS = _Kind(
    columns="""artifact.id AS artifact_id, name AS title, revision_num AS revision,
        revision.created_at AS at, filename || ': ' || purpose AS summary,
        name || ' ' || filename || ' ' || purpose || ' ' || coalesce(notes, '') AS words""",
    tables="artifact JOIN revision ON artifact.id = artifact_id AND revision_num = revision_count - 1",
    where="archived_at IS NULL",
    place="artifact.id = hit.place",
    order="artifact.id DESC",
    texts=(
        _Text("artifact", "id", "name"),
        _Text(
            "revision",
            "artifact_id",
            "filename || ' ' || purpose || ' ' || coalesce(notes, '')",
            hit="(SELECT artifact_id FROM revision WHERE revision.id = revision_words.rowid)",
        ),
    ),
    text_of=_words,
)
