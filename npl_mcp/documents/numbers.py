"""The number of a new change request: above every number that was ever given in the project.

The highest one is kept in a file beside the project's configuration, since a deleted change request leaves no
other trace, and its key may stand in commits and in other people's notes. The files count all the same: the
kept number may be older than they are.
"""

from __future__ import annotations

import re
from contextlib import suppress

from npl_index.library.files import Folder
from npl_mcp.documents.configs import Project
from npl_mcp.documents.folders import shown
from npl_mcp.documents.format import MAX_NUMBER, SUFFIX, ChangeKey
from npl_mcp.documents.tickets import FolderListing
from npl_mcp.stores.base.errors import ClosedError

KEPT = ".mdt-last-key"
"""Holds the highest key of the project, e.g. ``TST-033``."""

_LINE = re.compile(rb"([A-Z][A-Z0-9]{1,4})-([0-9]{1,5})\s*")
_MAX_LINE = 64


def next_number(project: Project, folder: Folder, listing: FolderListing) -> int:
    """Return the number of a new change request.

    :param folder: of its change requests, open.
    :param listing: its change requests.
    :raises ClosedError: there is none left.
    """
    known = {(project.info.startNumber or 1) - 1: "startNumber", _kept(project): KEPT}
    known[listing.highest.get(project.code, 0)] = "a deleted file"
    known |= {ticket.number: shown(ticket.name) for ticket in listing.tickets}
    for name in folder.names():
        code, _, rest = name.partition("-")
        digits = rest.removesuffix(SUFFIX).partition("-")[0]
        if code.upper() == project.code and digits.isascii() and digits.isdigit() and len(digits) <= 5:
            known[int(digits)] = shown(name)
    highest = max(known)
    if highest >= MAX_NUMBER:
        raise ClosedError(
            f"the numbers of {project.code} are used up: the highest is {highest} (of {known[highest]})",
            hint="if that number is a mistake, give the file another name and code",
        )
    return highest + 1


def keep_number(project: Project, number: int) -> None:
    """Keep a number as given, unless a higher one is kept.

    Where the project's folder cannot be written, or the name is another program's, only the files count.
    """
    with suppress(OSError), Folder.opened(project.info.path) as folder:
        absent = folder.stat(KEPT) is None
        found = None if absent else _LINE.fullmatch(folder.read(KEPT, _MAX_LINE)[0])
        if absent or (found and (found[1] != project.code.encode() or int(found[2]) < number)):
            folder.replace(KEPT, f"{ChangeKey(project.code, number).of(project.code)}\n".encode())


def _kept(project: Project) -> int:
    with suppress(OSError), Folder.opened(project.info.path) as folder:
        found = _LINE.fullmatch(folder.read(KEPT, _MAX_LINE)[0])
        # A folder copied from another project has that one's file.
        if found and found[1] == project.code.encode():
            return int(found[2])
    return 0
