"""What a worklog consists of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
