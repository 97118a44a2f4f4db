"""Where documents come from: files below the search roots, artifacts, change requests.

A name such as ``artifact:12`` has a scheme. The source of each scheme has the same four methods as the
library of files, so that once found, all documents are treated alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Protocol

from npl_index.errors import InvalidRequestError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentRef, Fingerprint, Found
from npl_mcp.stores.artifact.store import require_revision
from npl_mcp.stores.data_folder import Stores


class Source(Protocol):
    """Finds and reads documents; :class:`~npl_index.library.documents.Library` is one."""

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find what a reference names."""
        ...

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a set, however many documents that is."""
        ...

    def stat(self, found: Found) -> Fingerprint:
        """Return what tells two states of a document apart, without reading it."""
        ...

    def read(self, found: Found) -> Document:
        """Read a document whole."""
        ...


class Sources:
    """All sources as one; the scheme of a name says which one is asked.

    :param files: asked for every name without a known scheme.
    :param schemes: the other sources, by scheme; what they find lies under the root ``<scheme>:``.
    """

    def __init__(self, files: Source, schemes: Mapping[str, Source]) -> None:
        self._files = files
        self._schemes = schemes

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find what a reference names; see :meth:`~npl_index.library.documents.Library.find`."""
        return self._named(ref.file).find(ref)

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a set, however many documents that is."""
        return self._named(ref.file).is_set(ref)

    def is_file(self, ref: DocumentRef) -> bool:
        """Return whether a reference is looked for among the files, and not in another source."""
        return self._named(ref.file) is self._files

    def stat(self, found: Found) -> Fingerprint:
        """Return what tells two states of a document apart, without reading it."""
        return self._named(found.root.path).stat(found)

    def read(self, found: Found) -> Document:
        """Read a document whole."""
        return self._named(found.root.path).read(found)

    def _named(self, name: str | None) -> Source:
        scheme = (name or "").partition(":")[0]
        return self._schemes.get(scheme, self._files)


class ArtifactDocuments:
    """Artifacts as documents: ``artifact:12`` is the current revision of one, ``artifact:12@0`` its first.

    :param stores: where artifacts are kept.
    """

    SCHEME = "artifact"

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._root = Root(f"{self.SCHEME}:", "artifacts")

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find a revision; the result names it by number.

        :raises InvalidRequestError: the name cannot be read.
        :raises ArtifactNotFoundError: there is no such artifact.
        :raises RecordNotFoundError: it has no such revision.
        """
        artifact, number = _parse(ref.file or "")
        with self._stores.database.read() as tx:
            revision = require_revision(tx, artifact, number)
        name = f"{self.SCHEME}:{artifact}@{revision['revision_num']}"
        return (Found(self._root, name, self._root.label),)

    def is_set(self, ref: DocumentRef) -> bool:  # noqa: ARG002 - the interface of all sources
        """Return ``False``: a revision is one document."""
        return False

    def stat(self, found: Found) -> Fingerprint:
        """Return the fingerprint of a revision: its number alone, since a revision never changes."""
        return _fingerprint(found)

    def read(self, found: Found) -> Document:
        """Read a revision; selectors call it by its file name.

        :raises StorageError: its file cannot be read.
        """
        revision, data = self._stores.artifact.content(*_parse(found.path))
        return Document(
            name=PurePosixPath(revision.filename).stem,
            path=found.path,
            root=self._root.label,
            fingerprint=_fingerprint(found),
            data=data,
            digest=revision.digest,
            npl=False,
        )


_NAME = re.compile(r"artifact:([1-9][0-9]{0,15})(?:@([0-9]{1,15}))?")


def _parse(name: str) -> tuple[int, int | None]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise InvalidRequestError(
            f"{name[:64]!r} names no artifact", parameter="file", hint="write artifact:12 or artifact:12@0"
        )
    number = found[2]
    return int(found[1]), None if number is None else int(number)


def _fingerprint(found: Found) -> Fingerprint:
    return Fingerprint(found.path, 0, 0)
