"""The worklog: reports of agents on one project to each other. The server stores how far each agent has read.

The command line and the pages call another tool by name, which is not listed.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from typing import Annotated, Any

from npl_mcp.app.waiting import StoreUser, when_new
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Transaction
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.commits import Topic
from npl_mcp.stores.worklog import worklogs as store
from npl_mcp.stores.worklog.worklogs import WorklogSession
from npl_mcp.tools.contract.parameters import Actor, Check, Line, Name, Text, Wait, Whole
from npl_mcp.tools.contract.spec import ToolSpec

NewId = Annotated[str, Check(store.new_id)]


def worklog_init(app: StoreUser, session_id: NewId | None = None, task: Text | None = None) -> WorklogSession:
    """Start or resume a worklog session; it becomes the current one.

    :param session_id: id of the session; by default today's date (UTC).
    :param task: purpose of the session.
    :returns: a worklog session.
    :raises ClosedError: the session is closed.
    """
    return app.database.writing(store.init, app.project, session_id, task)


def worklog_log(
    app: StoreUser,
    agent_id: Actor,
    action: Annotated[Line, "what was done, one verb"],
    summary: Text,
    data: Annotated[Any, {"type": "object"}, Check(checks.json_text, store.DATA)] = None,
    tags: Annotated[list[str] | None, Check(store.tags_text)] = None,
    refs: Annotated[dict[str, Any] | None, "lists by kind of reference", Check(checks.json_text)] = None,
    session_id: Name | None = None,
    agent_type: Line | None = None,
) -> store.Logged:
    """Append a worklog entry.

    :param agent_id: name of the agent that reports.
    :param action: kind of event, e.g. ``found``, ``decided``, ``done``.
    :param summary: the event in words.
    :param data: details, as any JSON.
    :param tags: words to filter by.
    :param refs: references by kind, e.g. ``{"files": ["a.py:3"]}``.
    :param session_id: id of the session; by default the current one.
    :param agent_type: kind of agent; by default ``unknown``.
    :returns: a new entry.
    :raises SessionNotFoundError: there is no such session.
    :raises ClosedError: the session takes no more entries.
    """
    # After their checks, data, tags and refs are JSON texts, the form in the database.
    values: dict[str, Any] = {"agent_id": agent_id, "agent_type": agent_type or "unknown", "action": action}
    values |= {"summary": summary, "data": data, "tags": tags, "refs": refs}
    return app.database.writing(store.log, app.project, session_id, values)


async def worklog_read(
    app: StoreUser,
    agent_id: Actor,
    peek: Annotated[bool, "Keep the cursor"] = False,
    since: Annotated[Whole | None, "After this seq"] = None,
    session_id: Name | None = None,
    limit: int | None = None,
    wait: Wait = 0,
) -> store.ReadEntries:
    """Read worklog entries the agent has not seen; moves its cursor.

    :param agent_id: name of the agent that reads.
    :param peek: keep the cursor, so that the entries stay unread.
    :param since: return the entries after this number instead.
    :param session_id: id of the session; by default the current one.
    :param wait: seconds to wait for a new entry, from 0 to 60.
    :returns: entries that an agent had not seen.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    part = Slice.parse(limit, None, store.PAGE)

    def topic(tx: Transaction) -> Topic:
        return Topic(store.POSITIONS, store.resolve(tx, app.project, session_id)["number"])

    def read(tx: Transaction) -> store.ReadEntries:
        session = store.resolve(tx, app.project, session_id)
        return store.read(tx, session, agent_id, part, since, peek=peek)

    return await when_new(app, topic, wait, read, lambda read: not read.items, write=not peek)


def worklog_status(app: StoreUser, session_id: Name | None = None) -> WorklogSession:
    """Show a worklog session's state, agents and counts.

    :param session_id: id of the session; by default the current one.
    :returns: a worklog session.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return app.database.reading(store.status, app.project, session_id)


def worklog_close(app: StoreUser, archive: bool = False, session_id: Name | None = None) -> WorklogSession:
    """Close a worklog session for good.

    :param archive: also move the session to the archive.
    :param session_id: id of the session; by default the current one.
    :returns: a worklog session.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return app.database.writing(store.close, app.project, session_id, archive=archive)


def worklog_sessions(
    app: StoreUser, archived: Annotated[bool, "Add archived sessions"] = False
) -> tuple[WorklogSession, ...]:
    """List worklog sessions.

    :returns: worklog sessions, newest first.
    """
    return app.database.reading(store.sessions, app.project, archived=archived)


TOOLS = (
    ToolSpec(worklog_init, title="Start Worklog", read_only=False),
    ToolSpec(worklog_log, title="Log Entry", read_only=False, idempotent=False),
    ToolSpec(
        worklog_read,
        title="Read Worklog",
        read_only=False,
        idempotent=False,
        reads=lambda given: given.get("peek") is True,
    ),
    ToolSpec(worklog_status, title="Show Worklog"),
    ToolSpec(worklog_close, title="Close Worklog", read_only=False),
    ToolSpec(worklog_sessions, listed=False),
)
