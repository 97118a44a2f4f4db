"""Backups and checks of stores."""

from __future__ import annotations

import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from npl_mcp.stores.base.errors import AlreadyExistsError, StorageError
from npl_mcp.stores.base.folder import DATABASE_FILE
from npl_mcp.stores.checking import check_rows
from npl_mcp.stores.copying import copy_stores
from npl_mcp.stores.data_folder import Stores


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a backup or a check.

    :param revisions: number of revisions of artifacts.
    :param problems: problems that were found, one line each.
    """

    revisions: int
    problems: tuple[str, ...]


def back_up(stores: Stores, target: Path) -> Report:
    """Copy stores from any database to a data folder while servers use them.

    The target gets its name only when it is complete.

    :param target: path of a missing or empty folder.
    :raises AlreadyExistsError: the target is not empty.
    :raises StoreError: the database cannot be copied, or the target cannot be written.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise AlreadyExistsError(f"{target} exists and is not empty", hint="name a new folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            with closing(Stores(partial)) as copied:
                if not stores.database.copy(partial / DATABASE_FILE):
                    copy_stores(stores, copied)
                report = check(copied)
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
    database = stores.database
    problems = (*database.check(), *check_rows(database))
    with database.read() as tx:
        return Report(tx.value("SELECT count(*) FROM revision"), problems)
