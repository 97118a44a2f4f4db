"""Change requests as documents: ``cr:TST-002`` is one, ``cr:TST`` all of a project, ``cr:*`` all."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

from npl_index.errors import DocumentNotFoundError, DocumentTooLargeError, NPLError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentFile, DocumentRef, Fingerprint, read_document
from npl_index.library.listing import Listed
from npl_mcp.app.sources import DocumentSource
from npl_mcp.documents.change_requests import ChangeRequests, ambiguous_key
from npl_mcp.documents.folders import MAX_BYTES
from npl_mcp.documents.format import number_in
from npl_mcp.documents.projects import Project
from npl_mcp.documents.tickets import Ticket

_SCHEME = "cr"
_PREFIX = f"{_SCHEME}:"
_LABEL = "change requests"


@dataclass(frozen=True, slots=True)
class RequestFile(DocumentFile):
    """A change request that a name stands for.

    :param file: file of the change request.
    """

    file: DocumentFile = field(kw_only=True, compare=False)

    @classmethod
    def of(cls, project: Project, ticket: Ticket) -> RequestFile:
        """Return the document for a project's change request."""
        file = project.folder.file(ticket.name)
        root = Root(f"{_PREFIX}{file.absolute.rpartition('/')[0]}", _LABEL)
        return cls(root, f"{_PREFIX}{ticket.key}", _LABEL, file=file)

    @property
    def absolute(self) -> str:
        """The file's absolute path; not for messages."""
        return self.file.absolute

    @property
    def aliases(self) -> tuple[str, ...]:
        """The key, a second name of the document."""
        return (self.path.removeprefix(_PREFIX),)

    def stat(self) -> Fingerprint:
        """Return the state of the file, with a path of its own.

        :raises DocumentNotFoundError: the file was removed.
        :raises UnreadableDocumentError: it is no longer a regular file.
        """
        return _with_own_path(self.file.stat())


class CrDocuments(DocumentSource):
    """Finds and reads change requests as documents.

    :param max_files: limit of the documents that one name stands for.
    """

    SCHEME = _SCHEME

    def __init__(self, changes: ChangeRequests, max_files: int) -> None:
        self._changes = changes
        self._max_files = max_files

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Return the documents that a name stands for, ordered by key.

        :raises DocumentNotFoundError: there is no change request.
        :raises DocumentTooLargeError: they are more than the limit.
        :raises ConflictError: two files have the same key.
        """
        changes, name = self._changes, _name(ref)
        if not self.is_set(ref):
            return (RequestFile.of(*changes.find(None, name, "file")),)
        projects = changes.projects.all() if name == "*" else (changes.projects.find(name),)
        pairs = [(project, ticket) for project in projects for ticket in changes.tickets(project)]
        if not pairs:
            raise DocumentNotFoundError(f"no change request matches {(ref.file or '')[:64]!r}")
        if len(pairs) > self._max_files:
            problem = f"there are more than {self._max_files:,} change requests"
            raise DocumentTooLargeError(problem, hint="name one project: cr:TST")
        pairs.sort(key=lambda pair: (pair[1].code, pair[1].number))
        for (_, ticket), (_, following) in pairwise(pairs):
            if (ticket.code, ticket.number) == (following.code, following.number):
                raise ambiguous_key((ticket, following))
        return Listed.of(
            [RequestFile.of(project, ticket) for project, ticket in pairs],
            [_with_own_path(ticket.state) for _, ticket in pairs],
        )

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name stands for a set: a project, or all projects."""
        name = _name(ref)
        return name == "*" or (number_in(name.upper()) is None and not name.isdigit())

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the change request with a key; empty if the name is not a key or nothing has it."""
        if number_in(name.upper()) is not None:
            with suppress(NPLError):
                return self.find(DocumentRef(file=f"{_SCHEME}:{name}"))
        return ()

    def read(self, document: DocumentFile) -> Document:
        """Read a change request; its key is its name in selectors.

        :raises DocumentNotFoundError: the file was removed.
        """
        assert isinstance(document, RequestFile)
        content = read_document(document.file, MAX_BYTES)
        return replace(
            content,
            name=document.path.removeprefix(_PREFIX),
            path=document.path,
            fingerprint=_with_own_path(content.fingerprint),
        )


def _with_own_path(state: Fingerprint) -> Fingerprint:
    """Return a fingerprint that differs from that of the same file below a root, where its name differs."""
    return replace(state, path=f"{_PREFIX}{state.path}")


def _name(ref: DocumentRef) -> str:
    """Return the name after the scheme."""
    return (ref.file or "").partition(":")[2].strip()
