"""Upkeep of an index: the use of its roots, its integrity, its size."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from npl_index.index.database import DamagedIndexError, IndexDatabase
from npl_index.index.writing import AMONG, ROOT_ROW, remove_root, unsealed, verified
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import Sections, counts_in, summed

USED_SECONDS = 3600
"""Precision of the time of a root's last use."""

_MAX_PARTS = 64

_DOCUMENTS = """SELECT file.path, json_array(sections, pages, words),
    (SELECT count(*) FROM name WHERE name.document = file.document), document.id, terms, record, tokens,
    document.digest, language
    FROM file LEFT JOIN document ON document.id = document WHERE root = ?"""

_HOLDERS = """SELECT term.id, count(*), sum(word.rowid) FROM term CROSS JOIN word
    WHERE word MATCH '"' || replace(text, '"', '""') || '"' GROUP BY term.id"""

_Counted = tuple[NDArray[Any], NDArray[Any]]


def note_use(database: IndexDatabase, numbers: list[int]) -> None:
    """Record that roots are in use now."""
    now = int(time.time())
    which, parameters = f"id {AMONG} AND used_at < ?", (json.dumps(numbers), now - USED_SECONDS)
    if database.rows(f"SELECT 1 FROM root WHERE {which}", *parameters):
        with database.writing() as connection:
            connection.execute(f"UPDATE root SET used_at = ? WHERE {which}", (now, *parameters))


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


def problems(database: IndexDatabase, ended: Callable[[], bool] = lambda: False) -> list[str]:
    """Return the errors of the file, and what differs from the documents it was derived from.

    :param ended: whether to give up, with an empty result.
    """
    errors = [line for (line,) in database.rows("PRAGMA integrity_check(20)") if line != "ok"]
    with database.reading() as connection:
        try:
            for problem in _differences(connection):
                if ended():
                    return []
                errors += [problem] if problem else []
        except DamagedIndexError as error:
            errors.append(str(error))
    return errors


def _differences(connection: Any) -> Iterator[str]:
    """Yield the errors of all roots, and an empty text for each compared row."""
    counted: list[_Counted] = []
    for number, _, path, *_ in verified(connection.execute(f"SELECT {ROOT_ROW} FROM root")):
        yield from _root_problems(connection, number, path, counted)
    if counted:
        yield from _word_problems(connection, *summed(counted))


def _root_problems(connection: Any, number: int, root: str, counted: list[_Counted]) -> Iterator[str]:
    """Yield the errors of a root, and an empty text for each document.

    :param counted: the terms of documents with their counts, in parts; the root's are added.
    """
    parts: list[_Counted] = []
    size = 0
    for path, sums, names, document, *packed, digest, language in connection.execute(_DOCUMENTS, (number,)):
        yield ""
        try:
            packed_terms, *_ = (unsealed(data, digest, language) for data in packed)
        except (DamagedIndexError, TypeError):
            yield f"{root}/{path}: its data cannot be read"
            continue
        sections = Sections.unpacked(packed_terms)
        actual = [sections.size, sections.page_count, sections.words]
        if json.loads(sums) != actual or names != sections.size:
            yield f"{root}/{path}: its counts differ from its data"
        rows, counts = counts_in(sections)
        parts.append((rows, np.array([*counts, np.ones(len(rows), np.int64), np.full(len(rows), document)])))
        parts = [summed(parts)] if len(parts) == _MAX_PARTS else parts
        size += sections.size
    terms, sums_of = summed(parts) if parts else (np.zeros(0, np.int64), np.zeros((6, 0), np.int64))
    select = 'SELECT term, own, "any", path, pages FROM total WHERE root = ? AND "any" > 0 ORDER BY term'
    totals = np.array(connection.execute(select, (number,)).fetchall(), np.int64).reshape(-1, 5)
    stored_size = connection.execute("SELECT sections FROM root WHERE id = ?", (number,)).fetchone()[0]
    if stored_size != size or not np.array_equal(totals, np.vstack((terms, sums_of[:4])).T):
        yield f"{root}: its counts differ from its documents"
    counted.append((terms, sums_of))


def _word_problems(connection: Any, rows: NDArray[Any], counts: NDArray[Any]) -> Iterator[str]:
    """Yield an error if a term of the full-text index differs from the documents, and an empty text for each.

    Only terms in ASCII are compared: SQLite folds other letters in its own way.

    :param rows: terms of all documents, ascending.
    :param counts: columns of their counts; the last two are the number of documents and the sum of their ids.
    """
    texts: dict[int, str] = dict(verified(connection.execute("SELECT id, text, checksum FROM term")))
    holders: dict[int, tuple[int, int]] = {}
    for row, *counted in connection.execute(_HOLDERS):
        yield ""
        holders[row] = tuple(counted)
    for row, *counted in zip(rows.tolist(), *counts[-2:].tolist(), strict=True):
        text = texts.get(row)
        if text is None or (text.isascii() and holders.get(row) != tuple(counted)):
            yield f"the full-text index differs from the documents, for example in {text!r}"
            return
