"""Indexes of libraries: made once by whoever comes first, and taken over by all others.

What an index is made of, this store does not know: it keeps bytes, a piece a row, under the name of their
format. They never change; newer ones take their place. Who makes one says so by a row whose beat goes on, so
that others wait; a beat that stands still is that of somebody who is gone. No clock is asked: those of two
machines differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.paging import now

PART_BYTES = 4 * 1024 * 1024
"""Bytes of a row: drivers and logs of databases hold a row several times over."""

FORMATS_KEPT = 2
"""Formats of one library's index: while servers are upgraded, old ones and new ones need theirs."""


@dataclass(frozen=True, slots=True)
class LibraryIndex:
    """An index.

    :param members: what is in it.
    :param data: the index itself.
    """

    members: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class Claim:
    """Somebody who makes an index.

    :param holder: who.
    :param beat: a number that goes on while they do.
    """

    holder: str
    beat: int


class LibraryIndexes:
    """Indexes of libraries.

    :param database: where they are kept.
    :param format: of those that are asked for.
    """

    def __init__(self, database: Database, format: str) -> None:
        self._database, self._format = database, format

    def is_there(self, library: str) -> bool:
        """Return whether a library has an index."""
        with self._database.read() as tx:
            return self._id(tx, library) is not None

    def load(self, library: str) -> LibraryIndex | None:
        """Return the index of a library; ``None`` if it has none that is as it was stored."""
        with self._database.read() as tx:
            number = self._id(tx, library)
            if number is None:
                return None
            row = tx.one("SELECT digest, members FROM library_index WHERE id = :id", id=number)
            parts = tx.all(
                "SELECT data FROM library_index_part WHERE index_id = :id ORDER BY number", id=number
            )
        assert row is not None
        found = LibraryIndex(bytes(row["members"]), b"".join(bytes(part["data"]) for part in parts))
        return found if _digest(found) == row["digest"] else None

    def put(self, library: str, index: LibraryIndex) -> None:
        """Keep an index; it takes the place of the one that there was."""
        with self._database.write() as tx:
            owner = tx.value("SELECT id FROM library WHERE name = :name", name=library)
            if owner is None:
                return
            before = self._id(tx, library)
            if before is not None:
                _remove(tx, before)
            number = tx.value(
                "INSERT INTO library_index (library_id, format, created_at, digest, size, members)"
                " VALUES (:library, :format, :now, :digest, :size, :members) RETURNING id",
                library=owner,
                format=self._format,
                now=now(),
                digest=_digest(index),
                size=len(index.data),
                members=index.members,
            )
            for at, part in enumerate(_parts(index.data)):
                tx.run(
                    "INSERT INTO library_index_part (index_id, number, data) VALUES (:id, :number, :data)",
                    id=number,
                    number=at,
                    data=part,
                )
            of_library = "SELECT id FROM library_index WHERE library_id = :library ORDER BY id DESC"
            for row in tx.all(of_library, library=owner)[FORMATS_KEPT:]:
                _remove(tx, row["id"])

    def claim(self, library: str, holder: str, instead: Claim | None = None) -> Claim | None:
        """Say that somebody makes an index of a library, unless somebody else does.

        :param holder: who would.
        :param instead: whose place is taken, if they are still as they were seen.
        :returns: who makes it instead; ``None`` if the holder does, or there is no such library.
        """
        with self._database.write() as tx:
            if instead is not None:
                tx.run(
                    f"DELETE FROM library_build WHERE holder = :holder AND beat = :beat AND {_OF}",
                    holder=instead.holder,
                    beat=instead.beat,
                    **self._names(library),
                )
            tx.run(
                "INSERT INTO library_build (library_id, format, holder, beat)"
                " SELECT id, :format, :holder, 1 FROM library WHERE name = :library"
                " ON CONFLICT (library_id, format) DO NOTHING",
                holder=holder,
                **self._names(library),
            )
            found = self._claim(tx, library)
        return None if found is None or found.holder == holder else found

    def claimed(self, library: str) -> Claim | None:
        """Return who makes an index of a library now."""
        with self._database.read() as tx:
            return self._claim(tx, library)

    def go_on(self, library: str, holder: str) -> None:
        """Say that an index is still being made."""
        with self._database.write() as tx:
            tx.run(
                f"UPDATE library_build SET beat = beat + 1 WHERE holder = :holder AND {_OF}",
                holder=holder,
                **self._names(library),
            )

    def release(self, library: str, holder: str) -> None:
        """Say that somebody makes no index any longer."""
        with self._database.write() as tx:
            tx.run(
                f"DELETE FROM library_build WHERE holder = :holder AND {_OF}",
                holder=holder,
                **self._names(library),
            )

    def _names(self, library: str) -> dict[str, str]:
        return {"format": self._format, "library": library}

    def _id(self, tx: Transaction, library: str) -> int | None:
        found: int | None = tx.value(f"SELECT id FROM library_index WHERE {_OF}", **self._names(library))
        return found

    def _claim(self, tx: Transaction, library: str) -> Claim | None:
        row = tx.one(f"SELECT holder, beat FROM library_build WHERE {_OF}", **self._names(library))
        return None if row is None else Claim(**row)


_OF = "format = :format AND library_id = (SELECT id FROM library WHERE name = :library)"


def _remove(tx: Transaction, number: int) -> None:
    tx.run("DELETE FROM library_index_part WHERE index_id = :id", id=number)
    tx.run("DELETE FROM library_index WHERE id = :id", id=number)


def _digest(index: LibraryIndex) -> str:
    digest = blake2b(index.members, digest_size=16)
    digest.update(index.data)
    return digest.hexdigest()


def _parts(data: bytes) -> Iterator[bytes]:
    return (data[at : at + PART_BYTES] for at in range(0, len(data), PART_BYTES))
