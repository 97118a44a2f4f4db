"""The import of worklogs from the predecessor's folder.

::

    .npl/sessions/<id>/meta.json
    .npl/sessions/<id>/worklog.jsonl
    .npl/sessions/<id>/.cursors/<agent>.cursor
    .npl/sessions/archive/<name>/                 the same files of archived sessions

Folders of ``.npl`` may be links within the project. Every line is stored once, in the order of the file. The
predecessor could use one ``seq`` twice and skip others, so an entry's number is its position. Cursors are
translated; after a duplicate number, an agent may get entries again but misses no entry.

A line of ``worklog.jsonl`` is a JSON object with the fields of an
:class:`~npl_mcp.stores.worklog.worklogs.Entry`. ``meta.json`` and the cursors are JSON objects too.
"""

from __future__ import annotations

import json
import logging
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder
from npl_index.library.roots import below_root
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.base.values import fill, values_of
from npl_mcp.stores.worklog import worklogs
from npl_mcp.stores.worklog.worklogs import ARCHIVE, FILE_NAME, Entry, WorklogSession

logger = logging.getLogger(__name__)

SESSIONS = ".npl/sessions"
LOG, META, CURSORS = "worklog.jsonl", "meta.json", ".cursors"

MAX_LOG_BYTES = 64 * 1024 * 1024
"""Maximum bytes of an imported log."""

MAX_CURSORS = 10_000
"""Maximum imported cursors of a session."""

MAX_LINE = 8 * 1024 * 1024
"""Maximum bytes of one entry; the limits of its parts keep it below, including escapes."""

_SMALL_FILE = 1024 * 1024
_BATCH = 1_000
"""Lines that are parsed and stored at once: the entries of a log take several times its size in memory."""


@dataclass(slots=True)
class Imported:
    """Counts of an import.

    :param sessions: number of new sessions.
    :param entries: number of their entries.
    :param skipped_lines: number of invalid lines.
    """

    sessions: int = 0
    entries: int = 0
    skipped_lines: int = 0


def import_folder(database: Database, project: str) -> Imported:
    """Import the unknown sessions of a project's folder, each in one transaction."""
    counts = Imported()
    folders = [*_folders(project, SESSIONS), *_folders(project, f"{SESSIONS}/{ARCHIVE}")]
    sessions = ((path, session) for path in folders if (session := _session(project, path)))
    for path, session in sorted(sessions, key=lambda pair: pair[1].created):
        with Folder.opened(*below_root(project, path)) as folder, database.write() as tx:
            if not _is_known(tx, project, session):
                _import(tx, project, session, folder, counts)
    return counts


def _folders(project: str, path: str) -> list[str]:
    """Return the paths of the subfolders of a folder, without links, hidden folders and the archive."""
    try:
        with Folder.opened(*below_root(project, path)) as folder, folder.scan() as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            logger.warning("worklogs cannot be imported: %s", error.strerror)
        return []
    return [f"{path}/{name}" for name in names if name[0] != "." and name.lower() != ARCHIVE]


def _session(project: str, path: str) -> WorklogSession | None:
    """Describe the session in a folder; ``None`` if it is missing or not importable."""
    above, _, name = path.rpartition("/")
    try:
        with Folder.opened(*below_root(project, path)) as folder:
            meta, log = read_object(_content(folder, META)), _content(folder, LOG, MAX_LOG_BYTES + 1)
            if not meta and not log:
                return None
            usable = checks.line(name, "session_id") == name and len(log) <= MAX_LOG_BYTES
            changed = folder.state().st_mtime
    except (OSError, InvalidRequestError):
        usable = False
    if not usable:
        logger.warning("worklog %r cannot be imported: its name, its size or its permissions", name)
        return None
    archived = above != SESSIONS
    own_id, task = meta.get("session_id"), meta.get("task")
    named = archived and isinstance(own_id, str) and FILE_NAME.fullmatch(own_id)
    return WorklogSession(
        session_id=str(own_id) if named else name,
        status="active" if meta.get("status", "active") == "active" and not archived else "closed",
        created=read_time(meta.get("created")) or stamp(datetime.fromtimestamp(changed, timezone.utc)),
        task=task if isinstance(task, str) else None,
        closed=read_time(meta.get("closed")),
        archived_as=name if archived else None,
    )


