"""The roots of an index: shown, checked, and removed where there are too many."""

from __future__ import annotations

import time
from typing import NamedTuple

from npl_index.index.database import DamagedIndexError, Database
from npl_index.index.writing import remove_root, unsealed

USED_SECONDS = 3600
"""How exactly it is known when a root was used."""


class Root(NamedTuple):
    """A root of the index.

    :param size: bytes of its documents' parts; the index of words takes as much again.
    :param used_at: in seconds since the epoch.
    """

    number: int
    name: str
    files: int
    sections: int
    size: int
    used_at: int


def roots(database: Database) -> list[Root]:
    """Return the roots, the one used last first."""
    with database.reading() as connection:
        rows = connection.execute(
            "SELECT root.id, root.name, count(file.path), root.sections,"
            " total(length(terms) + length(record) + length(tokens)), used_at"
            " FROM root LEFT JOIN file ON file.root = root.id"
            " LEFT JOIN document ON document.id = file.document"
            " GROUP BY root.id ORDER BY used_at DESC, root.name"
        ).fetchall()
    return [
        Root(number, name.replace("\0", " "), files, sections, int(size), used)
        for number, name, files, sections, size, used in rows
    ]


def note_use(database: Database, numbers: list[int]) -> None:
    """Note that roots are used now."""
    now = int(time.time())
    marks = ", ".join("?" * len(numbers))
    which = f"id IN ({marks}) AND used_at < ?"
    given = (*numbers, now - USED_SECONDS)
    with database.reading() as connection:
        old = connection.execute(f"SELECT 1 FROM root WHERE {which}", given).fetchone()
    if old:
        with database.writing() as connection:
            connection.execute(f"UPDATE root SET used_at = ? WHERE {which}", (now, *given))


def shrink(database: Database, most: int, used: list[int]) -> None:
    """Remove the roots used longest ago until the file has no more bytes than it may.

    :param used: numbers of roots that stay in any case.
    """
    marks = ", ".join("?" * len(used))
    while True:
        with database.reading() as connection:
            pages, free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "page_size")
            )
            oldest = connection.execute(
                f"SELECT id FROM root WHERE id NOT IN ({marks}) ORDER BY used_at LIMIT 1", used
            ).fetchone()
        if (pages - free) * size <= most or oldest is None:
            return
        with database.writing() as connection:
            remove_root(connection, oldest[0])


def problems(database: Database) -> list[str]:
    """Return what is wrong with the index."""
    found: list[str] = []
    with database.reading() as connection:
        said = [line for (line,) in connection.execute("PRAGMA integrity_check(20)").fetchall()]
        found += [line for line in said if line != "ok"]
        rows = connection.execute(
            "SELECT root.name, path, terms, record, tokens FROM file JOIN root ON root.id = root"
            " LEFT JOIN document ON document.id = document"
        )
        for name, path, *parts in rows:
            try:
                list(map(unsealed, parts))
            except (DamagedIndexError, TypeError):
                found.append(f"{name}/{path}: what is kept of it cannot be read")
    return found
