"""Adding files to the index and removing them, in the caller's transactions."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from npl_index.index.database import DamagedIndexError
from npl_index.index.entries import IndexedContent, IndexEntry
from npl_index.library.catalog import Root
from npl_index.ranking.arrays import NDArray, np
from npl_index.ranking.postings import FIELDS, Sections, counts_in, distinct, summed
from npl_index.selectors.names import Name


def _weighed(*columns: str) -> str:
    """Return the expression for the checksum of columns of numbers; it adds up as they do."""
    return " + ".join(f"{weight} * {column}" for weight, column in enumerate(columns, 3))


_COUNT = (
    'INSERT INTO total (root, term, own, "any", path, pages, checksum)'
    f" VALUES (?1, ?2, ?3, ?4, ?5, ?6, {_weighed('?3', '?4', '?5', '?6')})"
    ' ON CONFLICT DO UPDATE SET own = own + excluded.own, "any" = "any" + excluded."any",'
    " path = path + excluded.path, pages = pages + excluded.pages, checksum = checksum + excluded.checksum"
)
_FILE = (
    "INSERT INTO file (root, path, mtime, size, ctime, settled, digest, document, title, heading, sections,"
    " pages, words, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,"
    f" {_weighed('?8', '?11', '?12', '?13')})"
)
DAMAGED_FILES = f"total(checksum != {_weighed('document', 'sections', 'pages', 'words')})"
DAMAGED_TOTALS = f"""total(total.checksum != {_weighed("own", '"any"', "path", "pages")})"""
"""Number of rows whose numbers differ from their checksum."""

AMONG = "IN (SELECT value FROM json_each(?))"
"""Condition for a column with the allowed values as JSON."""

ROOT = "path = ? AND npl = ?"
"""Condition for a root: its terms depend on nothing else."""

TEXTS = f"SELECT id, text, checksum FROM term WHERE id {AMONG}"
"""Statement for the terms of some numbers."""

ROOT_ROW = "id, version, path, npl, sections, checksum"
"""Columns of a root, of which the last is the checksum of the others."""

_SEED = 0x4E504C
"""Without a seed, the checksum of zero bytes would be 0, like lost bytes."""


def root_of(connection: Any, root: Root) -> int:
    """Return the number of a root, new or existing."""
    key = root.path, root.npl
    if connection.execute("INSERT OR IGNORE INTO root (path, npl) VALUES (?, ?)", key).rowcount:
        _seal_root(connection, connection.execute("SELECT last_insert_rowid()").fetchone()[0])
    ((number, *_),) = verified(connection.execute(f"SELECT {ROOT_ROW} FROM root WHERE {ROOT}", key))
    return int(number)


def _seal_root(connection: Any, root: int) -> None:
    row = connection.execute(f"SELECT {ROOT_ROW} FROM root WHERE id = ?", (root,)).fetchone()
    connection.execute("UPDATE root SET checksum = ? WHERE id = ?", (_checksum(row[:-1]), root))


def put(
    connection: Any, root: int, entries: Sequence[IndexEntry], number_of: dict[str, int]
) -> dict[str, int]:
    """Write the entries of some files of a root, replacing existing ones; failed files are removed.

    :param number_of: numbers of known terms; others are added.
    :returns: numbers of the documents, by path.
    """
    changes = _Changes(connection, root)
    fresh: list[tuple[IndexEntry, IndexedContent]] = []
    for entry in entries:
        if entry.failure is not None:
            changes.remove(entry.file.path)
        elif not changes.keep(entry) and entry.content is not None:
            changes.remove(entry.file.path)
            fresh.append((entry, entry.content))
    # The former contents have most of the terms, whose numbers are then known.
    terms = set[str]().union(*(content.terms for _, content in fresh))
    number_of.update((text, number) for number, text in changes.text_of.items())
    _add_numbers(connection, terms, number_of)
    for entry, content in fresh:
        changes.add(entry, content, number_of)
    changes.finish()
    return changes.numbers


def put_tokens(connection: Any, counted: Iterable[tuple[int, bytes]]) -> None:
    """Write the token counts of some documents, each given by its number."""
    for number, tokens in counted:
        for identity in connection.execute("SELECT digest, language FROM document WHERE id = ?", (number,)):
            sealed = _sealed(tokens, *identity)
            connection.execute("UPDATE document SET tokens = ? WHERE id = ?", (sealed, number))


def remove(connection: Any, root: int, paths: Iterable[str]) -> None:
    """Remove files of a root."""
    changes = _Changes(connection, root)
    for path in paths:
        changes.remove(path)
    changes.finish()


def remove_root(connection: Any, root: int) -> None:
    """Remove a root with all its files."""
    paths = connection.execute("SELECT path FROM file WHERE root = ?", (root,)).fetchall()
    remove(connection, root, (path for (path,) in paths))
    connection.execute("DELETE FROM total WHERE root = ?", (root,))
    connection.execute("DELETE FROM root WHERE id = ?", (root,))


class _Changes:
    """Changes of a root in one transaction, with its statistics.

    :ivar text_of: the terms of removed documents, by number.
    :ivar numbers: numbers of the present documents, by path.
    """

    def __init__(self, connection: Any, root: int) -> None:
        self._connection, self._root = connection, root
        self.text_of: dict[int, str] = {}
        self._counted: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._sections = 0
        self.numbers: dict[str, int] = {}

    def remove(self, path: str) -> None:
        run, root = self._connection.execute, self._root
        select = (
            "SELECT id, terms, document.digest, language FROM file JOIN document ON id = document"
            " WHERE root = ? AND path = ?"
        )
        row = run(select, (root, path)).fetchone()
        if row is None:
            return
        number, *packed = row
        old = Sections.unpacked(unsealed(*packed))
        numbers, rows = np.unique(old.rows, return_inverse=True)
        terms, text_of = numbers.tolist(), self.text_of
        text_of.update(verified(run(TEXTS, (json.dumps(list(set(terms).difference(text_of))),))))
        # FTS5 must receive the same texts again to delete them.
        run(
            "INSERT INTO word (word, rowid, name, body) VALUES ('delete', ?, ?, ?)",
            (number, *_texts(old._replace(rows=rows), [text_of[term] for term in terms])),
        )
        run("DELETE FROM name WHERE document = ?", (number,))
        run("DELETE FROM field WHERE document = ?", (number,))
        run("DELETE FROM document WHERE id = ?", (number,))
        run("DELETE FROM file WHERE root = ? AND path = ?", (root, path))
        self._count(old, -1)

    def keep(self, entry: IndexEntry) -> bool:
        """Return whether a file's content is indexed, perhaps by another process; if so, write its state."""
        run, key = self._connection.execute, (self._root, entry.file.path, entry.digest)
        which = "WHERE root = ? AND path = ? AND digest = ?"
        row = run(f"SELECT document FROM file {which}", key).fetchone()
        if row is not None:
            run(f"UPDATE file SET mtime = ?, size = ?, ctime = ?, settled = ? {which}", (*_stat(entry), *key))
            self.numbers[entry.file.path] = row[0]
        return row is not None

    def add(self, entry: IndexEntry, content: IndexedContent, number_of: dict[str, int]) -> None:
        run, root = self._connection.execute, self._root
        numbers = np.array(list(map(number_of.__getitem__, content.terms)), np.uint32)
        sections = content.sections._replace(rows=numbers[content.sections.rows])
        blobs = sections.packed(), content.record, content.tokens
        identity = entry.digest, content.language
        document = run(
            "INSERT INTO document (digest, language, terms, record, tokens) VALUES (?, ?, ?, ?, ?)",
            (*identity, *(_sealed(blob, *identity) for blob in blobs)),
        ).lastrowid
        self.numbers[entry.file.path] = document
        run(
            "INSERT INTO word (rowid, name, body) VALUES (?, ?, ?)",
            (document, *_texts(content.sections, content.terms)),
        )
        self._connection.executemany(
            f"INSERT INTO name (root, document, section, {', '.join(Name._fields)})"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            ((root, document, number, *name) for number, name in enumerate(content.names)),
        )
        self._connection.executemany(
            "INSERT INTO field (name, value, document) VALUES (?, ?, ?)",
            ((name, value, document) for name, value in content.fields),
        )
        named, sums = (content.title, content.heading), (sections.size, sections.page_count, sections.words)
        run(_FILE, (root, entry.file.path, *_stat(entry), entry.digest, document, *named, *sums))
        self._count(sections, 1)

    def _count(self, sections: Sections, sign: int) -> None:
        rows, counts = counts_in(sections)
        self._counted.append((rows, sign * np.array(counts)))
        self._sections += sign * sections.size

    def finish(self) -> None:
        if not self._counted:
            return
        rows, sums = summed(self._counted)
        there = sums.any(axis=0)
        self._connection.executemany(
            _COUNT,
            zip([self._root] * int(there.sum()), rows[there].tolist(), *sums[:, there].tolist(), strict=True),
        )
        self._connection.execute(
            "UPDATE root SET version = version + 1, sections = sections + ? WHERE id = ?",
            (self._sections, self._root),
        )
        _seal_root(self._connection, self._root)


