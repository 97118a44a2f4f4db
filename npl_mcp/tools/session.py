"""Sessions: groups of the rooms and artifacts of one task.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from npl_index.errors import MissingRequestError
from npl_mcp.app.app import App
from npl_mcp.app.waiting import waits, when_new
from npl_mcp.stores import session, timeline
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import filled
from npl_mcp.stores.review.results import ReviewEntry
from npl_mcp.stores.review.reviews import listed as reviews_of
from npl_mcp.stores.session import Session, SessionArtifact, SessionRoom
from npl_mcp.stores.transcript import transcript
from npl_mcp.stores.worklog.rows import WorklogSession
from npl_mcp.stores.worklog.worklogs import called
from npl_mcp.tools.contract.naming import NamedDocument, documents_named
from npl_mcp.tools.contract.parameters import Check, Name, ShortName, Wait, Whole
from npl_mcp.tools.contract.spec import ToolSpec, not_listed

Status = Annotated[str | None, "active, completed or archived", Check(checks.choice, session.STATUSES)]


@dataclass(frozen=True, slots=True)
class SessionCreated:
    """A new session.

    :param session_id: id of the session.
    :param title: title of the session.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param status: ``active``.
    :param web_url: address of its page, if the server has pages.
    """

    session_id: str
    title: str | None
    created_at: str
    status: str
    web_url: str | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session with its rooms, artifacts, reviews and worklog.

    :param session: the session itself.
    :param chat_rooms: its newest rooms, at most 200.
    :param artifacts: its newest artifacts, at most 200.
    :param reviews: newest reviews of these artifacts, at most 200.
    :param worklog: worklog of this project with the same id.
    :param web_url: address of its page, if the server has pages.
    :param documents: the documents that its title and the task of its worklog name, at most five.
    """

    session: Session
    chat_rooms: Sequence[SessionRoom]
    artifacts: Sequence[SessionArtifact]
    reviews: Sequence[ReviewEntry]
    worklog: WorklogSession | None
    web_url: str | None
    documents: tuple[NamedDocument, ...] | None


@dataclass(frozen=True, slots=True)
class SessionText:
    """A session as one text.

    :param session_id: id of the session.
    :param markdown: its artifacts, reviews, rooms and worklog as Markdown.
    """

    session_id: str
    markdown: str


def _web_url(app: App, session_id: str) -> str | None:
    return app.settings.web_url and f"{app.settings.web_url}/sessions/{session_id}"


def session_create(
    app: App,
    title: Name | None = None,
    session_id: Annotated[ShortName | None, "own id"] = None,
) -> SessionCreated:
    """Create a session that groups rooms and artifacts.

    :param session_id: own id, e.g. ``review-2024``; by default the server creates one.
    :returns: a new session.
    :raises AlreadyExistsError: the id is taken.
    """
    made = app.database.writing(session.create, session_id, title)
    return filled(SessionCreated, made, session_id=made.id, web_url=_web_url(app, made.id))


def session_get(app: App, session_id: Name) -> SessionView:
    """Get a session with its rooms, artifacts, reviews and worklog.

    :returns: a session with its rooms, artifacts, reviews and worklog.
    :raises SessionNotFoundError: there is no such session.
    """
    with app.database.read() as tx:
        found, rooms, artifacts = session.content(tx, session_id)
        reviews = reviews_of(tx, Slice(session.SHOWN, 0), session_id=found.id).items
        log = called(tx, app.project, found.id)
    documents = documents_named(app, f"{found.title}\n{log and log.task}")
    return SessionView(found, rooms, artifacts, reviews, log, _web_url(app, found.id), documents)


def session_export(app: App, session_id: Name) -> SessionText:
    """Get all that happened in a session as Markdown.

    :returns: a session as one text.
    :raises SessionNotFoundError: there is no such session.
    :raises StoreError: the text would be too long.
    """
    return SessionText(session_id, app.database.reading(transcript, session_id, app.project))


def session_list(
    app: App, status: Status = None, limit: int | None = None, offset: int | None = None
) -> Page[Session]:
    """List sessions, newest first.

    :returns: a page; each item is a session.
    """
    page = app.database.reading(session.listed, Slice.parse(limit, offset, session.PAGE), status)
    return replace(page, items=[replace(item, web_url=_web_url(app, item.id)) for item in page.items])


def session_update(app: App, session_id: Name, title: Name | None = None, status: Status = None) -> Session:
    """Change a session's title or status.

    :returns: a session.
    :raises MissingRequestError: the call changes nothing.
    :raises ClosedError: the session is archived, and the call does not change that.
    :raises SessionNotFoundError: there is no such session.
    """
    if title is None and status is None:
        raise MissingRequestError("the call changes nothing", parameter="title", hint="give title or status")
    changed = app.database.writing(session.update, session_id, title, status)
    return replace(changed, web_url=_web_url(app, changed.id))


def session_timeline(
    app: App,
    session_id: Name,
    kinds: Annotated[
        list[str] | None, "events, artifacts, reviews or worklog", Check(checks.choices, timeline.KINDS)
    ] = None,
    who: Annotated[Name | None, "Only items of this persona"] = None,
    before: Annotated[str | None, "ISO 8601 time, or the place of an item: time~kind~id"] = None,
    limit: Annotated[int | None, "Maximum number of items of each kind"] = None,
) -> timeline.Timeline:
    """Show the items of a session before a time.

    :returns: the items of a session before a place.
    :raises SessionNotFoundError: there is no such session.
    """
    place, part, wanted = timeline.Place.parse(before), Slice.parse(limit, None), kinds or timeline.KINDS
    return app.database.reading(timeline.timeline, session_id, app.project, wanted, who, place, part)


@waits
async def session_news(
    app: App,
    session_id: Name,
    events: Annotated[Whole | None, "Cursor of the events; without it they are left out"] = None,
    artifacts: Annotated[Whole | None, "Cursor of the artifacts; without it they are left out"] = None,
    reviews: Annotated[Whole | None, "Cursor of the reviews; without it they are left out"] = None,
    worklog: Annotated[Whole | None, "Cursor of the worklog; without it its entries are left out"] = None,
    who: Annotated[Name | None, "Only items of this persona"] = None,
    wait: Wait = 0,
) -> timeline.SessionNews:
    """Show the items of a session after cursors.

    :returns: the items of a session after cursors.
    :raises SessionNotFoundError: there is no such session.
    """
    given = {"events": events, "artifacts": artifacts, "reviews": reviews, "worklog": worklog}
    since = {kind: cursor for kind, cursor in given.items() if cursor is not None}
    return await when_new(
        app,
        partial(timeline.topic, session_id=session_id),
        wait,
        lambda tx: timeline.news(tx, session_id, app.project, since, who),
        lambda found: found == timeline.SessionNews(),
    )


TOOLS = (
    ToolSpec(session_create, title="Create Session", read_only=False, idempotent=False),
    ToolSpec(session_get, title="Get Session"),
    ToolSpec(session_export, title="Export Session", lane="heavy"),
    ToolSpec(session_list, title="List Sessions"),
    ToolSpec(session_update, title="Update Session", read_only=False, destructive=True),
    *not_listed(session_timeline, session_news),
)
