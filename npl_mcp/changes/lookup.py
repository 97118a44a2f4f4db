"""Finds the file of a change request by the code inside it, whatever the file is called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npl_index.errors import UnreadableDocumentError
from npl_mcp.changes.configs import Project
from npl_mcp.changes.files import SUFFIX
from npl_mcp.changes.format import Key, key_in, number_in
from npl_mcp.changes.index import Ticket, TicketIndex
from npl_mcp.editing.folders import OpenFolder, shown
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import ChangeNotFoundError, ConflictError


@dataclass(frozen=True, slots=True)
class Found:
    """A change request while its folder is open.

    :param data: bytes of its file.
    """

    folder: OpenFolder
    index: TicketIndex
    ticket: Ticket
    data: bytes
    digest: str

    @property
    def name(self) -> str:
        """Return the name of its file."""
        return self.ticket.name


def lookup(
    index: TicketIndex, project: Project, folder: OpenFolder | None, wanted: Key, *, certain: bool = False
) -> Found:
    """Find a change request by its code, whatever its file is called.

    :param certain: list the folder even if what is known of it seems to be true.
    :raises ChangeNotFoundError: there is none.
    :raises ConflictError: several files have the code, or it is being written.
    :raises UnreadableDocumentError: its file cannot be read.
    """
    code = wanted.code or project.code
    key = wanted.of(code)
    while folder is not None and code == project.code:
        # A file that another program is writing may have no code for a moment.
        suspects = set(index.known(key))
        names = index.named(folder, key, certain=certain)
        if len(names) > 1:
            raise doubled(key, names)
        found = _load(folder, index, names[0]) if names else None
        if found is not None and found.ticket.plain_key == key:
            return found
        if certain:
            suspects.update(name for name in folder.names() if _is_called(name, key))
            if not any(folder.wait_for_rest(name) for name in sorted(suspects)):
                for one in index.unreadable:
                    if _is_called(one.name, key):
                        raise UnreadableDocumentError(
                            f"{key}: {shown(one.name)} cannot be read: {one.problem}"
                        )
                break
        certain = True
    raise ChangeNotFoundError(
        f"CR '{key}' not found in project '{project.code}'", hint="list_crs gives the keys there are"
    )


def _load(folder: OpenFolder, index: TicketIndex, name: str) -> Found | None:
    """Read a file, after a pause if another program has just written to it."""
    loaded = index.loaded(folder, name)
    if loaded is None:
        folder.wait_for_rest(name)
        loaded = index.load(folder, name)
    return None if loaded is None else Found(folder, index, *loaded)


def doubled(key: str, names: Sequence[str]) -> ConflictError:
    """Return the error for several files that have one code."""
    return ConflictError(
        f"{len(names)} files have the code {key}: {checks.some([shown(name) for name in names])}",
        hint="give all but one another code in their front matter, or remove them",
    )


def _is_called(name: str, key: str) -> bool:
    """Return whether a file's name begins with a key, whatever its case and zeros."""
    found = key_in(name).upper()
    code, _, number = key.partition("-")
    same = found.partition("-")[0] == code and number_in(found) == int(number)
    return same and name.lower().endswith(SUFFIX)
