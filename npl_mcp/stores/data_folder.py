"""All stores: one database, and the data folder for what is kept in files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from npl_mcp.stores.access import AccessStore
from npl_mcp.stores.artifact.store import ArtifactStore
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, private_folder
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.calls import CallStore
from npl_mcp.stores.changes import Changes
from npl_mcp.stores.labels import LabelStore
from npl_mcp.stores.library.store import LibraryStore
from npl_mcp.stores.searching import SearchStore


class Stores:
    """All stores of a data folder; nothing is opened before it is used.

    :param folder: the data folder.
    :param max_artifact_bytes: larger artifacts are refused.
    :param address: of a database that replaces the one in the folder.
    """

    def __init__(self, folder: Path, max_artifact_bytes: int, address: str | None = None) -> None:
        self.folder = folder
        self.database = database_of(folder, address)
        self.changes = Changes(self.database)
        # Callers are let in while the rest of a large file is still being checked; PostgreSQL needs no check,
        # and each connection costs it memory.
        self._unchecked = database_of(folder, None, check=False) if address is None else self.database
        self.access = AccessStore(self._unchecked)
        self.artifact = ArtifactStore(self.database, folder / ARTIFACT_FOLDER, max_artifact_bytes)
        self.library = LibraryStore(self.database)
        self.labels = LabelStore(folder)
        self.searching = SearchStore(self.database)
        self.calls = CallStore(self.database)

    def start(self) -> None:
        """Open and check an existing database; does not make a new data folder.

        :raises StoreError: it cannot be used; the next call tries again.
        """
        with suppress(OSError):  # what is wrong with it is said when it is used
            if self.folder.is_dir():
                private_folder(self.folder)
        if self.database.is_made():
            self.database.open()

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
