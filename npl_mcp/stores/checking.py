"""Checks that the stores can read every row of the database.

The database itself checks structure, types and references, but not the content of texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.artifact.files import check_filename
from npl_mcp.stores.base.database import Database, Row, content_digest, json_of
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.review.annotation import parse_location

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)


def check_rows(database: Database) -> Iterator[str]:
    """Read every row; return one line for each unreadable column."""
    for table, place, row in database.engine.rows(database.read):
        for column, value in row.items():
            if value is not None and not _is_sound(f"{table}.{column}", value):
                yield f"a row of {table} ({place}), column {column} cannot be read"
                break
        else:
            if table in _HOLDERS:
                yield from _damaged_content(database, table, row)
    yield from wrong_counts(database)


def _damaged_content(database: Database, table: str, row: Row) -> Iterator[str]:
    if content_digest(row["data"]) != row["digest"]:
        with database.read() as tx:
            for holder in tx.all(_HOLDERS[table], digest=row["digest"]):
                yield f"the content of {holder['name']} is not the one that was stored"


def _is_sound(name: str, value: Any) -> bool:
    """Return whether a value of a column can be read.

    :param name: the name of the column, after that of its table.
    """
    try:
        if isinstance(value, str):
            value.encode()  # invalid UTF-8 was read as lone surrogates
        if name == "event.data":
            return isinstance(json_of(value, name), dict)
        if name == "review_comment.location":
            return bool(str(parse_location(value)) == value)
        if name == "revision.filename":
            return bool(check_filename(value) == value)
        if _JSON.fullmatch(name):
            json_of(value, name)
        return not _TIMES.fullmatch(name) or _TIME.fullmatch(value) is not None
    except (DatabaseError, InvalidRequestError, TypeError, UnicodeEncodeError):
        return False


_JSON = re.compile(
    r"access_token\.(domains|roots|libraries|pushes)|tool_call\.(taken|absent)|worklog_entry\.(data|tags|refs)"
)
_TIMES = re.compile(r"\w+\.(\w+_at|timestamp|ts|created|closed|lease_until|last_entry|last_read)")
"""Names of columns with JSON and with timestamps, after those of their tables."""

_HOLDERS = {
    "content": """
        SELECT 'revision ' || revision_num || ' of artifact ' || artifact_id AS name FROM revision
        WHERE digest = :digest""",
    "library_content": """
        SELECT DISTINCT path || ' of library ' || name AS name
        FROM library_file JOIN library ON library_id = library.id WHERE digest = :digest""",
}
"""Tables that refer to contents, by the table of contents."""

_AGENT = "session_number || ' ' || agent_id"

_COUNTERS = (
    ("room", "id", "event_count", "event", "room_id"),
    ("artifact", "id", "revision_count", "revision", "artifact_id"),
    ("worklog_session", "number", "entry_count", "worklog_entry", "session_number"),
    ("worklog_agent", _AGENT, "entry_count", "worklog_entry", _AGENT),
    ("mailbox", "persona", "total", "notification", "persona"),
)
"""Stored numbers of rows, on which lists rely: table, key, column, counted rows, and the column of those with
the key."""


def wrong_counts(database: Database) -> Iterator[str]:
    """Compare every stored number with the rows; return one line for each that differs."""
    for table, key, column, counted, owner in _COUNTERS:
        counts = f"SELECT {owner} AS owner, count(*) AS counted FROM {counted} GROUP BY {owner}"
        sql = f"""
            SELECT {key} AS name, {column} AS stored, coalesce(counted, 0) AS counted
            FROM {table} LEFT JOIN ({counts}) AS counts ON owner = {key}"""
        with database.read() as tx:
            for row in tx.all(f"SELECT * FROM ({sql}) AS compared WHERE stored != counted"):
                problem = f"counts {row['stored']}, but there are {row['counted']}"
                yield f"{column} of {table} {row['name']} {problem}"
