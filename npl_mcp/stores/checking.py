"""Reads every row of the database as the stores would, and says what cannot be read.

SQLite checks structure, types and references; what is in a text only its reader knows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.artifact.files import check_filename
from npl_mcp.stores.base.database import Database, Row, Transaction, json_of
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.review.annotation import parse_location

PAGE = 500
"""Rows that are read at a time."""

_CONTENTS = frozenset({"library_content", "library_index_part"})
"""Tables whose rows are too large to be read many at a time; their store reads them."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def check_rows(database: Database) -> Iterator[str]:
    """Read every row; return what is wrong, a line for each column that cannot be read."""
    with database.read() as tx:
        tables = [str(row["name"]) for row in tx.all("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        if table.startswith("sqlite_") or table in _CONTENTS:
            continue
        for row, problem in _rows(database, table):
            if problem is not None:
                yield problem
            else:
                yield from _unreadable(table, row)
    for what, sql in _COUNTS.items():
        with database.read() as tx:
            for row in tx.all(sql):
                yield f"{what} {row['id']} counts {row['kept']}, but there are {row['counted']}"


def _rows(database: Database, table: str) -> Iterator[tuple[Row, str | None]]:
    """Return the rows of a table, a page at a time; one that cannot be read with what is wrong with it."""
    last = -1
    while True:
        with database.read() as tx:
            page = _page(tx, table, last, PAGE)
            # Then one by one, up to the row that cannot be read.
            while page is None and (page := _page(tx, table, last, 1)):
                yield page[0], None
                last, page = page[0]["_rowid"], None
            if page is None:
                last = tx.value(f"SELECT min(rowid) FROM {table} WHERE rowid > :last", last=last)
                yield {}, _text_damage(tx, table, last)
                continue
        for row in page:
            yield row, None
        if not page:
            return
        last = page[-1]["_rowid"]


def _page(tx: Transaction, table: str, last: int, most: int) -> list[Row] | None:
    """Return the next rows; ``None`` if one of them holds a text that is none."""
    try:
        return tx.all(
            f"SELECT rowid AS _rowid, * FROM {table} WHERE rowid > :last ORDER BY rowid LIMIT :most",
            last=last,
            most=most,
        )
    except DatabaseError:
        return None


def _text_damage(tx: Transaction, table: str, rowid: int) -> str:
    try:
        tx.one(f"SELECT rowid AS row, * FROM {table} WHERE rowid = :rowid", rowid=rowid)
    except DatabaseError as error:
        return error.message
    return f"a row of {table} (row {rowid}) cannot be read"


def _unreadable(table: str, row: Row) -> Iterator[str]:
    for column, value in row.items():
        read = _READERS.get((table, column)) or (_time if column in _TIMES else None)
        if value is None or read is None:
            continue
        try:
            sound = read(value)
        except (DatabaseError, InvalidRequestError, TypeError):
            sound = False
        if not sound:
            yield f"a row of {table} (row {row['_rowid']}), column {column} cannot be read"


def _time(value: str) -> bool:
    return _TIME.fullmatch(value) is not None


def _json(value: Any) -> bool:
    json_of(value, "")
    return True


def _object(value: Any) -> bool:
    return isinstance(json_of(value, ""), dict)


def _place(value: str) -> bool:
    return str(parse_location(value)) == value


def _filename(value: str) -> bool:
    return check_filename(value) == value


_TIMES = frozenset(
    {
        "created_at",
        "updated_at",
        "linked_at",
        "archived_at",
        "lease_until",
        "joined_at",
        "timestamp",
        "changed_at",
        "read_at",
        "completed_at",
        "created",
        "closed",
        "last_entry",
        "imported_at",
        "ts",
        "last_read",
        "expires_at",
        "revoked_at",
    }
)

_READERS: Mapping[tuple[str, str], Callable[[Any], bool]] = {
    ("access_token", "domains"): _json,
    ("access_token", "roots"): _json,
    ("access_token", "libraries"): _json,
    ("event", "data"): _object,
    ("worklog_entry", "data"): _json,
    ("worklog_entry", "tags"): _json,
    ("worklog_entry", "refs"): _json,
    ("review_comment", "location"): _place,
    ("revision", "filename"): _filename,
}

# Lists are read by these counts.
_COUNTS = {
    "room": """
        SELECT id, event_count AS kept, (SELECT count(*) FROM event WHERE room_id = room.id) AS counted
        FROM room WHERE kept != counted""",
    "artifact": """
        SELECT id, revision_count AS kept,
            (SELECT count(*) FROM revision WHERE artifact_id = artifact.id) AS counted
        FROM artifact WHERE kept != counted""",
    "worklog": """
        SELECT number AS id, entry_count AS kept,
            (SELECT count(*) FROM worklog_entry WHERE session_number = number) AS counted
        FROM worklog_session WHERE kept != counted AND project NOT LIKE 'importing:%'""",
}
