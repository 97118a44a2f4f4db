"""Worklogs: reports among the agents of one project, in sessions of numbered entries.

The database is authoritative. An entry gets its number in the transaction that inserts it, so the numbers of
a session are consecutive and in the order of the commits. A session's row holds its counts, so the cost of
every function is independent of the size of the worklog. The functions run in the caller's transaction;
``project`` is the absolute path of a project's folder, which need not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction, json_of
from npl_mcp.stores.base.errors import ClosedError, SessionNotFoundError
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import columns, fill

ARCHIVE = "archive"
"""Folder of the archived sessions, and prefix of their names."""

FILE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
"""Valid names of files and folders."""

TAGS = 64
"""Maximum tags of an entry."""

DATA = 256 * 1024
"""Maximum characters of an entry's data as JSON."""

PAGE = 200
"""Default entries of one reading."""


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


@dataclass(frozen=True, slots=True)
class Logged:
    """A new entry.

    :param session_id: id of its session.
    :param seq: number of the entry in its session.
    :param ts: time of the entry.
    :param opened: true if the call opened today's session, because no session was current.
    """

    session_id: str
    seq: int
    ts: str
    opened: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEntries(Page[Entry]):
    """Unread entries of an agent.

    :param total: number of entries in the session.
    :param cursor: number of the last entry read by the agent.
    :param session_id: id of the session.
    :param remaining: number of entries after these; the next call returns them.
    """

    session_id: str
    remaining: int


_COLUMNS = "number, id, created, closed, archived_as, task, status, entry_count, last_entry"
_SESSION = f"SELECT {_COLUMNS} FROM worklog_session"

POSITIONS = "SELECT number AS key, entry_count AS position FROM worklog_session WHERE number IN :keys"
"""The position of a session; see :class:`~npl_mcp.stores.commits.Topic`."""

_ENTRIES = f"""
SELECT {columns(Entry)} FROM worklog_entry
WHERE session_number = :number AND seq > :start ORDER BY seq LIMIT :most"""

JSON_COLUMNS = ("data", "tags", "refs")


def init(tx: Transaction, project: str, session_id: str | None, task: str | None) -> WorklogSession:
    """Create a session, or resume an open one; it becomes the current one of the project.

    :param session_id: the id of the session; by default today's date in UTC, with the suffix ``-2`` and so on
        once that session is closed.
    :raises ClosedError: the session is closed.
    """
    row, new = _start(tx, project, session_id, task)
    return replace(_describe(tx, project, row), new=new)


def _start(tx: Transaction, project: str, session_id: str | None, task: str | None) -> tuple[Row, bool]:
    """Return the row of a session that becomes the current one, and whether it is new."""
    closed = "archived_as IS NULL AND status = 'closed'"
    wanted = session_id or _free_name(tx, project, "id", tx.now[:10], closed)
    sql = f"{_SESSION} WHERE project = :project AND id = :id AND archived_as IS NULL"
    before = tx.first(sql, project=project, id=wanted)
    row = before or insert(tx, project, WorklogSession(wanted, "active", tx.now, task))
    _require_open(row)
    # Earlier versions also stored a current session for each agent.
    tx.upsert("worklog_current", "project, agent", project=project, agent="", number=row["number"])
    return row, before is None


def insert(tx: Transaction, project: str, session: WorklogSession) -> Row:
    """Store a session without entries."""
    names = ("created", "closed", "archived_as", "task", "status")
    values = {name: getattr(session, name) for name in names}
    row: Row = tx.insert("worklog_session", _COLUMNS, project=project, id=session.session_id, **values)
    return row


def log(tx: Transaction, project: str, session_id: str | None, values: Mapping[str, Any]) -> Logged:
    """Append an entry.

    :param session_id: the id of the session; by default the current one. If no session was ever current,
        today's session is started.
    :param values: the columns of the entry except its number and its time.
    :raises ClosedError: the session is closed.
    """
    known = _find(tx, project, session_id) if session_id else _current(tx, project)
    row = known or _start(tx, project, None, None)[0]
    _require_open(row)
    number = row["number"]
    sql = """
        UPDATE worklog_session SET entry_count = entry_count + 1, last_entry = :ts
        WHERE number = :number RETURNING entry_count"""
    seq = int(tx.value(sql, ts=tx.now, number=number))
    tx.insert("worklog_entry", "seq", session_number=number, seq=seq, ts=tx.now, **values)
    sql = """
        INSERT INTO worklog_agent (session_number, agent_id, entry_count) VALUES (:number, :agent_id, 1)
        ON CONFLICT (session_number, agent_id)
        DO UPDATE SET entry_count = worklog_agent.entry_count + 1"""
    tx.run(sql, number=number, agent_id=values["agent_id"])
    return Logged(row["id"], seq, tx.now, None if known else True)