def _checksum(row: Sequence[object]) -> int:
    return zlib.crc32(repr(row).encode(), _SEED)


def verified(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return rows without their last column, the checksum of the others.

    :raises DamagedIndexError: a checksum is wrong.
    """
    checked = list(rows)
    plain = [row[:-1] for row in checked]
    if list(map(_checksum, plain)) != [row[-1] for row in checked]:
        raise DamagedIndexError("the checksum of a row is wrong")
    return plain


def _sealed(data: bytes, *identity: object) -> bytes:
    """Return bytes of a document with a checksum.

    :param identity: digest and language of the document.
    """
    return data + zlib.crc32(data, _checksum(identity)).to_bytes(4, "little")


def unsealed(data: bytes, *identity: object) -> bytes:
    """Return bytes of a document without their checksum.

    :param identity: digest and language of the document.
    :raises DamagedIndexError: the checksum is wrong.
    """
    plain = data[:-4]
    if zlib.crc32(plain, _checksum(identity)) != int.from_bytes(data[-4:], "little"):
        raise DamagedIndexError("the checksum of a document is wrong")
    return plain


def _stat(entry: IndexEntry) -> tuple[int, int, int, bool]:
    return entry.state.mtime_ns, entry.state.size, entry.state.ctime_ns, entry.settled


def _add_numbers(connection: Any, terms: set[str], number_of: dict[str, int]) -> None:
    """Add the numbers of terms, new or existing, to those of known terms."""
    select = f"SELECT id, text, checksum FROM term WHERE text {AMONG}"
    ordered = sorted(terms.difference(number_of))
    rows = connection.execute(select, (json.dumps(ordered),))
    number_of.update((text, number) for number, text in verified(rows))
    if missing := [term for term in ordered if term not in number_of]:
        ((last,),) = connection.execute("SELECT coalesce(max(id), 0) FROM term")
        fresh = list(enumerate(missing, last + 1))
        rows = ((*row, _checksum(row)) for row in fresh)
        connection.executemany("INSERT INTO term (id, text, checksum) VALUES (?, ?, ?)", rows)
        number_of.update((text, number) for number, text in fresh)


def _texts(sections: Sections, terms: Sequence[str]) -> list[str]:
    """Return the different terms in headings and path of a document, and those in its bodies.

    :param sections: the sections, with positions in ``terms``.
    """
    fields = (np.arange(len(sections.lengths)) % FIELDS).repeat(sections.lengths)
    fields[: sections.lengths[:2].sum()] = 0  # the path of the first section has the words of the file's name
    texts = np.array(terms, object)
    return [" ".join(texts[distinct(sections.rows[fields == field])]) for field in (0, 2)]
