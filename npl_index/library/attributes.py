"""The owner, mode and extended attributes of a file, which a new one in its place keeps."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress


def take_permissions(file: int, old: os.stat_result) -> None:
    """Let a new file have the owner and the mode of the file it replaces, as far as the system allows."""
    if not hasattr(os, "fchown"):  # Windows
        return
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except PermissionError:
            # Only root may change owners. Then it must not run as a user that it did not belong to.
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
            with suppress(PermissionError):
                os.fchown(file, -1, old.st_gid)
    os.fchmod(file, mode)


def take_attributes(file: int, source: Callable[[], int]) -> None:
    """Copy extended attributes, access control lists among them, as far as the system allows.

    :param source: opens the file that has them.
    """
    if not hasattr(os, "listxattr"):  # Python has them on Linux only
        return
    with suppress(OSError):
        old = source()
        try:
            for name in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(file, name, os.getxattr(old, name))
        finally:
            os.close(old)
