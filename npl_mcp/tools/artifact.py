"""Artifacts: shared files with revisions.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated

from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.context import Context
from npl_mcp.config.domains import Of
from npl_mcp.stores import session
from npl_mcp.stores.artifact import artifacts as store
from npl_mcp.stores.artifact import files
from npl_mcp.stores.artifact.artifacts import RevisionName
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import columns, fill
from npl_mcp.tools.contract.parameters import Actor, Check, Line, Name, RowId, Text, Unlisted, Whole
from npl_mcp.tools.contract.spec import ToolSpec

FIRST_PURPOSE = "Initial version"

PURPOSE = 500
"""Maximum characters of a purpose."""

FileName = Annotated[str, Check(files.check_filename)]
Purpose = Annotated[str, Check(checks.line, PURPOSE)]


@dataclass(frozen=True, slots=True)
class Revision(RevisionName):
    """A revision.

    The answer to a call that stores it has only names and paths.

    :param file_path: absolute path of its file; absent on a shared database and for callers with a token.
    :param meta_path: absolute path of its description, in the answer to a call that stores it; absent as
        ``file_path`` is.
    :param created_by: author of the revision.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param purpose: purpose of the revision.
    :param filename: name of its file, as given.
    :param metadata: description: front matter and notes.
    :param content: text of its file.
    :param file_content: file in base64, if it is not text or base64 was requested.
    """

    file_path: str | None = None
    meta_path: str | None = None
    created_by: str | None = None
    created_at: str | None = None
    purpose: str | None = None
    filename: str | None = None
    metadata: str | None = None
    content: str | None = None
    file_content: str | None = None


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """An artifact in a list.

    :param id: id of the artifact.
    :param name: name of the artifact.
    :param type: type of the artifact.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param current_revision_id: row id of the highest revision.
    :param current_revision: number of the highest revision.
    :param revision_count: number of its revisions.
    """

    id: int
    name: str
    type: str
    created_at: str
    current_revision_id: int
    current_revision: int
    revision_count: int


@dataclass(frozen=True, slots=True)
class ArchivedArtifact:
    """An archived or restored artifact.

    :param artifact_id: id of the artifact.
    :param artifact_name: name of the artifact.
    :param archived_at: time since which it accepts no revisions; absent for a restored artifact.
    """

    artifact_id: int
    artifact_name: str
    archived_at: str | None


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision in a history.

    :param id: row id of the revision, unique over all artifacts.
    :param revision_num: number of the revision, from 0 on.
    :param created_by: author of the revision.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param purpose: purpose of the revision.
    :param notes: notes on the revision.
    :param filename: name of its file, as given.
    :param size: bytes of its content.
    """

    id: int
    revision_num: int
    created_by: str | None
    created_at: str
    purpose: str
    notes: str | None
    filename: str
    size: int


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
) -> Revision:
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
    about = {"filename": filename, "created_by": created_by, "purpose": purpose or FIRST_PURPOSE}
    with app.database.write() as tx:
        number = None if session_id is None else session.find(tx, session_id)["number"]
        named = {"name": name, "type": artifact_type, "created_at": tx.now}
        artifact: Row | None = tx.insert("artifact", "id, name, type, revision_count", "name", **named)
        if artifact is None:
            taken = tx.value("SELECT id FROM artifact WHERE name = :name", name=name)
            hint = f"add a revision to artifact {taken}, or choose another name"
            raise errors.AlreadyExistsError(f"there is already an artifact {name!r}", hint=hint)
        row = store.insert(tx, artifact, data, about)
        if number is not None:
            session.link_artifact(tx, number, row["artifact_id"])
    return fill(Revision, fill(RevisionName, row), **_copy_paths(app, row, data))


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
) -> Revision:
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
    with app.database.write() as tx:
        artifact = store.require_open(tx, artifact_id)
        current = artifact["revision_count"] - 1
        if expect not in (None, current):
            problem = f"artifact {artifact_id} is at revision {current}, not {expect}"
            hint = f"read revision {current}, then send expect={current}"
            raise errors.ConflictError(problem, hint=hint)
        row = store.insert(tx, artifact, data, about)
    return fill(Revision, fill(RevisionName, row), **_copy_paths(app, row, data))


