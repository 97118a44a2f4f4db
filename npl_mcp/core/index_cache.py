"""Parsed indices kept across restarts, in one SQLite file.

It is a cache: whatever is wrong with the file or a row costs a rebuild and nothing else. A row is used
only for exactly the content it was made from, by this version of its format, and only if its checksum holds.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from npl_index.library.documents import Document
from npl_index.library.files import Folder
from npl_index.ranking.indexing import IndexedDocument
from npl_index.ranking.storing import INDEX_FORMAT, dump, restore
from npl_mcp.stores.base.sqlite import remove

T = TypeVar("T")

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x4E504C49  # "NPLI"
SCHEMA_VERSION = 1
MAX_ROWS = 20_000
BUSY_SECONDS = 2.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS file_index (
    file_path TEXT PRIMARY KEY,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    format TEXT NOT NULL,
    index_json TEXT NOT NULL,
    keywords_json TEXT NOT NULL,
    checksum TEXT NOT NULL,
    used_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS file_index_used_at ON file_index (used_at);
"""


class SqliteIndexCache:
    """The second :class:`~npl_index.library.cache.IndexCache`; safe for several threads and processes.

    :param path: the database file; its folder is made when it is first needed.
    :param max_rows: least recently used rows above this number go.
    """

    def __init__(self, path: Path, max_rows: int = MAX_ROWS) -> None:
        self._path = path
        self._max_rows = max_rows
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._usable = True

    def get(self, document: Document) -> IndexedDocument | None:
        """Return the index made from exactly this content, or ``None``."""
        row = self._run(lambda connection: _select(connection, document))
        if row is None:
            return None
        index_json, keywords_json, checksum = row
        if checksum != _checksum(index_json, keywords_json):
            logger.warning("index cache: a row is damaged and will be rebuilt")
            return None
        return restore(document, index_json, keywords_json)

    def put(self, document: Document, value: IndexedDocument) -> None:
        """Keep an index; it replaces what was kept for the path."""
        index_json, keywords_json = dump(value)
        row = (
            document.fingerprint.path,
            document.fingerprint.mtime_ns,
            document.fingerprint.size,
            document.digest,
            INDEX_FORMAT,
            index_json,
            keywords_json,
            _checksum(index_json, keywords_json),
            time.time_ns(),
        )

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("REPLACE INTO file_index VALUES (?,?,?,?,?,?,?,?,?)", row)
            connection.execute(
                "DELETE FROM file_index WHERE file_path IN "
                "(SELECT file_path FROM file_index ORDER BY used_at DESC LIMIT -1 OFFSET ?)",
                (self._max_rows,),
            )

        self._run(write)

    def discard(self, path: str) -> None:
        """Forget what is kept for a path, if anything."""

        def delete(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM file_index WHERE file_path = ?", (path,))

        self._run(delete)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            self._disconnect()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something in one transaction; a failure is logged and means ``None``."""
        with self._lock:
            try:
                connection = self._open()
                if connection is None:
                    return None
                with connection:
                    return work(connection)
            except (sqlite3.Error, OSError) as error:
                logger.warning("index cache: %s", error)
                # An operational error (locked, disk full) may pass; any other says the file is damaged.
                if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.OperationalError):
                    self._start_over()
                return None

    def _open(self) -> sqlite3.Connection | None:
        if self._connection is None and self._usable:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
            try:
                self._usable = self._prepare(connection)
            except sqlite3.Error:
                connection.close()
                raise
            if self._usable:
                self._connection = connection
            else:
                connection.close()
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> bool:
        """Make the file ready; say whether it is one of ours."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION_ID and tables:
            logger.warning(
                "index cache: the file belongs to another program; indices are kept in memory only"
            )
            return False
        self._path.chmod(0o600)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            connection.execute("DROP TABLE IF EXISTS file_index")
        connection.executescript(_SCHEMA)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.commit()
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _start_over(self) -> None:
        """Remove a damaged database; a file that is none at all is somebody's, and left alone."""
        self._disconnect()
        try:
            with Folder.opened(self._path.parent) as folder:
                ours = folder.read_start(self._path.name, 16) == b"SQLite format 3\x00"
            if ours:
                remove(self._path)
        except OSError as error:
            logger.warning("index cache: %s", error.strerror)
            ours = False
        self._usable = ours


def _select(connection: sqlite3.Connection, document: Document) -> tuple[str, str, str] | None:
    fingerprint = document.fingerprint
    found: tuple[str, str, str] | None = connection.execute(
        "SELECT index_json, keywords_json, checksum FROM file_index "
        "WHERE file_path = ? AND mtime = ? AND size = ? AND digest = ? AND format = ?",
        (fingerprint.path, fingerprint.mtime_ns, fingerprint.size, document.digest, INDEX_FORMAT),
    ).fetchone()
    if found is not None:
        connection.execute(
            "UPDATE file_index SET used_at = ? WHERE file_path = ?", (time.time_ns(), fingerprint.path)
        )
    return found


def _checksum(index_json: str, keywords_json: str) -> str:
    state = blake2b(index_json.encode(), digest_size=16)
    state.update(keywords_json.encode())
    return state.hexdigest()
