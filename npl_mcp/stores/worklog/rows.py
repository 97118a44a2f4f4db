"""The rows of a worklog, and their SQL statements; the functions run in the caller's transaction.

A session's row holds its counts, so the cost of every function is independent of the size of the worklog.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count as count_from
from typing import Any

from npl_mcp.stores.base.database import Row, Transaction, json_of
from npl_mcp.stores.base.errors import ClosedError, SessionNotFoundError
from npl_mcp.stores.base.values import columns, fill

ARCHIVE = "archive"
"""Folder of the archived sessions, and prefix of their names."""

FILE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
"""Valid names of files and folders."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a worklog.

    :param seq: number of the entry in its session, from 1.
    :param ts: time of the entry, UTC, ISO 8601, microseconds, ``Z``.
    :param agent_id: name of the agent.
    :param agent_type: kind of agent.
    :param action: kind of event.
    :param summary: description of the event.
    :param data: details, any JSON.
    :param tags: words for filters.
    :param refs: references by kind.
    """

    seq: int
    ts: str
    agent_id: str
    agent_type: str
    action: str
    summary: str
    data: Any = None
    tags: Sequence[str] | None = None
    refs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class WorklogSession:
    """A worklog session.

    :param session_id: id of the session.
    :param status: ``active`` or ``closed``.
    :param created: time of its creation, UTC, ISO 8601, microseconds, ``Z``.
    :param task: purpose of the session.
    :param entry_count: number of its entries, which is the ``seq`` of the last one.
    :param agents: names of its agents.
    :param last_entry: time of the last entry.
    :param current: whether it is the current session of the project.
    :param closed: time of closing.
    :param archived_as: name in the archive; the prefix ``archive/`` makes it a name for reading.
    :param new: whether the call that starts or resumes it has created it; absent in other answers.
    """

    session_id: str
    status: str
    created: str
    task: str | None = None
    entry_count: int = 0
    agents: tuple[str, ...] = ()
    last_entry: str | None = None
    current: bool = False
    closed: str | None = None
    archived_as: str | None = None
    new: bool | None = None


_COLUMNS = "number, id, created, closed, archived_as, task, status, entry_count, last_entry"
SESSION = f"SELECT {_COLUMNS} FROM worklog_session"

POSITIONS = "SELECT number AS key, entry_count AS position FROM worklog_session WHERE number IN :keys"
"""The positions of sessions; see :class:`~npl_mcp.stores.commits.Topic`."""

ENTRY = columns(Entry)
JSON_COLUMNS = ("data", "tags", "refs")


def unarchived(tx: Transaction, project: str, session_id: str) -> Row | None:
    """Return the unarchived session with an id."""
    sql = f"{SESSION} WHERE project = :project AND id = :id AND archived_as IS NULL"
    return tx.first(sql, project=project, id=session_id)


def free_name(tx: Transaction, project: str, column: str, name: str, where: str = "TRUE") -> str:
    """Return a name, or if a session has it in a column, the first free one of ``name-2``, ``name-3``, …."""
    # "." comes after "-", so this range has the name itself, and all names that continue it with a hyphen.
    sql = (
        f"SELECT {column} AS name FROM worklog_session WHERE project = :project AND {where}"
        f" AND {column} >= :name AND {column} < :beyond"
    )
    taken = {row["name"] for row in tx.all(sql, project=project, name=name, beyond=f"{name}.")}
    names = (name if number == 1 else f"{name}-{number}" for number in count_from(1))
    return next(name for name in names if name not in taken)


def find(tx: Transaction, project: str, name: str) -> Row:
    """Return a session.

    :param name: its id, or its name in the archive.
    :raises SessionNotFoundError: the session does not exist; the error has similar ids.
    """
    sql = (
        f"{SESSION} WHERE project = :project"
        " AND (archived_as = :archived OR archived_as IS NULL AND id = :name)"
        " ORDER BY (archived_as IS NULL) DESC LIMIT 1"
    )
    row = tx.first(sql, project=project, name=name, archived=name.removeprefix(f"{ARCHIVE}/"))
    if row is None:
        sql = "SELECT DISTINCT id FROM worklog_session WHERE project = :project LIMIT 1000"
        near = tx.near(name, sql, project=project)
        raise SessionNotFoundError(f"Session not found: {name[:128]}", near=near)
    return row


def resolve(tx: Transaction, project: str, session_id: str | None) -> Row:
    """Return the named session, or by default the current one.

    :raises SessionNotFoundError: the session does not exist, or no session is current.
    """
    if session_id is not None:
        return find(tx, project, session_id)
    row = current(tx, project)
    if row is None or row["status"] != "active":
        raise SessionNotFoundError("No active session", hint="start one with worklog init, or name one")
    return row


def current(tx: Transaction, project: str) -> Row | None:
    """Return the session that was started or resumed last, open or not; without one the newest active one."""
    started = (
        f"{SESSION} JOIN worklog_current USING (project, number) WHERE project = :project AND agent = ''"
    )
    newest = f"{SESSION} WHERE project = :project AND status = 'active' ORDER BY number DESC LIMIT 1"
    return tx.first(started, project=project) or tx.first(newest, project=project)


def require_open(row: Row) -> None:
    """Refuse a closed session.

    :raises ClosedError: the session is closed or archived.
    """
    if row["status"] != "active":
        state = "closed" if row["archived_as"] is None else "archived"
        raise ClosedError(f"Session {row['id']} is {state}", hint="start another with worklog init")


def insert(tx: Transaction, project: str, session: WorklogSession) -> Row:
    """Store a session without entries."""
    names = ("created", "closed", "archived_as", "task", "status")
    values = {name: getattr(session, name) for name in names}
    row: Row = tx.insert("worklog_session", _COLUMNS, project=project, id=session.session_id, **values)
    return row


def is_known(tx: Transaction, project: str, session: WorklogSession) -> bool:
    """Return whether the database already has a folder's session."""
    # Same id and same time: the session was archived here, but its folder was not.
    sql = """
        SELECT 1 FROM worklog_session WHERE project = :project AND (archived_as = :archived_as OR (
            id = :id AND (created = :created OR (archived_as IS NULL AND :live = 1))))
        LIMIT 1"""
    archived = session.archived_as
    names = {"id": session.session_id, "created": session.created, "archived_as": archived}
    return tx.value(sql, project=project, live=int(archived is None), **names) is not None


