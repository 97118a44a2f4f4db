"""Back up stores, and check them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from npl_index.errors import NPLError
from npl_mcp.stores.artifact.files import RevisionFiles
from npl_mcp.stores.base.database import Database
from npl_mcp.stores.base.errors import AlreadyExistsError, StorageError
from npl_mcp.stores.base.folder import ARTIFACT_FOLDER, DATABASE_FILE
from npl_mcp.stores.checking import check_rows
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.library.store import LibraryStore

REVISIONS = 1_000
"""Revisions read from the database at a time."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a backup or a check found.

    :param revisions: revisions of artifacts.
    :param problems: what is wrong, one line each.
    """

    revisions: int
    problems: tuple[str, ...]


def back_up(stores: Stores, target: Path) -> Report:
    """Copy stores to a data folder while servers use them, whatever database they are in.

    A database of SQLite is copied first. Revisions never change and are never removed, so the files of all
    revisions it knows exist, whatever is written during the copy. The target gets its name only when it is
    complete.

    :param target: does not exist yet, or is an empty folder.
    :raises AlreadyExistsError: the target holds something.
    :raises StoreError: the database cannot be copied, or the target not be written.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise AlreadyExistsError(f"{target} exists and is not empty", hint="name a new folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            report = _copy(stores, partial)
            if target.exists():
                target.rmdir()
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}") from None
    return report


def check(stores: Stores) -> Report:
    """Check every row, every reference and every content.

    :raises DatabaseError: the database cannot be read at all.
    """
    problems = _problems(stores.database)
    if stores.database.engine.keeps_contents:  # as rows, which were checked
        with stores.database.read() as tx:
            return Report(tx.value("SELECT count(*) FROM revision"), tuple(problems))
    return _each_revision(stores, stores.database, None, problems)


def _problems(database: Database) -> list[str]:
    return [*database.check(), *check_rows(database), *LibraryStore(database).check()]


def _copy(stores: Stores, folder: Path) -> Report:
    copied = Stores(folder, 0)
    try:
        if stores.database.copy(folder / DATABASE_FILE):
            files = RevisionFiles(folder / ARTIFACT_FOLDER)
            return _each_revision(stores, copied.database, files, _problems(copied.database))
        _, revisions = copy_stores(stores, copied)
        return Report(revisions, tuple(_problems(copied.database)))
    finally:
        copied.close()


def _each_revision(
    stores: Stores, known: Database, target: RevisionFiles | None, problems: list[str]
) -> Report:
    """Read the files of each revision a database knows, and copy them into the target if there is one."""
    count = 0
    for artifact_id, number in _revisions(known):
        count += 1
        try:
            revision, content = stores.artifact.content(artifact_id, number)
        except NPLError as error:
            problems.append(error.message)
            continue
        if target is not None:
            target.put(artifact_id, number, revision.filename, content, revision.metadata.encode())
    return Report(count, tuple(problems))


def _revisions(database: Database) -> Iterator[tuple[int, int]]:
    last = 0
    while True:
        with database.read() as tx:
            rows = tx.all(
                "SELECT id, artifact_id, revision_num FROM revision WHERE id > :last ORDER BY id LIMIT :most",
                last=last,
                most=REVISIONS,
            )
        for row in rows:
            yield row["artifact_id"], row["revision_num"]
        if len(rows) < REVISIONS:
            return
        last = rows[-1]["id"]
