"""Copies all stores from one database to another, across engines, and compares them row by row.

The source is read in one snapshot while it stays in use. The target is written in one transaction, which
commits after every row has been compared. An interrupted copy leaves the target empty and can be repeated.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from graphlib import TopologicalSorter
from itertools import zip_longest

from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.base.engine import StoreTable, pages
from npl_mcp.stores.base.errors import AlreadyExistsError, DatabaseError
from npl_mcp.stores.data_folder import Stores

_NOT_COPIED = "alembic_version"


def copy_stores(source: Stores, target: Stores) -> tuple[int, int]:
    """Copy all rows into empty stores.

    :returns: the number of rows, and the number of revisions of artifacts.
    :raises AlreadyExistsError: the target is not empty.
    :raises StoreError: a row cannot be read or written, or differs after the copy.
    """
    source.database.open()
    target.database.open()
    with target.database.write() as write:
        rows = 0
        with source.database.read() as read:
            tables = _tables(source, target, read, write)
            for table in tables:
                for page in pages(partial(nullcontext, read), table):
                    write.insert_many(table.name, page)
                    rows += len(page)
            for table in tables:
                if table.numbered:
                    target.database.engine.go_on_numbering(write, table)
                both = (pages(partial(nullcontext, tx), table) for tx in (read, write))
                if any(page != copied for page, copied in zip_longest(*both)):
                    raise DatabaseError(f"table {table.name} is not the same in the copy")
        return rows, write.value("SELECT count(*) FROM revision")


def _tables(source: Stores, target: Stores, read: Transaction, write: Transaction) -> list[StoreTable]:
    """Return the tables to copy; each follows the tables that it refers to.

    :raises AlreadyExistsError: the target is not empty.
    :raises DatabaseError: the tables of the two databases differ.
    """
    tables, others = (
        {table.name: table for table in stores.database.engine.tables(tx) if table.name != _NOT_COPIED}
        for stores, tx in ((source, read), (target, write))
    )
    shapes = ({name: set(table.columns) for name, table in by_name.items()} for by_name in (tables, others))
    if next(shapes) != next(shapes):
        raise DatabaseError("the databases have different tables", hint="upgrade both to one version first")
    for name in tables:
        if write.first(f"SELECT 1 FROM {name} LIMIT 1") is not None:
            problem = f"the target has rows in {name}"
            raise AlreadyExistsError(problem, hint="copy to an empty database or a new folder")
    parents = {name: {*table.parents} & tables.keys() - {name} for name, table in tables.items()}
    return [tables[name] for name in TopologicalSorter(parents).static_order()]
