"""System calls for the replacement of a file: copies of its owner, mode and attributes, and an exchange."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h


def take_permissions(file: int, old: os.stat_result) -> None:
    """Copy the owner and the mode of a file to its replacement, as far as the system allows."""
    if not hasattr(os, "fchown"):  # Windows
        return
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except PermissionError:
            # Only root may change owners. Without the change, setuid would run the file as a different user.
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
            with suppress(PermissionError):
                os.fchown(file, -1, old.st_gid)
    os.fchmod(file, mode)


def take_attributes(file: int, old: int) -> None:
    """Copy extended attributes, including access control lists, as far as the system allows.

    :param old: the open file with the attributes.
    """
    if not hasattr(os, "listxattr"):  # Python has them on Linux only
        return
    for name in os.listxattr(old):
        with suppress(OSError):
            os.setxattr(file, name, os.getxattr(old, name))


def exchange(folder: int, name: str, other: str) -> bool:
    """Exchange two files of an open folder in one step; return whether the system could do that."""
    call = _renameat2()
    return call is not None and call(folder, os.fsencode(name), folder, os.fsencode(other), _EXCHANGE) == 0


@cache
def _renameat2() -> Callable[..., Any] | None:
    """Return the system call that exchanges two files, if there is one; see ``renameat2(2)``."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # only writing needs it

    call: Callable[..., Any] | None = getattr(ctypes.CDLL(None), "renameat2", None)
    return call
