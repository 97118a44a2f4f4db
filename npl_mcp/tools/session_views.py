"""Sessions for people: what their page shows.

These tools are called by name and not listed.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.core.waiting import waits, when_new
from npl_mcp.stores import timeline
from npl_mcp.stores.timeline import SessionNews, Timeline
from npl_mcp.tools.spec import ToolSpec, Wait


def session_timeline(
    app: App,
    session_id: str,
    kinds: Annotated[list[str] | None, "events, artifacts, reviews or worklog"] = None,
    who: Annotated[str | None, "Only what they did"] = None,
    before: Annotated[str | None, "ISO 8601 time, or the place of an item: time~kind~id"] = None,
    limit: Annotated[int | None, "Of each kind"] = None,
) -> Timeline:
    """Show what happened in a session before a time.

    :returns: what happened in a session before a place.
    :raises SessionNotFoundError: there is no such session.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return timeline.timeline(app.stores.database, session_id, app.project, kinds or (), who, before, limit)


@waits
async def session_news(
    app: App,
    session_id: str,
    events: Annotated[int | None, "Cursor of the timeline; without it this kind is left out"] = None,
    artifacts: Annotated[int | None, "The same"] = None,
    reviews: Annotated[int | None, "The same"] = None,
    worklog: Annotated[int | None, "The same"] = None,
    who: Annotated[str | None, "Only what they did"] = None,
    wait: Wait = 0,
) -> SessionNews:
    """Show what happened in a session after cursors.

    :returns: what happened in a session after cursors.
    :raises SessionNotFoundError: there is no such session.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    database = app.stores.database
    given = {"events": events, "artifacts": artifacts, "reviews": reviews, "worklog": worklog}
    since = {kind: cursor for kind, cursor in given.items() if cursor is not None}
    return await when_new(
        app.news,
        partial(timeline.topic, database, session_id),
        wait,
        partial(timeline.news, database, session_id, app.project, since, who),
        lambda found: found == SessionNews(),
    )


TOOLS = (
    ToolSpec(session_timeline, listed=False),
    ToolSpec(session_news, listed=False),
)
