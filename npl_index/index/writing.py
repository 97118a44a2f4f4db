"""Files go into the index and out of it, in transactions of the caller."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from npl_index.index.database import DamagedIndexError
from npl_index.index.entries import Content, Entry
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import FIELDS, Counts, Sections, counts_in

_COUNT = (
    'INSERT INTO total (root, term, own, "any", path, pages) VALUES (?, ?, ?, ?, ?, ?)'
    ' ON CONFLICT DO UPDATE SET own = own + excluded.own, "any" = "any" + excluded."any",'
    " path = path + excluded.path, pages = pages + excluded.pages"
)
_FILE = (
    "INSERT INTO file (root, path, mtime, size, ctime, settled, digest, document, title, heading, sections,"
    " pages, words) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)

AMONG = "IN (SELECT value FROM json_each(?))"
"""Condition of a column whose values are given as JSON."""

_SEED = 0x4E504C
"""Else the checksum of nothing would be 0, as lost bytes often are."""


def root_of(connection: Any, name: str) -> int:
    """Return the number of a root, which it gets if it has none."""
    connection.execute("INSERT OR IGNORE INTO root (name) VALUES (?)", (name,))
    return int(connection.execute("SELECT id FROM root WHERE name = ?", (name,)).fetchone()[0])


def put(connection: Any, root: int, entries: Sequence[Entry]) -> dict[str, int]:
    """Write some files of a root; they replace what is there of them. Those that failed go.

    :returns: the documents' numbers by path.
    """
    fresh = [(one, one.content) for one in entries if one.content is not None]
    number_of = _numbers(connection, {term for _, content in fresh for term in content.terms})
    changes = _Changes(connection, root, {number: term for term, number in number_of.items()})
    for one in entries:
        if one.content is None and one.failure is None:
            connection.execute(
                "UPDATE file SET mtime = ?, size = ?, ctime = ?, settled = ?"
                " WHERE root = ? AND path = ? AND digest = ?",
                (*_stat(one), root, one.found.path, one.digest),
            )
        elif one.failure is not None:
            changes.remove(one.found.path)
    for one, content in fresh:
        changes.remove(one.found.path)
        changes.add(one, content, number_of)
    changes.finish()
    return changes.numbers


def remove(connection: Any, root: int, paths: Iterable[str]) -> None:
    """Take files of a root out."""
    changes = _Changes(connection, root)
    for path in paths:
        changes.remove(path)
    changes.finish()


def remove_root(connection: Any, root: int) -> None:
    """Take a root out with all its files."""
    paths = connection.execute("SELECT path FROM file WHERE root = ?", (root,)).fetchall()
    remove(connection, root, (path for (path,) in paths))
    connection.execute("DELETE FROM total WHERE root = ?", (root,))
    connection.execute("DELETE FROM root WHERE id = ?", (root,))


def texts_of(connection: Any, numbers: Iterable[int]) -> dict[int, str]:
    """Return the texts of terms by their numbers."""
    asked = json.dumps(list(numbers))
    return dict(connection.execute(f"SELECT id, text FROM term WHERE id {AMONG}", (asked,)).fetchall())


class _Changes:
    """What becomes of a root's statistics in one transaction.

    :param text_of: texts of terms by their numbers, as far as they are known.
    """

    def __init__(self, connection: Any, root: int, text_of: dict[int, str] | None = None) -> None:
        self._connection, self._root, self._text_of = connection, root, text_of or {}
        self._counted: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._sums = np.zeros(3, np.int64)
        self.numbers: dict[str, int] = {}

    def remove(self, path: str) -> None:
        run, root = self._connection.execute, self._root
        number, sections, pages, words = run(
            "SELECT document, sections, pages, words FROM file WHERE root = ? AND path = ?", (root, path)
        ).fetchone() or (None, 0, 0, 0)
        if number is None:
            return
        (packed,) = run("SELECT terms FROM document WHERE id = ?", (number,)).fetchone()
        old = Sections.unpacked(unsealed(packed))
        numbers, rows = np.unique(old.rows, return_inverse=True)
        terms, text_of = numbers.tolist(), self._text_of
        text_of |= texts_of(self._connection, set(terms).difference(text_of))
        # FTS5 takes away what it is given, which has to be what it was given before.
        run(
            "INSERT INTO word (word, rowid, heading, path, body) VALUES ('delete', ?, ?, ?, ?)",
            (number, *_texts(old._replace(rows=rows), [text_of[term] for term in terms])),
        )
        run("DELETE FROM name WHERE document = ?", (number,))
        run("DELETE FROM document WHERE id = ?", (number,))
        run("DELETE FROM file WHERE root = ? AND path = ?", (root, path))
        self._count(old, np.array((sections, pages, words)), -1)

    def add(self, entry: Entry, content: Content, number_of: dict[str, int]) -> None:
        run, root = self._connection.execute, self._root
        numbers = np.array([number_of[term] for term in content.terms], np.uint32)
        sections = content.sections._replace(rows=numbers[content.sections.rows])
        document = run(
            "INSERT INTO document (digest, terms, record, tokens) VALUES (?, ?, ?, ?)",
            (entry.digest, *map(sealed, (sections.packed(), content.record, content.tokens))),
        ).lastrowid
        self.numbers[entry.found.path] = document
        run(
            "INSERT INTO word (rowid, heading, path, body) VALUES (?, ?, ?, ?)",
            (document, *_texts(content.sections, content.terms)),
        )
        self._connection.executemany(
            "INSERT INTO name (root, spelt, document, section, kind, label, fold, written)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (root, one.spelt, document, number, one.kind, one.label, one.fold, one.written)
                for number, one in enumerate(content.names)
            ),
        )
        named, sums = (content.title, content.heading), (sections.size, sections.page_count, sections.words)
        run(
            _FILE,
            (root, entry.found.path, *_stat(entry), entry.digest, document, *named, *sums),
        )
        self._count(sections, np.array(sums), 1)

    def _count(self, sections: Sections, sums: NDArray[Any], sign: int) -> None:
        rows, counts = counts_in(sections)
        self._counted.append((rows, sign * np.array(counts)))
        self._sums += sign * sums

    def finish(self) -> None:
        if not self._counted:
            return
        rows, places = np.unique(np.concatenate([rows for rows, _ in self._counted]), return_inverse=True)
        every = np.concatenate([counts for _, counts in self._counted], axis=1)
        sums = np.array([np.bincount(places, one, len(rows)) for one in every]).astype(np.int64)
        there = sums.any(axis=0)
        assert len(sums) == len(Counts._fields)
        self._connection.executemany(
            _COUNT,
            zip([self._root] * int(there.sum()), rows[there].tolist(), *sums[:, there].tolist(), strict=True),
        )
        self._connection.execute(
            "UPDATE root SET version = version + 1, sections = sections + ?, pages = pages + ?,"
            " words = words + ? WHERE id = ?",
            (*self._sums.tolist(), self._root),
        )


def sealed(data: bytes) -> bytes:
    """Return bytes with a checksum behind them."""
    return data + zlib.crc32(data, _SEED).to_bytes(4, "little")


def unsealed(data: bytes) -> bytes:
    """Return the bytes that were sealed.

    :raises DamagedIndexError: they are others.
    """
    plain = data[:-4]
    if zlib.crc32(plain, _SEED) != int.from_bytes(data[-4:], "little"):
        raise DamagedIndexError
    return plain


def _stat(entry: Entry) -> tuple[int, int, int, bool]:
    return entry.state.mtime_ns, entry.state.size, entry.state.ctime_ns, entry.settled


def _numbers(connection: Any, terms: set[str]) -> dict[str, int]:
    """Return the numbers of terms; those that have none get one."""
    select = f"SELECT text, id FROM term WHERE text {AMONG}"
    found: dict[str, int] = dict(connection.execute(select, (json.dumps(sorted(terms)),)).fetchall())
    if missing := sorted(terms.difference(found)):
        connection.execute("INSERT INTO term (text) SELECT value FROM json_each(?)", (json.dumps(missing),))
        found.update(connection.execute(select, (json.dumps(missing),)).fetchall())
    return found


def _texts(sections: Sections, terms: Sequence[str]) -> list[str]:
    """Return all headings, the path of the first section and all bodies of a document, as terms.

    :param sections: their rows are those of ``terms``.
    """
    fields = (np.arange(len(sections.lengths)) % FIELDS).repeat(sections.lengths)
    begin = int(sections.lengths[0])
    path = sections.rows[begin : begin + int(sections.lengths[1])]
    # An array of references is a fifth of a list of numbers: a file may have millions of words.
    texts = np.array(terms, object)
    return [" ".join(texts[rows]) for rows in (sections.rows[fields == 0], path, sections.rows[fields == 2])]
