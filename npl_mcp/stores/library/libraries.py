"""Libraries: Markdown files with revisions, numbered from 1; the highest is the current one.

A revision is the state of a folder at a push. Each content is stored once, by its digest. A file has a row
for each range of revisions without a change. So unchanged files cost nothing, and one range of an index holds
the files of any revision. Nothing is ever removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from npl_index.errors import DocumentNotFoundError, UnreadableDocumentError
from npl_index.library.references import near_names
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Row, Transaction, digest_of
from npl_mcp.stores.base.errors import RESTORE, ConflictError, DatabaseError, RecordNotFoundError
from npl_mcp.stores.base.values import filled, values_of
from npl_mcp.stores.library.names import check_library, check_path, sound_path

T = TypeVar("T")

STILL = checks.MAX_ID
"""The last revision in the row of a file that still exists."""

_AT_ONCE = 64
"""Maximum contents in memory during a write."""

_NAMED = 500
"""Maximum digests of a query; SQLite takes 32,766 parameters at most."""


@dataclass(frozen=True, slots=True)
class LibraryFile:
    """A file of a revision.

    :param digest: BLAKE2b of its content, 16 bytes, in hex.
    :param size: the bytes of its content.
    """

    digest: str
    size: int


Files = Mapping[str, LibraryFile]
"""Files by their paths, ``/`` between segments."""


@dataclass(frozen=True, slots=True)
class LibraryRevision:
    """A revision of a library.

    :param library: name of the library.
    :param number: number of the revision, from 1.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param created_by: author of the push.
    :param message: description of the revision.
    :param digest: digest of all paths and contents.
    :param files: number of files.
    :param bytes: bytes of all files.
    :param added: number of files that the previous revision does not have.
    :param changed: number of files whose content differs from the previous revision.
    :param removed: number of files that only the previous revision has.
    """

    library: str
    number: int
    created_at: str
    created_by: str | None
    message: str | None
    digest: str
    files: int
    bytes: int
    added: int
    changed: int
    removed: int


@dataclass(frozen=True, slots=True)
class LibraryDifference:
    """The differences between two states of the files, by path.

    :param added: paths of new files.
    :param changed: paths of files with different content.
    :param removed: paths of removed files.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @classmethod
    def between(cls, before: Files, after: Files) -> LibraryDifference:
        """Compare two states."""
        return cls(
            tuple(sorted(path for path in after if path not in before)),
            tuple(sorted(p for p in after if p in before and after[p].digest != before[p].digest)),
            tuple(sorted(path for path in before if path not in after)),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Push:
    """The result of a push.

    :param number: number of the current revision after the push; 0 for a new library in a dry run.
    :param difference: changes of the push.
    """

    number: int
    difference: LibraryDifference


class LibraryStore:
    """Libraries.

    :param database: the database that stores them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def push(
        self,
        name: str,
        files: Files,
        read: Callable[[str], bytes],
        *,
        message: str | None = None,
        created_by: str | None = None,
        dry_run: bool = False,
        expect: int | None = None,
    ) -> Push | None:
        """Create the next revision of a library, or the first; without a change no revision is created.

        :param files: all files of the new revision.
        :param expect: the number of the expected current revision, 0 for a new library; with any other
            current revision, nothing changes.
        :param read: a function that returns a file's content; called only for contents not yet stored.
        :param dry_run: whether to only return the changes.
        :returns: the result; ``None`` if the current revision is not the expected one.
        :raises ConflictError: the content of a file has changed.
        """
        check_library(name)
        note = checks.maybe(checks.line, message, "message", checks.LINE)
        by = checks.maybe(checks.line, created_by, "created_by")
        for path in files:
            check_path(path)
        with self._database.read() if dry_run else self._database.write() as tx:
            current = _revision(tx, name)
            before = {} if current is None else _files(tx, current["library_id"], current["number"])
            found = LibraryDifference.between(before, files)
            number = 0 if current is None else int(current["number"])
            if expect not in (None, number):
                return None
            if dry_run or not found:
                return Push(number, found)
            fresh = [*found.added, *found.changed]
            _write_contents(tx, {files[path].digest: path for path in fresh}, read)
            number += 1
            sql = (
                "INSERT INTO library (name, created_at, revision) VALUES (:name, :now, :number)"
                " ON CONFLICT (name) DO UPDATE SET revision = excluded.revision RETURNING id"
            )
            library = tx.value(sql, name=name, now=tx.now, number=number)
            _write_files(tx, library, number, files, found)
            tx.insert(
                "library_revision",
                "number",
                library_id=library,
                number=number,
                created_at=tx.now,
                created_by=by,
                message=note,
                digest=_digest_of(files),
                files=len(files),
                bytes=sum(file.size for file in files.values()),
                **{name: len(paths) for name, paths in values_of(found).items()},
            )
        return Push(number, found)

    def upload(self, contents: Iterable[bytes]) -> None:
        """Store contents for a later push; contents already stored change nothing."""
        with self._database.write() as tx:
            for data in contents:
                tx.insert("library_content", "digest", "digest", digest=digest_of(data), data=data)

    def sizes(self, digests: Collection[str]) -> dict[str, int]:
        """Return the bytes of stored contents by their digests."""
        sql = "SELECT digest, length(data) AS size FROM library_content WHERE digest IN :digests"
        with self._database.read() as tx:
            rows = (row for part in _parts(list(digests), _NAMED) for row in tx.all(sql, digests=part))
            return {row["digest"]: row["size"] for row in rows}

    def revision(
        self, name: str, number: int | None = None, seen: Callable[[str], bool] = lambda _: True
    ) -> LibraryRevision:
        """Return a revision of a library.

        :param number: the number of the revision; ``None`` for the current one.
        :param seen: a function that returns whether the caller may see a library; hidden ones count as
            missing.
        :raises DocumentNotFoundError: the library does not exist.
        :raises RecordNotFoundError: the revision does not exist.
        """
        with self._database.read() as tx:
            row = _revision(tx, name, number)
            if row is None or not seen(name):
                raise _missing(tx, name, number, seen)
        return filled(LibraryRevision, row)

    def files(self, revision: LibraryRevision) -> Files:
        """Return the files of a revision, in the order of their paths."""
        with self._database.read() as tx:
            return _files(tx, _id_of(tx, revision.library), revision.number)

    def since(self, before: LibraryRevision, after: LibraryRevision) -> tuple[Files, Collection[str]] | None:
        """Return the differences of a later revision: the new or changed files, and the removed paths.

        :returns: ``None`` if ``before`` is not an earlier revision of the same library.
        """
        with self._database.read() as tx:
            row = _revision(tx, before.library, before.number)
            if row is None or row["digest"] != before.digest or before.number >= after.number:
                return None
            numbers = {"library": row["library_id"], "before": before.number, "after": after.number}
            fresh = tx.all(
                "SELECT path, digest, size FROM library_file WHERE library_id = :library"
                " AND last_revision >= :after AND first_revision > :before AND first_revision <= :after",
                **numbers,
            )
            ended = tx.all(
                "SELECT path FROM library_file WHERE library_id = :library"
                " AND last_revision >= :before AND last_revision < :after AND first_revision <= :before",
                **numbers,
            )
        files = {sound_path(row["path"]): filled(LibraryFile, row) for row in fresh}
        return files, {row["path"] for row in ended}.difference(files)

    def contents(self, digests: Collection[str]) -> dict[str, bytes]:
        """Return the undamaged contents by their digests."""
        with self._database.read() as tx:
            return tx.contents("library_content", digests)

    def content(self, path: str, digest: str) -> bytes:
        """Return the content of a file.

        :param path: the file's path, for the message.
        :raises UnreadableDocumentError: the content is damaged.
        """
        found = self.contents([digest]).get(digest)
        if found is None:
            raise damaged_file(path)
        return found

    def held(self, name: str) -> frozenset[tuple[str, str]]:
        """Return every current or former path of a library, with the digest of each of its contents."""
        with self._database.read() as tx:
            statement = "SELECT DISTINCT path, digest FROM library_file WHERE library_id = :library"
            rows = tx.all(statement, library=_id_of(tx, name))
        return frozenset((row["path"], row["digest"]) for row in rows)

    def list(self) -> Sequence[LibraryRevision]:
        """Return the current revision of each library, in the order of the libraries' names."""
        with self._database.read() as tx:
            found = (filled(LibraryRevision, row) for row in tx.all(_CURRENT))
        return sorted(found, key=lambda revision: revision.library)

    def log(self, name: str, limit: int | None = None) -> Sequence[LibraryRevision]:
        """Return the revisions of a library, newest first.

        :param limit: the maximum number of revisions.
        :raises DocumentNotFoundError: the library does not exist.
        """
        self.revision(name)
        most = STILL if limit is None else limit
        statement = f"{_REVISIONS} WHERE library.name = :name ORDER BY number DESC LIMIT :most"
        with self._database.read() as tx:
            return [filled(LibraryRevision, row) for row in tx.some(statement, name=name, most=most)]

    def check(self) -> Iterator[str]:
        """Read every content and every revision; return one line for each problem."""
        with self._database.read() as tx:
            rows = tx.all(f"{_REVISIONS} ORDER BY library_id, number")
        for one in (filled(LibraryRevision, row) for row in rows):
            sound = False
            with suppress(DatabaseError):
                sound = _digest_of(self.files(one)) == one.digest
            if not sound:
                yield f"revision {one.number} of library {one.library} differs from what was pushed"
        last = ""
        while True:
            with self._database.read() as tx:
                sql = "SELECT digest, data FROM library_content WHERE digest > :last ORDER BY digest LIMIT 1"
                row = tx.one(sql, last=last)
            if row is None:
                return
            last = row["digest"]
            if digest_of(bytes(row["data"])) != last:
                yield f"the content {last} of a library differs from what was pushed"


def damaged_file(path: str) -> UnreadableDocumentError:
    """Return the error for a file with a damaged content."""
    return UnreadableDocumentError(f"{path!r} is damaged in the database", hint=RESTORE)


_REVISIONS = (
    "SELECT library_id, library.name AS library, number, library_revision.created_at, created_by, message,"
    " digest, files, bytes, added, changed, removed"
    " FROM library JOIN library_revision ON library_id = library.id"
)
_CURRENT = f"{_REVISIONS} AND number = library.revision"


def _revision(tx: Transaction, name: str, number: int | None = None) -> Row | None:
    """Return a revision of a library, by default the current one."""
    which = _CURRENT if number is None else f"{_REVISIONS} AND number = :number"
    return tx.one(f"{which} WHERE library.name = :name", name=name, number=number)


def _missing(
    tx: Transaction, name: str, number: int | None, seen: Callable[[str], bool]
) -> DocumentNotFoundError | RecordNotFoundError:
    current = _revision(tx, name) if seen(name) else None
    if current is not None:
        last = current["number"]
        hint = f"it has 1 to {last}" if last > 1 else "it has only revision 1"
        return RecordNotFoundError(f"library {name} has no revision {number}", hint=hint)
    others = [row["name"] for row in tx.all("SELECT name FROM library") if seen(row["name"])]
    near = tuple(f"lib:{other}" for other in near_names(name, sorted(others)))
    return DocumentNotFoundError(f"there is no library {name!r}", near=near)


def _id_of(tx: Transaction, name: str) -> int:
    return int(tx.value("SELECT id FROM library WHERE name = :name", name=name) or 0)


def _files(tx: Transaction, library: int, number: int) -> dict[str, LibraryFile]:
    sql = (
        "SELECT path, digest, size FROM library_file WHERE library_id = :library"
        " AND last_revision >= :number AND first_revision <= :number"
    )
    rows = tx.all(sql, library=library, number=number)
    # Databases sort by the locale of their machine.
    rows.sort(key=lambda row: row["path"])
    return {sound_path(row["path"]): filled(LibraryFile, row) for row in rows}


def _digest_of(files: Files) -> str:
    lines = sorted(f"{path}\n{file.digest}\n" for path, file in files.items())
    return digest_of("".join(lines).encode())


def _write_contents(tx: Transaction, paths: Mapping[str, str], read: Callable[[str], bytes]) -> None:
    """Store the contents not yet stored.

    :param paths: the path of a file with each content, by digest.
    """
    sql = "SELECT digest FROM library_content WHERE digest IN :digests"
    for part in _parts(list(paths), _AT_ONCE):
        known = {row["digest"] for row in tx.all(sql, digests=part)}
        rows = []
        for digest in part:
            if digest in known:
                continue
            data = read(paths[digest])
            if digest_of(data) != digest:
                problem = f"{paths[digest]!r} changed while it was pushed; nothing was pushed"
                raise ConflictError(problem, hint="push again")
            rows.append({"digest": digest, "data": data})
        tx.insert_many("library_content", rows)


def _write_files(tx: Transaction, library: int, number: int, files: Files, found: LibraryDifference) -> None:
    sql = (
        f"UPDATE library_file SET last_revision = {number - 1}"
        f" WHERE library_id = :library AND path = :path AND last_revision = {STILL}"
    )
    tx.run_many(sql, [{"library": library, "path": path} for path in (*found.changed, *found.removed)])
    added = {"library_id": library, "first_revision": number, "last_revision": STILL}
    rows = [{**added, "path": path, **values_of(files[path])} for path in (*found.added, *found.changed)]
    tx.insert_many("library_file", rows)


def _parts(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (values[at : at + size] for at in range(0, len(values), size))
