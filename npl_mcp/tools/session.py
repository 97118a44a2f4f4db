"""Sessions: groups of the rooms and artifacts of one task.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from npl_index.errors import MissingRequestError
from npl_mcp.app.context import Context
from npl_mcp.config.domains import Of
from npl_mcp.stores import session
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import conditions, fill
from npl_mcp.stores.chat.rooms import Room
from npl_mcp.stores.chat.rooms import of_session as rooms_of
from npl_mcp.stores.worklog.worklogs import WorklogSession, newest_of
from npl_mcp.tools.artifact import ArtifactEntry
from npl_mcp.tools.artifact import of_session as artifacts_of
from npl_mcp.tools.contract.parameters import Check, Line, Name, ShortName
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.review import Review
from npl_mcp.tools.review import find as reviews_of

SHOWN = 200
"""Maximum rooms, artifacts and reviews in one answer; the session's counts include all."""

STATUSES = ("active", "completed", "archived")
PAGE = 20

Status = Annotated[str | None, "active, completed or archived", Check(checks.choice, STATUSES)]


@dataclass(frozen=True, slots=True)
class Session:
    """A session.

    :param id: id of the session.
    :param title: title of the session.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param updated_at: time of the last change of the session, its rooms or artifacts, UTC, ISO 8601.
    :param status: ``active``, ``completed`` or ``archived``.
    :param room_count: number of its rooms.
    :param artifact_count: number of its artifacts.
    :param web_url: address of its page, if the server has pages.
    """

    id: str
    title: str | None
    created_at: str
    updated_at: str
    status: str
    room_count: Annotated[int, Of("chat")]
    artifact_count: Annotated[int, Of("artifact")]
    web_url: str | None = None


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
    """

    session: Session
    chat_rooms: Annotated[Sequence[Room], Of("chat")]
    artifacts: Annotated[Sequence[ArtifactEntry], Of("artifact")]
    reviews: Annotated[Sequence[Review], Of("review")]
    worklog: Annotated[WorklogSession | None, Of("worklog")]
    web_url: str | None


def _web_url(app: Context, session_id: str) -> str | None:
    return app.settings.web_url and f"{app.settings.web_url}/sessions/{session_id}"


def session_create(
    app: Context, title: Line | None = None, session_id: Annotated[ShortName | None, "own id"] = None
) -> SessionCreated:
    """Create a session that groups rooms and artifacts.

    :param session_id: own id, e.g. ``review-2024``; by default the server creates one.
    :returns: a new session.
    :raises AlreadyExistsError: the id is taken.
    """
    with app.database.write() as tx:
        row = session.insert(tx, session_id, title)
    return fill(SessionCreated, row, session_id=row["id"], web_url=_web_url(app, row["id"]))


def session_get(app: Context, session_id: Name) -> SessionView:
    """Get a session with its rooms, artifacts, reviews and worklog.

    :returns: a session with its rooms, artifacts, reviews and worklog.
    :raises SessionNotFoundError: there is no such session.
    """
    with app.database.read() as tx:
        details = fill(Session, session.find(tx, session_id))
        rooms, artifacts = rooms_of(tx, details.id, SHOWN), artifacts_of(tx, details.id, SHOWN)
        reviews = reviews_of(tx, Slice(SHOWN, 0), session=details.id).items
        log = newest_of(tx, app.project, details.id)
    return SessionView(details, rooms, artifacts, reviews, log, _web_url(app, details.id))


def session_list(
    app: Context, status: Status = None, limit: int | None = None, offset: int | None = None
) -> Page[Session]:
    """List sessions, newest first.

    :returns: a page; each item is a session.
    :raises InvalidRequestError: there is no such status, or the page is out of range.
    """
    part = Slice.parse(limit, offset, PAGE)
    where, values = conditions(status=("status = :status", status))
    sql = f"SELECT {session.COLUMNS} FROM session WHERE {where} ORDER BY number DESC"
    with app.database.read() as tx:
        total = tx.value(f"SELECT count(*) FROM session WHERE {where}", **values)
        page = tx.page(Session, f"{sql} LIMIT :limit OFFSET :offset", total, part, **values)
    return replace(page, items=[replace(item, web_url=_web_url(app, item.id)) for item in page.items])


def session_update(
    app: Context, session_id: Name, title: Line | None = None, status: Status = None
) -> Session:
    """Change a session's title or status.

    :returns: a session.
    :raises MissingRequestError: the call changes nothing.
    :raises ClosedError: the session is archived, and the call does not change that.
    :raises SessionNotFoundError: there is no such session.
    """
    if title is None and status is None:
        raise MissingRequestError("the call changes nothing", parameter="title", hint="give title or status")
    sql = f"""
        UPDATE session SET title = coalesce(:title, title), status = coalesce(:status, status),
        updated_at = :now WHERE number = :number RETURNING {session.COLUMNS}"""
    with app.database.write() as tx:
        before = session.find(tx, session_id)
        if before["status"] == "archived" and title is not None and status in (None, "archived"):
            raise session.archived(before["id"])
        (row,) = tx.all(sql, title=title, status=status, now=tx.now, number=before["number"])
    return fill(Session, row, web_url=_web_url(app, row["id"]))


TOOLS = (
    ToolSpec(session_create, title="Create Session", read_only=False, idempotent=False),
    ToolSpec(session_get, title="Get Session"),
    ToolSpec(session_list, title="List Sessions"),
    ToolSpec(session_update, title="Update Session", read_only=False, destructive=True),
)
