"""Numbers of new change requests: each is higher than all earlier numbers of the project.

A file next to the project's configuration holds the highest key. Without it, the key of a deleted change
request would be used again, although commits and notes may mention it. Present files count as well, because
they may be newer than the stored key.
"""

from __future__ import annotations

import re
from contextlib import suppress

from npl_index.library.files import Folder
from npl_mcp.documents.folders import printable
from npl_mcp.documents.format import MAX_NUMBER, SUFFIX, ChangeKey
from npl_mcp.documents.projects import Project
from npl_mcp.documents.tickets import FolderListing
from npl_mcp.stores.base.errors import ClosedError

LAST_KEY_FILE = ".mdt-last-key"
"""File with the highest key of the project, e.g. ``TST-033``."""

_LINE = re.compile(rb"([A-Z][A-Z0-9]{1,4})-([0-9]{1,5})\s*")
_MAX_LINE = 64


def next_number(project: Project, folder: Folder, listing: FolderListing) -> int:
    """Return the number of a new change request.

    :param folder: open folder of its change requests.
    :param listing: its change requests.
    :raises ClosedError: no number is left.
    """
    known = {(project.info.startNumber or 1) - 1: "startNumber", _last_number(project): LAST_KEY_FILE}
    known[listing.highest.get(project.code, 0)] = "a deleted file"
    known |= {ticket.number: printable(ticket.name) for ticket in listing.tickets}
    for name in folder.names():
        code, _, rest = name.partition("-")
        digits = rest.removesuffix(SUFFIX).partition("-")[0]
        if code.upper() == project.code and digits.isascii() and digits.isdigit() and len(digits) <= 5:
            known[int(digits)] = printable(name)
    highest = max(known)
    if highest >= MAX_NUMBER:
        problem = f"{project.code} has no number left: the highest is {highest} (of {known[highest]})"
        hint = "if that number is a mistake, change the name and the code of the file"
        raise ClosedError(problem, hint=hint)
    return highest + 1


def keep_number(project: Project, number: int) -> None:
    """Store a number as used, unless the stored number is higher.

    If the project's folder cannot be written, or another program owns the file, nothing is stored.
    """
    with suppress(OSError), Folder.opened(project.info.path) as folder:
        absent = folder.stat(LAST_KEY_FILE) is None
        stored = None if absent else _LINE.fullmatch(folder.read(LAST_KEY_FILE, _MAX_LINE)[0])
        if absent or (stored and (stored[1] != project.code.encode() or int(stored[2]) < number)):
            folder.replace(LAST_KEY_FILE, f"{ChangeKey(project.code, number).of(project.code)}\n".encode())


def _last_number(project: Project) -> int:
    """Return the stored number; 0 without one."""
    with suppress(OSError), Folder.opened(project.info.path) as folder:
        stored = _LINE.fullmatch(folder.read(LAST_KEY_FILE, _MAX_LINE)[0])
        # A copy of another project's folder has that project's key.
        if stored and stored[1] == project.code.encode():
            return int(stored[2])
    return 0
