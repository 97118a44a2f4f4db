"""Imports the worklogs that the predecessor left in a project's folder.

Every line is kept once, in the order of the file. The predecessor could use one ``seq`` twice and skip
others, so entries are numbered by their place. Cursors are translated; where a number was used twice, an
agent gets entries again rather than not at all.

A log may be long, and a cloned repository may bring any. So it is read while nobody waits for us, and written
slice by slice, each in a transaction of its own: first to a session of no project, which nobody sees, and
that becomes the project's when it is complete. What a process leaves that dies meanwhile is removed by the
next import, under the lock of the project's folder.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import stat
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.worklog.folder import (
    ARCHIVE,
    CURSORS,
    LOG,
    META,
    SESSIONS,
    ProjectFolder,
    small_file,
)
from npl_mcp.stores.worklog.format import (
    FILE_NAME,
    LONGEST_LINE,
    Cursor,
    Entry,
    WorklogSession,
    cursor_name,
    parse_line,
    read_object,
    read_time,
)
from npl_mcp.stores.worklog.rows import INSERT_ENTRY

logger = logging.getLogger(__name__)

LARGEST_LOG = 256 * 1024 * 1024
"""Most bytes of a log that is imported."""

SLICE_ROWS = 500
"""Entries that are written in one transaction, while other writers wait."""

SLICE_BYTES = 1024 * 1024
"""Bytes of lines after which a slice is written though it has fewer entries."""

MOST_CURSORS = 10_000
"""Cursors of a session that are imported."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What was imported from a folder.

    :param sessions: sessions that were not known before.
    :param entries: their entries.
    :param skipped_lines: lines that are not an entry.
    :param dropped_keys: keys of entries that are not known here.
    :param renumbered: row numbers of the sessions whose entries got other numbers.
    """

    sessions: int = 0
    entries: int = 0
    skipped_lines: int = 0
    dropped_keys: int = 0
    renumbered: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _OldSession:
    """A session in the folder.

    :param path: of its folder, below the project's.
    :param cursors: by agent.
    """

    session: WorklogSession
    path: str
    cursors: Mapping[str, Cursor]


class _Tally:
    """Counts taken while a log is read.

    :param cursors: numbers whose places are wanted.
    """

    def __init__(self, cursors: Iterable[int]) -> None:
        self.entries = 0
        self.skipped = 0
        self.dropped = 0
        self.last: str | None = None
        self.renumbered = False
        self.by_agent: Counter[str] = Counter()
        # For each wanted number the highest one seen that is not above it, nor at or below the wanted number
        # before it, and its first place: all that is kept of a log of any length.
        self._wanted = sorted(set(cursors))
        self._seen: list[tuple[int, int] | None] = [None] * len(self._wanted)

    def add(self, entry: Entry, dropped: int) -> None:
        self.entries += 1
        self.dropped += dropped
        self.last = entry.ts
        self.renumbered |= entry.seq != self.entries
        self.by_agent[entry.agent_id] += 1
        at = bisect_left(self._wanted, entry.seq)
        if at < len(self._wanted):
            seen = self._seen[at]
            if seen is None or entry.seq > seen[0]:
                self._seen[at] = (entry.seq, self.entries)

    def place_of(self, seq: int) -> int:
        """Return the first place of the highest number that is not above a wanted one; 0 if there is none."""
        at = bisect_right(self._wanted, seq)
        return next((seen[1] for seen in reversed(self._seen[:at]) if seen is not None), 0)


def import_sessions(database: Database, project: str, folder: ProjectFolder) -> Imported:
    """Import the sessions of a project's folder that the database does not know.

    :returns: what was imported.
    """
    if not folder.exists(SESSIONS):
        return Imported()
    with folder.importing() as alone:
        if alone:
            _remove_unfinished(database, project)
        tallies: dict[int, _Tally] = {}
        for found in _list(folder):
            imported = _import(database, project, folder, found)
            if imported is not None:
                tallies[imported[0]] = imported[1]
    done = Imported(
        sessions=len(tallies),
        entries=sum(tally.entries for tally in tallies.values()),
        skipped_lines=sum(tally.skipped for tally in tallies.values()),
        dropped_keys=sum(tally.dropped for tally in tallies.values()),
        renumbered=tuple(number for number, tally in tallies.items() if tally.renumbered),
    )
    if done.skipped_lines or done.dropped_keys:
        logger.warning(
            "import of worklogs: %d lines skipped, %d keys dropped", done.skipped_lines, done.dropped_keys
        )
    return done


def _import(
    database: Database, project: str, folder: ProjectFolder, found: _OldSession
) -> tuple[int, _Tally] | None:
    """Import a session, unless it is known; return the number of its row and what was counted."""
    with database.read() as tx:
        if _known(tx, project, found.session):
            return None
    nobody = f"{_UNFINISHED}{project}"
    with database.write() as tx:
        # Of a name that no other import uses at this moment.
        token = f"{found.session.session_id} {secrets.token_hex(8)}"
        number = _insert_session(tx, nobody, found.session, token)
    tally = _Tally(cursor.last_seq for cursor in found.cursors.values())
    with folder.opened(found.path) as inside:
        for rows in _slices(number, inside, tally):
            with database.write() as tx:
                tx.run_many(INSERT_ENTRY, rows)
    with database.write() as tx:
        late = _known(tx, project, found.session)
        if not late:
            _finish(tx, number, found.cursors, tally)
            tx.run(
                "UPDATE worklog_session SET project = :project, id = :id, archived_as = :archived_as"
                " WHERE number = :number",
                project=project,
                id=found.session.session_id,
                archived_as=found.session.archived_as,
                number=number,
            )
    if late:  # another process was faster
        _remove(database, number)
        return None
    return number, tally


# Projects are absolute paths, so none begins like this.
_UNFINISHED = "importing:"


def _remove_unfinished(database: Database, project: str) -> None:
    """Remove what imports of a project left that did not end."""
    with database.read() as tx:
        left = tx.all(
            "SELECT number FROM worklog_session WHERE project = :nobody", nobody=f"{_UNFINISHED}{project}"
        )
    for row in left:
        _remove(database, row["number"])


def _remove(database: Database, number: int) -> None:
    """Remove a session that nobody sees, slice by slice."""
    removed = SLICE_ROWS
    while removed:
        with database.write() as tx:
            removed = tx.run(
                "DELETE FROM worklog_entry WHERE session_number = :number AND seq IN ("
                "SELECT seq FROM worklog_entry WHERE session_number = :number LIMIT :most)",
                number=number,
                most=SLICE_ROWS,
            )
    with database.write() as tx:
        tx.run("DELETE FROM worklog_session WHERE number = :number", number=number)


def _known(tx: Transaction, project: str, session: WorklogSession) -> bool:
    # Same id and same moment: archived by us, but its folder was not moved yet.
    found = tx.value(
        """
        SELECT 1 FROM worklog_session
        WHERE project = :project AND (archived_as = :archived_as OR (
            id = :id AND (created = :created OR (archived_as IS NULL AND :live = 1))
        ))
        LIMIT 1""",
        project=project,
        id=session.session_id,
        created=session.created,
        archived_as=session.archived_as,
        live=int(session.archived_as is None),
    )
    return found is not None


def _insert_session(tx: Transaction, project: str, session: WorklogSession, name: str) -> int:
    return int(
        tx.value(
            """
            INSERT INTO worklog_session (project, id, created, closed, archived_as, task, status)
            VALUES (:project, :id, :created, :closed, :archived_as, :task, :status) RETURNING number""",
            project=project,
            id=name,
            created=session.created,
            closed=session.closed,
            archived_as=name,
            task=session.task,
            status=session.status,
        )
    )


def _slices(number: int, folder: Folder, tally: _Tally) -> Iterator[list[dict[str, Any]]]:
    """Return the rows of a log's entries, a slice at a time."""
    rows: list[dict[str, Any]] = []
    size = 0
    for raw in _lines(folder):
        parsed = parse_line(raw)
        if parsed is None:
            tally.skipped += 1
            continue
        entry, dropped = parsed
        tally.add(entry, dropped)
        rows.append(row_of(number, tally.entries, entry))
        size += len(raw)
        if len(rows) == SLICE_ROWS or size >= SLICE_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def row_of(number: int, seq: int, entry: Entry) -> dict[str, Any]:
    """Return the values of :data:`INSERT_ENTRY`.

    :param number: of the session's row.
    :param seq: the place the entry gets.
    """
    return {
        "session_number": number,
        "seq": seq,
        "ts": entry.ts,
        "agent_id": entry.agent_id,
        "agent_type": entry.agent_type,
        "action": entry.action,
        "summary": entry.summary,
        "data": _json(entry.data),
        "tags": _json(entry.tags),
        "refs": _json(entry.refs),
    }


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _finish(tx: Transaction, number: int, cursors: Mapping[str, Cursor], tally: _Tally) -> None:
    tx.run(
        "UPDATE worklog_session SET entry_count = :count, last_entry = :last WHERE number = :number",
        count=tally.entries,
        last=tally.last,
        number=number,
    )
    unread = Cursor(0, None)
    rows = [
        {
            "number": number,
            "agent_id": agent,
            "count": tally.by_agent[agent],
            "last_seq": tally.place_of(cursors.get(agent, unread).last_seq),
            "last_read": cursors.get(agent, unread).last_read,
        }
        for agent in sorted({*tally.by_agent, *cursors})
    ]
    tx.run_many(
        """
        INSERT INTO worklog_agent (session_number, agent_id, entry_count, last_seq, last_read)
        VALUES (:number, :agent_id, :count, :last_seq, :last_read)""",
        rows,
    )


