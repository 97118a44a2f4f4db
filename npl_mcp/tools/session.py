"""Sessions: group the rooms and artifacts of one task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.core.waiting import waits, when_new
from npl_mcp.stores import timeline
from npl_mcp.stores.base.paging import Page
from npl_mcp.stores.review.values import ReviewEntry
from npl_mcp.stores.session import SHOWN, Session, SessionArtifact, SessionRoom
from npl_mcp.stores.timeline import SessionNews, Timeline
from npl_mcp.stores.transcript import transcript
from npl_mcp.stores.worklog.format import WorklogSession
from npl_mcp.tools.spec import ToolSpec, Wait

Status = Annotated[str | None, "active, completed or archived"]


@dataclass(frozen=True, slots=True)
class SessionCreated:
    """A new session.

    :param session_id: its id.
    :param title: what it is about.
    :param created_at: UTC, ISO 8601.
    :param status: ``active``.
    :param web_url: its page, if there are web pages.
    """

    session_id: str
    title: str | None
    created_at: str
    status: str
    web_url: str | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session with what belongs to it.

    :param session: the session itself.
    :param chat_rooms: its newest rooms, at most 200.
    :param artifacts: its newest artifacts, at most 200.
    :param reviews: the newest reviews of these artifacts, at most 200.
    :param worklog: this project's worklog of the same id.
    :param web_url: its page, if there are web pages.
    """

    session: Session
    chat_rooms: Sequence[SessionRoom]
    artifacts: Sequence[SessionArtifact]
    reviews: Sequence[ReviewEntry]
    worklog: WorklogSession | None
    web_url: str | None


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session as one text.

    :param session_id: the session.
    :param markdown: its artifacts, reviews, rooms and worklog.
    """

    session_id: str
    markdown: str


def _web_url(app: App, session_id: str) -> str | None:
    return app.settings.web_url and f"{app.settings.web_url}/sessions/{session_id}"


def _linked(app: App, session: Session) -> Session:
    return replace(session, web_url=_web_url(app, session.id))


def session_create(
    app: App,
    title: str | None = None,
    session_id: Annotated[str | None, "own id"] = None,
) -> SessionCreated:
    """Create a session that groups rooms and artifacts.

    :param session_id: own id, e.g. ``review-2024``; by default one is made.
    :returns: a new session.
    :raises InvalidRequestError: the title or the id cannot be used.
    :raises AlreadyExistsError: the id is taken.
    :raises DatabaseError: the database cannot be used.
    """
    session = app.stores.session.create(title, session_id)
    return SessionCreated(
        session_id=session.id,
        title=session.title,
        created_at=session.created_at,
        status=session.status,
        web_url=_web_url(app, session.id),
    )


def session_get(app: App, session_id: str) -> SessionView:
    """Get a session with its rooms, artifacts, reviews and worklog.

    :returns: a session with what belongs to it.
    :raises SessionNotFoundError: there is no such session.
    :raises DatabaseError: the database cannot be used.
    """
    content = app.stores.session.get(session_id)
    name = content.session.id
    return SessionView(
        session=content.session,
        chat_rooms=content.chat_rooms,
        artifacts=content.artifacts,
        reviews=app.stores.review.list(session_id=name, limit=SHOWN).items,
        worklog=app.worklog.called(app.project, name),
        web_url=_web_url(app, name),
    )


def session_export(app: App, session_id: str) -> SessionText:
    """Get all that happened in a session as Markdown.

    :returns: a session as one text.
    :raises SessionNotFoundError: there is no such session.
    :raises StoreError: the text would be too long.
    :raises DatabaseError: the database cannot be used.
    """
    return SessionText(session_id, transcript(app.stores.database, session_id, app.project))


def session_list(
    app: App, status: Status = None, limit: int | None = None, offset: int | None = None
) -> Page[Session]:
    """List sessions, newest first.

    :returns: a page; each item is a session.
    :raises InvalidRequestError: an argument is out of range.
    :raises DatabaseError: the database cannot be used.
    """
    page = app.stores.session.list(status, limit, offset)
    return replace(page, items=tuple(_linked(app, session) for session in page.items))


def session_update(app: App, session_id: str, title: str | None = None, status: Status = None) -> Session:
    """Change a session's title or status.

    :returns: a session.
    :raises MissingRequestError: there is nothing to change.
    :raises ClosedError: it is archived, and its status stays so.
    :raises InvalidRequestError: the title or the status cannot be used.
    :raises SessionNotFoundError: there is no such session.
    :raises DatabaseError: the database cannot be used.
    """
    return _linked(app, app.stores.session.update(session_id, title, status))


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
    ToolSpec(session_create, title="Create Session", read_only=False, idempotent=False),
    ToolSpec(session_get, title="Get Session"),
    ToolSpec(session_export, title="Export Session", lane="heavy"),
    ToolSpec(session_list, title="List Sessions"),
    ToolSpec(session_update, title="Update Session", read_only=False, destructive=True),
    ToolSpec(session_timeline, listed=False),
    ToolSpec(session_news, listed=False),
)
