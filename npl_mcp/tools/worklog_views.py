"""Worklogs for people: what their page shows.

These tools are called by name and not listed.
"""

from __future__ import annotations

from functools import partial

from npl_mcp.core.waiting import waits, when_new
from npl_mcp.core.worklog import WorklogUser
from npl_mcp.stores.worklog.format import Entry
from npl_mcp.stores.worklog.viewing import Wanted, WorklogView
from npl_mcp.tools.spec import ToolSpec, Wait


def worklog_view(
    app: WorklogUser,
    session_id: str,
    who: str | None = None,
    action: str | None = None,
    tag: str | None = None,
    before: int | None = None,
    limit: int | None = None,
) -> WorklogView:
    """Show the latest entries of a worklog, and when each agent did something.

    :returns: a part of a worklog.
    :raises SessionNotFoundError: there is no such session.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.worklog.view(app.project, session_id, Wanted.parse(who, action, tag), before, limit)


@waits
async def worklog_news(
    app: WorklogUser,
    session_id: str,
    since: int,
    who: str | None = None,
    action: str | None = None,
    tag: str | None = None,
    wait: Wait = 0,
) -> tuple[Entry, ...]:
    """Show the entries of a worklog that come after one.

    :returns: each is one line of a worklog.
    :raises SessionNotFoundError: there is no such session.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return await when_new(
        app.news,
        partial(app.worklog.topic, app.project, session_id),
        wait,
        partial(app.worklog.after, app.project, session_id, Wanted.parse(who, action, tag), since),
        lambda entries: not entries,
    )


TOOLS = (
    ToolSpec(worklog_view, listed=False),
    ToolSpec(worklog_news, listed=False),
)
