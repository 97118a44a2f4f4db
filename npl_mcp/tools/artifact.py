"""Artifacts: shared files with revisions.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

import base64
from typing import Annotated

from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.context import Context
from npl_mcp.config.domains import Of
from npl_mcp.stores.artifact import artifacts as store
from npl_mcp.stores.artifact import files
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.engine import Row
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import fill
from npl_mcp.tools.contract.parameters import Actor, Check, Line, Name, RowId, Text, Unlisted, Whole
from npl_mcp.tools.contract.spec import ToolSpec

FileName = Annotated[str, Check(files.check_filename)]
Purpose = Annotated[str, Check(checks.line, store.PURPOSE)]


def artifact_create(
    app: Context,
    name: Line,
    artifact_type: Annotated[Line, "kind of file"],
    filename: FileName,
    content: str | None = None,
    file_content_base64: str | None = None,
    created_by: Actor | None = None,
    purpose: Purpose | None = None,
    session_id: Annotated[Name | None, Of("session")] = None,
) -> store.Revision:
    """Store a file as a new artifact, from content or file_content_base64.

    :param name: name of the artifact, unique.
    :param content: the file as text.
    :param file_content_base64: the file in base64, of any type.
    :returns: a revision.
    :raises TooLargeError: the file has too many bytes.
    :raises AlreadyExistsError: the name is taken.
    :raises SessionNotFoundError: there is no such session.
    :raises ClosedError: the session is archived.
    """
    data = files.parse_content(content, file_content_base64, app.settings.max_artifact_bytes)
    about = {"filename": filename, "created_by": created_by, "purpose": purpose or store.FIRST_PURPOSE}
    row = app.database.writing(store.create, name, artifact_type, data, about, session_id)
    return fill(store.Revision, fill(store.RevisionName, row), **_copy_paths(app, row, data))


def artifact_add_revision(
    app: Context,
    artifact_id: RowId,
    filename: FileName,
    content: str | None = None,
    file_content_base64: str | None = None,
    created_by: Actor | None = None,
    purpose: Purpose | None = None,
    notes: Text | None = None,
    expect: Annotated[Whole | None, Unlisted] = None,
) -> store.Revision:
    """Add a new current revision to an artifact.

    :param content: the file as text.
    :param file_content_base64: the file in base64, of any type.
    :param notes: notes on the revision.
    :param expect: ``revision_num`` of the revision that was changed; the call fails if another one is
        current.
    :returns: a revision.
    :raises TooLargeError: the file has too many bytes.
    :raises ConflictError: ``expect`` is not the current revision.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises ClosedError: the artifact is archived.
    """
    data = files.parse_content(content, file_content_base64, app.settings.max_artifact_bytes)
    about = {"filename": filename, "created_by": created_by, "purpose": purpose or "", "notes": notes}
    row = app.database.writing(store.add_revision, artifact_id, data, about, expect)
    return fill(store.Revision, fill(store.RevisionName, row), **_copy_paths(app, row, data))


def artifact_get(
    app: Context,
    artifact_id: RowId,
    revision: Annotated[Whole | None, "Number"] = None,
    text: Annotated[bool, "false: base64"] = True,
) -> store.Revision:
    """Get an artifact's file and metadata.

    :param revision: number of the revision; by default the newest.
    :param text: whether to return text as text; files that are not UTF-8 or have a NUL always come in base64.
    :returns: a revision.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    """
    row, content = app.database.reading(store.content, artifact_id, revision)
    plain = files.as_text(content) if text else None
    encoded = base64.b64encode(content).decode("ascii") if plain is None else None
    row["file_path"] = _copy_paths(app, row, content)["file_path"]
    metadata = files.description(row)
    return fill(store.Revision, row, metadata=metadata, content=plain, file_content=encoded)


def _copy_paths(app: Context, row: Row, content: bytes) -> dict[str, str | None]:
    """Write the files of a revision for a caller that may open them, and return their paths."""
    folder = app.stores.artifact_folder if CALLER.get().knows_paths(app.settings) else None
    return files.write_copies(folder, row, content)


def artifact_list(
    app: Context, limit: int | None = None, offset: int | None = None, archived: bool = False
) -> Page[store.ArtifactEntry]:
    """List artifacts, newest first.

    :param archived: list archived artifacts instead of the others.
    :returns: a page; each item is an artifact in a list.
    :raises InvalidRequestError: the page is out of range.
    """
    return app.database.reading(store.load_page, Slice.parse(limit, offset), archived)


def artifact_history(
    app: Context, artifact_id: RowId, limit: int | None = None, offset: int | None = None
) -> Page[store.RevisionEntry]:
    """List an artifact's revisions, newest first.

    :returns: a page; each item is a revision in a history.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    return app.database.reading(store.history, artifact_id, Slice.parse(limit, offset))


def artifact_archive(app: Context, artifact_id: RowId, archived: bool = True) -> store.ArchivedArtifact:
    """Archive or restore an artifact.

    :param archived: true archives the artifact, false restores it.
    :returns: an archived or restored artifact.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    return app.database.writing(store.archive, artifact_id, archived)


TOOLS = (
    ToolSpec(artifact_create, title="Create Artifact", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_add_revision, title="Add Revision", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_get, title="Get Artifact", lane="heavy"),
    ToolSpec(artifact_list, title="List Artifacts"),
    ToolSpec(artifact_history, title="List Revisions"),
    ToolSpec(artifact_archive, title="Archive Artifact", read_only=False),
)
