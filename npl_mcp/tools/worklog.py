"""The worklog: reports of agents on one project to each other. The server stores how far each agent has read.

The command line and the pages call further tools by name, which are not listed.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from npl_index.errors import OutsideRootError
from npl_index.library.references import check_name
from npl_index.library.roots import real_path
from npl_mcp.app.waiting import waits, when_new
from npl_mcp.app.worklog_context import WorklogUser
from npl_mcp.documents.folders import is_hidden
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import NotAllowedError
from npl_mcp.stores.base.paging import Slice
from npl_mcp.stores.worklog import transfer as files
from npl_mcp.stores.worklog import viewing
from npl_mcp.stores.worklog import worklogs as store
from npl_mcp.stores.worklog.rows import Entry, WorklogSession
from npl_mcp.tools.contract.parameters import Check, Name, Text, Wait, Whole
from npl_mcp.tools.contract.spec import ToolSpec, not_listed

NewId = Annotated[str, Check(store.new_id)]


@dataclass(frozen=True, slots=True)
class CurrentReply:
    """The current worklog session.

    :param session_id: id of the session; absent without one.
    """

    session_id: str | None


@dataclass(frozen=True, slots=True)
class SessionsReply:
    """The worklog sessions of a project.

    :param sessions: sessions, newest first.
    """

    sessions: tuple[WorklogSession, ...]


@dataclass(frozen=True, slots=True)
class ExportReply:
    """The result of an export.

    :param folder: folder of the files, below the project.
    """

    folder: str


def worklog_init(app: WorklogUser, session_id: NewId | None = None, task: Text | None = None) -> store.Opened:
    """Start or resume a worklog session; it becomes your current one.

    :param session_id: id of the session; by default today's date (UTC).
    :param task: purpose of the session.
    :returns: a new or resumed session.
    :raises AlreadyExistsError: the id differs from an existing one only in case.
    :raises ClosedError: the session is closed.
    """
    return app.database.writing(store.init, app.project, session_id, task, app.agent)


def worklog_log(
    app: WorklogUser,
    agent_id: Name,
    action: Annotated[Name, "what was done, one verb"],
    summary: Text,
    data: Annotated[Any, {"type": "object"}, Check(checks.json_text, store.DATA)] = None,
    tags: Annotated[list[str] | None, Check(store.tags_text)] = None,
    refs: Annotated[dict[str, Any] | None, "lists by kind of reference", Check(checks.json_text)] = None,
    session_id: Name | None = None,
    agent_type: Name | None = None,
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
    values = {
        "agent_id": agent_id,
        "agent_type": agent_type or "unknown",
        "action": action,
        "summary": summary,
        "data": data,
        "tags": tags,
        "refs": refs,
    }
    return app.database.writing(store.log, app.project, session_id, values, app.agent)


@waits
async def worklog_read(
    app: WorklogUser,
    agent_id: Name,
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
    return await when_new(
        app,
        lambda tx: store.topic(tx, app.project, session_id, app.agent, agent_id),
        wait,
        lambda tx: store.read(tx, app.project, session_id, agent_id, part, since, app.agent, peek=peek),
        lambda read: not read.items,
        write=not peek,
    )


def worklog_status(app: WorklogUser, session_id: Name | None = None) -> WorklogSession:
    """Show a worklog session's state, agents and counts.

    :param session_id: id of the session; by default the current one.
    :returns: a worklog session.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return app.database.reading(store.status, app.project, session_id, app.agent)


def worklog_close(app: WorklogUser, archive: bool = False, session_id: Name | None = None) -> store.Closed:
    """Close a worklog session for good.

    :param archive: also move the session to the archive.
    :param session_id: id of the session; by default the current one.
    :returns: a closed session.
    :raises SessionNotFoundError: there is no such session, or no current one.
    """
    return app.database.writing(store.close, app.project, session_id, app.agent, archive=archive)


def worklog_open(
    app: WorklogUser,
    session_id: Annotated[NewId | None, "Default: today"] = None,
    task: Text | None = None,
) -> store.Opened:
    """Start a worklog session; an existing one stays unchanged.

    :param session_id: id of the session; by default today's date (UTC).
    :param task: purpose of the session.
    :returns: a new or existing session.
    :raises AlreadyExistsError: the id differs from an existing one only in case.
    """
    return app.database.writing(store.init, app.project, session_id, task, app.agent, switch=False)


