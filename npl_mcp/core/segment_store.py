"""Sets of documents kept in the data folder: segments as files, and a manifest of what they hold.

The manifest is a small SQLite database; a set is what its rows say, so that a process that is killed leaves
the state before or the state after. A base segment is a file that gets its name when it is complete and its
rows in one transaction; edits are rows with a small segment each. All of it is made from the user's files:
whatever is wrong with it costs time and nothing else, and where it cannot be kept, sets live in memory.
"""

from __future__ import annotations

import logging
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from npl_index.library.documents import Fingerprint
from npl_index.library.files import Folder, make_folder
from npl_index.ranking.packing import NotASegmentError, pieces, unpack
from npl_index.ranking.segments import Segment
from npl_mcp.stores.base.sqlite import driver

T = TypeVar("T")

logger = logging.getLogger(__name__)

FOLDER = "index"
MANIFEST = "manifest.db"
SUFFIX = ".segment"

APPLICATION_ID = 0x4E504C53  # "NPLS"
SCHEMA_VERSION = 1
BUSY_SECONDS = 2.0
ABANDONED_SECONDS = 3600
"""Age at which a file that no row names belongs to nobody: whoever wrote it was killed."""

_SCHEMA = """
CREATE TABLE space (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL,
    file TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    used_at INTEGER NOT NULL
);
CREATE TABLE member (
    space INTEGER NOT NULL REFERENCES space ON DELETE CASCADE,
    path TEXT NOT NULL,
    called TEXT NOT NULL,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL,
    ctime INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    digest TEXT NOT NULL,
    delta INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (space, path)
) WITHOUT ROWID;
CREATE TABLE delta (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL REFERENCES space ON DELETE CASCADE,
    data BLOB NOT NULL
);
CREATE INDEX delta_space ON delta (space, seq);
"""


class Member(NamedTuple):
    """A document of a set as it was indexed.

    :param fingerprint: of its file.
    :param settled: the fingerprint alone proves that the file is unchanged.
    :param called: what of its name went into the index: its path below the root, and how fences are read.
    :param digest: of its bytes.
    :param delta: number of the segment that holds it, 0 for the base.
    :param ordinal: which of the segment's documents it is.
    """

    fingerprint: Fingerprint
    settled: bool
    called: str
    digest: str
    delta: int = 0
    ordinal: int = 0

    def is_certain(self, called: str, fingerprint: Fingerprint) -> bool:
        """Tell whether a document is certainly as it was indexed."""
        return self.settled and self.fingerprint == fingerprint and self.called == called


@dataclass(frozen=True, slots=True)
class Stored:
    """A set as the data folder holds it.

    :param generation: number of its base; a base is never changed, only replaced.
    :param deltas: later segments by their numbers, ascending.
    """

    generation: int
    base: Segment
    deltas: dict[int, Segment]
    members: tuple[Member, ...]


