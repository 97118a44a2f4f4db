"""The data folder: its contents and its permissions (folders 0700, files 0600, for the owner alone).

Its data is shared by the agents of one user, not by the users of one machine.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600

DATABASE_FILE = "npl.db"
ARTIFACT_FOLDER = "artifacts"
QUESTION_FOLDER = "questions"

OURS = (DATABASE_FILE, ARTIFACT_FOLDER, QUESTION_FOLDER, "index-cache.db", "server.")
"""Prefixes of the names that npl uses in a data folder; other files of the user are left alone."""

_OTHERS = 0o077


def private_folder(folder: Path) -> None:
    """Create a data folder if it does not exist, and restrict it and npl's files in it to the owner.

    Subfolders are examined only if other users could have entered the folder: once it is closed, its contents
    are out of reach. Links and files of other users are left alone.

    :raises OSError: the folder cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER)
    if os.name != "posix":
        return
    was_open = _close_to_others(folder.resolve())
    for path in folder.iterdir():
        if path.name.startswith(OURS) and not path.is_symlink():
            for inside in (path, *path.rglob("*")) if was_open else (path,):
                _close_to_others(inside)


def _close_to_others(path: Path) -> bool:
    """Remove the permissions of other users, and return whether there were any.

    By name, and never by opening the file: closing it would drop the locks that SQLite holds on it.
    """
    # Another process may remove a temporary file; a read-only file system is no reason to refuse reading.
    with suppress(OSError):
        status = path.lstat()
        kind = status.st_mode
        is_ours = (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) and status.st_uid == os.geteuid()
        if is_ours and kind & _OTHERS:
            path.chmod(stat.S_IMODE(kind) & ~_OTHERS)
            return True
    return False
