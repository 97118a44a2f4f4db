"""The manifest of the sets in a data folder: its tables, and their rows as values."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from npl_index.library.documents import Fingerprint
from npl_mcp.core.batches import Member

APPLICATION_ID = 0x4E504C53  # "NPLS"
SCHEMA_VERSION = 1
SCHEMA = """
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

MEMBERS = (
    "SELECT path, mtime, size, ctime, settled, called, digest, delta, ordinal"
    " FROM member JOIN space ON space.id = member.space"
)
INSERT = "REPLACE INTO member VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def member_of(row: Sequence[Any]) -> Member:
    """Return the member that a row of :data:`MEMBERS` holds."""
    path, mtime, size, ctime, settled, called, digest, delta, ordinal = row
    return Member(Fingerprint(path, mtime, size, ctime), bool(settled), called, digest, delta, ordinal)


def values_of(space: int, member: Member) -> tuple[object, ...]:
    """Return the values of :data:`INSERT`."""
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


def generation_of(connection: Any, name: str) -> int | None:
    """Return the number of a set's base."""
    row = connection.execute("SELECT generation FROM space WHERE name = ?", (name,)).fetchone()
    return None if row is None else int(row[0])


def replace_base(
    connection: Any,
    name: str,
    file: tuple[str, int],
    members: Sequence[Member],
    replaces: tuple[int, int] | None,
) -> int | None:
    """Put a base in the place of another, inside a transaction; see
    :meth:`npl_mcp.core.segment_store.SegmentStore.publish`.
    """
    before = generation_of(connection, name)
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
        connection.executemany(INSERT, (values_of(space, member) for member in members))
        return generation
    # A document whose row is newer than the base, or gone, stays as that row says.
    connection.executemany(
        "UPDATE member SET delta = 0, ordinal = ? WHERE space = ? AND path = ? AND delta <= ?",
        ((member.ordinal, space, member.fingerprint.path, last) for member in members),
    )
    connection.execute("DELETE FROM delta WHERE space = ? AND seq <= ?", (space, last))
    return generation
