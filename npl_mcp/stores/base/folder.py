"""The data folder: what lies in it, and that it is its owner's alone: folders 0700, files 0600.

What is stored there is shared by the agents of one user, not by the users of one machine.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

FOLDER, FILE = 0o700, 0o600

DATABASE_FILE = "npl.db"
ARTIFACT_FOLDER = "artifacts"
LABEL_FOLDER = "labels"

OURS = (DATABASE_FILE, ARTIFACT_FOLDER, LABEL_FOLDER, "index-cache.db", "server.")
"""How the names of what npl puts into a data folder begin; what else a user keeps there stays as it is."""

_OTHERS = 0o077


def private_folder(folder: Path) -> None:
    """Make a data folder if it is absent, and take from others all rights to it and to what npl keeps there.

    Folders in it are looked into if somebody else could have entered them: once they are closed, nobody
    reaches what is inside. Links are left alone, and so is what belongs to somebody else.

    :raises OSError: it cannot be made.
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
    except FileNotFoundError:  # somebody's temporary file
        return
    deep = _close_to_others(entry.path, status) or deep
    if deep and stat.S_ISDIR(status.st_mode):
        with os.scandir(entry.path) as entries:
            for inside in entries:
                _mend(inside, deep=True)


def _close_to_others(path: str, status: os.stat_result) -> bool:
    """Take the rights of others away, and return whether they had any.

    By name, and never by opening the file: closing it would drop the locks that SQLite holds on it.
    """
    kind = status.st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or not kind & _OTHERS or status.st_uid != os.geteuid():
        return False
    try:
        os.chmod(path, stat.S_IMODE(kind) & ~_OTHERS)  # noqa: PTH101
    except OSError:  # a read-only file system, say, which is no reason to refuse reading
        return False
    return True