def worklog_current(app: WorklogUser) -> CurrentReply:
    """Return the current worklog session.

    :returns: the current worklog session.
    """
    return CurrentReply(app.database.reading(store.current, app.project, app.agent))


def worklog_sessions(
    app: WorklogUser, archived: Annotated[bool, "Add archived sessions"] = False
) -> SessionsReply:
    """List worklog sessions.

    :returns: the worklog sessions of a project.
    """
    sessions = app.database.reading(store.sessions, app.project, app.agent, archived=archived)
    return SessionsReply(sessions)


def worklog_export(
    app: WorklogUser,
    session_id: Annotated[Name | None, "Default: current"] = None,
    folder: Annotated[str | None, "Below the working directory; default: the session's own"] = None,
) -> ExportReply:
    """Write a worklog session to files.

    :param session_id: id of the session; by default the current one.
    :param folder: folder below the working directory; by default ``.npl/sessions`` and the id.
    :returns: the result of an export.
    :raises SessionNotFoundError: there is no such session, or no current one.
    :raises OutsideRootError: the folder is not below the working directory.
    :raises NotAllowedError: the folder or one above it is hidden, except ``.npl``.
    :raises AlreadyExistsError: the folder has files with these names that no export has written.
    :raises StorageError: the folder cannot be written.
    """
    target = None if folder is None else _export_folder(app.project, folder, app.seen_roots)
    written = app.database.reading(files.export, app.project, session_id, target, app.agent)
    return ExportReply(os.path.relpath(written, app.project))


def _export_folder(project: str, folder: str, roots: tuple[str, ...] | None) -> Path:
    """Return the real path of a folder below the working directory.

    :param roots: real paths of folders; the folder must lie in one of them; ``None`` allows all.
    :raises InvalidRequestError: no folder can have this name.
    :raises OutsideRootError: the folder lies elsewhere.
    :raises NotAllowedError: the folder is hidden; programs keep their settings in hidden folders.
    """
    check_name(folder, "folder")
    # Not Path.resolve, which raises for circular links.
    target = real_path(os.path.join(project, folder))  # noqa: PTH118 - real_path takes a text
    seen = target is not None and (roots is None or any(map(Path(target).is_relative_to, roots)))
    if target is None or not seen or not Path(target).is_relative_to(project):
        hint = "choose one below it; 'npl-mcp worklog export' writes anywhere"
        raise OutsideRootError(f"folder {folder[:200]!r} is not below the working directory", hint=hint)
    if is_hidden(part for part in Path(target).relative_to(project).parts if part != ".npl"):
        raise NotAllowedError(f"folder {folder[:200]!r} is hidden", hint="choose a folder that is not hidden")
    return Path(target)


def worklog_import(app: WorklogUser) -> files.Imported:
    """Import the worklogs of the project's folder that the database does not have.

    :returns: the result of an import.
    """
    return files.import_folder(app.database, app.project)


def worklog_view(
    app: WorklogUser,
    session_id: Name,
    who: Name | None = None,
    action: Name | None = None,
    tag: Name | None = None,
    before: Whole | None = None,
    limit: int | None = None,
) -> viewing.WorklogView:
    """Show the latest entries of a worklog, and its actions and tags.

    :param before: only entries before this number.
    :returns: a part of a worklog.
    :raises SessionNotFoundError: there is no such session.
    """
    part, wanted = Slice.parse(limit, None, store.PAGE), viewing.EntryFilter(who, action, tag)
    return app.database.reading(viewing.view, app.project, session_id, wanted, before, part)


@waits
async def worklog_news(
    app: WorklogUser,
    session_id: Name,
    since: Whole,
    who: Name | None = None,
    action: Name | None = None,
    tag: Name | None = None,
    wait: Wait = 0,
) -> tuple[Entry, ...]:
    """Show the entries of a worklog after a number.

    :param since: only entries after this number.
    :returns: entries of a worklog.
    :raises SessionNotFoundError: there is no such session.
    """
    return await when_new(
        app,
        partial(store.topic, project=app.project, session_id=session_id),
        wait,
        lambda tx: viewing.since(tx, app.project, session_id, viewing.EntryFilter(who, action, tag), since),
        lambda entries: not entries,
    )


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
    *not_listed(worklog_open, worklog_export, worklog_import, read_only=False),
    *not_listed(worklog_current, worklog_sessions, worklog_view, worklog_news),
)