def _import(tx: Transaction, project: str, session: WorklogSession, folder: Folder, counts: Imported) -> None:
    """Store a session with its entries and cursors, and add to the counts."""
    lines = [line for line in _content(folder, LOG, MAX_LOG_BYTES).split(b"\n") if line.strip()]
    number, total, last = worklogs.insert(tx, project, session)["number"], 0, None
    agents, positions = Counter[str](), dict[int, int]()  # the first position of each number in the log
    for start in range(0, len(lines), _BATCH):
        rows = []
        for entry in filter(None, map(parse_line, lines[start : start + _BATCH])):
            total, last = total + 1, entry.ts
            agents[entry.agent_id] += 1
            positions.setdefault(entry.seq, total)
            rows.append(_row(number, total, entry))
        tx.insert_many("worklog_entry", rows)
    # At the end: PostgreSQL takes quadratic time to update a row again and again in one transaction.
    sql = "UPDATE worklog_session SET entry_count = :total, last_entry = :last WHERE number = :number"
    tx.run(sql, total=total, last=last, number=number)
    own = {"session_number": number}
    rows = [{**own, "agent_id": agent, "entry_count": count} for agent, count in agents.items()]
    tx.insert_many("worklog_agent", rows)
    counts.sessions += 1
    counts.entries += total
    counts.skipped_lines += len(lines) - total
    numbers = sorted(positions)
    for agent, last_seq, last_read in _cursors(folder):
        # The first position of the highest number that is not above the cursor's.
        at = bisect_right(numbers, last_seq)
        worklogs.move(tx, number, agent, positions[numbers[at - 1]] if at else 0, last_read)


def _is_known(tx: Transaction, project: str, session: WorklogSession) -> bool:
    """Return whether the database already has a folder's session."""
    # Same id and same time: the session was archived here, but its folder was not.
    sql = """
        SELECT 1 FROM worklog_session WHERE project = :project AND (archived_as = :archived_as OR (
            id = :id AND (created = :created OR (archived_as IS NULL AND :live = 1))))
        LIMIT 1"""
    archived = session.archived_as
    names = {"id": session.session_id, "created": session.created, "archived_as": archived}
    return tx.value(sql, project=project, live=int(archived is None), **names) is not None


def _row(number: int, seq: int, entry: Entry) -> dict[str, Any]:
    row = {**values_of(entry), "session_number": number, "seq": seq}
    for name in worklogs.JSON_COLUMNS:
        row[name] = None if row[name] is None else checks.json_text(row[name], name, MAX_LINE)
    return row


def _cursors(session: Folder) -> Iterator[tuple[str, int, str | None]]:
    """Yield each agent with the number and the time of its cursor, if the folder exists and is not a link."""
    with suppress(OSError), Folder.opened(session, CURSORS) as folder:
        for file_name in sorted(folder.names())[:MAX_CURSORS]:
            name, extension = os.path.splitext(file_name)  # noqa: PTH122 - a name, not a path
            content = read_object(_content(folder, file_name)) if extension == ".cursor" else {}
            last_seq = content.get("last_seq")
            if type(last_seq) is int and last_seq > 0:
                with suppress(InvalidRequestError):
                    agent = checks.line(unquote(name), "agent_id")
                    yield agent, last_seq, read_time(content.get("last_read"))


def _content(folder: Folder, name: str, most: int = _SMALL_FILE) -> bytes:
    """Return the first bytes of a regular file; empty if it does not exist or cannot be read."""
    with suppress(OSError):
        return folder.read_start(name, most)
    return b""


def parse_line(raw: bytes) -> Entry | None:
    """Parse a line of the log; unknown keys are dropped.

    :returns: the entry with its ``seq`` in the file; ``None`` for an invalid entry, or values that no
        database can store.
    """
    fields = read_object(raw) if len(raw) <= MAX_LINE else {}
    seq, ts = fields.get("seq"), read_time(fields.get("ts"))
    if type(seq) is not int or not 1 <= seq <= checks.MAX_ID or ts is None:
        return None
    if not all(isinstance(fields.get(name), str) for name in ("agent_id", "action", "summary")):
        return None
    kinds = {"agent_type": str, "tags": list, "refs": dict}
    more = {name: value for name, kind in kinds.items() if isinstance(value := fields.get(name), kind)}
    if not all(isinstance(tag, str) for tag in more.get("tags") or ()):
        del more["tags"]
    return fill(Entry, fields, **{"agent_type": "unknown", "tags": None, "refs": None, "ts": ts, **more})


def read_time(text: object) -> str | None:
    """Convert a time of the predecessor to the stored form; ``None`` for an invalid time."""
    if isinstance(text, str):
        with suppress(ValueError, OverflowError):
            return stamp(datetime.fromisoformat(text.replace("Z", "+00:00")))
    return None


def read_object(content: bytes) -> dict[str, Any]:
    """Parse a JSON object; empty for any other text, and for values that no database can store."""
    try:
        value = json.loads(content.decode("utf-8"))
        checks.json_text(value, "object", MAX_LINE)
    except (ValueError, RecursionError, InvalidRequestError):
        return {}
    return value if isinstance(value, dict) else {}
