"""What agents did, in time: messages and todos, worklog entries, revisions, reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.values import conditions
from npl_mcp.stores.chat.feed import text_of
from npl_mcp.stores.session import ARTIFACTS

MAX_TEXT = 300
"""Characters of an entry's text."""

_COLUMNS = "'' AS kind, '' AS at, '' AS \"by\", '' AS title, '' AS text, '' AS place, 0 AS number"
_LINKED = f"artifact_id IN {ARTIFACTS}"

KINDS: Mapping[str, tuple[str, str]] = {
    "chat": (
        "SELECT 'chat', timestamp, persona, room.name, data, CAST(room.id AS TEXT), event.id"
        " FROM event JOIN room ON room.id = room_id"
        " WHERE event_type IN ('message', 'handoff', 'todo_create')",
        "session_number = (SELECT number FROM session WHERE id = :session)",
    ),
    "worklog": (
        "SELECT 'worklog', ts, agent_id, coalesce(task, log.id), action || ': ' || summary,"
        " CASE WHEN archived_as IS NULL THEN log.id ELSE 'archive/' || archived_as END, seq"
        " FROM worklog_entry JOIN worklog_session AS log ON log.number = session_number"
        " WHERE project = :project",
        "log.id = :session",
    ),
    "artifact": (
        "SELECT 'artifact', revision.created_at, coalesce(created_by, ''), name, purpose,"
        " CAST(artifact_id AS TEXT), revision_num FROM revision JOIN artifact ON artifact.id = artifact_id"
        " WHERE TRUE",
        _LINKED,
    ),
    "review": (
        "SELECT 'review', coalesce(completed_at, review.created_at), reviewer_persona, name,"
        " replace(coalesce(verdict, status), '_', ' ') || coalesce(': ' || overall_comment, ''),"
        " CAST(review.id AS TEXT), 0"
        " FROM review JOIN artifact ON artifact.id = artifact_id WHERE TRUE",
        _LINKED,
    ),
}
"""Entries by their domains, as SQL, and the conditions for those of a session."""


@dataclass(frozen=True, slots=True)
class Acts:
    """A choice of entries.

    :param kinds: some of :data:`KINDS`.
    :param project: project of the worklogs.
    :param session: id of a session; only its entries.
    :param since: time of the first entry.
    """

    kinds: Sequence[str]
    project: str
    session: str | None = None
    since: str | None = None

    def newest(self, tx: Transaction, most: int, by: str | None = None, day: str | None = None) -> list[Row]:
        """Return the newest entries, newest first.

        An entry has ``kind``, its domain; ``at``, its time; ``by``, the agent; ``title``, the name of its
        room, worklog or artifact; ``text``, the beginning of its text; ``place``, the id of its room,
        worklog, artifact or review; and ``number``, the id of the event, or the number of the worklog entry
        or of the revision.

        :param most: maximum number of entries.
        :param by: an agent; only its entries.
        :param day: a day, as ``2026-01-31``; only its entries.
        """
        limits = {"by": ('"by" = :by', by), "day": ("substr(at, 1, 10) = :day", day)}
        rows = self._rows(tx, "*", "ORDER BY at DESC, number DESC LIMIT :most", most, **limits)
        return [{**row, "text": _text(row)} for row in rows]

    def counts(self, tx: Transaction) -> list[Row]:
        """Return the numbers of entries by day and agent: ``day``, ``by`` and ``entries``."""
        return self._rows(tx, 'substr(at, 1, 10) AS day, "by", count(*) AS entries', "GROUP BY 1, 2")

    def _rows(
        self, tx: Transaction, columns: str, end: str, most: int | None = None, **limits: tuple[str, Any]
    ) -> list[Row]:
        where, values = conditions(since=("at >= :since", self.since), **limits)
        chosen = [KINDS[kind] for kind in self.kinds]
        parts = [f"{sql} AND {linked}" if self.session else sql for sql, linked in chosen]
        parts.insert(0, f"SELECT {_COLUMNS} WHERE FALSE")
        acts = f"({' UNION ALL '.join(parts)}) AS act"
        values |= {"session": self.session, "project": self.project, "most": most}
        return tx.all(f"SELECT {columns} FROM {acts} WHERE {where} {end}", **values)


def _text(row: Row) -> str:
    """Return the beginning of an entry's text; that of an event is in its JSON data."""
    text = text_of(row["text"]) if row["kind"] == "chat" else row["text"] or ""
    return " ".join(text.split())[:MAX_TEXT]
