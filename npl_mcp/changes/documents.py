"""Change requests as documents: ``cr:TST-002`` is one, ``cr:TST`` all of a project, ``cr:*`` all there are.

Filters by front matter follow ``?``: ``cr:TST?status=Proposed,Approved&priority=High``. They are part of the
name because a document is named by one text everywhere, also on the command line; the form is that of a URL's
query.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from npl_index.errors import DocumentNotFoundError, DocumentTooLargeError, NPLError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentRef, Fingerprint, Found
from npl_index.library.listing import Listed
from npl_mcp.changes.configs import Project
from npl_mcp.changes.filters import Filters
from npl_mcp.changes.format import Key, number_in
from npl_mcp.changes.index import Ticket, as_document, fingerprint
from npl_mcp.changes.lookup import doubled
from npl_mcp.changes.store import ChangeRequests
from npl_mcp.editing.folders import SharedFolder


@dataclass(frozen=True, slots=True)
class FoundRequest(Found):
    """A change request.

    :param folder: of the change requests of its project.
    :param file: name of its file there.
    :param title: what it is called.
    """

    folder: SharedFolder = field(kw_only=True, compare=False)
    file: str = field(kw_only=True, compare=False)
    title: str = field(kw_only=True, compare=False)

    @property
    def home(self) -> str:
        """Its folder: the change requests of all projects have one root."""
        return f"{self.root.path}{self.folder.path}"

    @property
    def absolute(self) -> str:
        """The file's absolute path; not for messages."""
        return os.path.join(self.folder.path, self.file)  # noqa: PTH118


class CrDocuments:
    """Finds and reads change requests as documents.

    :param most: limit of the documents that one name may stand for.
    """

    SCHEME = "cr"

    def __init__(self, changes: ChangeRequests, most: int) -> None:
        self._changes = changes
        self._most = most
        self._root = Root(f"{self.SCHEME}:", "change requests")

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Return the documents a name stands for, in the order of keys.

        :raises DocumentNotFoundError: no change request passes the filters.
        :raises DocumentTooLargeError: there are more than the limit.
        :raises ConflictError: two files have one key.
        """
        changes = self._changes
        name, filtered, query = _split(ref)
        if not self._is_set(name, filtered):
            key = Key.parse(name, "file")
            project = changes.projects.find(None, key)
            return (self._found(project, changes.ticket(project, key)[0]),)
        projects = changes.projects.all() if name == "*" else (changes.projects.find(name),)
        chosen = Filters.query(query) if filtered else Filters()
        every = [(project, ticket) for project in projects for ticket in changes.tickets(project)]
        chosen.check([ticket for _, ticket in every], "file", "?status=Proposed,Approved")
        tickets = [(project, ticket) for project, ticket in every if chosen.fit(ticket)]
        if not tickets:
            raise DocumentNotFoundError(f"no change request is {(ref.file or '')[:64]!r}")
        if len(tickets) > self._most:
            raise DocumentTooLargeError(
                f"there are more than {self._most:,} change requests",
                hint="filter them: ?status=Proposed",
            )
        ordered = sorted(tickets, key=lambda one: (one[1].key.partition("-")[0], one[1].number))
        for (_, one), (_, other) in pairwise(ordered):
            if one.plain_key == other.plain_key:
                raise doubled(one.plain_key, (one.name, other.name))
        founds = [self._found(project, ticket) for project, ticket in ordered]
        states = _states(founds)
        return Listed.of(founds, (states.get(found) for found in founds))

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name stands for a project or all of them, however many change requests that is."""
        name, filtered, _ = _split(ref)
        return self._is_set(name, filtered)

    def holds(self, text: str) -> bool:  # noqa: ARG002
        """Return ``False``: commas separate names, or values of a filter."""
        return False

    def find_called(self, name: str) -> tuple[Found, ...]:
        """Find the change request that has a key; nothing where a name is none."""
        if number_in(name.upper()) is None:
            return ()
        try:
            return self.find(DocumentRef(file=f"{self.SCHEME}:{name}"))
        except NPLError:
            return ()

    def aliases(self, found: Found) -> tuple[str, ...]:
        """Return the key, which the document has for a name as well."""
        return (found.path.removeprefix(f"{self.SCHEME}:"),)

    def stat(self, found: Found) -> Fingerprint:
        """Return the state of a change request's file.

        :raises DocumentNotFoundError: it is gone.
        """
        place, name = _place(found)
        with place.opened() as folder:
            stamp = folder and folder.stat(name)
        if not stamp:
            raise DocumentNotFoundError(f"{found.path!r} is not there any more")
        return fingerprint(place.path, name, stamp)

    def apart(self) -> None:
        """Return ``None``: change requests are read here."""
        return

    def read(self, found: Found) -> Document:
        """Read a change request; its key is its name in selectors.

        :raises DocumentNotFoundError: it is gone.
        """
        place, name = _place(found)
        with place.opened() as folder:
            read = folder and folder.read(name)
        if not read:
            raise DocumentNotFoundError(f"{found.path!r} is not there any more")
        data, stamp = read
        state = fingerprint(place.path, name, stamp)
        return as_document(
            found.path.removeprefix(f"{self.SCHEME}:"), found.path, self._root.label, state, data
        )

    def _is_set(self, name: str, filtered: bool) -> bool:
        return filtered or name == "*" or (number_in(name.upper()) is None and not name.isdigit())

    def _found(self, project: Project, ticket: Ticket) -> FoundRequest:
        name = f"{self.SCHEME}:{ticket.key}"
        return FoundRequest(
            self._root,
            name,
            self._root.label,
            folder=project.folder,
            file=ticket.name,
            title=ticket.title,
        )


def _states(founds: Iterable[FoundRequest]) -> dict[FoundRequest, Fingerprint]:
    """Return the states of the files that are there; each folder is opened once."""
    inside: dict[str, list[FoundRequest]] = {}
    for found in founds:
        inside.setdefault(found.folder.path, []).append(found)
    states = {}
    for path, requests in inside.items():
        with requests[0].folder.opened() as folder:
            for one in requests:
                if folder and (stamp := folder.stat(one.file)):
                    states[one] = fingerprint(path, one.file, stamp)
    return states


def _place(found: Found) -> tuple[SharedFolder, str]:
    """Return the folder of a change request, and the name of its file."""
    assert isinstance(found, FoundRequest)
    return found.folder, found.file


def _split(ref: DocumentRef) -> tuple[str, bool, str]:
    """Return the name after the scheme, whether there are filters, and the filters."""
    name, mark, query = (ref.file or "").partition(":")[2].partition("?")
    return name.strip(), bool(mark), query
