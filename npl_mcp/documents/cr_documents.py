"""Change requests as documents: ``cr:TST-002`` is one, ``cr:TST`` all of a project, ``cr:*`` all there are.

Filters by front matter follow ``?``: ``cr:TST?status=Proposed,Approved&priority=High``. They are part of the
name because a document is named by one text everywhere, also on the command line; the form is that of a URL's
query.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from npl_index.errors import DocumentNotFoundError, DocumentTooLargeError, NPLError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentRef, FileReader, Fingerprint, Found
from npl_index.library.listing import Listed, states_of
from npl_mcp.documents.change_requests import ChangeRequests, doubled
from npl_mcp.documents.configs import Project
from npl_mcp.documents.filters import Filters
from npl_mcp.documents.folders import MAX_BYTES
from npl_mcp.documents.format import number_in
from npl_mcp.documents.tickets import Ticket

_SCHEME = "cr"
_ROOT = Root(f"{_SCHEME}:", "change requests")


@dataclass(frozen=True, slots=True)
class FoundRequest(Found):
    """A change request.

    :param file: its file.
    :param title: what it is called.
    """

    file: Found = field(kw_only=True, compare=False)
    title: str = field(kw_only=True, compare=False)

    @classmethod
    def of(cls, project: Project, ticket: Ticket) -> FoundRequest:
        """Return a change request of a project."""
        file = project.folder.found(ticket.name)
        return cls(_ROOT, f"{_SCHEME}:{ticket.key}", _ROOT.label, file=file, title=ticket.title)

    @property
    def home(self) -> str:
        """Its folder: the change requests of all projects have one root."""
        return f"{self.root.path}{self.absolute.rpartition('/')[0]}"

    @property
    def absolute(self) -> str:
        """The file's absolute path; not for messages."""
        return self.file.absolute


class CrDocuments:
    """Finds and reads change requests as documents.

    :param most: limit of the documents that one name may stand for.
    """

    SCHEME = _SCHEME

    def __init__(self, changes: ChangeRequests, most: int) -> None:
        self._changes = changes
        self._most = most
        self._reader = FileReader(MAX_BYTES, ())

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Return the documents a name stands for, in the order of keys.

        :raises DocumentNotFoundError: no change request passes the filters.
        :raises DocumentTooLargeError: there are more than the limit.
        :raises ConflictError: two files have one key.
        """
        changes = self._changes
        name, filtered, query = _split(ref)
        if not self.is_set(ref):
            return (FoundRequest.of(*changes.find(None, name, "file")),)
        projects = changes.projects.all() if name == "*" else (changes.projects.find(name),)
        chosen = Filters.query(query) if filtered else Filters()
        every = [(project, ticket) for project in projects for ticket in changes.tickets(project)]
        chosen.check([ticket for _, ticket in every], "file", "?status=Proposed,Approved")
        found = [(project, ticket) for project, ticket in every if chosen.fit(ticket)]
        if not found:
            raise DocumentNotFoundError(f"no change request is {(ref.file or '')[:64]!r}")
        if len(found) > self._most:
            raise DocumentTooLargeError(
                f"there are more than {self._most:,} change requests", hint="filter them: ?status=Proposed"
            )
        found.sort(key=lambda one: (one[1].code, one[1].number))
        for (_, one), (_, other) in pairwise(found):
            if (one.code, one.number) == (other.code, other.number):
                raise doubled((one, other))
        return Listed.of(
            [FoundRequest.of(project, ticket) for project, ticket in found],
            [ticket.state for _, ticket in found],
        )

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name stands for a project or all of them, however many change requests that is."""
        name, filtered, _ = _split(ref)
        return filtered or name == "*" or (number_in(name.upper()) is None and not name.isdigit())

    def holds(self, text: str) -> bool:  # noqa: ARG002
        """Return ``False``: commas separate names, or values of a filter."""
        return False

    def find_called(self, name: str) -> tuple[Found, ...]:
        """Find the change request that has a key; nothing where a name is none."""
        if number_in(name.upper()) is None:
            return ()
        try:
            return self.find(DocumentRef(file=f"{_SCHEME}:{name}"))
        except NPLError:
            return ()

    def aliases(self, found: Found) -> tuple[str, ...]:
        """Return the key, which the document has for a name as well."""
        return (found.path.removeprefix(_ROOT.path),)

    def stat(self, found: Found) -> Fingerprint:
        """Return the state of a change request's file.

        :raises DocumentNotFoundError: it is gone.
        """
        (state,) = states_of((_file(found),), (None,))
        if state is None:
            raise DocumentNotFoundError(f"{found.path!r} is not there any more")
        return _own(state)

    def apart(self) -> None:
        """Return ``None``: change requests are read here."""
        return

    def read(self, found: Found) -> Document:
        """Read a change request; its key is its name in selectors.

        :raises DocumentNotFoundError: it is gone.
        """
        read = self._reader.read(_file(found))
        return replace(
            read,
            name=found.path.removeprefix(_ROOT.path),
            path=found.path,
            root=_ROOT.label,
            fingerprint=_own(read.fingerprint),
        )


def _own(state: Fingerprint) -> Fingerprint:
    """Return a state with a path of its own: as a file below a root the same document has another name."""
    return replace(state, path=f"{_ROOT.path}{state.path}")


def _file(found: Found) -> Found:
    assert isinstance(found, FoundRequest)
    return found.file


def _split(ref: DocumentRef) -> tuple[str, bool, str]:
    """Return the name after the scheme, whether there are filters, and the filters."""
    name, mark, query = (ref.file or "").partition(":")[2].partition("?")
    return name.strip(), bool(mark), query
