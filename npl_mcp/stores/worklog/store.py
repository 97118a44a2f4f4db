"""Worklogs: what agents on one project report to each other, in sessions of numbered entries.

The database is the truth: an entry gets its number in the transaction that writes it, so within a session
numbers have no gaps, no repetitions, and the order of the commits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Row, Transaction
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.changes import Topic
from npl_mcp.stores.worklog import rows, viewing
from npl_mcp.stores.worklog.files import Imported, current_session, export, import_sessions
from npl_mcp.stores.worklog.format import ARCHIVE, FILE_NAME, Cursor, Entry, WorklogSession
from npl_mcp.stores.worklog.viewing import Wanted, WorklogView

TAGS = 64
"""Most tags of an entry."""

DATA = 256 * 1024
"""Characters of an entry's data as JSON."""

PAGE = 200
"""Entries of one read, where the caller does not say."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that was asked for.

    :param session_id: its id.
    :param new: whether it was made; otherwise it was there and was not changed.
    :param created: when it was made.
    :param task: what it is about.
    :param entry_count: entries it has.
    """

    session_id: str
    new: bool
    created: str
    task: str | None
    entry_count: int


@dataclass(frozen=True, slots=True)
class Logged:
    """An entry that was written.

    :param session_id: the session it went to.
    :param seq: its number there.
    :param ts: when it was written.
    :param opened: no session was current, so this one, of today, became so.
    """

    session_id: str
    seq: int
    ts: str
    opened: bool | None = None


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """Entries an agent had not seen.

    :param session_id: the session they are in.
    :param items: in order.
    :param total: entries of the session.
    :param limit: most of a page.
    :param offset: entries before the first.
    :param cursor: up to where the agent has now read.
    :param remaining: entries after these; the next read returns them.
    """

    session_id: str
    items: tuple[Entry, ...]
    total: int
    limit: int
    offset: int
    cursor: int
    remaining: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A session that takes no more entries.

    :param session_id: its id.
    :param status: ``closed``.
    :param closed: when that was done.
    :param archived_as: see :class:`~npl_mcp.stores.worklog.format.WorklogSession`.
    :param entry_count: entries it has.
    """

    session_id: str
    status: str
    closed: str | None
    archived_as: str | None
    entry_count: int


class WorklogStore:
    """The worklogs of all projects; ``project`` is the absolute path of a project's
    folder, which need not be there.

    Every method raises :class:`~npl_mcp.stores.base.errors.DatabaseError` if the database cannot be used.

    :param database: where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def init(
        self, project: str, session_id: str | None = None, task: str | None = None, *, switch: bool = True
    ) -> Opened:
        """Make a session and make it the current one; one that is open is resumed.

        :param session_id: by default today's date in UTC; once that session is closed, the date with ``-2``
            added, and so on.
        :param switch: a session named by its id that is there already becomes the current one.
        """
        wanted = None if session_id is None else _new_id(session_id)
        switch = switch or session_id is None
        task = checks.maybe(checks.text, task, "task")
        with self._database.write() as tx:
            current = rows.current(tx, project)
            wanted = wanted or rows.open_id(tx, project, tx.now[:10])
            row = rows.live(tx, project, wanted)
            new = row is None
            if row is None:
                row = rows.create(tx, project, wanted, task)
            elif switch:
                rows.must_be_open(row)
            if new or (switch and current != row["number"]):
                rows.set_current(tx, project, row["number"])
        return Opened(row["id"], new, row["created"], row["task"], row["entry_count"])

    def current(self, project: str) -> str | None:
        """Return the id of the current session."""
        with self._database.read() as tx:
            number = rows.current(tx, project)
            return None if number is None else str(rows.by_number(tx, number)["id"])

    def log(
        self,
        project: str,
        agent_id: str,
        action: str,
        summary: str,
        *,
        agent_type: str | None = None,
        data: object = None,
        tags: Sequence[str] | None = None,
        refs: Mapping[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Logged:
        """Append an entry.

        :param agent_type: by default ``unknown``.
        :param session_id: by default the current session; without one, today's is made and becomes current.
        """
        values = {
            "agent_id": checks.line(agent_id, "agent_id"),
            "agent_type": checks.line("unknown" if agent_type is None else agent_type, "agent_type"),
            "action": checks.line(action, "action"),
            "summary": checks.text(summary, "summary"),
            "data": checks.maybe(checks.json_text, data, "data", DATA),
            "tags": checks.maybe(_tags, tags, "tags"),
            "refs": checks.maybe(checks.json_text, refs, "refs"),
        }
        with self._database.write() as tx:
            current = rows.current(tx, project)
            made = session_id is None and current is None
            row = _todays(tx, project) if made else rows.chosen(tx, project, session_id)
            rows.must_be_open(row)
            if made:
                rows.set_current(tx, project, row["number"])
            seq = rows.append(tx, row["number"], tx.now, values)
        return Logged(row["id"], seq, tx.now, made or None)

    def read(
        self,
        project: str,
        agent_id: str,
        *,
        peek: bool = False,
        since: int | None = None,
        session_id: str | None = None,
        limit: int | None = None,
    ) -> ReadEntries:
        """Return what an agent has not seen yet, and move its cursor to the last entry returned.

        :param peek: leave the cursor where it is.
        :param since: return what comes after this number, whatever the cursor says.
        :param session_id: by default the current session.
        :param limit: most entries.
        """
        agent_id = checks.line(agent_id, "agent_id")
        checks.maybe(checks.whole, since, "since")
        most = Slice.parse(limit, None, PAGE).limit
        with self._database.read() if peek else self._database.write() as tx:
            row = rows.chosen(tx, project, session_id)
            cursor = rows.cursor(tx, row["number"], agent_id).last_seq
            start = cursor if since is None else since
            entries = tuple(rows.entries(tx, row["number"], start + 1, most))
            end = entries[-1].seq if entries else start
            if entries and not peek:
                cursor = end
                rows.move(tx, row["number"], agent_id, Cursor(cursor, tx.now))
        total = row["entry_count"]
        return ReadEntries(
            session_id=row["id"],
            items=entries,
            total=total,
            limit=most,
            offset=min(start, total),
            cursor=cursor,
            remaining=max(0, total - end),
        )

    def view(
        self, project: str, session_id: str, wanted: Wanted, before: int | None, limit: int | None
    ) -> WorklogView:
        """Return a part of a session as people look at it.

        :param before: the latest entries that come before this number; ``None``: the latest.
        """
        end, most = checks.maybe(checks.whole, before, "before"), Slice.parse(limit, None, PAGE).limit
        with self._database.read() as tx:
            row = rows.chosen(tx, project, session_id)
            about = rows.described(row, rows.current(tx, project), rows.agents(tx, [row["number"]]))
            return viewing.read(tx, about, row["number"], wanted, end, most)

    def after(self, project: str, session_id: str, wanted: Wanted, seq: int) -> tuple[Entry, ...]:
        """Return entries that come after a number, without moving anybody's cursor."""
        start = checks.whole(seq, "since")
        with self._database.read() as tx:
            number = rows.chosen(tx, project, session_id)["number"]
            return viewing.since(tx, number, wanted, start)

    def topic(self, project: str, session_id: str | None = None) -> Topic:
        """Return what changes with each entry of a session.

        :param session_id: by default whichever session is current.
        """
        if session_id is None:
            return Topic(rows.CURRENT_POSITIONS, project)
        with self._database.read() as tx:
            return Topic(rows.POSITIONS, rows.chosen(tx, project, session_id)["number"])

    def status(self, project: str, session_id: str | None = None) -> WorklogSession:
        """Describe a session.

        :param session_id: by default the current session.
        """
        with self._database.read() as tx:
            row = rows.chosen(tx, project, session_id)
            return rows.described(row, rows.current(tx, project), rows.agents(tx, [row["number"]]))

    def called(self, project: str, session_id: str) -> WorklogSession | None:
        """Describe the newest session of an id that the database has."""
        with self._database.read() as tx:
            row = rows.called(tx, project, session_id)
            if row is None:
                return None
            return rows.described(row, rows.current(tx, project), rows.agents(tx, [row["number"]]))

    def sessions(self, project: str, *, archived: bool = False) -> tuple[WorklogSession, ...]:
        """List a project's sessions, the newest first.

        :param archived: the archived ones too.
        """
        only = "" if archived else "AND archived_as IS NULL"
        sql = f"{rows.SESSION} WHERE project = :project {only} ORDER BY created DESC, number DESC"
        with self._database.read() as tx:
            current = rows.current(tx, project)
            found = tx.all(sql, project=project)
            agents = rows.agents(tx, [row["number"] for row in found])
        return tuple(rows.described(row, current, agents) for row in found)

    def close(self, project: str, session_id: str | None = None, *, archive: bool = False) -> Closed:
        """Close a session for good; a second time changes nothing.

        :param session_id: by default the current session.
        :param archive: move it to the archive too; its id can then be used again.
        """
        with self._database.write() as tx:
            number = rows.chosen(tx, project, session_id)["number"]
            tx.run(
                "UPDATE worklog_session SET status = 'closed', closed = :closed"
                " WHERE number = :number AND status = 'active'",
                closed=tx.now,
                number=number,
            )
            if archive:
                rows.archive(tx, project, number)
            if rows.current(tx, project) == number:
                rows.set_current(tx, project, None)
            row = rows.by_number(tx, number)
        return Closed(row["id"], row["status"], row["closed"], row["archived_as"], row["entry_count"])

    def export(self, project: str, session_id: str | None = None, target: Path | None = None) -> Path:
        """Write a session's files; see :func:`~npl_mcp.stores.worklog.files.export`.

        :param session_id: by default the current session.
        :param target: folder to write to, made if need be; by default the session's own in ``.npl/sessions``.
        :returns: the folder.
        """
        with self._database.read() as tx:
            return export(tx, project, rows.chosen(tx, project, session_id), target)

    def import_folder(self, project: str) -> Imported:
        """Import the sessions of a project's ``.npl`` folder that are not known yet.

        The folder's current session becomes the project's, if the project never had one.

        :returns: what was imported.
        """
        done = import_sessions(self._database, project)
        with self._database.write() as tx:
            row = rows.live(tx, project, current_session(project))
            if row is not None and row["status"] == "active" and not rows.is_used(tx, project):
                rows.set_current(tx, project, row["number"])
        return done


def _todays(tx: Transaction, project: str) -> Row:
    today = tx.now[:10]
    return rows.live(tx, project, today) or rows.create(tx, project, today, None)


def _new_id(session_id: str) -> str:
    clean = checks.line(session_id, "session_id")
    if FILE_NAME.fullmatch(clean) is None or clean.lower() == ARCHIVE:
        raise InvalidRequestError(
            f"session_id {clean[:64]!r} cannot be the name of a folder",
            parameter="session_id",
            hint="use letters, digits, '-', '_' and '.', at most 128, beginning with a letter or digit",
        )
    return clean


def _tags(tags: Sequence[str], parameter: str) -> str:
    if len(tags) > TAGS:
        raise InvalidRequestError(
            f"{parameter} has {len(tags):,} entries", parameter=parameter, hint=f"at most {TAGS}"
        )
    # Empty ones are kept: a list with a comma too many is stored as it was typed.
    clean = [checks.line(tag, f"{parameter}[{at}]") if tag.strip() else "" for at, tag in enumerate(tags)]
    return checks.json_text(clean, parameter)