def read(
    tx: Transaction, row: Row, agent_id: str, part: Slice, since: int | None, *, peek: bool = False
) -> ReadEntries:
    """Return an agent's unread entries, and move its cursor to the last of them.

    :param row: the session.
    :param part: the maximum number of entries; long entries reduce it.
    :param since: the number after which entries are returned; it replaces the cursor.
    :param peek: whether the cursor stays in place.
    """
    agent, total = {"number": row["number"], "agent_id": agent_id}, row["entry_count"]
    sql = "SELECT last_seq FROM worklog_agent WHERE session_number = :number AND agent_id = :agent_id"
    cursor = tx.value(sql, **agent) or 0
    start = cursor if since is None else since
    found = tx.first_rows(_ENTRIES, number=row["number"], start=start, most=part.limit)
    end = found[-1]["seq"] if found else start
    if found and not peek:
        cursor = end
        move(tx, **agent, last_seq=end, last_read=tx.now)
    page = Page(tuple(map(_entry, found)), total, part.limit, min(start, total), cursor)
    return fill(ReadEntries, page, session_id=row["id"], remaining=max(0, total - end))


def _entry(row: Row) -> Entry:
    where = f"entry {row['seq']} of a worklog, column"
    names = [name for name in JSON_COLUMNS if row[name] is not None]
    return fill(Entry, row, **{name: json_of(row[name], f"{where} {name}") for name in names})


def move(tx: Transaction, number: int, agent_id: str, last_seq: int, last_read: str | None) -> None:
    """Set the number of the last entry that an agent has read, and the time of its reading."""
    values = {"agent_id": agent_id, "last_seq": last_seq, "last_read": last_read}
    tx.upsert("worklog_agent", "session_number, agent_id", session_number=number, **values)


def status(tx: Transaction, project: str, session_id: str | None) -> WorklogSession:
    """Describe a session.

    :param session_id: the id of the session; by default the current one.
    """
    return _describe(tx, project, resolve(tx, project, session_id))


def newest_of(tx: Transaction, project: str, session_id: str) -> WorklogSession | None:
    """Describe the newest session with an id, archived or not."""
    return next(iter(_sessions(tx, project, "id = :id ORDER BY number DESC LIMIT 1", id=session_id)), None)


def sessions(tx: Transaction, project: str, *, archived: bool = False) -> tuple[WorklogSession, ...]:
    """Return a project's sessions, newest first.

    :param archived: whether to include archived sessions.
    """
    which = "TRUE" if archived else "archived_as IS NULL"
    return _sessions(tx, project, f"{which} ORDER BY created DESC, number DESC")


def close(tx: Transaction, project: str, session_id: str | None, *, archive: bool) -> WorklogSession:
    """Close a session permanently. Idempotent.

    :param session_id: the id of the session; by default the current one.
    :param archive: whether to move it to the archive as well; its id can then be reused.
    """
    row = resolve(tx, project, session_id)
    archived_as = row["archived_as"]
    if archive and archived_as is None:
        archived_as = _free_name(tx, project, "archived_as", row["id"])
    sql = """
        UPDATE worklog_session SET closed = CASE WHEN status = 'active' THEN :now ELSE closed END,
        status = 'closed', archived_as = :archived_as WHERE number = :number"""
    tx.run(sql, now=tx.now, archived_as=archived_as, number=row["number"])
    return _describe(tx, project, row)


def resolve(tx: Transaction, project: str, session_id: str | None) -> Row:
    """Return the named session, or by default the current one.

    :raises SessionNotFoundError: the session does not exist, or no session is current.
    """
    if session_id is not None:
        return _find(tx, project, session_id)
    row = _current(tx, project)
    if row is None or row["status"] != "active":
        raise SessionNotFoundError("No active session", hint="start one with worklog init, or name one")
    return row


