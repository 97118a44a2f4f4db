"""The folder in which the predecessor kept a project's worklogs, written beside the database.

::

    .npl/current-session                          id of the current session, no newline
    .npl/sessions/<id>/meta.json
    .npl/sessions/<id>/worklog.jsonl
    .npl/sessions/<id>/.cursors/<agent>.cursor
    .npl/sessions/<id>/tmp/                       for whatever agents want to put there
    .npl/sessions/archive/<name>/                 the same, of archived sessions

Nothing here is needed to go on: a lost or torn file is written again from the database. So nothing waits for
the disk. Writers take turns by a lock on ``.npl/sessions/.lock``. Folders may be links as long as they stay
in the project.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from npl_index.library.files import Folder, below_root
from npl_index.library.locks import locked
from npl_mcp.stores.base.folder import FILE, FOLDER
from npl_mcp.stores.worklog.format import (
    LONGEST_LINE,
    Cursor,
    Entry,
    WorklogSession,
    cursor_name,
    cursor_text,
    line_of,
    meta_text,
    parse_line,
    read_object,
    read_time,
)

NPL = ".npl"
SESSIONS = f"{NPL}/sessions"
ARCHIVE = "archive"
LOG = "worklog.jsonl"
META = "meta.json"
CURSORS = ".cursors"
CURRENT = "current-session"
TEMPORARY = "tmp"

ENTRIES = 1_000
"""Entries that are read from the database at a time."""

MOST_KEPT = 9
"""Logs of one session that are set aside and kept."""

LOCK_SECONDS = 5.0

_LARGEST_SMALL_FILE = 1024 * 1024
_BLOCK = 4 * 1024

Entries = Callable[[int], Sequence[Entry]]
"""Returns some entries, in order, from a ``seq`` on; none if there are no more."""


class ProjectFolder:
    """The worklog files of one project. Paths are those below the project's folder.

    :param project: path of the project's folder.
    """

    def __init__(self, project: str) -> None:
        self._project = project
        self._alone = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out; makes the folder."""
        with self.opened(SESSIONS, make=True) as sessions:
            lock = sessions.open(".lock", os.O_RDWR | os.O_CREAT)
        try:
            with locked(lock, f"{self._project}/{SESSIONS}", LOCK_SECONDS) as self._alone:
                with self.opened(NPL):
                    pass  # A killed writer of the current session leaves its file there.
                yield
        finally:
            self._alone = False
            os.close(lock)

    @contextmanager
    def importing(self) -> Iterator[bool]:
        """Keep other imports of this folder out, if that can be done; return whether it was.

        The lock is not that of writers, who go on meanwhile. Where it cannot be had, the folder being one
        that may only be read, say, two imports may do the same work, and one of them throws its own away.
        """
        with ExitStack() as held:
            alone = False
            with suppress(OSError):  # TimeoutError is one
                sessions = held.enter_context(self.opened(SESSIONS))
                alone = held.enter_context(sessions.locked(LOCK_SECONDS))
            yield alone

    @contextmanager
    def opened(self, path: str, *, make: bool = False) -> Iterator[Folder]:
        """Open a folder of the project; while the lock is held, left-over temporary files are removed.

        What is made in it is for this user alone, but for ``.npl`` itself, which can hold prompts for others.

        :param make: make it if it is absent, but never the project's own folder.
        """
        if make and path != NPL:
            with Folder.opened(*below_root(self._project, NPL), make=True):
                pass
        mode = 0o777 if path == NPL else FOLDER
        with Folder.opened(*below_root(self._project, path), make=make, mode=mode) as folder:
            if self._alone:
                folder.remove_temporaries()
            yield folder

    def exists(self, path: str) -> bool:
        """Return whether something has this path."""
        return os.path.lexists(os.path.join(self._project, path))  # noqa: PTH118

    def path_of(self, session: WorklogSession) -> str:
        """Return where a session's folder belongs."""
        if session.archived_as is None:
            return f"{SESSIONS}/{session.session_id}"
        return f"{SESSIONS}/{ARCHIVE}/{session.archived_as}"

    def is_archived(self, name: str) -> bool:
        """Return whether something of that name lies in the archive."""
        return self.exists(f"{SESSIONS}/{ARCHIVE}/{name}")

    @contextmanager
    def session_folder(self, session: WorklogSession) -> Iterator[Folder]:
        """Open a session's folder; make it, or move it to the archive, if that was not done yet."""
        path, before = self.path_of(session), f"{SESSIONS}/{session.session_id}"
        if path != before and self.exists(before) and not self.exists(path):
            with self.opened(before) as folder:
                made = read_time(read_object(small_file(folder, META)).get("created"))
            # The id may have been used again since: a folder that was made at another moment is not ours.
            if made in (None, session.created):
                name = str(session.archived_as)
                with (
                    self.opened(SESSIONS) as live,
                    self.opened(f"{SESSIONS}/{ARCHIVE}", make=True) as archive,
                ):
                    live.rename(session.session_id, name, archive)
        with self.opened(path, make=True) as folder:
            yield folder

    def write_current(self, session_id: str | None) -> None:
        """Write which session is the current one."""
        with self.opened(NPL, make=True) as folder:
            if session_id is not None:
                folder.replace(CURRENT, session_id.encode(), mode=FILE, durable=False)
            elif folder.stat(CURRENT) is not None:
                folder.remove(CURRENT)

    def current(self) -> str | None:
        """Return the id of the current session; ``None`` if no file says so."""
        try:
            with self.opened(NPL) as folder:
                return small_file(folder, CURRENT).decode("utf-8", "replace").strip() or None
        except OSError:
            return None