def artifact_get(
    app: Context,
    artifact_id: RowId,
    revision: Annotated[Whole | None, "Number"] = None,
    text: Annotated[bool, "false: base64"] = True,
) -> Revision:
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
    return fill(Revision, row, metadata=metadata, content=plain, file_content=encoded)


def _copy_paths(app: Context, row: Row, content: bytes) -> dict[str, str | None]:
    """Write the files of a revision for a caller that may open them, and return their paths."""
    folder = app.stores.artifact_folder if CALLER.get().knows_paths(app.settings) else None
    return files.write_copies(folder, row, content)


def artifact_list(
    app: Context, limit: int | None = None, offset: int | None = None, archived: bool = False
) -> Page[ArtifactEntry]:
    """List artifacts, newest first.

    :param archived: list archived artifacts instead of the others.
    :returns: a page; each item is an artifact in a list.
    :raises InvalidRequestError: the page is out of range.
    """
    part, where = Slice.parse(limit, offset), f"archived_at IS {'NOT ' if archived else ''}NULL"
    with app.database.read() as tx:
        total = tx.value(f"SELECT count(*) FROM artifact WHERE {where}")
        return tx.page(ArtifactEntry, _LIST.format(where=where), total, part)


def of_session(tx: Transaction, session_id: str, most: int) -> tuple[ArtifactEntry, ...]:
    """Return the newest artifacts that are linked to a session."""
    rows = tx.all(_LIST.format(where=f"id IN {session.ARTIFACTS}"), session=session_id, limit=most, offset=0)
    return tuple(fill(ArtifactEntry, row) for row in rows)


def artifact_history(
    app: Context, artifact_id: RowId, limit: int | None = None, offset: int | None = None
) -> Page[RevisionEntry]:
    """List an artifact's revisions, newest first.

    :returns: a page; each item is a revision in a history.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    part = Slice.parse(limit, offset)
    with app.database.read() as tx:
        total = store.require(tx, artifact_id)["revision_count"]
        return tx.page(RevisionEntry, _HISTORY, total, part, artifact=artifact_id)


def artifact_archive(app: Context, artifact_id: RowId, archived: bool = True) -> ArchivedArtifact:
    """Archive or restore an artifact.

    :param archived: true archives the artifact, false restores it.
    :returns: an archived or restored artifact.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    with app.database.write() as tx:
        row = store.require(tx, artifact_id)
        moment = (row["archived_at"] or tx.now) if archived else None
        tx.run("UPDATE artifact SET archived_at = :moment WHERE id = :id", moment=moment, id=artifact_id)
        return ArchivedArtifact(artifact_id, row["name"], moment)


# The page is selected before its revisions are looked up.
_LIST = """
SELECT page.id, page.name, page.type, page.created_at, page.revision_count,
    revision.id AS current_revision_id, revision.revision_num AS current_revision
FROM (
    SELECT * FROM artifact WHERE {where} ORDER BY id DESC LIMIT :limit OFFSET :offset
) AS page
JOIN revision ON revision.artifact_id = page.id AND revision.revision_num = page.revision_count - 1
ORDER BY page.id DESC
"""

_HISTORY = f"""
SELECT {columns(RevisionEntry)}
FROM revision WHERE artifact_id = :artifact ORDER BY revision_num DESC LIMIT :limit OFFSET :offset
"""

TOOLS = (
    ToolSpec(artifact_create, title="Create Artifact", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_add_revision, title="Add Revision", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_get, title="Get Artifact", lane="heavy"),
    ToolSpec(artifact_list, title="List Artifacts"),
    ToolSpec(artifact_history, title="List Revisions"),
    ToolSpec(artifact_archive, title="Archive Artifact", read_only=False),
)