def _list(project: ProjectFolder) -> list[_OldSession]:
    """List the sessions of a folder, the archived ones too, oldest first."""
    archive = f"{SESSIONS}/{ARCHIVE}"
    live = [
        _parse(project, SESSIONS, name, None) for name in _names(project, SESSIONS) if name.lower() != ARCHIVE
    ]
    gone = [_parse(project, archive, name, name) for name in _names(project, archive)]
    return sorted((one for one in live + gone if one), key=lambda one: one.session.created)


def _names(project: ProjectFolder, path: str) -> list[str]:
    """Return the names of the folders in a folder; links are left out."""
    try:
        with project.opened(path) as folder, folder.scan() as entries:
            names = (one.name for one in entries if one.is_dir(follow_symlinks=False))
            return sorted(name for name in names if name[0] != ".")
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning("worklogs cannot be imported: %s", error.strerror)
        return []


def _parse(project: ProjectFolder, above: str, name: str, archived_as: str | None) -> _OldSession | None:
    """Describe the session in a folder; ``None`` if there is none, or it cannot be imported."""
    path = f"{above}/{name}"
    try:
        with project.opened(path) as folder:
            meta = read_object(small_file(folder, META))
            if not meta and not _has_log(folder):
                return None
            if not _usable(folder, name):
                logger.warning("worklog %r cannot be imported: its name, its size or its permissions", name)
                return None
            changed = Path(folder.path).stat().st_mtime
            cursors = _cursors(folder)
    except OSError as error:
        logger.warning("worklog %r cannot be imported: %s", name, error.strerror)
        return None
    own_id, task, status = meta.get("session_id"), meta.get("task"), meta.get("status", "active")
    named = isinstance(own_id, str) and FILE_NAME.fullmatch(own_id)
    session = WorklogSession(
        session_id=str(own_id) if archived_as is not None and named else name,
        status="active" if status == "active" and archived_as is None else "closed",
        created=read_time(meta.get("created")) or stamp(datetime.fromtimestamp(changed, timezone.utc)),
        task=task if isinstance(task, str) else None,
        closed=read_time(meta.get("closed")),
        archived_as=archived_as,
    )
    return _OldSession(session, path, cursors)


