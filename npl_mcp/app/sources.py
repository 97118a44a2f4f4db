"""Artifacts and change requests as documents.

``artifact:12`` is the current revision of an artifact, ``artifact:12@0`` its first, ``cr:TST-002`` a change
request, ``cr:TST`` all of a project. ``artifact:*`` and ``cr:*`` are all. The source of each scheme has the
interface of the library of files, so all documents are treated alike.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import PurePosixPath

from npl_index import errors
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentFile, DocumentRef, Fingerprint, read_document
from npl_index.library.listing import Listed
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix
from npl_index.library.roots import refuse_questions
from npl_mcp.documents.change_requests import ChangeRequests, ambiguous_key
from npl_mcp.documents.folders import MAX_BYTES
from npl_mcp.documents.format import number_in
from npl_mcp.stores.artifact.artifacts import require_revision
from npl_mcp.stores.base.database import Row
from npl_mcp.stores.base.errors import RESTORE
from npl_mcp.stores.data_folder import Stores


class DamagedRevisionError(errors.DocumentError):
    """The content of an artifact's revision is not the one that was stored."""


def _check_number(
    found: Listed, most: int, missing: errors.DocumentNotFoundError, kind: str, fewer: str
) -> Listed:
    """Check the number of the documents of a set.

    :param missing: the error if the set is empty.
    :param kind: what the documents are, for messages.
    :param fewer: a remedy if they are too many.
    :raises DocumentNotFoundError: the set is empty.
    :raises DocumentTooLargeError: the set has more than ``most`` documents.
    """
    if not found:
        raise missing
    if len(found) > most:
        raise errors.DocumentTooLargeError(f"there are more than {most:,} {kind}", hint=fewer)
    return found


@dataclass(frozen=True, slots=True)
class RevisionFile(DocumentFile):
    """A revision of an artifact.

    :param row: artifact_id, revision_num, filename, size and digest.
    :param state: fingerprint of the row: a revision never changes, but after a restored backup, a number may
        denote another one.
    """

    row: Row = field(kw_only=True, compare=False)
    state: Fingerprint = field(kw_only=True)

    @classmethod
    def of(cls, row: Row) -> RevisionFile:
        """Return the revision of a row."""
        name = f"{_ARTIFACTS.path}{row['artifact_id']}@{row['revision_num']}"
        content = blake2b(f"{row['digest']} {row['filename']}".encode(), digest_size=7)
        state = Fingerprint(name, 0, row["size"], int.from_bytes(content.digest(), "big"))
        return cls(_ARTIFACTS, name, _ARTIFACTS.label, row=row, state=state)

    @property
    def aliases(self) -> tuple[str, ...]:
        """The artifact's name without its revision."""
        return (self.path.partition("@")[0],)

    def stat(self) -> Fingerprint:
        """Return the state of the row."""
        return self.state


