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
    for entry in database.engine.rows(database.read):
        if entry.problem is not None:
            yield entry.problem
        elif entry.table in _HOLDERS:
            yield from _changed(database, entry)
        else:
            yield from _unreadable(entry)
    yield from miscounted(database)


def _changed(database: Database, entry: TableRow) -> Iterator[str]:
    digest = entry.row["digest"]
    if digest_of(entry.row["data"]) != digest:
        with database.read() as tx:
            for row in tx.all(_HOLDERS[entry.table], digest=digest):
                yield f"the content of {row['holder']} is not the one that was stored"


def _unreadable(entry: TableRow) -> Iterator[str]:
    for column, value in entry.row.items():
        read = _READERS.get((entry.table, column)) or (_time if _TIMES.fullmatch(column) else None)
        if value is None or read is None:
            continue
        try:
            sound = read(value)
        except (DatabaseError, InvalidRequestError, TypeError):
            sound = False
        if not sound:
            yield f"a row of {entry.table} ({entry.place}), column {column} cannot be read"


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

_HOLDERS = {
    "content": """
        SELECT 'revision ' || revision_num || ' of artifact ' || artifact_id AS holder FROM revision
        WHERE digest = :digest""",
    "library_content": """
        SELECT DISTINCT path || ' of library ' || name AS holder
        FROM library_file JOIN library ON library_id = library.id WHERE digest = :digest""",
}
"""Tables that refer to contents, by the table of contents."""

_AGENT = "session_number || ' ' || agent_id"
_LIBRARY = "library_revision.library_id || ' ' || number"
_FILES = (
    "library_revision JOIN library_file ON library_file.library_id = library_revision.library_id"
    " AND number BETWEEN first_revision AND last_revision"
)

_COUNTERS = (
    ("events of room", "room", "id", "event_count", "event", "room_id"),
    ("members of room", "room", "id", "member_count", "member", "room_id"),
    ("revisions of artifact", "artifact", "id", "revision_count", "revision", "artifact_id"),
    ("rooms of session number", "session", "number", "room_count", "room", "session_number"),
    (
        "artifacts of session number",
        "session",
        "number",
        "artifact_count",
        "session_artifact",
        "session_number",
    ),
    ("entries of worklog", "worklog_session", "number", "entry_count", "worklog_entry", "session_number"),
    ("entries of agent", "worklog_agent", _AGENT, "entry_count", "worklog_entry", _AGENT),
    ("notifications of", "mailbox", "persona", "total", "notification", "persona"),
    ("unread ones of", "mailbox", "persona", "unread", "notification WHERE read_at IS NULL", "persona"),
    ("files of library and revision", "library_revision", _LIBRARY, "files", _FILES, _LIBRARY),
)
"""Stored numbers of rows, on which lists rely: meaning, table, key, column, counted rows, and the column of
those with the key."""

_STATE = "CASE WHEN archived_at IS NULL THEN '' ELSE 'archived-' END"

_TOTALS = f"""
SELECT name, sum(value) AS kept, sum(number) AS counted FROM (
    SELECT name, value, 0 AS number FROM total
    UNION ALL SELECT {_STATE} || 'artifact', 0, count(*) FROM artifact GROUP BY 1
    UNION ALL SELECT {_STATE} || 'room', 0, count(*) FROM room GROUP BY 1
    UNION ALL SELECT {_STATE} || 'room:' || persona, 0, count(*)
        FROM member JOIN room ON room.id = room_id GROUP BY 1
    UNION ALL SELECT 'session', 0, count(*) FROM session
    UNION ALL SELECT 'session:' || status, 0, count(*) FROM session GROUP BY 1
) AS numbers GROUP BY name"""


def miscounted(database: Database) -> Iterator[str]:
    """Compare every stored number with the rows; return one line for each that differs."""
    statements = {"total": _TOTALS}
    for what, table, key, column, counted, owner in _COUNTERS:
        found = f"SELECT {owner} AS owner, count(*) AS found FROM {counted} GROUP BY {owner}"
        statements[what] = (
            f"SELECT {key} AS name, {column} AS kept, coalesce(found, 0) AS counted"
            f" FROM {table} LEFT JOIN ({found}) AS counts ON owner = {key}"
        )
    for what, sql in statements.items():
        with database.read() as tx:
            for row in tx.all(f"SELECT * FROM ({sql}) AS compared WHERE kept != counted"):
                yield f"{what} {row['name']} counts {row['kept']}, but there are {row['counted']}"
