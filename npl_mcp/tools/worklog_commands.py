"""Worklog tools for the command line, beyond those agents are shown.

These tools are called by name and not listed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from npl_index.errors import OutsideRootError
from npl_index.library.references import check_name
from npl_index.library.roots import real_path
from npl_mcp.core.worklog import WorklogUser
from npl_mcp.editing.folders import is_hidden
from npl_mcp.stores.base.errors import NotAllowedError
from npl_mcp.stores.worklog.files import Imported
from npl_mcp.stores.worklog.format import WorklogSession
from npl_mcp.stores.worklog.store import Opened
from npl_mcp.tools.spec import ToolSpec


def worklog_open(
    app: WorklogUser, session_id: Annotated[str | None, "Default: today"] = None, task: str | None = None
) -> Opened:
    """Start a worklog session; an existing one is left as it is.

    :returns: a session that was asked for.
    :raises InvalidRequestError: the id cannot be the name of a folder, or the task is too long.
    :raises AlreadyExistsError: the id is another's but for case.
    """
    return app.worklog.init(app.project, session_id, task, switch=False)


@dataclass(frozen=True, slots=True)
class CurrentReply:
    """The current session.

    :param session_id: its id; left out if there is none.
    """

    session_id: str | None


def worklog_current(app: WorklogUser) -> CurrentReply:
    """Return the current worklog session.

    :returns: the current session.
    """
    return CurrentReply(app.worklog.current(app.project))


@dataclass(frozen=True, slots=True)
class SessionsReply:
    """The worklog sessions of a project.

    :param sessions: the newest first.
    """

    sessions: tuple[WorklogSession, ...]


def worklog_sessions(
    app: WorklogUser, archived: Annotated[bool, "Add the archived ones"] = False
) -> SessionsReply:
    """List worklog sessions.

    :returns: the worklog sessions of a project.
    """
    return SessionsReply(app.worklog.sessions(app.project, archived=archived))


@dataclass(frozen=True, slots=True)
class ExportReply:
    """Files that were written.

    :param folder: where they are, below the project's folder.
    """

    folder: str


def worklog_export(
    app: WorklogUser,
    session_id: Annotated[str | None, "Default: current"] = None,
    folder: Annotated[str | None, "Below the working directory; default: the session's own"] = None,
) -> ExportReply:
    """Write a worklog session as files.

    :returns: files that were written.
    :raises SessionNotFoundError: there is no such session, or no current one.
    :raises InvalidRequestError: no folder can have this name.
    :raises OutsideRootError: the folder is not below the working directory.
    :raises NotAllowedError: the folder is hidden, or lies in a hidden one other than ``.npl``.
    :raises AlreadyExistsError: the folder holds files of these names that no export has written.
    :raises StorageError: the folder cannot be written.
    """
    target = None if folder is None else _below(app.project, folder, app.seen_roots)
    written = app.worklog.export(app.project, session_id, target)
    return ExportReply(os.path.relpath(written, app.project))


def _below(project: str, folder: str, roots: tuple[str, ...] | None) -> Path:
    """Return the real path of a folder below the working directory.

    :param roots: real paths of the folders of which it must lie in one as well.
    :raises InvalidRequestError: no folder can have this name.
    :raises NotAllowedError: programs keep what they obey in this folder.
    """
    check_name(folder, "folder")
    # Not Path.resolve, which fails where links go in circles.
    target = real_path(os.path.join(project, folder))  # noqa: PTH118 - real_path takes a text
    seen = target is not None and (roots is None or any(map(Path(target).is_relative_to, roots)))
    if target is None or not seen or not Path(target).is_relative_to(project):
        hint = "choose one below it; 'npl-mcp worklog export' writes anywhere"
        raise OutsideRootError(f"folder {folder[:200]!r} is not below the working directory", hint=hint)
    if is_hidden(part for part in Path(target).relative_to(project).parts if part != ".npl"):
        raise NotAllowedError(f"folder {folder[:200]!r} is hidden; choose one that is not")
    return Path(target)


def worklog_import(app: WorklogUser) -> Imported:
    """Import worklogs of the project's folder that are not known yet.

    :returns: what was imported from a project's ``.npl`` folder.
    """
    return app.worklog.import_folder(app.project)


TOOLS = (
    ToolSpec(worklog_open, read_only=False, listed=False),
    ToolSpec(worklog_current, listed=False),
    ToolSpec(worklog_sessions, listed=False),
    ToolSpec(worklog_export, read_only=False, listed=False),
    ToolSpec(worklog_import, read_only=False, listed=False),
)
