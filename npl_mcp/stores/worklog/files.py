"""The folder of a worklog, as the predecessor laid it out: an export writes it, an import reads it.

::

    .npl/current-session                          id of the current session, which an import reads
    .npl/sessions/<id>/meta.json
    .npl/sessions/<id>/worklog.jsonl
    .npl/sessions/<id>/.cursors/<agent>.cursor
    .npl/sessions/archive/<name>/                 the same, of archived sessions

Folders of ``.npl`` may be links as long as they stay in the project. An import keeps every line once, in the
order of the file. The predecessor could use one ``seq`` twice and skip others, so entries are numbered by
their place. Cursors are translated; where a number was used twice, an agent gets entries again rather than
not at all.
"""

from __future__ import annotations

import logging
import os
import stat
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder, below_root
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Row, Transaction
from npl_mcp.stores.base.errors import AlreadyExistsError, StorageError
from npl_mcp.stores.base.folder import FOLDER
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.worklog import rows
from npl_mcp.stores.worklog.format import (
    ARCHIVE,
    FILE_NAME,
    LONGEST_LINE,
    Cursor,
    WorklogSession,
    cursor_name,
    cursor_text,
    line_of,
    meta_text,
    parse_line,
    read_object,
    read_time,
)

logger = logging.getLogger(__name__)

NPL = ".npl"
SESSIONS = f"{NPL}/sessions"
LOG, META, CURSORS = "worklog.jsonl", "meta.json", ".cursors"

MAX_NEW_FOLDERS = 32
"""Folders, one in the other, that an export makes; many programs cannot remove a thousand."""

MAX_LOG_BYTES = 256 * 1024 * 1024
"""Size of a log that is imported."""

MAX_CURSORS = 10_000
"""Cursors of a session that are imported."""

_SMALL_FILE = 1024 * 1024
_BATCH = 1_000
"""Entries that are read or written by one statement."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts of an import.

    :param sessions: sessions that were not known before.
    :param entries: their entries.
    :param skipped_lines: lines that are not an entry.
    :param dropped_keys: keys of entries that are not known here.
    """

    sessions: int = 0
    entries: int = 0
    skipped_lines: int = 0
    dropped_keys: int = 0


def export(tx: Transaction, project: str, row: Row, target: Path | None) -> Path:
    """Write the files of a session, each complete as soon as it has its name.

    :param row: the session's.
    :param target: the folder, made if need be; by default the session's own below :data:`SESSIONS`.
    :returns: the folder.
    :raises InvalidRequestError: too many folders above it are absent.
    :raises AlreadyExistsError: it holds files of these names that no export of this session has written.
    :raises StorageError: it cannot be written.
    """
    session = rows.described(row, None, {})
    try:
        root, below, mode = _place(project, session, target)
        with Folder.opened(root, below, make=True, mode=mode) as folder:
            _check_free(folder, session, _log_lines(tx, row["number"]))
            # The description comes first: it says whose files these are if the export is interrupted.
            folder.replace(META, meta_text(session).encode())
            folder.replace(LOG, _log_lines(tx, row["number"]))
            for agent, cursor in rows.cursors(tx, row["number"]):
                with folder.inner(CURSORS, make=True) as cursors:
                    cursors.replace(f"{cursor_name(agent)}.cursor", cursor_text(cursor).encode())
            return Path(folder.path)
    except OSError as error:
        where = f"to {target.name[:64]!r}" if target is not None else f"below {SESSIONS}"
        raise StorageError(
            f"the worklog cannot be written {where}: {error.strerror}", hint="name another folder"
        ) from error


def _place(project: str, session: WorklogSession, target: Path | None) -> tuple[str, str, int]:
    """Return a folder that exists, the path below it to write to, and the permissions of new folders."""
    if target is None:
        # Private, but for ``.npl`` itself, which can hold prompts for others.
        with Folder.opened(*below_root(project, NPL), make=True):
            pass
        archived = session.archived_as
        name = session.session_id if archived is None else f"{ARCHIVE}/{archived}"
        return *below_root(project, f"{SESSIONS}/{name}"), FOLDER
    target = target.absolute()
    root = next(place for place in (target, *target.parents) if place.is_dir())
    absent = target.relative_to(root)
    if len(absent.parts) > MAX_NEW_FOLDERS:
        raise InvalidRequestError(
            f"folder has {len(absent.parts):,} levels that do not exist",
            parameter="folder",
            hint=f"at most {MAX_NEW_FOLDERS} are made",
        )
    return str(root), absent.as_posix(), 0o777


def _check_free(folder: Folder, session: WorklogSession, lines: Iterator[bytes]) -> None:
    """Refuse to write over files that this session's export has not written.

    :param lines: of the session's log, of which the file must be a beginning.
    """
    taken = [name for name in (META, LOG, CURSORS) if folder.stat(name) is not None]
    meta = read_object(_small_file(folder, META))
    ours = meta.get("session_id") == session.session_id and read_time(meta.get("created")) == session.created
    log = _raw_lines(folder) if LOG in taken else ()
    if taken and not (ours and all(line == next(lines, None) for line in log)):
        raise AlreadyExistsError(
            f"{Path(folder.path).name!r} holds {' and '.join(taken)} that no export of"
            f" {session.session_id} has written",
            hint="choose another folder",
        )


def _log_lines(tx: Transaction, number: int) -> Iterator[bytes]:
    first = 1
    while page := rows.entries(tx, number, first, _BATCH):
        yield from map(line_of, page)
        first = page[-1].seq + 1


