"""What a worklog consists of, and how the predecessor wrote it.

A line of ``worklog.jsonl`` is one compact JSON object in ASCII: the fields in the order of :class:`Entry`
without those that are null, times with ``+00:00``. ``meta.json`` and the cursors are JSON objects too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import stamp

LONGEST_LINE = 8 * 1024 * 1024
"""Bytes of one entry; the limits of its parts keep it below, however they are escaped."""

ARCHIVE = "archive"
"""Folder of the archived sessions, and how their names begin."""

FILE_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9_-])?")
"""What can be the name of a file or a folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a worklog.

    :param seq: its place in the session, from 1.
    :param ts: when it was logged; UTC, ISO 8601, microseconds, ``Z``.
    :param agent_id: who logged it.
    :param agent_type: kind of agent.
    :param action: what kind of event it is.
    :param summary: the event in words.
    :param data: any JSON.
    :param tags: words to filter by.
    :param refs: where to look.
    """

    seq: int
    ts: str
    agent_id: str
    agent_type: str
    action: str
    summary: str
    data: Any = None
    tags: Sequence[str] | None = None
    refs: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class WorklogSession:
    """One worklog.

    :param session_id: its id.
    :param status: ``active`` or ``closed``.
    :param created: when it was made; UTC, ISO 8601, microseconds, ``Z``.
    :param task: what it is about.
    :param entry_count: entries, and the ``seq`` of the last one.
    :param agents: who logged, by name.
    :param last_entry: when the last entry was logged.
    :param current: whether it is the project's current session.
    :param closed: when it was closed.
    :param archived_as: its name in the archive; with ``archive/`` before it, it can be read by that.
    """

    session_id: str
    status: str
    created: str
    task: str | None = None
    entry_count: int = 0
    agents: tuple[str, ...] = ()
    last_entry: str | None = None
    current: bool = False
    closed: str | None = None
    archived_as: str | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an agent has read.

    :param last_seq: the highest ``seq`` it has seen.
    :param last_read: when; as in :class:`Entry`.
    """

    last_seq: int
    last_read: str | None


_FIELDS = tuple(field.name for field in fields(Entry))


def line_of(entry: Entry) -> bytes:
    """Write an entry as a line of the log."""
    body = {name: value for name in _FIELDS if (value := getattr(entry, name)) is not None}
    body["ts"] = offset(entry.ts)
    return json.dumps(body, separators=(",", ":")).encode("ascii") + b"\n"


def parse_line(raw: bytes) -> tuple[Entry, int] | None:
    """Read a line of the log.

    :returns: the entry with the ``seq`` it has there, and how many of its keys had to be dropped; ``None``
        if it is no entry, or holds what no database can hold.
    """
    found = read_object(raw)
    seq, ts, tags, refs = found.get("seq"), read_time(found.get("ts")), found.get("tags"), found.get("refs")
    words = [found.get(name) for name in ("agent_id", "action", "summary")]
    if type(seq) is not int or not 1 <= seq <= checks.LARGEST_ID or ts is None:
        return None
    if not all(isinstance(word, str) for word in words):
        return None
    kind = found.get("agent_type")
    good_tags = tags is None or (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags))
    good_refs = refs is None or isinstance(refs, dict)
    entry = Entry(
        seq=seq,
        ts=ts,
        agent_id=str(words[0]),
        agent_type=kind if isinstance(kind, str) else "unknown",
        action=str(words[1]),
        summary=str(words[2]),
        data=found.get("data"),
        tags=tags if good_tags else None,
        refs=refs if good_refs else None,
    )
    return entry, len(found.keys() - set(_FIELDS)) + (not good_tags) + (not good_refs)


def meta_text(session: WorklogSession) -> str:
    """Write a session's ``meta.json``; the predecessor never filled ``agents`` either."""
    body: dict[str, Any] = {
        "session_id": session.session_id,
        "created": offset(session.created),
        "task": session.task,
        "status": session.status,
        "agents": {},
    }
    if session.closed is not None:
        body["closed"] = offset(session.closed)
    return json.dumps(body, indent=2)


def cursor_text(cursor: Cursor) -> str:
    """Write a cursor."""
    last_read = None if cursor.last_read is None else offset(cursor.last_read)
    return json.dumps({"last_seq": cursor.last_seq, "last_read": last_read})


def cursor_name(agent_id: str) -> str:
    """Return the file name of an agent's cursor: its id where that can be one, else escaped or a digest."""
    if FILE_NAME.fullmatch(agent_id):
        return agent_id
    name = quote(agent_id, safe="").replace(".", "%2E").replace("~", "%7E")
    return name if len(name) <= 128 else sha256(agent_id.encode()).hexdigest()


def offset(moment: str) -> str:
    """Write a stored time as the predecessor wrote times."""
    return moment.removesuffix("Z") + "+00:00"


def read_time(text: object) -> str | None:
    """Return a time that the predecessor wrote as it is stored here; ``None`` if it is not a time."""
    if not isinstance(text, str):
        return None
    try:
        return stamp(datetime.fromisoformat(text.replace("Z", "+00:00")))
    except (ValueError, OverflowError):
        return None


def read_object(content: bytes) -> dict[str, Any]:
    """Return a JSON object; empty if it is not one, or holds what no database can hold."""
    try:
        found = json.loads(content.decode("utf-8"))
        checks.json_text(found, "object", LONGEST_LINE)
    except (ValueError, RecursionError, InvalidRequestError):
        return {}
    return found if isinstance(found, dict) else {}
