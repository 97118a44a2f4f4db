"""Find rows with invalid UTF-8, and read the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from npl_mcp.stores.base.engine import Row, TableRow, page_of
from npl_mcp.stores.base.errors import DatabaseError


def rows(read: Callable[[], AbstractContextManager[Any]], table: str) -> Iterator[TableRow]:
    """Return every row of a table, a page at a time, including unreadable rows."""
    last = -1
    while True:
        with read() as tx:
            page = _page(tx, table, last, page_of(table))
            # The page is then read row by row, up to the unreadable one.
            while page is None and (page := _page(tx, table, last, 1)):
                last = page[0]["_rowid"]
                yield TableRow(table, f"row {last}", page[0])
                page = None
            if page is None:
                last = tx.value(f"SELECT min(rowid) FROM {table} WHERE rowid > :last", last=last)
                yield TableRow(table, f"row {last}", {}, _text_damage(tx, table, last))
                continue
        for row in page:
            yield TableRow(table, f"row {row['_rowid']}", row)
        if not page:
            return
        last = page[-1]["_rowid"]


def _page(tx: Any, table: str, last: int, most: int) -> list[Row] | None:
    """Return the next rows; ``None`` if one of them holds invalid UTF-8."""
    try:
        found: list[Row] = tx.all(
            f"SELECT rowid AS _rowid, * FROM {table} WHERE rowid > :last ORDER BY rowid LIMIT :most",
            last=last,
            most=most,
        )
    except DatabaseError:
        return None
    return found


def _text_damage(tx: Any, table: str, rowid: int) -> str:
    try:
        tx.one(f"SELECT rowid AS row, * FROM {table} WHERE rowid = :rowid", rowid=rowid)
    except DatabaseError as error:
        return error.message
    return f"a row of {table} (row {rowid}) cannot be read"


def undecodable(raw: Any, sql: str, values: object, error: BaseException) -> str | None:
    """Return the row of a query's result with invalid UTF-8, if the error is about that.

    :param sql: the query; it is repeated only if it changes nothing.
    """
    found = _COLUMN.search(str(error))
    table = _TABLE.search(sql)
    if found is None or table is None or not sql.lstrip().upper().startswith(("SELECT", "WITH")):
        return None
    before, raw.text_factory = raw.text_factory, bytes
    try:
        cursor = raw.execute(sql, values)
        names = [column[0] for column in cursor.description]
        for row in cursor:
            if any(isinstance(value, bytes) and not _is_text(value) for value in row):
                shown = [
                    f"{name} {value}"
                    for name, value in zip(names, row, strict=True)
                    if isinstance(value, int)
                ]
                return f"a row of {table[1]} ({', '.join(shown[:2])}), column {found[1]}"
    finally:
        raw.text_factory = before
    return None


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_COLUMN = re.compile(r"decode to UTF-8 column '(\w{1,64})'")
_TABLE = re.compile(r"\bFROM\s+(\w+)")
