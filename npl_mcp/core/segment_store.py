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
from typing import Any, NamedTuple, TypeVar

from npl_index.library.files import Folder, make_folder
from npl_index.ranking.packing import NotASegmentError, packed, unpack
from npl_index.ranking.segments import Segment
from npl_mcp.core.batches import Member
from npl_mcp.core.manifest import (
    APPLICATION_ID,
    INSERT,
    MEMBERS,
    SCHEMA,
    SCHEMA_VERSION,
    generation_of,
    member_of,
    replace_base,
    values_of,
)
from npl_mcp.core.waiting import Indexing
from npl_mcp.stores.base.sqlite import driver, remove

T = TypeVar("T")

logger = logging.getLogger(__name__)

FOLDER = "index"
MANIFEST = "manifest.db"
SUFFIX = ".segment"

BUSY_SECONDS = 2.0
ABANDONED_SECONDS = 3600
"""Age at which a file that no row names belongs to nobody: whoever wrote it was killed."""


class Row(NamedTuple):
    """What the manifest says of a set.

    :param size: bytes in the data folder.
    :param used_at: when it was read last, in nanoseconds since the epoch.
    """

    name: str
    size: int
    used_at: int


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


class Written(NamedTuple):
    """A segment in a file of the data folder."""

    file: str
    segment: Segment
    size: int


def _use(connection: Any, name: str) -> None:
    with suppress(driver().OperationalError):  # what can be read is used, also on a disk that is full
        connection.execute("UPDATE space SET used_at = ? WHERE name = ?", (time.time_ns(), name))


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

    def prepare(self) -> bool:
        """Make the folder; say whether it can be used, as far as is known."""
        try:
            self._data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            make_folder(self.folder, 0o700)
        except OSError as error:
            self._give_up(error.strerror or str(error))
        return self._usable

    def load(self, name: str) -> Stored | None:
        """Return a set, which counts as used; ``None`` where there is none that can be used."""
        stored = self.look_at(name)
        if stored is not None:
            self._run(lambda connection: _use(connection, name))
        return stored

    def look_at(self, name: str) -> Stored | None:
        """Return a set; ``None`` where there is none that can be used."""
        if not (self.folder / MANIFEST).exists():
            return None
        # The file may be replaced between reading its name and opening it.
        return self._run(lambda connection: self._load(connection, name) or self._load(connection, name))

    def names(self) -> list[str]:
        """Return the names of all sets."""
        return [row.name for row in self.rows()]

    def rows(self) -> list[Row]:
        """Return what is kept, what was used last first."""
        statement = (
            "SELECT name, bytes + coalesce(sum(length(data)), 0), used_at FROM space"
            " LEFT JOIN delta ON delta.space = space.id GROUP BY space.id ORDER BY used_at DESC, space.id"
        )
        return self._run(lambda connection: [Row(*row) for row in connection.execute(statement)]) or []

    def problems(self) -> list[str]:
        """Return what SQLite finds wrong with the manifest."""

        def read(connection: Any) -> list[str]:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            return [] if found == ["ok"] else found

        return self._run(read) or []

    def clear(self) -> None:
        """Remove all sets; servers that use them index again what they are asked for."""

        def write(connection: Any) -> None:
            connection.execute("DELETE FROM space")
            for path in self.folder.glob(f"*{SUFFIX}"):
                with suppress(OSError):
                    path.unlink()
            connection.execute("VACUUM")

        self._run(write)

    def generation(self, name: str) -> int | None:
        """Return the number of a set's base."""
        return self._run(lambda connection: generation_of(connection, name))

    def members(self, name: str, paths: Sequence[str]) -> dict[str, Member]:
        """Return what is known of some documents, by path."""

        def read(connection: Any) -> dict[str, Member]:
            statement = f"{MEMBERS} WHERE space.name = ? AND path = ?"
            rows = (connection.execute(statement, (name, path)).fetchone() for path in paths)
            return {member.fingerprint.path: member for row in rows if row for member in [member_of(row)]}

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

    def keep(self, write: Callable[[Path], object]) -> Written | None:
        """Make a file of a segment; nobody knows it yet, see :meth:`publish`.

        :param write: makes the file, complete and on the disk.
        :returns: ``None`` if it was not made.
        """
        if not self.prepare():
            return None
        file = f"{os.urandom(12).hex()}{SUFFIX}"
        try:
            write(self.folder / file)
            with Folder.opened(self.folder) as folder:
                folder.sync()
            return Written(file, *self._mapped(file))
        except (NotASegmentError, OSError) as error:
            self.discard(file)
            if not isinstance(error, FileNotFoundError):
                self._give_up(str(getattr(error, "strerror", None) or error))
            return None

    def discard(self, file: str) -> None:
        """Remove a file that nobody knows."""
        with suppress(OSError):
            (self.folder / file).unlink()

    def publish(
        self, name: str, base: Written, members: Sequence[Member], replaces: tuple[int, int] | None = None
    ) -> int | None:
        """Make a segment the base of a set; what it replaces is gone.

        :param members: their ordinals are those in the base.
        :param replaces: the generation that the base was made from, and the last delta that is in it; what
            other processes wrote since is kept. Without it the set is new, whatever was there.
        :returns: its generation; ``None`` if it was not kept.
        """

        def write(connection: Any) -> int | None:
            connection.execute("BEGIN IMMEDIATE")
            before = connection.execute("SELECT file FROM space WHERE name = ?", (name,)).fetchone()
            generation = replace_base(connection, name, (base.file, base.size), members, replaces)
            connection.execute("COMMIT" if generation is not None else "ROLLBACK")
            if generation is not None and before is not None:
                # Who has it open keeps it; where that forbids to remove it, it is removed when it is old.
                self.discard(before[0])
            return generation

        generation = self._run(write)
        if generation is None:
            self.discard(base.file)
        self._run(self._tidy)
        return generation

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
                data = packed(segment)
                statement = "INSERT INTO delta (space, data) VALUES (?, ?)"
                number = connection.execute(statement, (row[0], data)).lastrowid
            placed = (member._replace(delta=number) if member.delta == -1 else member for member in members)
            connection.executemany(INSERT, [values_of(row[0], member) for member in placed])
            connection.executemany(
                "DELETE FROM member WHERE space = ? AND path = ?", [(row[0], path) for path in gone]
            )
            connection.execute("COMMIT")
            return number

        return self._run(write)

    def elsewhere(self, name: str, documents: int) -> Indexing | None:  # noqa: ARG002
        """Return what to wait for before a set is made that is not here, because it may come from elsewhere.

        :param documents: of the set.
        :returns: ``None`` if it is to be made here.
        """
        return None

    @contextmanager
    def making(self, name: str) -> Iterator[None]:  # noqa: ARG002
        """Tell others meanwhile that a set is being made here."""
        yield

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
            members = connection.execute(f"{MEMBERS} WHERE space.id = ?", (space,)).fetchall()
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
        return Stored(generation, base, segments, tuple(map(member_of, members)))

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
                for statement in SCHEMA.split(";"):
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
            remove(self.folder / MANIFEST)
        except OSError as error:
            self._give_up(error.strerror or str(error))
