"""The folder in which the predecessor kept a project's worklogs, written beside the database.

::

    .npl/current-session                          id of the current session, no newline
    .npl/sessions/<id>/meta.json
    .npl/sessions/<id>/worklog.jsonl
    .npl/sessions/<id>/.cursors/<agent>.cursor
    .npl/sessions/<id>/tmp/                       for whatever agents want to put there
    .npl/sessions/archive/<name>/                 the same, of archived sessions

Nothing here is needed to go on: a lost or torn file is written again from the database. Writers take turns by
a lock on ``.npl/sessions/.lock``; nothing is written through a link that leaves the project.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

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

if sys.platform != "win32":
    import fcntl

logger = logging.getLogger(__name__)

LOG = "worklog.jsonl"
META = "meta.json"
CURSORS = ".cursors"
ARCHIVE = "archive"
TEMPORARY = "tmp"

ENTRIES = 1_000
"""Entries that are read from the database at a time."""

MOST_KEPT = 9
"""Logs of one session that are set aside and kept."""

LOCK_SECONDS = 5.0

_LARGEST_SMALL_FILE = 1024 * 1024
_BLOCK = 4 * 1024
_THREADS = threading.Lock()

Entries = Callable[[int], Sequence[Entry]]
"""Gives at most :data:`ENTRIES` entries, in order, from a ``seq`` on."""


class ProjectFolder:
    """The worklog files of one project.

    :param project: path of the project's folder.
    """

    def __init__(self, project: str) -> None:
        self._project = Path(project)
        self._root = self._project / ".npl"
        self.sessions = self._root / "sessions"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out; makes the folder.

        :raises OSError: the folder cannot be made or used, or somebody keeps it for too long.
        """
        path = self._made(self.sessions) / ".lock"
        # Threads first: they need not wake up to look, and where there are no locks on files this is all.
        if not _THREADS.acquire(timeout=LOCK_SECONDS):
            raise TimeoutError(errno.ETIMEDOUT, "another thread holds the worklog files for too long")
        try:
            with os.fdopen(open_file(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                _wait_for(file)
                yield
        finally:
            _THREADS.release()

    def path_of(self, session: WorklogSession) -> Path:
        """Return where a session's folder belongs."""
        if session.archived_as is None:
            return self.sessions / session.session_id
        return self.sessions / ARCHIVE / session.archived_as

    def is_archived(self, name: str) -> bool:
        """Whether something of that name lies in the archive."""
        return os.path.lexists(self.sessions / ARCHIVE / name)

    def place(self, session: WorklogSession) -> Path:
        """Make a session's folder, or move it to the archive if that was not done yet.

        :returns: the folder.
        :raises OSError: it cannot be made or moved.
        """
        folder, before = self.path_of(session), self.sessions / session.session_id
        if before.exists() and not folder.exists():
            # The id may have been given again: a folder that says it was made at another moment is not ours.
            made = read_time(read_object(small_file(before / META)).get("created"))
            if made in (None, session.created):
                self._made(folder.parent)
                self.checked(before).rename(folder)
        return self._made(folder)

    def append(self, folder: Path, entries: Entries) -> None:
        """Add to a session's log what it does not have yet.

        A torn last line is dropped. A log that does not end as the database says is set aside and written
        anew.

        :raises OSError: it cannot be written.
        """
        with os.fdopen(open_file(folder / LOG, os.O_RDWR | os.O_CREAT), "r+b") as file:
            raw, end = _last_line(file)
            parsed = parse_line(raw)
            last = parsed[0] if parsed else None
            missing = _stream(entries, last.seq if last else 1)
            if not end or (last and _same(next(missing, None), last)):
                file.truncate(end)
                file.seek(end)
                file.writelines(map(line_of, missing))
                return
        logger.warning("%s of worklog %s did not fit the database and was written anew", LOG, folder.name)
        self.rewrite(folder, entries, "replaced")

    def rewrite(self, folder: Path, entries: Entries, aside: str | None = None) -> None:
        """Write a session's log anew.

        :param aside: the log that was there is kept under its name with this added.
        :raises OSError: it cannot be written.
        """
        fresh, path = folder / f".{LOG}.new", folder / LOG
        with os.fdopen(open_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.writelines(map(line_of, _stream(entries, 1)))
        if aside is not None and os.path.lexists(path):
            path.replace(_kept(folder, f"{LOG}.{aside}"))
        fresh.replace(path)

    def write_meta(self, folder: Path, session: WorklogSession) -> None:
        """Write what a session is, and make the folder that agents may use.

        :raises OSError: it cannot be written.
        """
        (folder / TEMPORARY).mkdir(exist_ok=True)
        _write(folder / META, meta_text(session))

    def write_current(self, session_id: str | None) -> None:
        """Write which session is the current one.

        :raises OSError: it cannot be written.
        """
        path = self._made(self._root) / "current-session"
        if session_id is None:
            path.unlink(missing_ok=True)
        else:
            _write(path, session_id)

    def write_cursor(self, folder: Path, agent_id: str, cursor: Cursor) -> None:
        """Write how far an agent has read.

        :raises OSError: it cannot be written.
        """
        cursors = folder / CURSORS
        cursors.mkdir(exist_ok=True)
        if cursors.is_symlink():
            raise PermissionError(errno.ELOOP, "the folder of cursors is a link")
        _write(cursors / f"{cursor_name(agent_id)}.cursor", cursor_text(cursor))

    def current(self) -> str | None:
        """Read which session is the current one; ``None`` if no file says so."""
        return small_file(self._root / "current-session").decode("utf-8", "replace").strip() or None

    def checked(self, folder: Path) -> Path:
        """Return a folder back if it lies in the project.

        :raises OSError: a link leads out of the project, or in circles.
        """
        try:
            inside = folder.resolve().is_relative_to(self._project.resolve())
        except RuntimeError:  # a circle of links, before Python 3.13
            inside = False
        if not inside:
            raise PermissionError(errno.ELOOP, "a link leads out of the project")
        return folder

    def _made(self, folder: Path) -> Path:
        """Make a folder, but never the project's own, and nothing outside of it."""
        if not self._project.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the project's folder is gone")
        self.checked(folder).mkdir(parents=True, exist_ok=True)
        return folder


def open_file(path: Path, flags: int) -> int:
    """Open a file as :func:`os.open` does, but not through a link.

    :raises OSError: it cannot be opened.
    """
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o666)


def is_file(path: Path) -> bool:
    """Whether something is a regular file, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def small_file(path: Path) -> bytes:
    """Read a file, at most its first MiB; empty if there is none or it cannot be read."""
    if not is_file(path):
        return b""
    try:
        with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
            return file.read(_LARGEST_SMALL_FILE)
    except OSError:
        return b""


def _stream(entries: Entries, first: int) -> Iterator[Entry]:
    while page := entries(first):
        yield from page
        if len(page) < ENTRIES:
            return
        first = page[-1].seq + 1


def _same(entry: Entry | None, line: Entry) -> bool:
    """Whether a line is the entry of the database, whatever keys and spaces it was written with."""
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


def _wait_for(file: Any) -> None:
    """Lock a file, where the system has locks; it is unlocked when closed."""
    if sys.platform != "win32":
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                # A program that was stopped while it held the lock must not stop all others.
                if time.monotonic() > end:
                    raise
                time.sleep(0.002)


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    with os.fdopen(open_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(text.encode("utf-8"))
    fresh.replace(path)


def _kept(folder: Path, name: str) -> Path:
    """Return a name under which a file can be kept; the last one is given again and again.

    Two databases that write one folder set each other's logs aside with every entry.
    """
    path, number = folder / name, 1
    while os.path.lexists(path) and number < MOST_KEPT:
        number += 1
        path = folder / f"{name}-{number}"
    return path