class SegmentStore:
    """Opens nothing when made; safe for several threads and several processes.

    :param folder: the data folder; a folder in it is made when the first set is kept.
    :param most: bytes that all sets together may take; those that were not used for longest go first.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._data_folder = folder
        self.folder = folder / FOLDER
        self._most = most
        self._lock = threading.Lock()
        self._connection: Any = None
        self._usable = True

    @property
    def usable(self) -> bool:
        """Return whether something can be kept, as far as is known."""
        return self._usable

    def load(self, name: str) -> Stored | None:
        """Return a set; ``None`` where there is none that can be used."""
        if not (self.folder / MANIFEST).exists():
            return None
        # The file may be replaced between reading its name and opening it.
        return self._run(lambda connection: self._load(connection, name) or self._load(connection, name))

    def names(self) -> list[str]:
        """Return the names of all sets."""
        statement = "SELECT name FROM space ORDER BY id"
        return self._run(lambda connection: [row[0] for row in connection.execute(statement)]) or []

    def generation(self, name: str) -> int | None:
        """Return the number of a set's base."""
        return self._run(lambda connection: _generation(connection, name))

    def members(self, name: str, paths: Sequence[str]) -> dict[str, Member]:
        """Return what is known of some documents, by path."""

        def read(connection: Any) -> dict[str, Member]:
            statement = f"{_MEMBERS} WHERE space.name = ? AND path = ?"
            rows = (connection.execute(statement, (name, path)).fetchone() for path in paths)
            return {member.fingerprint.path: member for row in rows if row for member in [_member(row)]}

        return self._run(read) or {}

    def deltas(self, numbers: Iterable[int]) -> dict[int, Segment]:
        """Return some later segments, those of them that are there."""

        def read(connection: Any) -> dict[int, Segment]:
            found = {}
            for number in sorted(numbers):
                row = connection.execute("SELECT data FROM delta WHERE seq = ?", (number,)).fetchone()
                if row is not None:
                    found[number] = unpack(row[0])
            return found

        return self._run(read) or {}

    def publish(
        self, name: str, segment: Segment, members: Sequence[Member], replaces: tuple[int, int] | None = None
    ) -> tuple[int, Segment] | None:
        """Keep a base; what it replaces is gone.

        :param members: their ordinals are those in the base.
        :param replaces: the generation that the base was made from, and the last delta that is in it; what
            other processes wrote since is kept. Without it the set is new, whatever was there.
        :returns: its generation, and the same segment from the file; ``None`` if it was not kept.
        """
        if not self._prepare_folder():
            return None
        file = f"{os.urandom(12).hex()}{SUFFIX}"

        def write(connection: Any) -> tuple[int, Segment] | None:
            with Folder.opened(self.folder) as folder:
                folder.replace(file, cast("Iterator[bytes]", pieces(segment)), mode=0o600)
            mapped, size = self._mapped(file)
            connection.execute("BEGIN IMMEDIATE")
            before = connection.execute("SELECT file FROM space WHERE name = ?", (name,)).fetchone()
            generation = _replace(connection, name, (file, size), members, replaces)
            connection.execute("COMMIT" if generation is not None else "ROLLBACK")
            if generation is None:
                return None
            if before is not None:
                # Who has it open keeps it; where that forbids to remove it, it is removed when it is old.
                with suppress(OSError):
                    (self.folder / before[0]).unlink()
            return generation, mapped

        kept = self._run(write)
        if kept is None:
            with suppress(OSError):
                (self.folder / file).unlink()
        self._run(self._tidy)
        return kept

    def append(
        self,
        name: str,
        generation: int,
        segment: Segment | None,
        members: Sequence[Member],
        gone: Sequence[str],
    ) -> int | None:
        """Keep what changed in a set since its base was made.

        :param segment: of the documents that were indexed.
        :param members: all documents that are another way now; those of the segment have delta -1.
        :param gone: paths of documents that are no longer there.
        :returns: number of the segment; ``None`` if the base is another one by now, or nothing could be kept.
        """

        def write(connection: Any) -> int | None:
            connection.execute("BEGIN IMMEDIATE")
            row = connection.execute(
                "SELECT id FROM space WHERE name = ? AND generation = ?", (name, generation)
            ).fetchone()
            if row is None:
                connection.execute("ROLLBACK")
                return None
            number = 0
            if segment is not None:
                data = b"".join(pieces(segment))
                statement = "INSERT INTO delta (space, data) VALUES (?, ?)"
                number = connection.execute(statement, (row[0], data)).lastrowid
            placed = (member._replace(delta=number) if member.delta == -1 else member for member in members)
            connection.executemany(_INSERT, [_values(row[0], member) for member in placed])
            connection.executemany(
                "DELETE FROM member WHERE space = ? AND path = ?", [(row[0], path) for path in gone]
            )
            connection.execute("COMMIT")
            return number

        return self._run(write)

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Keep other processes from making a base again meanwhile; say whether that worked at once."""
        try:
            with Folder.opened(self.folder) as folder, folder.locked(0) as alone:
                yield alone
        except OSError as error:
            self._give_up(error.strerror or str(error))
            yield False

    def close(self) -> None:
        """Close the manifest; a later call opens it again."""
        with self._lock:
            self._disconnect()

    def _load(self, connection: Any, name: str) -> Stored | None:
        connection.execute("BEGIN")
        try:
            row = connection.execute(
                "SELECT id, generation, file FROM space WHERE name = ?", (name,)
            ).fetchone()
            if row is None:
                return None
            space, generation, file = row
            members = connection.execute(f"{_MEMBERS} WHERE space.id = ?", (space,)).fetchall()
            deltas = connection.execute(
                "SELECT seq, data FROM delta WHERE space = ? ORDER BY seq", (space,)
            ).fetchall()
        finally:
            connection.execute("COMMIT")
        try:
            # Another process may replace the file at any time: what is open stays.
            base, _ = self._mapped(file)
            segments = {seq: unpack(data) for seq, data in deltas}
        except (NotASegmentError, OSError) as error:
            logger.warning("index: a segment cannot be used and is made again: %s", error)
            return None
        with suppress(driver().OperationalError):  # what can be read is used, also on a disk that is full
            connection.execute("UPDATE space SET used_at = ? WHERE id = ?", (time.time_ns(), space))
        return Stored(generation, base, segments, tuple(map(_member, members)))

    def _mapped(self, file: str) -> tuple[Segment, int]:
        """Return a segment, mapped into memory, and its size.

        :raises NotASegmentError: the file holds none, or not a whole one.
        :raises OSError: it cannot be opened.
        """
        with Folder.opened(self.folder) as folder:
            handle = folder.open(file)
        try:
            size = os.fstat(handle).st_size
            if not size:
                raise NotASegmentError("it is empty")
            return unpack(mmap.mmap(handle, 0, access=mmap.ACCESS_READ)), size
        finally:
            os.close(handle)

    def _prepare_folder(self) -> bool:
        try:
            self._data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_folder(self.folder, 0o700)
        except OSError as error:
            self._give_up(error.strerror or str(error))
        return self._usable

    def _give_up(self, problem: str) -> None:
        """Keep sets in memory from now on; said once."""
        if self._usable:
            logger.warning("index: sets of documents are kept in memory only: %s", problem)
        self._usable = False

    def _run(self, work: Callable[[Any], T]) -> T | None:
        """Do something with the manifest; a failure is logged and means ``None``."""
        if not self._usable:
            return None
        sqlite = driver()
        with self._lock:
            try:
                connection = self._open()
                return None if connection is None else work(connection)
            except sqlite.OperationalError as error:
                self._roll_back()
                if "locked" not in str(error):  # else it may pass
                    self._give_up(str(error))
            except sqlite.Error as error:
                logger.warning("index: the manifest is damaged and made again: %s", error)
                self._start_over()
            except OSError as error:
                self._roll_back()
                self._give_up(error.strerror or str(error))
        return None

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(driver().Error):
                self._connection.execute("ROLLBACK")

    def _open(self) -> Any:
        if self._connection is None:
            if not self.folder.is_dir():
                return None
            connection = driver().connect(
                self.folder / MANIFEST, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
            )
            try:
                ready = self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            if not ready:
                connection.close()
                return None
            self._connection = connection
        return self._connection

    def _prepare(self, connection: Any) -> bool:
        """Make the manifest ready; say whether it is one that this version may use."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables and application != APPLICATION_ID:
            self._give_up(f"{MANIFEST} belongs to another program")
            return False
        if version > SCHEMA_VERSION:
            self._give_up(f"{MANIFEST} was written by a newer version")
            return False
        connection.execute("PRAGMA journal_mode = WAL")
        # A loss of power may cost the last edits, which are indexed again then; nothing is torn.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if version != SCHEMA_VERSION:
            (self.folder / MANIFEST).chmod(0o600)
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        return True

    def _tidy(self, connection: Any) -> None:
        """Remove sets beyond the bound, and files that no row names."""
        total = "SELECT coalesce(sum(bytes), 0), count(*) FROM space"
        while True:
            size, count = connection.execute(total).fetchone()
            if size <= self._most or not count:
                break
            connection.execute("DELETE FROM space WHERE id = (SELECT id FROM space ORDER BY used_at LIMIT 1)")
        named = {row[0] for row in connection.execute("SELECT file FROM space")}
        for entry in os.scandir(self.folder):
            if entry.name not in named and entry.name.endswith((SUFFIX, ".tmp")):
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if age > ABANDONED_SECONDS:
                    with suppress(OSError):
                        os.unlink(entry.path)  # noqa: PTH108

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _start_over(self) -> None:
        """Remove a damaged manifest; the segments it named are removed when they are old."""
        self._disconnect()
        try:
            for suffix in ("", "-wal", "-shm"):
                (self.folder / (MANIFEST + suffix)).unlink(missing_ok=True)
        except OSError as error:
            self._give_up(error.strerror or str(error))


