"""What agents did, in time: messages and todos, worklog entries, revisions, reviews."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.values import conditions, fill

MAX_TEXT = 300
"""Characters of an entry's text."""

MAX_EVENTS = 100_000
"""Events that are considered: the newest."""


class _Kind(NamedTuple):
    """Entries of one kind.

    :param at: their time.
    :param by: their agent.
    :param columns: their other columns.
    :param tables: the tables to read from.
    :param where: condition for entries.
    :param in_session: condition for entries of a session.
    :param order: their order, newest first.
    """

    at: str
    by: str
    columns: str
    tables: str
    where: str
    in_session: str
    order: str


_SESSION = "(SELECT number FROM session WHERE id = :session)"
_LINKED = f"artifact_id IN (SELECT artifact_id FROM session_artifact WHERE session_number = {_SESSION})"

KINDS: Mapping[str, _Kind] = {
    "chat": _Kind(
        "timestamp",
        "persona",
        "room.name AS title, data AS text, room.id AS place, event.id AS number",
        "event JOIN room ON room.id = room_id",
        "event_type IN ('message', 'handoff', 'todo_create')"
        f" AND event.id > (SELECT coalesce(max(id), 0) FROM event) - {MAX_EVENTS}",
        f"session_number = {_SESSION}",
        "event.id DESC",
    ),
    "worklog": _Kind(
        "ts",
        "agent_id",
        "coalesce(task, session.id) AS title, action || ': ' || summary AS text,"
        " CASE WHEN archived_as IS NULL THEN session.id ELSE 'archive/' || archived_as END AS place,"
        " seq AS number",
        "worklog_entry AS entry JOIN worklog_session AS session ON session.number = entry.session_number",
        "project = :project",
        "session.id = :session",
        "entry.session_number DESC, seq DESC",
    ),
    "artifact": _Kind(
        "revision.created_at",
        "coalesce(created_by, '')",
        "name AS title, purpose AS text, artifact_id AS place, revision_num AS number",
        "revision JOIN artifact ON artifact.id = artifact_id",
        "TRUE",
        _LINKED,
        "revision.id DESC",
    ),
    "review": _Kind(
        "coalesce(completed_at, review.created_at)",
        "reviewer_persona",
        "name AS title, coalesce(verdict, status) || coalesce(': ' || overall_comment, '') AS text,"
        " review.id AS place, NULL AS number",
        "review JOIN artifact ON artifact.id = artifact_id",
        "TRUE",
        _LINKED,
        "review.id DESC",
    ),
}
"""The kinds of entries by their domains."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An act of an agent.

    :param kind: its domain.
    :param at: time, UTC, ISO 8601.
    :param by: the agent.
    :param title: name of its room, worklog or artifact.
    :param text: beginning of its text.
    :param place: id of the room, worklog, artifact or review.
    :param number: id of the event, number of the worklog entry or of the revision.
    """

    kind: str
    at: str
    by: str
    title: str
    text: str
    place: int | str
    number: int | None


@dataclass(frozen=True, slots=True)
class Period:
    """A choice of entries.

    :param project: project of the worklogs.
    :param session: id of a session; only its entries.
    :param since: time of the first entry.
    :param until: time after the last entry.
    """

    project: str
    session: str | None = None
    since: str | None = None
    until: str | None = None


def entries(tx: Transaction, kinds: Sequence[str], period: Period, by: str | None, most: int) -> list[Entry]:
    """Return the newest entries, newest first.

    :param by: an agent; only its entries.
    :param most: maximum number of entries.
    """
    found: list[Entry] = []
    for name in kinds:
        kind = KINDS[name]
        where, values = _conditions(kind, period, by)
        sql = (
            f'SELECT {kind.at} AS at, {kind.by} AS "by", {kind.columns} FROM {kind.tables}'
            f" WHERE {where} ORDER BY {kind.order} LIMIT :most"
        )
        rows = tx.all(sql, **values, most=most)
        found += (fill(Entry, row, kind=name, text=_text(name, row["text"])) for row in rows)
    return sorted(found, key=lambda entry: entry.at, reverse=True)[:most]


def counts(tx: Transaction, kinds: Sequence[str], period: Period) -> list[Row]:
    """Return the numbers of entries by day and agent: ``day``, ``by`` and ``entries``."""
    rows: list[Row] = []
    for kind in map(KINDS.__getitem__, kinds):
        where, values = _conditions(kind, period, None)
        day = f'SELECT substr({kind.at}, 1, 10) AS day, {kind.by} AS "by", count(*) AS entries'
        rows += tx.all(f"{day} FROM {kind.tables} WHERE {where} GROUP BY 1, 2", **values)
    return rows


def _conditions(kind: _Kind, period: Period, by: str | None) -> tuple[str, dict[str, Any]]:
    where, values = conditions(
        session=(kind.in_session, period.session),
        since=(f"{kind.at} >= :since", period.since),
        until=(f"{kind.at} < :until", period.until),
        by=(f"{kind.by} = :by", by),
    )
    if "project" in kind.where:
        values["project"] = period.project
    return f"{kind.where} AND {where}", values


def _text(kind: str, text: str | None) -> str:
    """Return the beginning of an entry's text; that of an event is in its JSON data."""
    if kind == "chat":
        try:
            data = json.loads(text or "")
        except ValueError:
            data = None
        text = (data.get("message") or data.get("description")) if isinstance(data, dict) else None
    return " ".join(str(text or "").split())[:MAX_TEXT]