def append(folder: Folder, entries: Entries) -> bool:
    """Add to a session's log what it does not have yet; a torn last line is dropped.

    :returns: false if the log does not end as the database says; nothing was written then.
    """
    with os.fdopen(folder.open(LOG, os.O_RDWR | os.O_CREAT), "r+b") as file:
        raw, end = _last_line(file)
        parsed = parse_line(raw)
        last = parsed[0] if parsed else None
        missing = _stream(entries, last.seq if last else 1)
        if end and not (last and _same(next(missing, None), last)):
            return False
        file.truncate(end)
        file.seek(end)
        file.writelines(map(line_of, missing))
    return True


def begins_with(folder: Folder, entry: Entry | None) -> bool:
    """Return whether a session's log begins with an entry, or is an empty file."""
    status = folder.stat(LOG)
    if status is not None and stat.S_ISREG(status.st_mode) and not status.st_size:
        return True
    parsed = parse_line(small_file(folder, LOG).partition(b"\n")[0])
    return parsed is not None and _same(entry, parsed[0])


def rewrite(folder: Folder, entries: Entries, aside: str | None = None) -> None:
    """Write a session's log again from the database.

    :param aside: the log that was there is kept under its name with this added.
    """
    if aside is not None and folder.stat(LOG) is not None:
        folder.rename(LOG, _free_name(folder, f"{LOG}.{aside}"))
    folder.replace(LOG, map(line_of, _stream(entries, 1)), durable=False)


def write_meta(folder: Folder, session: WorklogSession) -> None:
    """Write what a session is, and make the folder that agents may use."""
    with folder.inner(TEMPORARY, make=True):
        folder.replace(META, meta_text(session).encode(), durable=False)


def write_cursor(cursors: Folder, agent_id: str, cursor: Cursor) -> None:
    """Write how far an agent has read.

    :param cursors: the folder :data:`CURSORS` of the session.
    """
    cursors.replace(f"{cursor_name(agent_id)}.cursor", cursor_text(cursor).encode(), durable=False)


def small_file(folder: Folder, name: str) -> bytes:
    """Return at most the first MiB of a file; empty if there is none or it cannot be read."""
    try:
        return folder.read_start(name, _LARGEST_SMALL_FILE)
    except OSError:
        return b""


def _stream(entries: Entries, first: int) -> Iterator[Entry]:
    while page := entries(first):
        yield from page
        first = page[-1].seq + 1


def _same(entry: Entry | None, line: Entry) -> bool:
    """Return whether a line is the entry of the database, whatever keys and spaces it was written with."""
    names = ("seq", "ts", "agent_id", "action", "summary")
    return entry is not None and all(getattr(entry, name) == getattr(line, name) for name in names)


def _last_line(file: BinaryIO) -> tuple[bytes, int]:
    """Return the last line that has an end, and where it ends; empty if it is longer than any entry."""
    at = file.seek(0, os.SEEK_END)
    tail = b""
    while at and tail.count(b"\n") < 2 and len(tail) < LONGEST_LINE:
        size = min(at, max(_BLOCK, len(tail)))
        at = file.seek(at - size)
        tail = file.read(size) + tail
    complete, newline, _ = tail.rpartition(b"\n")
    if not newline:
        return b"", at
    return complete.rpartition(b"\n")[2], at + len(complete) + 1


def _free_name(folder: Folder, name: str) -> str:
    """Return a name under which a log can be kept; the last of them is reused.

    Two databases that write one folder set each other's logs aside with every entry.
    """
    taken, found, number = set(folder.names()), name, 1
    while found in taken and number < MOST_KEPT:
        number += 1
        found = f"{name}-{number}"
    return found
