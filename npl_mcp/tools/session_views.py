"""Sessions for people: what their page shows.

These tools are called by name and not listed.
"""

from __future__ import annotations

from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.stores import timeline
from npl_mcp.stores.timeline import Timeline
from npl_mcp.tools.spec import ToolSpec


def session_timeline(
    app: App,
    session_id: str,
    kinds: Annotated[list[str] | None, "events, artifacts, reviews or worklog"] = None,
    who: Annotated[str | None, "Only what they did"] = None,
    before: Annotated[str | None, "ISO 8601 time, or the place of an item: time~kind~id"] = None,
    limit: Annotated[int | None, "Of each kind"] = None,
) -> Timeline:
    """Show what happened in a session before a time.

    :raises SessionNotFoundError: there is no such session.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return timeline.timeline(app.stores.database, session_id, app.project, kinds or (), who, before, limit)


TOOLS = (ToolSpec(session_timeline, listed=False, heavy=True),)
