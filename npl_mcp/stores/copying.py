"""Copies all stores from one database to another, whatever their engines, and compares both row by row.

The source is read in one state while others use it. The target is written in one transaction, which ends when
each of its rows has been compared; whatever interrupts a copy leaves the target empty, and it can be begun
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import TopologicalSorter

from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.engine import Table, page_of
from npl_mcp.stores.base.errors import AlreadyExistsError, DatabaseError
from npl_mcp.stores.data_folder import Stores

_NOT_COPIED = "alembic_version"


def copy_stores(source: Stores, target: Stores) -> tuple[int, int]:
    """Copy everything into stores that hold nothing.

    :returns: how many rows, and how many revisions of artifacts with their contents.
    :raises AlreadyExistsError: the target holds something.
    :raises StoreError: something cannot be read or written, or is not the same afterwards.
    """
    source.database.open()
    target.database.open()
    with source.database.read() as here, target.database.write() as there:
        tables = _tables(source, target, here, there)
        rows = sum(_copy_table(here, there, table) for table in tables)
        for table in tables:
            if table.numbered:
                last = source.database.engine.last_number(here, table)
                target.database.engine.set_last_number(there, table, last)
            _compare(here, there, table)
        return rows, _read_contents(target, there)


def _tables(source: Stores, target: Stores, here: Transaction, there: Transaction) -> list[Table]:
    """Return the tables to be copied, each after those that it refers to.

    :raises AlreadyExistsError: the target holds something.
    :raises DatabaseError: the tables are not the same.
    """
    tables, others = (
        {table.name: table for table in stores.database.engine.tables(tx) if table.name != _NOT_COPIED}
        for stores, tx in ((source, here), (target, there))
    )
    if {name: set(table.columns) for name, table in tables.items()} != {
        name: set(table.columns) for name, table in others.items()
    }:
        raise DatabaseError("the databases have other tables", hint="bring both to one version first")
    for name in tables:
        if there.one(f"SELECT 1 FROM {name} LIMIT 1") is not None:
            raise AlreadyExistsError(
                f"the target has rows in {name}", hint="copy to an empty database or a new folder"
            )
    order = TopologicalSorter(
        {name: table.parents & tables.keys() - {name} for name, table in tables.items()}
    )
    return [tables[name] for name in order.static_order()]


def _pages(tx: Transaction, table: Table) -> Iterator[list[Row]]:
    names, most = ", ".join(table.key), page_of(table.name)
    columns = ", ".join(table.columns)
    beyond, last = "", dict[str, object]()
    while True:
        page = tx.all(f"SELECT {columns} FROM {table.name} {beyond} ORDER BY {names} LIMIT {most}", **last)
        if page:
            yield page
        if len(page) < most:
            return
        beyond = f"WHERE ({names}) > ({', '.join(f':last_{name}' for name in table.key)})"
        last = {f"last_{name}": page[-1][name] for name in table.key}


def _copy_table(here: Transaction, there: Transaction, table: Table) -> int:
    count = 0
    for page in _pages(here, table):
        there.insert_many(table.name, page)
        count += len(page)
    return count


def _read_contents(target: Stores, there: Transaction) -> int:
    """Read the content of each revision; return how many there are."""
    count, last = 0, 0
    while (row := there.one(_NEXT_REVISION, last=last)) is not None:
        target.artifact.contents.fetch(there, row)
        count, last = count + 1, row["id"]
    return count


_NEXT_REVISION = "SELECT * FROM revision WHERE id > :last ORDER BY id LIMIT 1"


def _compare(here: Transaction, there: Transaction, table: Table) -> None:
    """Compare a table.

    :raises DatabaseError: a row is not the same.
    """
    copied = _pages(there, table)
    for page in _pages(here, table):
        if page != next(copied, None):
            raise DatabaseError(f"table {table.name} is not the same in the copy")
    if next(copied, None) is not None:
        raise DatabaseError(f"table {table.name} has more rows in the copy")
