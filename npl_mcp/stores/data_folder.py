"""All stores of a data folder: one database, and the files in the folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from npl_mcp.stores.access import Identity, identities
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, private_folder
from npl_mcp.stores.base.opening import database_of
from npl_mcp.stores.commits import CommitNotifier
from npl_mcp.stores.libraries import NOTICE, has_libraries

logger = logging.getLogger(__name__)


class Stores:
    """All stores of a data folder; each is opened on first use.

    :param folder: the data folder.
    :param address: the address of a database that replaces the one in the folder.
    """

    def __init__(self, folder: Path, address: str | None = None) -> None:
        self.folder = folder
        # The files of artifacts; without them where servers share the database.
        self.artifact_folder = folder / ARTIFACT_FOLDER if address is None else None
        self.database = database_of(folder, address)
        self.news = CommitNotifier(self.database)
        # SQLite: calls are served while the check of a large file continues. PostgreSQL needs no check, and
        # each connection costs it memory.
        self.unchecked = database_of(folder, None, check=False) if address is None else self.database

    def start(self) -> None:
        """Open and check an existing database; a missing data folder is not created.

        :raises StoreError: the database is not usable; the next call tries again.
        """
        with suppress(OSError):  # the first call that uses it reports the error
            if self.folder.is_dir():
                private_folder(self.folder)
        if self.database.is_made():
            with self.database.read() as tx:
                if has_libraries(tx):
                    logger.warning(NOTICE)

    def identities(self) -> Mapping[str, Identity] | None:
        """Return the identity of each token by its digest; ``None`` if no token was ever created.

        A data folder without a database has no tokens, and the look-up creates no database.
        """
        return self.unchecked.reading(identities) if self.unchecked.is_made() else None

    def answers(self) -> bool:
        """Return whether the database responds, or has not been created yet.

        :raises DatabaseError: it does not respond.
        """
        if not self.database.is_made():
            return True
        with self.database.read() as tx:
            return bool(tx.value("SELECT 1"))

    def close(self) -> None:
        """End all waits and close the database."""
        self.news.close()
        self.unchecked.close()
        self.database.close()
