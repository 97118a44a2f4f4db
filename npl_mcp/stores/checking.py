"""Checks that the stores can read every row of the database.

The database itself checks structure, types and references, but not the content of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.artifact.descriptions import check_filename
from npl_mcp.stores.base.database import Database, digest_of, json_of
from npl_mcp.stores.base.engine import TableRow
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.review.annotation import parse_location

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def check_rows(database: Database) -> Iterator[str]:
    """Read every row; return one line for each unreadable column."""
    for found in database.engine.rows(database.read):
        if found.problem is not None:
            yield found.problem
        elif found.table == "content":
            yield from _changed(database, found)
        else:
            yield from _unreadable(found)
    for what, sql in _COUNTS.items():
        with database.read() as tx:
            for row in tx.all(f"SELECT * FROM ({sql}) AS kept_and_counted WHERE kept != counted"):
                yield f"{what} {row['id']} counts {row['kept']}, but there are {row['counted']}"


def _changed(database: Database, found: TableRow) -> Iterator[str]:
    digest = found.row["digest"]
    if digest_of(found.row["data"]) != digest:
        with database.read() as tx:
            for row in tx.all("SELECT artifact_id, revision_num FROM revision WHERE digest = :d", d=digest):
                which = f"revision {row['revision_num']} of artifact {row['artifact_id']}"
                yield f"the content of {which} is not the one that was stored"


def _unreadable(found: TableRow) -> Iterator[str]:
    for column, value in found.row.items():
        read = _READERS.get((found.table, column)) or (_time if _TIMES.fullmatch(column) else None)
        if value is None or read is None:
            continue
        try:
            sound = read(value)
        except (DatabaseError, InvalidRequestError, TypeError):
            sound = False
        if not sound:
            yield f"a row of {found.table} ({found.place}), column {column} cannot be read"


def _time(value: str) -> bool:
    return _TIME.fullmatch(value) is not None


def _json(value: Any) -> bool:
    json_of(value, "")
    return True


_TIMES = re.compile(r"\w+_at|timestamp|ts|created|closed|lease_until|last_entry|last_read")
"""Names of columns that hold timestamps."""

_READERS: Mapping[tuple[str, str], Callable[[Any], bool]] = {
    ("access_token", "domains"): _json,
    ("access_token", "roots"): _json,
    ("access_token", "libraries"): _json,
    ("access_token", "pushes"): _json,
    ("tool_call", "taken"): _json,
    ("tool_call", "absent"): _json,
    ("event", "data"): lambda value: isinstance(json_of(value, ""), dict),
    ("worklog_entry", "data"): _json,
    ("worklog_entry", "tags"): _json,
    ("worklog_entry", "refs"): _json,
    ("review_comment", "location"): lambda value: str(parse_location(value)) == value,
    ("revision", "filename"): lambda value: check_filename(value) == value,
}

# Lists rely on these counts.
_COUNTS = {
    "room": """
        SELECT id, event_count AS kept, (SELECT count(*) FROM event WHERE room_id = room.id) AS counted
        FROM room""",
    "artifact": """
        SELECT id, revision_count AS kept,
            (SELECT count(*) FROM revision WHERE artifact_id = artifact.id) AS counted
        FROM artifact""",
    "worklog": """
        SELECT number AS id, entry_count AS kept,
            (SELECT count(*) FROM worklog_entry WHERE session_number = number) AS counted
        FROM worklog_session WHERE project NOT LIKE 'importing:%'""",
}
