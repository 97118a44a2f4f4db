"""Indexes of libraries: made once by whoever comes first, and taken over by all others.

What an index is made of, this store does not know: it keeps bytes, a piece a row, under the name of their
format. They never change; newer ones take their place. Who makes one says so by a row whose beat goes on, so
that others wait; a beat that stands still is that of somebody who is gone. No clock is asked: those of two
machines differ.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count
from typing import Protocol

from npl_mcp.stores.base.database import Database, Transaction
from npl_mcp.stores.base.errors import ConflictError

PART_BYTES = 4 * 1024 * 1024
"""Bytes of a row: drivers and logs of databases hold a row several times over."""

FORMATS_KEPT = 2
"""Formats of one library's index: while servers are upgraded, old ones and new ones need theirs."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Somebody who makes an index.

    :param holder: who.
    :param beat: a number that goes on while they do.
    """

    holder: str
    beat: int


class Digest(Protocol):
    """Of bytes that come one after the other."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""
        ...


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

    def members(self, library: str) -> bytes | None:
        """Return what is in the index of a library; ``None`` if it has none."""
        with self._database.read() as tx:
            found = tx.value(f"SELECT members FROM library_index WHERE {_OF}", **self._names(library))
        return None if found is None else bytes(found)

    def load(self, library: str, write: Callable[[Iterator[bytes]], object]) -> bytes | None:
        """Write the index of a library, and return what is in it.

        :param write: gets it piece by piece. What it wrote is worth nothing if this returns ``None``.
        :returns: ``None`` if the library has no index that is as it was stored.
        """
        with self._database.read() as tx:
            statement = f"SELECT id, digest, members FROM library_index WHERE {_OF}"
            row = tx.one(statement, **self._names(library))
            if row is None:
                return None
            members = bytes(row["members"])
            digest = blake2b(members, digest_size=16)
            write(_read(tx, row["id"], digest))
        return members if digest.hexdigest() == row["digest"] else None

    def put(self, library: str, members: bytes, data: Iterable[bytes]) -> None:
        """Keep an index; it takes the place of the one that there was.

        It is written bit by bit under a name that nobody asks for, so that other writers need not wait for
        all of it, and gets its own name in the transaction that removes the former one.

        :param members: what is in it.
        :param data: the index itself, in pieces of at most :data:`PART_BYTES`.
        :raises ConflictError: somebody was faster.
        """
        digest = blake2b(members, digest_size=16)
        with self._database.write() as tx:
            number = tx.value(
                "INSERT INTO library_index (library_id, format, created_at, digest, members)"
                " SELECT id, :format, :now, '', :members FROM library WHERE name = :library RETURNING id",
                library=library,
                format=f"{_UNFINISHED}{os.urandom(12).hex()}",
                now=tx.now,
                members=members,
            )
        if number is None:
            return
        for at, part in enumerate(data):
            digest.update(part)
            with self._database.write() as tx:
                tx.run(
                    "INSERT INTO library_index_part (index_id, number, data) VALUES (:id, :number, :data)",
                    id=number,
                    number=at,
                    data=part,
                )
        with self._database.write() as tx:
            before = self._id(tx, library)
            if before is not None:
                _remove(tx, before)
            changed = tx.run(
                "UPDATE library_index SET digest = :digest, format = :format WHERE id = :id",
                digest=digest.hexdigest(),
                format=self._format,
                id=number,
            )
            if not changed:
                raise ConflictError(f"a newer index of {library} came meanwhile")
            _tidy(tx, number)

    def drop(self, library: str) -> None:
        """Remove the index of a library, which is made again by whoever needs it."""
        with self._database.write() as tx:
            number = self._id(tx, library)
            if number is not None:
                _remove(tx, number)

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


_UNFINISHED = "unfinished "
"""How the format of an index begins that is being written."""

_OF = "format = :format AND library_id = (SELECT id FROM library WHERE name = :library)"


def _remove(tx: Transaction, number: int) -> None:
    tx.run("DELETE FROM library_index_part WHERE index_id = :id", id=number)
    tx.run("DELETE FROM library_index WHERE id = :id", id=number)


def _tidy(tx: Transaction, newest: int) -> None:
    """Remove indexes of formats that were used longest ago, and those that were never finished."""
    statement = (
        "SELECT id, format FROM library_index WHERE id < :newest"
        " AND library_id = (SELECT library_id FROM library_index WHERE id = :newest) ORDER BY id DESC"
    )
    rows = tx.all(statement, newest=newest)
    finished = [row["id"] for row in rows if not row["format"].startswith(_UNFINISHED)]
    for row in rows:
        if row["id"] not in finished[: FORMATS_KEPT - 1]:
            _remove(tx, row["id"])


def _read(tx: Transaction, index: int, digest: Digest) -> Iterator[bytes]:
    """Return the pieces of an index; the digest is brought up to date with each."""
    for number in count():
        data = tx.value(
            "SELECT data FROM library_index_part WHERE index_id = :id AND number = :number",
            id=index,
            number=number,
        )
        if data is None:
            return
        part = bytes(data)
        digest.update(part)
        yield part