def _find(tx: Transaction, project: str, name: str) -> Row:
    """Return a session.

    :param name: its id, or its name in the archive.
    :raises SessionNotFoundError: the session does not exist; the error has similar ids.
    """
    sql = f"""
        {_SESSION} WHERE project = :project
        AND (archived_as = :archived OR archived_as IS NULL AND id = :name)
        ORDER BY (archived_as IS NULL) DESC LIMIT 1"""
    row = tx.first(sql, project=project, name=name, archived=name.removeprefix(f"{ARCHIVE}/"))
    if row is None:
        sql = "SELECT DISTINCT id FROM worklog_session WHERE project = :project LIMIT 1000"
        near = tx.near(name, sql, project=project)
        raise SessionNotFoundError(f"Session not found: {name[:128]}", near=near)
    return row


def _current(tx: Transaction, project: str) -> Row | None:
    """Return the session that was started or resumed last, open or not; without one the newest active one."""
    marked = f"{_SESSION} JOIN worklog_current USING (project, number)"
    started = f"{marked} WHERE project = :project AND agent = ''"
    newest = f"{_SESSION} WHERE project = :project AND status = 'active' ORDER BY number DESC LIMIT 1"
    return tx.first(started, project=project) or tx.first(newest, project=project)


def _require_open(row: Row) -> None:
    """Refuse a closed session.

    :raises ClosedError: the session is closed or archived.
    """
    if row["status"] != "active":
        state = "closed" if row["archived_as"] is None else "archived"
        raise ClosedError(f"Session {row['id']} is {state}", hint="start another with worklog init")


def _describe(tx: Transaction, project: str, row: Row) -> WorklogSession:
    return _sessions(tx, project, "number = :number", number=row["number"])[0]


def _sessions(tx: Transaction, project: str, which: str, **values: Any) -> tuple[WorklogSession, ...]:
    """Return descriptions of a project's sessions.

    :param which: the condition and the order, as SQL.
    """
    rows = tx.all(f"{_SESSION} WHERE project = :project AND {which}", project=project, **values)
    own, agents = _current(tx, project), {row["number"]: set[str]() for row in rows}
    sql = "SELECT session_number, agent_id FROM worklog_agent WHERE session_number IN :numbers"
    for row in tx.all(f"{sql} AND entry_count > 0", numbers=list(agents)):
        agents[row["session_number"]].add(row["agent_id"])
    sessions = []
    for row in rows:
        names = tuple(sorted(agents[row["number"]]))
        more = {"session_id": row["id"], "agents": names, "current": row == own and row["status"] == "active"}
        sessions.append(fill(WorklogSession, row, **more))
    return tuple(sessions)


def _free_name(tx: Transaction, project: str, column: str, name: str, where: str = "TRUE") -> str:
    """Return a name, or if a session has it in a column, the first free one of ``name-2``, ``name-3``, …."""
    # "." comes after "-", so this range has the name itself, and all names that continue it with a hyphen.
    sql = f"""
        SELECT {column} AS name FROM worklog_session WHERE project = :project AND {where}
        AND {column} >= :name AND {column} < :beyond"""
    taken = {row["name"] for row in tx.all(sql, project=project, name=name, beyond=f"{name}.")}
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def new_id(session_id: str, parameter: str) -> str:
    """Check the id for a session, possibly a new one: it is also the name of a folder."""
    clean = checks.line(session_id, parameter)
    if FILE_NAME.fullmatch(clean) is None or clean.lower() == ARCHIVE:
        hint = "use letters, digits, '-', '_' and '.', at most 128, beginning with a letter or digit"
        raise checks.invalid(parameter, f"{clean[:64]!r} cannot be the name of a folder", hint)
    return clean


def tags_text(tags: Sequence[str], parameter: str) -> str:
    """Check the tags of an entry, and return them as JSON."""
    return checks.json_text(checks.each(tags, parameter, _tag, TAGS), parameter)


def _tag(tag: str, parameter: str) -> str:
    # Empty tags stay: a list with a superfluous comma is stored in its typed form.
    return checks.line(tag, parameter) if tag.strip() else ""
