"""Where the contents of artifacts are kept: in files beside the database, or in the database itself.

Agents open files by path, so there is a file either way. With SQLite there are files and nothing else, and
:mod:`.recovery` keeps them and their rows together. A database of many machines keeps contents by digest, in
the transaction of their rows; then the files are copies, made where a revision is stored or read, and may be
removed at any time.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.artifact.files import RevisionDraft, RevisionFiles, check_filename, description
from npl_mcp.stores.artifact.recovery import Recovery
from npl_mcp.stores.base.database import Database, Row, Transaction, damaged, digest_of
from npl_mcp.stores.base.errors import RESTORE, StorageError, StoreError

logger = logging.getLogger(__name__)


class Kept(NamedTuple):
    """What is kept of a revision beside its row.

    :param owner: id of the artifact.
    :param number: of the revision.
    :param filename: of the content.
    :param digest: see :func:`~npl_mcp.stores.base.database.digest_of`.
    :param content: bytes.
    :param meta: its description.
    """

    owner: int
    number: int
    filename: str
    digest: str
    content: bytes
    meta: bytes


def contents_of(database: Database, folder: Path) -> Contents:
    """Return where the contents of a database's artifacts are kept.

    :param folder: for files.
    """
    if not database.engine.keeps_contents:
        return FileContents(database, RevisionFiles(folder))
    # Each database has its own numbers.
    return TableContents(RevisionFiles(folder.with_name(f"{folder.name}-{database.engine.name}")))


class Contents(ABC):
    """Keeps contents and descriptions of revisions.

    :param files: where files lie.
    """

    def __init__(self, files: RevisionFiles) -> None:
        self.files = files

    @abstractmethod
    def recover(self) -> None:
        """Remove what writes left that did not end.

        :raises StoreError: it cannot be looked at or removed.
        """

    @abstractmethod
    def are_complete(self, tx: Transaction) -> bool:
        """Return whether no write is left that did not end, which may have the next number."""

    @abstractmethod
    def put(self, tx: Transaction, revision: Kept) -> None:
        """Keep a revision, in the transaction of its row."""

    @abstractmethod
    def end(self, revision: Kept) -> None:
        """Do what is left when the transaction was committed."""

    @abstractmethod
    def fetch(self, tx: Transaction, artifact: Row, row: Row) -> tuple[bytes, bytes]:
        """Return content and description of a revision from where they are kept.

        :param artifact: the artifact's row.
        :param row: the revision's row.
        :raises StoreError: they are not there, or not what was stored.
        """

    def read(self, tx: Transaction, artifact: Row, row: Row) -> tuple[bytes, str]:
        """Return content and description of a revision, which has its file afterwards."""
        content, meta = self.fetch(tx, artifact, row)
        return content, meta.decode()

    def many(self, tx: Transaction, rows: Sequence[Row]) -> dict[str, bytes]:
        """Return the contents of a batch of revisions by their digests, those that are what was stored."""
        found = {}
        for row in rows:
            with suppress(StoreError):
                found[row["digest"]] = self.fetch(tx, {}, row)[0]
        return found


class FileContents(Contents):
    """Contents in files.

    :param database: where the rows are.
    """

    def __init__(self, database: Database, files: RevisionFiles) -> None:
        super().__init__(files)
        self._recovery = Recovery(database, files)

    def recover(self) -> None:
        """Remove the files of writes that did not end; see :mod:`.recovery`."""
        self._recovery.run()

    def are_complete(self, tx: Transaction) -> bool:
        """Return whether no files are left of a write that did not end."""
        return not self._recovery.unfinished(tx)

    def put(self, tx: Transaction, revision: Kept) -> None:  # noqa: ARG002
        """Write the files."""
        self.files.begin(revision.owner, revision.number)
        try:
            self.files.put(
                revision.owner, revision.number, revision.filename, revision.content, revision.meta
            )
        except BaseException:
            # Under the database's write lock the number is still ours, so this needs no recovery, and a full
            # disk has room again at once.
            with suppress(StorageError):
                self.files.remove(revision.owner, revision.number)
            raise

    def end(self, revision: Kept) -> None:
        """Remove the note of the write."""
        self.files.end(revision.owner, revision.number)

    def fetch(self, tx: Transaction, artifact: Row, row: Row) -> tuple[bytes, bytes]:  # noqa: ARG002
        """Read the files."""
        which = _checked(row)
        try:
            content, meta = self.files.read(
                row["artifact_id"], row["revision_num"], row["filename"], row["size"]
            )
            meta.decode()
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(f"the files of {which} cannot be read: {reason}", hint=RESTORE) from None
        except UnicodeDecodeError:
            raise StorageError(f"the description of {which} was changed", hint=RESTORE) from None
        if digest_of(content) != row["digest"]:
            raise StorageError(f"the file of {which} is not the one that was stored", hint=RESTORE)
        return content, meta


class TableContents(Contents):
    """Contents in the database; files are copies of them."""

    def recover(self) -> None:
        """Do nothing: contents come and go with their rows."""

    def are_complete(self, tx: Transaction) -> bool:  # noqa: ARG002
        """Return that nothing is left."""
        return True

    def put(self, tx: Transaction, revision: Kept) -> None:
        """Keep the content under its digest, where several revisions may find it."""
        tx.run(
            "INSERT INTO content (digest, data) VALUES (:digest, :data) ON CONFLICT (digest) DO NOTHING",
            digest=revision.digest,
            data=revision.content,
        )

    def end(self, revision: Kept) -> None:
        """Copy the content to its file; that this cannot be done is no reason to refuse."""
        try:
            self.files.copy(
                revision.owner, revision.number, revision.filename, revision.content, revision.meta
            )
        except StoreError as error:
            logger.warning("an artifact has no file here: %s", error.message)

    def fetch(self, tx: Transaction, artifact: Row, row: Row) -> tuple[bytes, bytes]:
        """Return the content from its row."""
        which, meta = _checked(row), _description(artifact, row)
        content = self.many(tx, [row]).get(row["digest"])
        if content is None:
            raise damaged(f"the content of {which} is not the one that was stored")
        return content, meta

    def many(self, tx: Transaction, rows: Sequence[Row]) -> dict[str, bytes]:
        """Return the contents, which one statement reads."""
        return tx.contents("content", [row["digest"] for row in rows])

    def read(self, tx: Transaction, artifact: Row, row: Row) -> tuple[bytes, str]:
        """Return the content, from its file if that is a copy; if it is none, make one."""
        _checked(row)
        meta = _description(artifact, row)
        owner, number, filename = row["artifact_id"], row["revision_num"], row["filename"]
        with suppress(OSError):
            content, found = self.files.read(owner, number, filename, row["size"])
            if digest_of(content) == row["digest"] and found == meta:
                return content, meta.decode()
        content, meta = self.fetch(tx, artifact, row)
        self.end(Kept(owner, number, filename, row["digest"], content, meta))
        return content, meta.decode()


def _description(artifact: Row, row: Row) -> bytes:
    draft = RevisionDraft(b"", row["filename"], row["created_by"], row["purpose"], row["notes"])
    return description(artifact["name"], row["revision_num"], row["created_at"], draft)


def _checked(row: Row) -> str:
    """Return what messages call a revision.

    :raises DatabaseError: its file name leads elsewhere.
    """
    which = f"revision {row['revision_num']} of artifact {row['artifact_id']}"
    try:
        check_filename(row["filename"])
    except (InvalidRequestError, TypeError):
        raise damaged(f"{which} has a file name that no file can have") from None
    return which
