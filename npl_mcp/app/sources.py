"""Sources of documents: files below the search roots, artifacts, change requests.

A name such as ``artifact:12`` has a scheme. The source of each scheme has the interface of the library of
files, so all documents are treated alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import PurePosixPath
from typing import Protocol

from npl_index import errors
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentFile, DocumentRef, Fingerprint, Library, Read
from npl_index.library.lazy import LazySequence
from npl_index.library.listing import Listed
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix, page_and_part
from npl_index.library.roots import refuse_questions
from npl_mcp.app.schemes import refuse_removed
from npl_mcp.stores.artifact.artifacts import require_revision
from npl_mcp.stores.base.database import Row
from npl_mcp.stores.base.errors import RESTORE, DatabaseError
from npl_mcp.stores.data_folder import Stores


class DamagedRevisionError(errors.DocumentError):
    """The content of an artifact's revision is not the one that was stored."""


class DocumentSource(Protocol):
    """A source of documents, for example :class:`~npl_index.library.documents.Library`."""

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find the documents of a reference."""

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a set; its number of documents does not count."""

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the documents of a name without a scheme in a selector."""

    def read(self, document: DocumentFile) -> Document:
        """Read a whole document."""


class Sources:
    """All sources as one; the scheme of a name selects the source.

    :param files: source of all names without a known scheme.
    :param schemes: other sources, by scheme; their documents lie under the root ``<scheme>:``.
    """

    def __init__(self, files: Library, schemes: Mapping[str, DocumentSource]) -> None:
        self._files = files
        self._schemes = schemes

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find the documents of a reference, or of each name of a list, in the order of the list.

        See :meth:`~npl_index.library.documents.Library.find`.
        """
        each = self._each(ref)
        if len(each) == 1:
            return self._source_of(each[0].file).find(each[0])
        return tuple(
            dict.fromkeys(chain.from_iterable(self._source_of(part.file).find(part) for part in each))
        )

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the documents of a name in a selector.

        A name without a scheme denotes a file, else a change request, else an artifact's file.
        """
        source = self._source_of(name)
        if source is not self._files:
            with suppress(errors.NPLError):
                return source.find(DocumentRef(file=name))
            return ()
        for candidate in (source, *self._schemes.values()):
            with suppress(DatabaseError):  # a file may be meant
                if found := candidate.find_called(name):
                    return found
        return ()

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a set; its number of documents does not count."""
        each = self._each(ref)
        return len(each) > 1 or self._source_of(ref.file).is_set(ref)

    def is_whole(self, ref: DocumentRef) -> bool:
        """Return whether a reference names everything below some roots of a single source."""
        scheme, _, rest = (ref.file or "").partition(":")
        return scheme in self._schemes and "/" not in rest and "," not in rest

    def names(self, documents: Sequence[DocumentFile]) -> Sequence[str]:
        """Return the unique name of each document in answers."""
        return self._files.roots.names(documents)

    def _each(self, ref: DocumentRef) -> list[DocumentRef]:
        """Return a reference for each name of a list; a file's name may have a comma."""
        text = ref.file or ""
        if "," not in text or (self.is_file(ref) and self._files.holds(text)):
            return [ref]
        names = map(str.strip, _NAME_IN_LIST.findall(text))
        return [DocumentRef(file=name) for name in names if name] or [ref]

    def is_file(self, ref: DocumentRef) -> bool:
        """Return whether the files are the source of a reference."""
        return self._source_of(ref.file) is self._files

    def aliases(self, ref: DocumentRef, documents: Sequence[DocumentFile]) -> Sequence[tuple[str, ...]]:
        """Return the other names of each document in selectors: the requested name, if there is only one
        document.
        """
        if len(documents) == 1 and ref.file is not None:
            return [(page_and_part(ref.file)[0], *documents[0].aliases)]
        return LazySequence(len(documents), lambda at: documents[at].aliases)

    def read(self, document: DocumentFile) -> Document:
        """Read a whole document."""
        return self._source_of(document.root.path).read(document)

    def process_reader(self, listed: Listed) -> Read | None:
        """Return a reader that can be sent to another process; ``None`` if some documents are no files."""
        are_files = all(self._source_of(root) is self._files for root in listed.roots)
        return self._files.read if are_files else None

    def _source_of(self, name: str | None) -> DocumentSource:
        """Return the source of a name.

        :raises DocumentNotFoundError: its scheme was removed.
        """
        refuse_removed(name)
        scheme, colon, _ = (name or "").partition(":")
        return self._schemes.get(scheme, self._files) if colon else self._files


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
        name = f"{ArtifactDocuments.SCHEME}:{row['artifact_id']}@{row['revision_num']}"
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

    def document(self, data: bytes, digest: str) -> Document:
        """Return the document with a content; selectors call it by its file name."""
        return Document(
            name=PurePosixPath(self.row["filename"]).stem,
            path=self.path,
            fingerprint=self.state,
            data=data,
            digest=digest,
            npl=False,
            filed=self.row["filename"],
        )