def _usable(folder: Folder, name: str) -> bool:
    try:
        if checks.line(name, "session_id") != name:
            return False
        if not _has_log(folder):
            return True
        with os.fdopen(folder.open(LOG), "rb") as log:
            return os.fstat(log.fileno()).st_size <= LARGEST_LOG
    except (InvalidRequestError, OSError):
        return False


def _has_log(folder: Folder) -> bool:
    found = folder.stat(LOG)
    return found is not None and stat.S_ISREG(found.st_mode)


def _lines(folder: Folder) -> Iterator[bytes]:
    """Return the lines of a log that are not blank; of one that is longer than any entry only a part."""
    if not _has_log(folder):
        return
    with os.fdopen(folder.open(LOG), "rb") as file:
        while raw := file.readline(LONGEST_LINE):
            rest = raw
            while rest and not rest.endswith(b"\n"):
                if rest := file.readline(LONGEST_LINE):
                    raw = raw[:1]  # which is no entry
            if not raw.isspace():
                yield raw


def _cursors(session: Folder) -> dict[str, Cursor]:
    """Return how far each agent has read; none where the folder is absent or a link."""
    found = {}
    with suppress(OSError), session.inner(CURSORS) as folder:
        for file_name in sorted(folder.names())[:MOST_CURSORS]:
            if not file_name.endswith(".cursor"):
                continue
            name = file_name.removesuffix(".cursor")
            content = read_object(small_file(folder, file_name))
            last_seq = content.get("last_seq")
            try:
                agent = checks.line(unquote(checks.line(name, "agent_id")), "agent_id")
            except InvalidRequestError:
                continue
            if type(last_seq) is int and last_seq > 0:
                last_read = read_time(content.get("last_read"))
                found[agent if cursor_name(agent) == name else name] = Cursor(last_seq, last_read)
    return found
