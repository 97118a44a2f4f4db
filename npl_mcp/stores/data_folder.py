"""The stores of one data folder: one database for all, and the files of artifacts beside it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from npl_mcp.stores.access import AccessStore
from npl_mcp.stores.artifact.store import ArtifactStore
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, DATABASE_FILE, private_folder
from npl_mcp.stores.changes import Changes
from npl_mcp.stores.chat.store import ChatStore
from npl_mcp.stores.library.store import LibraryStore
from npl_mcp.stores.review.store import ReviewStore
from npl_mcp.stores.session import SessionStore
from npl_mcp.stores.worklog.store import WorklogStore


class Stores:
    """All stores of a data folder; nothing is opened before it is used.

    :param folder: the data folder.
    :param max_artifact_bytes: larger artifacts are refused.
    """

    def __init__(self, folder: Path, max_artifact_bytes: int) -> None:
        self.database = Database(folder / DATABASE_FILE, folder / ARTIFACT_FOLDER)
        self.changes = Changes(self.database)
        # Callers are let in while the rest of a large database is still being checked.
        self._unchecked = Database(folder / DATABASE_FILE, folder / ARTIFACT_FOLDER, check=False)
        self.access = AccessStore(self._unchecked)
        self.session = SessionStore(self.database)
        self.artifact = ArtifactStore(self.database, folder / ARTIFACT_FOLDER, max_artifact_bytes)
        self.chat = ChatStore(self.database)
        self.review = ReviewStore(self.database, self.artifact)
        self.worklog = WorklogStore(self.database)
        self.library = LibraryStore(self.database)

    def start(self) -> None:
        """Open and check an existing data folder, and recover from a crash; does not make a new one.

        :raises StoreError: it cannot be used; the next call tries again.
        """
        folder = self.database.path.parent
        with suppress(OSError):  # what is wrong with it is said when it is used
            if folder.is_dir():
                private_folder(folder)
        if self.database.is_made():
            self.database.open()
            self.artifact.recover()

    def answers(self) -> bool:
        """Return whether the database answers; one that is not made yet would.

        :raises DatabaseError: it does not.
        """
        if not self.database.is_made():
            return True
        with self.database.read() as tx:
            return bool(tx.value("SELECT 1"))

    def close(self) -> None:
        """Let nobody wait any longer; close the database."""
        self.changes.close()
        self._unchecked.close()
        self.database.close()
