"""Owner, mode and extended attributes, copied from a file to its replacement."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


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