def set_current(tx: Transaction, project: str, number: int) -> None:
    """Set the current session of a project; earlier versions also stored one for each agent."""
    tx.upsert("worklog_current", "project, agent", project=project, agent="", number=number)


def append(tx: Transaction, number: int, ts: str, values: Mapping[str, Any]) -> int:
    """Append an entry under the next number.

    :param values: the other columns of the entry.
    :returns: the number.
    """
    sql = (
        "UPDATE worklog_session SET entry_count = entry_count + 1, last_entry = :ts"
        " WHERE number = :number RETURNING entry_count"
    )
    seq = tx.value(sql, ts=ts, number=number)
    tx.insert("worklog_entry", "seq", session_number=number, seq=seq, ts=ts, **values)
    sql = """
        INSERT INTO worklog_agent (session_number, agent_id, entry_count) VALUES (:number, :agent_id, 1)
        ON CONFLICT (session_number, agent_id)
        DO UPDATE SET entry_count = worklog_agent.entry_count + 1"""
    tx.run(sql, number=number, agent_id=values["agent_id"])
    return int(seq)


def count_entries(tx: Transaction, number: int) -> None:
    """Set the counts of a session whose entries were inserted without them."""
    own = "FROM worklog_entry WHERE session_number = :number"
    sql = (
        f"UPDATE worklog_session SET entry_count = (SELECT count(*) {own}),"
        f" last_entry = (SELECT ts {own} ORDER BY seq DESC LIMIT 1) WHERE number = :number"
    )
    tx.run(sql, number=number)
    counts = f"SELECT session_number, agent_id, count(*) {own} GROUP BY session_number, agent_id"
    tx.run(f"INSERT INTO worklog_agent (session_number, agent_id, entry_count) {counts}", number=number)


def entries(tx: Transaction, number: int, first: int, most: int) -> list[Entry]:
    """Return consecutive entries of a session from a number on; long entries reduce their count."""
    sql = (
        f"SELECT {ENTRY} FROM worklog_entry"
        " WHERE session_number = :number AND seq >= :first ORDER BY seq LIMIT :most"
    )
    return list(map(entry, tx.first_rows(sql, number=number, first=first, most=most)))


def entry(row: Row) -> Entry:
    """Return an entry for an answer.

    :param row: a row with the columns of an entry; other columns are ignored.
    """
    read = {
        name: json_of(row[name], f"entry {row['seq']} of a worklog, column {name}")
        for name in JSON_COLUMNS
        if row[name] is not None
    }
    return fill(Entry, row, **read)


def last_read(tx: Transaction, number: int, agent_id: str) -> int:
    """Return the number of the last entry that an agent has read; 0 without one."""
    sql = "SELECT last_seq FROM worklog_agent WHERE session_number = :number AND agent_id = :agent_id"
    return tx.value(sql, number=number, agent_id=agent_id) or 0


def move(tx: Transaction, number: int, agent_id: str, last_seq: int, last_read: str | None) -> None:
    """Set the number of the last entry that an agent has read, and the time of its reading."""
    values = {"agent_id": agent_id, "last_seq": last_seq, "last_read": last_read}
    tx.upsert("worklog_agent", "session_number, agent_id", session_number=number, **values)


def sessions_of(tx: Transaction, project: str, session_rows: Sequence[Row]) -> tuple[WorklogSession, ...]:
    """Return descriptions of a project's sessions for an answer."""
    own, agents = current(tx, project), dict[int, list[str]]()
    sql = "SELECT session_number, agent_id FROM worklog_agent WHERE session_number IN :numbers"
    for row in tx.all(f"{sql} AND entry_count > 0", numbers=[row["number"] for row in session_rows]):
        agents.setdefault(row["session_number"], []).append(row["agent_id"])
    sessions = []
    for row in session_rows:
        names = tuple(sorted(agents.get(row["number"], ())))
        more = {"session_id": row["id"], "agents": names, "current": row == own and row["status"] == "active"}
        sessions.append(fill(WorklogSession, row, **more))
    return tuple(sessions)