def import_sessions(database: Database, project: str) -> Imported:
    """Import the sessions of a project's folder that the database does not know, each in one transaction."""
    done: Counter[str] = Counter()
    folders = [*_folders(project, SESSIONS), *_folders(project, f"{SESSIONS}/{ARCHIVE}")]
    sessions = ((path, session) for path in folders if (session := _session(project, path)))
    for path, session in sorted(sessions, key=lambda found: found[1].created):
        with Folder.opened(*below_root(project, path)) as folder, database.write() as tx:
            if not rows.is_known(tx, project, session):
                done += _import(tx, project, session, folder)
    if done["skipped_lines"] or done["dropped_keys"]:
        logger.warning(
            "import of worklogs: %d lines skipped, %d keys dropped",
            done["skipped_lines"],
            done["dropped_keys"],
        )
    return Imported(**done)


def current_session(project: str) -> str:
    """Return the id of the current session as the folder says it; empty if it does not."""
    with suppress(OSError), Folder.opened(*below_root(project, NPL)) as folder:
        return _small_file(folder, "current-session").decode("utf-8", "replace").strip()
    return ""


def _folders(project: str, path: str) -> list[str]:
    """Return the paths of the folders in a folder; links, hidden ones and the archive are left out."""
    try:
        with Folder.opened(*below_root(project, path)) as folder, folder.scan() as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        logger.warning("worklogs cannot be imported: %s", error.strerror)
        return []
    return [f"{path}/{name}" for name in names if name[0] != "." and name.lower() != ARCHIVE]


def _session(project: str, path: str) -> WorklogSession | None:
    """Describe the session in a folder; ``None`` if there is none, or it cannot be imported."""
    above, _, name = path.rpartition("/")
    try:
        with Folder.opened(*below_root(project, path)) as folder:
            meta, log = read_object(_small_file(folder, META)), _log_state(folder)
            if not meta and log is None:
                return None
            usable = checks.line(name, "session_id") == name
            changed = folder.state().st_mtime
            if log is not None:
                os.close(folder.open(LOG))
    except (OSError, InvalidRequestError):
        usable, log = False, None
    if not usable or (log is not None and log.st_size > MAX_LOG_BYTES):
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


def _import(tx: Transaction, project: str, session: WorklogSession, folder: Folder) -> Counter[str]:
    """Write a session and its entries; return what was counted, by the names of :class:`Imported`."""
    counted, places = Counter(sessions=1), dict[int, int]()
    number = rows.insert(tx, project, session)
    entries = _entry_rows(number, folder, counted, places)
    while batch := list(islice(entries, _BATCH)):
        tx.run_many(rows.INSERT_ENTRY, batch)
    rows.count(tx, number)
    known = sorted(places)
    for agent, cursor in _cursors(folder):
        # The first place of the highest number that is not above the cursor's.
        at = bisect_right(known, cursor.last_seq)
        place = places[known[at - 1]] if at else 0
        rows.move(tx, number, agent, Cursor(place, cursor.last_read))
    return counted


def _entry_rows(
    number: int, folder: Folder, counted: Counter[str], places: dict[int, int]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a log's entries.

    :param counted: gets the counts.
    :param places: gets the first place of each number.
    """
    for raw in _raw_lines(folder) if _log_state(folder) else ():
        if raw.isspace():
            continue
        parsed = parse_line(raw)
        if parsed is None:
            counted["skipped_lines"] += 1
            continue
        counted["entries"] += 1
        counted["dropped_keys"] += parsed[1]
        places.setdefault(parsed[0].seq, counted["entries"])
        entry = replace(parsed[0], seq=counted["entries"])
        row = {name: getattr(entry, name) for name in rows.ENTRY}
        for name in ("data", "tags", "refs"):
            row[name] = checks.maybe(checks.json_text, row[name], name, LONGEST_LINE)
        yield {"session_number": number, **row}


def _raw_lines(folder: Folder) -> Iterator[bytes]:
    """Yield the lines of a log; of one that is longer than any entry only the beginning."""
    with os.fdopen(folder.open(LOG), "rb") as file:
        whole = True
        for raw in iter(partial(file.readline, LONGEST_LINE), b""):
            if whole:
                yield raw
            whole = raw.endswith(b"\n")


def _cursors(session: Folder) -> Iterator[tuple[str, Cursor]]:
    """Yield the cursor of each agent; none where the folder is absent or a link."""
    with suppress(OSError), session.inner(CURSORS) as folder:
        for file_name in sorted(folder.names())[:MAX_CURSORS]:
            name, extension = os.path.splitext(file_name)  # noqa: PTH122 - a name, no path
            content = read_object(_small_file(folder, file_name)) if extension == ".cursor" else {}
            last_seq = content.get("last_seq")
            if type(last_seq) is int and last_seq > 0:
                with suppress(InvalidRequestError):
                    agent = checks.line(unquote(checks.line(name, "agent_id")), "agent_id")
                    agent = agent if cursor_name(agent) == name else name
                    yield agent, Cursor(last_seq, read_time(content.get("last_read")))


def _log_state(folder: Folder) -> os.stat_result | None:
    """Return the state of a session's log; ``None`` if it is no regular file."""
    state = folder.stat(LOG)
    return state if state is not None and stat.S_ISREG(state.st_mode) else None


def _small_file(folder: Folder, name: str) -> bytes:
    """Return at most the first MiB of a file; empty if there is none or it cannot be read."""
    try:
        return folder.read_start(name, _SMALL_FILE)
    except OSError:
        return b""
