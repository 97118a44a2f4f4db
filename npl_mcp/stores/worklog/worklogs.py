"""Worklogs: reports among the agents of one project, in sessions of numbered entries.

The database is authoritative. An entry gets its number in the transaction that inserts it, so the numbers of
a session are consecutive and in the order of the commits. The functions run in the caller's transaction;
``project`` is the absolute path of a project's folder, which need not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import fill
from npl_mcp.stores.commits import Topic
from npl_mcp.stores.worklog import rows
from npl_mcp.stores.worklog.rows import ARCHIVE, FILE_NAME, Entry, WorklogSession

TAGS = 64
"""Maximum tags of an entry."""

DATA = 256 * 1024
"""Maximum characters of an entry's data as JSON."""

PAGE = 200
"""Default entries of one reading."""


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


def init(tx: Transaction, project: str, session_id: str | None, task: str | None) -> WorklogSession:
    """Create a session, or resume an open one; it becomes the current one of the project.

    :param session_id: the id of the session; by default today's date in UTC, with the suffix ``-2`` and so on
        once that session is closed.
    :raises ClosedError: the session is closed.
    """
    row, new = _start(tx, project, session_id, task)
    return replace(rows.sessions_of(tx, project, [row])[0], new=new)


def _start(tx: Transaction, project: str, session_id: str | None, task: str | None) -> tuple[Row, bool]:
    """Return the row of a session that becomes the current one, and whether it is new."""
    closed = "archived_as IS NULL AND status = 'closed'"
    wanted = session_id or rows.free_name(tx, project, "id", tx.now[:10], closed)
    before = rows.unarchived(tx, project, wanted)
    row = before or rows.insert(tx, project, WorklogSession(wanted, "active", tx.now, task))
    rows.require_open(row)
    rows.set_current(tx, project, row["number"])
    return row, before is None


def log(tx: Transaction, project: str, session_id: str | None, values: Mapping[str, Any]) -> Logged:
    """Append an entry.

    :param session_id: the id of the session; by default the current one. If no session was ever current,
        today's session is started.
    :param values: the columns of the entry except its number and its time.
    :raises ClosedError: the session is closed.
    """
    row = rows.find(tx, project, session_id) if session_id else rows.current(tx, project)
    opened = True if row is None else None
    if row is None:
        row, _ = _start(tx, project, None, None)
    rows.require_open(row)
    return Logged(row["id"], rows.append(tx, row["number"], tx.now, values), tx.now, opened)


def read(
    tx: Transaction,
    project: str,
    session_id: str | None,
    agent_id: str,
    part: Slice,
    since: int | None,
    *,
    peek: bool,
) -> ReadEntries:
    """Return an agent's unread entries, and move its cursor to the last of them.

    :param session_id: the id of the session; by default the current one.
    :param part: the maximum number of entries.
    :param since: the number after which entries are returned; it replaces the cursor.
    :param peek: whether the cursor stays in place.
    """
    row = rows.resolve(tx, project, session_id)
    cursor = rows.last_read(tx, row["number"], agent_id)
    start = cursor if since is None else since
    entries = tuple(rows.entries(tx, row["number"], start + 1, part.limit))
    end = entries[-1].seq if entries else start
    if entries and not peek:
        cursor = end
        rows.move(tx, row["number"], agent_id, cursor, tx.now)
    total = row["entry_count"]
    page = Page(entries, total, part.limit, min(start, total), cursor)
    return fill(ReadEntries, page, session_id=row["id"], remaining=max(0, total - end))


def topic(tx: Transaction, project: str, session_id: str | None) -> Topic:
    """Return the topic that changes with each entry of a session.

    :param session_id: the id of the session; by default the current one.
    """
    return Topic(rows.POSITIONS, rows.resolve(tx, project, session_id)["number"])


def status(tx: Transaction, project: str, session_id: str | None) -> WorklogSession:
    """Describe a session.

    :param session_id: the id of the session; by default the current one.
    """
    return rows.sessions_of(tx, project, [rows.resolve(tx, project, session_id)])[0]


def newest_of(tx: Transaction, project: str, session_id: str) -> WorklogSession | None:
    """Describe the newest session with an id, archived or not."""
    sql = f"{rows.SESSION} WHERE project = :project AND id = :id ORDER BY number DESC LIMIT 1"
    return next(iter(rows.sessions_of(tx, project, tx.all(sql, project=project, id=session_id))), None)


def sessions(tx: Transaction, project: str, *, archived: bool = False) -> tuple[WorklogSession, ...]:
    """Return a project's sessions, newest first.

    :param archived: whether to include archived sessions.
    """
    only = "" if archived else "AND archived_as IS NULL"
    sql = f"{rows.SESSION} WHERE project = :project {only} ORDER BY created DESC, number DESC"
    return rows.sessions_of(tx, project, tx.all(sql, project=project))


def close(tx: Transaction, project: str, session_id: str | None, *, archive: bool) -> WorklogSession:
    """Close a session permanently. Idempotent.

    :param session_id: the id of the session; by default the current one.
    :param archive: whether to move it to the archive as well; its id can then be reused.
    """
    row = rows.resolve(tx, project, session_id)
    number = row["number"]
    archived_as = row["archived_as"]
    if archive and archived_as is None:
        archived_as = rows.free_name(tx, project, "archived_as", row["id"])
    sql = (
        "UPDATE worklog_session SET closed = CASE WHEN status = 'active' THEN :now ELSE closed END,"
        " status = 'closed', archived_as = :archived_as WHERE number = :number"
    )
    tx.run(sql, now=tx.now, archived_as=archived_as, number=number)
    closed = tx.all(f"{rows.SESSION} WHERE number = :number", number=number)
    return rows.sessions_of(tx, project, closed)[0]


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
