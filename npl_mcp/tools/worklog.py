"""The worklog: agents of one project report to each other; each reads on from where it stopped."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from npl_mcp.core.waiting import waits, when_new
from npl_mcp.core.worklog import WorklogUser
from npl_mcp.stores.worklog.format import WorklogSession
from npl_mcp.stores.worklog.store import Closed, Logged, Opened, ReadEntries
from npl_mcp.tools.spec import ToolSpec, Wait


def worklog_init(app: WorklogUser, session_id: str | None = None, task: str | None = None) -> Opened:
    """Start or resume a worklog session; it becomes current.

    :param session_id: by default today.
    :returns: a session that was asked for.
    :raises InvalidRequestError: the id cannot be the name of a folder, or the task is too long.
    :raises AlreadyExistsError: the id is another's but for case.
    :raises ClosedError: the session is closed.
    """
    return app.worklog.init(app.project, session_id, task)


def worklog_log(
    app: WorklogUser,
    agent_id: str,
    action: Annotated[str, "what was done, one verb"],
    summary: str,
    data: Annotated[Any, {"type": "object"}] = None,
    tags: list[str] | None = None,
    refs: Annotated[dict[str, Any] | None, "lists by kind of reference"] = None,
    session_id: str | None = None,
    agent_type: str | None = None,
) -> Logged:
    """Append a worklog entry.

    :param data: any JSON.
    :param refs: e.g. ``{"files": ["a.py:3"]}``.
    :param session_id: by default the current one.
    :returns: an entry that was written.
    :raises InvalidRequestError: a part is empty, too long, or holds what cannot be stored.
    :raises SessionNotFoundError: there is no such session.
    :raises ClosedError: the session takes no more entries.
    """
    return app.worklog.log(
        app.project,
        agent_id,
        action,
        summary,
        agent_type=agent_type,
        data=data,
        tags=tags,
        refs=refs,
        session_id=session_id,
    )


@waits
async def worklog_read(
    app: WorklogUser,
    agent_id: str,
    peek: Annotated[bool, "Keep the cursor"] = False,
    since: Annotated[int | None, "After this seq"] = None,
    session_id: str | None = None,
    limit: int | None = None,
    wait: Wait = 0,
) -> ReadEntries:
    """Read worklog entries the agent has not seen; moves its cursor.

    :param session_id: by default the current one.
    :returns: entries an agent had not seen.
    :raises InvalidRequestError: a number is out of range, or the agent's id cannot be one.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return await when_new(
        app.news,
        partial(app.worklog.topic, app.project, session_id),
        wait,
        partial(
            app.worklog.read,
            app.project,
            agent_id,
            peek=peek,
            since=since,
            session_id=session_id,
            limit=limit,
        ),
        lambda read: not read.items,
    )


def worklog_status(app: WorklogUser, session_id: str | None = None) -> WorklogSession:
    """Show a worklog session's state, agents and counts.

    :param session_id: by default the current one.
    :returns: one worklog.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return app.worklog.status(app.project, session_id)


def worklog_close(app: WorklogUser, archive: bool = False, session_id: str | None = None) -> Closed:
    """Close a worklog session for good.

    :param session_id: by default the current one.
    :returns: a session that takes no more entries.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return app.worklog.close(app.project, session_id, archive=archive)


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
)