class ArtifactDocuments(DocumentSource):
    """Artifacts as documents: ``artifact:12`` is the current revision of one, ``artifact:12@0`` its first.

    ``artifact:*`` is the current revision of each Markdown artifact.

    :param stores: stores of the artifacts.
    :param max_files: maximum number of documents of one name.
    """

    SCHEME = "artifact"

    def __init__(self, stores: Stores, max_files: int) -> None:
        self._stores, self._max_files = stores, max_files

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find a revision; the result names it by number.

        :raises InvalidRequestError: the name is not valid.
        :raises ArtifactNotFoundError: the artifact does not exist.
        :raises RecordNotFoundError: the revision does not exist.
        :raises DocumentNotFoundError: no artifact is Markdown.
        :raises DocumentTooLargeError: there are more than the limit.
        """
        if self.is_set(ref):
            every = self._every()
            if not every:
                hint = "artifact_list lists all artifacts"
                raise errors.DocumentNotFoundError("no artifact is Markdown", hint=hint)
            if len(every) > self._max_files:
                problem = f"there are more than {self._max_files:,} artifacts"
                raise errors.DocumentTooLargeError(problem, hint="name some: artifact:1, artifact:2")
            return every
        artifact, number = _parse_name(ref.file or "")
        with self._stores.database.read() as tx:
            revision = RevisionFile.of(require_revision(tx, artifact, number))
        refuse_questions(revision.row["filename"], ref.file or "")
        return (revision,)

    def _every(self) -> Listed:
        """Return the current revisions that are Markdown, in the order of their artifacts."""
        with self._stores.database.read() as tx:
            rows = tx.all(f"{_CURRENT} ORDER BY artifact_id")
        markdown = [RevisionFile.of(row) for row in rows if has_suffix(row["filename"], MARKDOWN_SUFFIXES)]
        return Listed.of(markdown, [revision.state for revision in markdown])

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name denotes all artifacts; a revision is one document."""
        return ref.file == f"{self.SCHEME}:*"

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Find the current revisions whose file has a name; the suffix is optional."""
        if not self._stores.database.engine.exists():  # a lookup must not create a data folder
            return ()
        names = [name, *(name + suffix for suffix in MARKDOWN_SUFFIXES)]
        with self._stores.database.read() as tx:
            rows = tx.all(
                f"{_CURRENT} WHERE filename IN :names ORDER BY artifact_id LIMIT :most",
                names=names,
                most=self._max_files,
            )
        return tuple(map(RevisionFile.of, rows))

    def read(self, document: DocumentFile) -> Document:
        """Read a revision.

        :raises DamagedRevisionError: its content is not the one that was stored.
        """
        assert isinstance(document, RevisionFile)
        digest = document.row["digest"]
        with self._stores.database.read() as tx:
            data = tx.contents("content", [digest]).get(digest)
        if data is None:
            raise DamagedRevisionError(f"{document.path!r} is damaged", hint=RESTORE)
        return document.document(data, digest)


_ARTIFACTS = Root(f"{ArtifactDocuments.SCHEME}:", "artifacts")
_CURRENT = (
    "SELECT artifact_id, revision_num, filename, size, digest FROM revision"
    " JOIN artifact ON artifact.id = artifact_id AND revision_num = revision_count - 1"
    " AND archived_at IS NULL"
)
_NAME_IN_LIST = re.compile(r"(?:[^{},]|\{(?:[^{}]|\{[^{}]*\})*\}|[{}])+")  # commas in braces do not separate
_NAME = re.compile(r"artifact:([1-9][0-9]{0,15})(?:@([0-9]{1,15}))?")


def _parse_name(name: str) -> tuple[int, int | None]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise errors.InvalidRequestError(
            f"{name[:64]!r} is not the name of an artifact",
            parameter="file",
            hint="write artifact:12, artifact:12@0 or artifact:*",
        )
    return int(match[1]), None if match[2] is None else int(match[2])
