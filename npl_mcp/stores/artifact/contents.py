"""The contents of artifacts: rows, one per digest, and copies of them in files.

Agents open files by path. So storing or reading a revision creates its files; they may be removed at any
time::

    <folder>/<artifact>/revision-<n>-<filename>    a revision's content
    <folder>/<artifact>/revision-<n>.meta.md       its description

No file is reached through a link below the folder.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from npl_index.errors import InvalidRequestError
from npl_index.library.files import Folder, make_folder
from npl_mcp.stores.artifact.descriptions import RevisionDraft, check_filename, description
from npl_mcp.stores.base.database import Row, Transaction, damaged, digest_of
from npl_mcp.stores.base.folder import FILE, FOLDER, private_folder

logger = logging.getLogger(__name__)


class Contents:
    """Storage of the contents of revisions.

    :param folder: the folder of the copies, created with the first one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self, owner: int, number: int, filename: str) -> tuple[Path, Path]:
        """Return the absolute paths of the copies of a revision's content and of its description.

        :param owner: the id of the artifact.
        :param number: the number of the revision.
        """
        folder = self.folder.absolute() / str(owner)
        return folder / f"revision-{number}-{filename}", folder / f"revision-{number}.meta.md"

    def put(self, tx: Transaction, content: bytes) -> str:
        """Store a content, in the transaction of its revision's row; return its digest."""
        digest = digest_of(content)
        tx.insert("content", "digest", "digest", digest=digest, data=content)
        return digest

    def many(self, tx: Transaction, rows: Sequence[Row]) -> dict[str, bytes]:
        """Return the undamaged contents of a batch of revisions by their digests."""
        return tx.contents("content", [row["digest"] for row in rows])

    def fetch(self, tx: Transaction, row: Row) -> bytes:
        """Return the content of a revision.

        :param row: the revision's row.
        :raises DatabaseError: the content is damaged.
        """
        which = _checked(row)
        content = self.many(tx, [row]).get(row["digest"])
        if content is None:
            raise damaged(f"the content of {which} is not the one that was stored")
        return content

    def read(self, tx: Transaction, artifact: Row, row: Row) -> tuple[bytes, str]:
        """Return content and description of a revision, from their copies; create missing copies.

        :param artifact: the artifact's row.
        :param row: the revision's row.
        :raises DatabaseError: the content is damaged.
        """
        _checked(row)
        draft = RevisionDraft(b"", row["filename"], row["created_by"], row["purpose"], row["notes"])
        meta = description(artifact["name"], row["revision_num"], row["created_at"], draft)
        paths = self.paths(artifact["id"], row["revision_num"], row["filename"])
        with suppress(OSError), Folder.opened(self.folder, str(artifact["id"])) as inside:
            content, found = (
                inside.read_start(path.name, size + 1)
                for path, size in zip(paths, (row["size"], len(meta)), strict=True)
            )
            if digest_of(content) == row["digest"] and found == meta:
                return content, meta.decode()
        content = self.fetch(tx, row)
        self.copy(paths, content, meta)
        return content, meta.decode()

    def copy(self, paths: tuple[Path, Path], content: bytes, meta: bytes) -> None:
        """Copy a content and its description to their files; a failure is ignored.

        :param paths: the result of :meth:`paths`.
        """
        try:
            if not self.folder.is_dir():
                private_folder(self.folder.parent)
            make_folder(self.folder, FOLDER)
            with Folder.opened(self.folder, paths[0].parent.name, make=True, mode=FOLDER) as inside:
                for path, data in zip(paths, (content, meta), strict=True):
                    with suppress(OSError):
                        if inside.read_start(path.name, len(data) + 1) == data:
                            continue
                    inside.replace(path.name, data, mode=FILE, durable=False)
        except OSError as error:
            logger.warning("an artifact has no file here: %s", error.strerror or type(error).__name__)


def _checked(row: Row) -> str:
    """Return the name of a revision for messages.

    :raises DatabaseError: its stored file name is not valid.
    """
    which = f"revision {row['revision_num']} of artifact {row['artifact_id']}"
    try:
        check_filename(row["filename"])
    except (InvalidRequestError, TypeError):
        raise damaged(f"{which} has a file name that no file can have") from None
    return which
