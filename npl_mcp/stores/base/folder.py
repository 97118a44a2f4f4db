"""The data folder: its contents and its permissions (folders 0700, files 0600, for the owner alone).

Its data is shared by the agents of one user, not by the users of one machine.
"""

from __future__ import annotations

import os
import stat
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
    opened = _close_to_others(str(folder), folder.stat())
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(OURS):
                _mend(entry, deep=opened)


def _mend(entry: os.DirEntry[str], *, deep: bool) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:  # a temporary file of another process
        return
    deep = _close_to_others(entry.path, status) or deep
    if deep and stat.S_ISDIR(status.st_mode):
        with os.scandir(entry.path) as entries:
            for inside in entries:
                _mend(inside, deep=True)


def _close_to_others(path: str, status: os.stat_result) -> bool:
    """Remove the permissions of other users, and return whether there were any.

    By name, and never by opening the file: closing it would drop the locks that SQLite holds on it.
    """
    kind = status.st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or not kind & _OTHERS or status.st_uid != os.geteuid():
        return False
    try:
        os.chmod(path, stat.S_IMODE(kind) & ~_OTHERS)  # noqa: PTH101
    except OSError:  # such as a read-only file system, which is no reason to refuse reading
        return False
    return True
