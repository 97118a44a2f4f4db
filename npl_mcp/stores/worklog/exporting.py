"""Brings the folder of a project's worklogs up to date with the database.

It runs after the commit. Whatever it writes it reads from the database while it holds the folder's lock, so
it does not matter if writers get the lock in another order than they committed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import AlreadyExistsError, DatabaseError, StorageError
from npl_mcp.stores.worklog import rows
from npl_mcp.stores.worklog.folder import (
    CURSORS,
    ENTRIES,
    LOG,
    META,
    SESSIONS,
    ProjectFolder,
    append,
    begins_with,
    rewrite,
    small_file,
    write_cursor,
    write_meta,
)
from npl_mcp.stores.worklog.format import Cursor, Entry, WorklogSession, read_object, read_time

logger = logging.getLogger(__name__)

MOST_FOLDERS = 32
"""Folders, one in the other, that an export makes; many programs cannot remove a thousand."""


class WorklogExport:
    """Writes worklogs to the folders of their projects.

    The methods that follow a commit return ``False`` if the folder could not be written, else ``None``. They
    never raise: the entry is in the database, and the next write adds it to the file.

    :param database: of the worklogs.
    :param files: false if only :meth:`whole` is to write anything.
    """

    def __init__(self, database: Database, *, files: bool = True) -> None:
        self._database = database
        self._files = files
        self._warned: set[str] = set()

    def place(self, project: str, session_id: str) -> str | None:
        """Return where a session's files are kept below the project's folder; ``None`` if none are."""
        return f"{SESSIONS}/{session_id}" if self._is_kept(project) else None

    def entries(self, project: str, number: int) -> bool | None:
        """Add to a session's log what it does not have.

        :param number: of the session's row, here and below.
        """
        return self._quietly(project, partial(self._sync, project, number, False))

    def session(self, project: str, number: int) -> bool | None:
        """Write what a session is, which is the current one, and what the log does not have."""
        return self._quietly(project, partial(self._sync, project, number, True))

    def cursor(self, project: str, number: int, agent_id: str) -> bool | None:
        """Write how far an agent has read; a session without a folder gets none for it."""

        def write(files: ProjectFolder) -> None:
            path = files.path_of(self._described(number))
            if files.exists(path):
                with self._database.read() as tx:
                    cursor = rows.cursor(tx, number, agent_id)
                with files.opened(f"{path}/{CURSORS}", make=True) as cursors:
                    write_cursor(cursors, agent_id, cursor)

        return self._quietly(project, write) if ProjectFolder(project).exists(SESSIONS) else None

    def renumbered(self, project: str, number: int) -> bool | None:
        """Write a log again whose entries got other numbers when they were imported; keep the old one."""

        def write(files: ProjectFolder) -> None:
            with files.session_folder(self._described(number)) as folder:
                rewrite(folder, partial(self._page, number), "before-import")

        return self._quietly(project, write)

    def whole(self, project: str, number: int, target: Path | None) -> Path:
        """Write all files of a session again.

        :param target: the folder, made if need be; by default the session's own.
        :returns: the folder.
        :raises AlreadyExistsError: the target holds files of the names we would use that no earlier export of
            this session has written.
        :raises StorageError: it cannot be written.
        """
        files = ProjectFolder(project)
        session = self._described(number)
        try:
            if target is not None:
                with _made(target) as folder:
                    self._check_free(folder, number, target)
                    self._write(folder, number)
                return target
            with files.locked(), files.session_folder(session) as folder:
                if not append(folder, partial(self._page, number)):
                    rewrite(folder, partial(self._page, number), "replaced")
                self._write(folder, number)
            return Path(project, files.path_of(session))
        except OSError as error:
            where = f"to {target.name[:64]!r}" if target is not None else f"below {SESSIONS}"
            raise StorageError(
                f"the worklog cannot be written {where}: {error.strerror}", hint="name another folder"
            ) from error

    def _is_kept(self, project: str) -> bool:
        """Return whether files are to be written; servers may share a project whose folder no machine has."""
        return self._files and os.path.isdir(project)  # noqa: PTH112

    def _quietly(self, project: str, work: Callable[[ProjectFolder], None]) -> bool | None:
        if not self._is_kept(project):
            return None
        files = ProjectFolder(project)
        try:
            with files.locked():
                work(files)
        except (OSError, DatabaseError) as error:
            if project not in self._warned:
                self._warned.add(project)
                reason = error.strerror if isinstance(error, OSError) else error.message
                logger.warning("the worklogs of %s are not exported: %s", project, reason)
            return False
        return None

    def _sync(self, project: str, number: int, changed: bool, files: ProjectFolder) -> None:
        session = self._described(number)
        if changed and session.archived_as is None:
            self._archive_older(files, project, session.session_id)
        with files.session_folder(session) as folder:
            if not append(folder, partial(self._page, number)):
                name = files.path_of(session)
                logger.warning("%s of %s did not fit the database and was written again", LOG, name)
                rewrite(folder, partial(self._page, number), "replaced")
            if changed or folder.stat(META) is None:
                write_meta(folder, session)
        if changed:
            with self._database.read() as tx:
                current = rows.current(tx, project)
            files.write_current(current)

    def _archive_older(self, files: ProjectFolder, project: str, session_id: str) -> None:
        """Move older folders to the archive where that was not done before the id was used again."""
        sql = f"{rows.SESSION} WHERE project = :project AND id = :id AND archived_as IS NOT NULL"
        with self._database.read() as tx:
            older = tx.all(sql, project=project, id=session_id)
        for row in older:
            with files.session_folder(rows.described(row, None, {})):
                pass

    def _write(self, folder: Folder, number: int) -> None:
        # First what says whose files these are: an export that is broken off can be made again.
        write_meta(folder, self._described(number))
        rewrite(folder, partial(self._page, number))
        sql = "SELECT agent_id, last_seq, last_read FROM worklog_agent WHERE session_number = :number"
        with self._database.read() as tx:
            found = tx.all(f"{sql} AND last_seq > 0", number=number)
        if found:
            with folder.inner(CURSORS, make=True) as cursors:
                for row in found:
                    write_cursor(cursors, row["agent_id"], Cursor(row["last_seq"], row["last_read"]))

    def _check_free(self, folder: Folder, number: int, target: Path) -> None:
        """Refuse to write over files that this session's export has not written."""
        taken = [name for name in (META, LOG, CURSORS) if folder.stat(name) is not None]
        if not taken:
            return
        session = self._described(number)
        meta = read_object(small_file(folder, META))
        ours = (
            meta.get("session_id") == session.session_id and read_time(meta.get("created")) == session.created
        )
        first = next(iter(self._page(number, 1)), None)
        if not ours or (LOG in taken and not begins_with(folder, first)):
            found = " and ".join(taken)
            raise AlreadyExistsError(
                f"{target.name!r} holds {found} that no export of {session.session_id} has written",
                hint="choose another folder",
            )

    def _described(self, number: int) -> WorklogSession:
        with self._database.read() as tx:
            return rows.described(rows.by_number(tx, number), None, {})

    def _page(self, number: int, first: int) -> Sequence[Entry]:
        with self._database.read() as tx:
            return rows.entries(tx, number, first, ENTRIES)


@contextmanager
def _made(target: Path) -> Iterator[Folder]:
    """Open a folder, made with those above it that are absent.

    :raises InvalidRequestError: too many are absent.
    """
    there, absent = os.path.abspath(target), []  # noqa: PTH100 - a path object would resolve it
    while not os.path.isdir(there):  # noqa: PTH112 - no name is too long for it
        there, name = os.path.split(there)
        absent.append(name)
    if len(absent) > MOST_FOLDERS:
        raise InvalidRequestError(
            f"folder has {len(absent):,} levels that do not exist",
            parameter="folder",
            hint=f"at most {MOST_FOLDERS} are made",
        )
    with Folder.opened(there, "/".join(reversed(absent)), make=True) as folder:
        yield folder