_MEMBERS = (
    "SELECT path, mtime, size, ctime, settled, called, digest, delta, ordinal"
    " FROM member JOIN space ON space.id = member.space"
)
_INSERT = "REPLACE INTO member VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _member(row: Sequence[Any]) -> Member:
    path, mtime, size, ctime, settled, called, digest, delta, ordinal = row
    return Member(Fingerprint(path, mtime, size, ctime), bool(settled), called, digest, delta, ordinal)


def _values(space: int, member: Member) -> tuple[object, ...]:
    state = member.fingerprint
    return (
        space,
        state.path,
        member.called,
        state.mtime_ns,
        state.size,
        state.ctime_ns,
        member.settled,
        member.digest,
        member.delta,
        member.ordinal,
    )


def _generation(connection: Any, name: str) -> int | None:
    row = connection.execute("SELECT generation FROM space WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def _replace(
    connection: Any,
    name: str,
    file: tuple[str, int],
    members: Sequence[Member],
    replaces: tuple[int, int] | None,
) -> int | None:
    """Put a base in the place of another, inside a transaction; see :meth:`SegmentStore.publish`."""
    before = _generation(connection, name)
    if replaces is not None and before != replaces[0]:
        return None
    # Numbers never come again, or a process that slept through a removal would take one base for another.
    generation = max(before or 0, time.time_ns()) + 1
    connection.execute(
        "INSERT INTO space (name, generation, file, bytes, used_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET generation = excluded.generation, file = excluded.file,"
        " bytes = excluded.bytes, used_at = excluded.used_at",
        (name, generation, *file, time.time_ns()),
    )
    (space,) = connection.execute("SELECT id FROM space WHERE name = ?", (name,)).fetchone()
    last = -1 if replaces is None else replaces[1]
    if replaces is None:
        connection.execute("DELETE FROM member WHERE space = ?", (space,))
        connection.execute("DELETE FROM delta WHERE space = ?", (space,))
        connection.executemany(_INSERT, [_values(space, member) for member in members])
        return generation
    # A document whose row is newer than the base, or gone, stays as that row says.
    connection.executemany(
        "UPDATE member SET delta = 0, ordinal = ? WHERE space = ? AND path = ? AND delta <= ?",
        [(member.ordinal, space, member.fingerprint.path, last) for member in members],
    )
    connection.execute("DELETE FROM delta WHERE space = ? AND seq <= ?", (space, last))
    return generation