class ArtifactDocuments:
    """Artifacts as documents; a set has the current revision of each Markdown artifact.

    :param stores: stores of the artifacts.
    :param max_files: maximum number of documents of one name.
    """

    def __init__(self, stores: Stores, max_files: int) -> None:
        self._stores, self._max_files = stores, max_files

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find a revision, which the result names by number, or all artifacts.

        :raises InvalidRequestError: the name is not valid.
        :raises ArtifactNotFoundError: the artifact does not exist.
        :raises RecordNotFoundError: the revision does not exist.
        :raises DocumentNotFoundError: no artifact is Markdown.
        :raises DocumentTooLargeError: the set has more documents than the limit.
        """
        name = ref.file or ""
        if self.is_set(ref):
            with self._stores.database.read() as tx:
                rows = tx.all(f"{_CURRENT} ORDER BY artifact_id")
            files = [RevisionFile.of(row) for row in rows if has_suffix(row["filename"], MARKDOWN_SUFFIXES)]
            listed = Listed.of(files, [file.state for file in files])
            hint, fewer = "artifact_list lists all artifacts", "name some: artifact:1, artifact:2"
            missing = errors.DocumentNotFoundError("no artifact is Markdown", hint=hint)
            return _check_number(listed, self._max_files, missing, "artifacts", fewer)
        match = _REVISION.fullmatch(name)
        if match is None:
            problem = f"{name[:64]!r} is not the name of an artifact"
            hint = "write artifact:12, artifact:12@0 or artifact:*"
            raise errors.InvalidRequestError(problem, parameter="file", hint=hint)
        artifact, number = int(match[1]), None if match[2] is None else int(match[2])
        with self._stores.database.read() as tx:
            revision = RevisionFile.of(require_revision(tx, artifact, number))
        refuse_questions(revision.row["filename"], name)
        return (revision,)

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name denotes all artifacts; a revision is one document."""
        return ref.file == f"{_ARTIFACTS.path}*"

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the current revisions whose file has a name; the suffix is optional."""
        if not self._stores.database.engine.exists():  # a lookup must not create a data folder
            return ()
        names = [name, *(name + suffix for suffix in MARKDOWN_SUFFIXES)]
        query = f"{_CURRENT} WHERE filename IN :names ORDER BY artifact_id LIMIT :most"
        with self._stores.database.read() as tx:
            return tuple(map(RevisionFile.of, tx.all(query, names=names, most=self._max_files)))

    def read(self, document: DocumentFile) -> Document:
        """Read a revision; selectors call it by its file name.

        :raises DamagedRevisionError: its content is not the one that was stored.
        """
        assert isinstance(document, RevisionFile)
        digest, filed = document.row["digest"], document.row["filename"]
        with self._stores.database.read() as tx:
            data = tx.contents("content", [digest]).get(digest)
        if data is None:
            raise DamagedRevisionError(f"{document.path!r} is damaged", hint=RESTORE)
        name = PurePosixPath(filed).stem
        return Document(name, document.path, document.state, data, digest, npl=False, filed=filed)


_ARTIFACTS = Root("artifact:", "artifacts")
_CURRENT = """
    SELECT artifact_id, revision_num, filename, size, digest FROM revision JOIN artifact
    ON artifact.id = artifact_id AND revision_num = revision_count - 1 AND archived_at IS NULL"""
_REVISION = re.compile(r"artifact:([1-9][0-9]{0,15})(?:@([0-9]{1,15}))?")
_CR, _CRS = "cr:", "change requests"


@dataclass(frozen=True, slots=True)
class RequestFile(DocumentFile):
    """A change request that a name stands for.

    :param file: file of the change request.
    """

    file: DocumentFile = field(kw_only=True, compare=False)

    @classmethod
    def of(cls, file: DocumentFile, key: str) -> RequestFile:
        """Return the document for the file of a change request."""
        root = Root(f"{_CR}{file.absolute.rpartition('/')[0]}", _CRS)
        return cls(root, f"{_CR}{key}", _CRS, file=file)

    @property
    def absolute(self) -> str:
        """The file's absolute path; not for messages."""
        return self.file.absolute

    @property
    def aliases(self) -> tuple[str, ...]:
        """The key, a second name of the document."""
        return (self.path.removeprefix(_CR),)

    def stat(self) -> Fingerprint:
        """Return the state of the file, with a path of its own.

        :raises DocumentNotFoundError: the file was removed.
        :raises UnreadableDocumentError: it is no longer a regular file.
        """
        return _with_own_path(self.file.stat())


class CrDocuments:
    """Change requests as documents; a set has those of a project, or of all projects, ordered by key.

    :param changes: change requests of the caller.
    :param max_files: maximum number of documents of one name.
    """

    def __init__(self, changes: ChangeRequests, max_files: int) -> None:
        self._changes, self._max_files = changes, max_files

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name stands for a set: a project, or all projects."""
        name = _cr_name(ref)
        return name == "*" or (number_in(name.upper()) is None and not name.isdigit())

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find the change request with a key, or a set.

        :raises DocumentNotFoundError: no change request has the key, or the set is empty.
        :raises DocumentTooLargeError: the set has more documents than the limit.
        :raises ConflictError: two files have the same key.
        """
        projects, name = self._changes.projects, _cr_name(ref)
        if not self.is_set(ref):
            project, ticket = self._changes.find(None, name, "file")
            return (RequestFile.of(project.folder.file(ticket.name), ticket.key),)
        chosen = projects.all() if name == "*" else (projects.find(name),)
        pairs = [(project, ticket) for project in chosen for ticket in self._changes.tickets(project)]
        pairs.sort(key=lambda pair: (pair[1].code, pair[1].number))
        for (_, ticket), (_, following) in pairwise(pairs):
            if (ticket.code, ticket.number) == (following.code, following.number):
                raise ambiguous_key((ticket, following))
        files = [RequestFile.of(project.folder.file(ticket.name), ticket.key) for project, ticket in pairs]
        listed = Listed.of(files, [_with_own_path(ticket.state) for _, ticket in pairs])
        missing = errors.DocumentNotFoundError(f"no change request matches {(ref.file or '')[:64]!r}")
        return _check_number(listed, self._max_files, missing, _CRS, "name one project: cr:TST")

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the change request with a key; empty if the name is not a key or nothing has it."""
        if number_in(name.upper()) is not None:
            with suppress(errors.NPLError):
                return self.find(DocumentRef(file=f"{_CR}{name}"))
        return ()

    def read(self, document: DocumentFile) -> Document:
        """Read a change request; its key is its name in selectors.

        :raises DocumentNotFoundError: the file was removed.
        """
        assert isinstance(document, RequestFile)
        content = read_document(document.file, MAX_BYTES)
        state = _with_own_path(content.fingerprint)
        return replace(content, name=document.aliases[0], path=document.path, fingerprint=state)


DocumentSource = ArtifactDocuments | CrDocuments
"""A source of the documents of a scheme."""


def _cr_name(ref: DocumentRef) -> str:
    """Return the name after the scheme."""
    return (ref.file or "").partition(":")[2].strip()


def _with_own_path(state: Fingerprint) -> Fingerprint:
    """Return a fingerprint that differs from that of the same file below a root, where its name differs."""
    return replace(state, path=f"{_CR}{state.path}")
