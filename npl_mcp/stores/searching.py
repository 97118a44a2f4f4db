"""Rows that hold words: messages, worklog entries, artifacts.

Both engines look through the newest rows with ``LIKE``: 100,000 of them take less than half a
second for eight words, and an index would be another for each engine, written with every message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.stores.base.database import Database, Row, Transaction

NEWEST = 100_000
"""Rows of each kind that are looked through, newest first."""

MOST = 1_000
"""Rows that are read of those that hold a word: with the most words first, then the newest."""


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


Rows = tuple[Sequence[Match], tuple[str, ...]]
"""Rows of one kind that hold words, and what was not looked through."""


class SearchStore:
    """Looks through rows of the stores.

    :param database: where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def messages(self, words: Sequence[str]) -> Rows:
        """Return messages and todos of rooms that are not archived."""
        return self._found(_MESSAGES, _OLDER_MESSAGES, words, _said)

    def worklog(self, words: Sequence[str], project: str) -> Rows:
        """Return entries of a project's worklogs that are not archived."""
        return self._found(_ENTRIES, _OLDER_ENTRIES, words, _words, project=project)

    def artifacts(self, words: Sequence[str]) -> Rows:
        """Return artifacts that are not archived, by their names and what is said of their revisions."""
        return self._found(_ARTIFACTS, _OLDER_ARTIFACTS, words, _words)

    def newest(self, project: str, limit: int) -> dict[str, list[Match]]:
        """Return the newest messages, worklog entries and artifacts.

        :param limit: of each.
        """
        if not self._database.engine.exists():
            return {}
        with self._database.read() as tx:
            return {
                "message": _newest(tx, _MESSAGES, _said, limit),
                "worklog": _newest(tx, _ENTRIES, _words, limit, project=project),
                "artifact": _newest(tx, _ARTIFACTS, _words, limit),
            }

    def _found(
        self, rows: str, older: str, words: Sequence[str], text_of: Callable[[Row], str], **given: object
    ) -> Rows:
        if not words or not self._database.engine.exists():  # looking must not make a data folder
            return [], ()
        with self._database.read() as tx:
            matches = [_match(row, text_of(row), words) for row in _holding(tx, rows, words, given)]
            last = tx.value(older, newest=NEWEST, **given)
        # Names of fields, and words that others are a part of, are found as well.
        held = sorted((one for one in matches if one.held), key=lambda one: -one.held)
        return held, () if last is None else (last,)


def _match(row: Row, text: str, words: Sequence[str]) -> Match:
    lower = text.lower()
    return Match(row, row.get("summary", text), sum(word.lower() in lower for word in words))


def _newest(
    tx: Transaction, rows: str, text_of: Callable[[Row], str], limit: int, **given: object
) -> list[Match]:
    sql = f"SELECT * FROM ({rows}) AS found ORDER BY place DESC LIMIT :most"
    return [_match(row, text_of(row), ()) for row in tx.all(sql, newest=NEWEST, most=limit, **given)]


def _words(row: Row) -> str:
    return str(row["words"])


def _holding(tx: Transaction, rows: str, words: Sequence[str], given: Mapping[str, object]) -> list[Row]:
    patterns = {
        f"w{number}_{at}": f"%{_escaped(spelling)}%"
        for number, word in enumerate(words)
        for at, spelling in enumerate(_spellings(word))
    }
    each = []
    for number, word in enumerate(words):
        tests = (f"lower(words) LIKE :w{number}_{at} ESCAPE '!'" for at in range(len(_spellings(word))))
        each.append(f"CASE WHEN {' OR '.join(tests)} THEN 1 ELSE 0 END")
    held = " + ".join(each)
    sql = (
        f"SELECT * FROM (SELECT found.*, {held} AS held FROM ({rows}) AS found) AS counted"
        " WHERE held > 0 ORDER BY held DESC, place DESC LIMIT :most"
    )
    return tx.all(sql, **patterns, **given, newest=NEWEST, most=MOST)


def _spellings(word: str) -> list[str]:
    """Return a word as it may stand in rows: SQLite lowers only letters of ASCII."""
    if word.isascii():
        return [word.lower()]
    forms = (word.lower(), word.capitalize(), word.upper())
    return list(dict.fromkeys("".join(c.lower() if c.isascii() else c for c in form) for form in forms))


def _escaped(word: str) -> str:
    for mark in "!%_":
        word = word.replace(mark, f"!{mark}")
    return word


def _said(row: Row) -> str:
    """Return what an event says; what it tells of others is no words."""
    try:
        data = json.loads(row["words"])
    except ValueError:
        return ""
    said = (data.get(name) for name in ("message", "description")) if isinstance(data, dict) else ()
    return " ".join(text for text in said if isinstance(text, str))


_MESSAGES = """
SELECT event.id AS place, event.id AS event_id, room_id, room.name AS title, persona AS "by", timestamp AS at,
    data AS words
FROM event JOIN room ON room.id = room_id
WHERE archived_at IS NULL AND event_type IN ('message', 'handoff', 'todo_create')
    AND event.id > (SELECT coalesce(max(id), 0) FROM event) - :newest
ORDER BY event.id DESC
"""

_ENTRIES = """
SELECT entry.session_number * 1000000000 + seq AS place, session.id AS session_id, seq, ts AS at,
    agent_id AS "by", action AS title, summary, action || ' ' || summary || ' ' || coalesce(tags, '') AS words
FROM worklog_entry AS entry JOIN worklog_session AS session ON session.number = entry.session_number
WHERE project = :project AND archived_as IS NULL
ORDER BY entry.session_number DESC, seq DESC LIMIT :newest
"""

_ARTIFACTS = """
SELECT artifact.id AS place, artifact.id AS artifact_id, name AS title, revision_num AS revision,
    revision.created_at AS at,
    filename || ': ' || purpose AS summary,
    name || ' ' || filename || ' ' || purpose || ' ' || coalesce(notes, '') AS words
FROM artifact JOIN revision ON artifact.id = artifact_id AND revision_num = revision_count - 1
WHERE archived_at IS NULL
ORDER BY artifact.id DESC LIMIT :newest
"""

# The newest row that is not looked through, where there are more than are.

_OLDER_MESSAGES = """SELECT 'messages up to event ' || max(id) FROM event
WHERE id <= (SELECT coalesce(max(id), 0) FROM event) - :newest"""

_OLDER_ENTRIES = """SELECT 'worklog entries up to ' || ts
FROM worklog_entry AS entry JOIN worklog_session AS session ON session.number = entry.session_number
WHERE project = :project AND archived_as IS NULL
ORDER BY entry.session_number DESC, seq DESC LIMIT 1 OFFSET :newest"""

_OLDER_ARTIFACTS = """SELECT 'names up to that of artifact ' || id FROM artifact
WHERE archived_at IS NULL ORDER BY id DESC LIMIT 1 OFFSET :newest"""
