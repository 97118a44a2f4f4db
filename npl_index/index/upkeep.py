"""Upkeep of an index: its roots, its integrity, its size."""

from __future__ import annotations

import json
import time
from typing import NamedTuple

from npl_index.index.database import DamagedIndexError, IndexDatabase
from npl_index.index.writing import AMONG, remove_root, unsealed

USED_SECONDS = 3600
"""Precision of the time of a root's last use."""


class IndexedRoot(NamedTuple):
    """A root of the index.

    :param size: bytes of its documents; the full-text index takes about the same.
    :param used_at: time of its last use, in seconds since the epoch.
    """

    name: str
    files: int
    sections: int
    size: int
    used_at: int


def roots(database: IndexDatabase) -> list[IndexedRoot]:
    """Return the roots, most recently used first."""
    rows = database.rows(
        "SELECT root.path, npl, count(file.path), root.sections,"
        " total(length(terms) + length(record) + length(tokens)), used_at"
        " FROM root LEFT JOIN file ON file.root = root.id"
        " LEFT JOIN document ON document.id = file.document"
        " GROUP BY root.id ORDER BY used_at DESC, root.path, npl"
    )
    return [
        IndexedRoot(f"{path} npl" if npl else path, files, sections, int(size), used)
        for path, npl, files, sections, size, used in rows
    ]


def note_use(database: IndexDatabase, numbers: list[int]) -> None:
    """Record that roots are in use now."""
    now = int(time.time())
    which, given = f"id {AMONG} AND used_at < ?", (json.dumps(numbers), now - USED_SECONDS)
    if database.rows(f"SELECT 1 FROM root WHERE {which}", *given):
        with database.writing() as connection:
            connection.execute(f"UPDATE root SET used_at = ? WHERE {which}", (now, *given))


def shrink(database: IndexDatabase, most: int, used: list[int]) -> None:
    """Remove the least recently used roots until the file is within a size limit.

    :param used: numbers of the roots to keep.
    """
    names = ("page_count", "freelist_count", "page_size")
    others = f"SELECT id FROM root WHERE NOT id {AMONG} ORDER BY used_at LIMIT 1"
    while True:
        pages, free, size = (database.rows(f"PRAGMA {name}")[0][0] for name in names)
        oldest = database.rows(others, json.dumps(used))
        if (pages - free) * size <= most or not oldest:
            return
        with database.writing() as connection:
            remove_root(connection, oldest[0][0])


def problems(database: IndexDatabase) -> list[str]:
    """Return the errors in the index."""
    found = [line for (line,) in database.rows("PRAGMA integrity_check(20)") if line != "ok"]
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT root.path, file.path, terms, record, tokens FROM file JOIN root ON root.id = root"
            " LEFT JOIN document ON document.id = document"
        )
        for folder, path, *parts in rows:
            try:
                list(map(unsealed, parts))
            except (DamagedIndexError, TypeError):
                found.append(f"{folder}/{path}: its data cannot be read")
    return found
