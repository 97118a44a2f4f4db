"""Artifacts: files that are shared, reviewed and revised."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.stores.artifact.files import as_text, given_content
from npl_mcp.stores.artifact.values import (
    ArchivedArtifact,
    ArtifactEntry,
    RevisionEntry,
    RevisionOrigin,
    Stored,
)
from npl_mcp.stores.base.paging import Page
from npl_mcp.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class RevisionContent(RevisionOrigin):
    """One revision of an artifact, whole.

    :param filename: name of its file, as given.
    :param file_path: absolute path of the file.
    :param metadata: text of its description: front matter and notes.
    :param content: the text of the file.
    :param file_content: the file in base64, in place of ``content`` where it is no text or was asked for so.
    """

    filename: str
    file_path: str
    metadata: str
    content: str | None
    file_content: str | None


def artifact_create(
    app: App,
    name: str,
    artifact_type: Annotated[str, "kind of file"],
    filename: str,
    content: str | None = None,
    file_content_base64: str | None = None,
    created_by: str | None = None,
    purpose: str | None = None,
    session_id: str | None = None,
) -> Stored:
    """Store a file as a new artifact.

    :param content: the file, if it is text.
    :param file_content_base64: the file, whatever it is.
    :returns: a revision that was stored.
    :raises InvalidRequestError: an argument cannot be used.
    :raises TooLargeError: the file has too many bytes.
    :raises AlreadyExistsError: the name is taken.
    :raises SessionNotFoundError: there is no such session.
    :raises ClosedError: the session is archived.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: the file cannot be written.
    """
    store = app.stores.artifact
    return store.create(
        name,
        artifact_type,
        given_content(content, file_content_base64, app.settings.max_artifact_bytes),
        filename,
        created_by=created_by,
        purpose=purpose,
        session_id=session_id,
    )


def artifact_add_revision(
    app: App,
    artifact_id: int,
    filename: str,
    content: str | None = None,
    file_content_base64: str | None = None,
    created_by: str | None = None,
    purpose: str | None = None,
    notes: str | None = None,
) -> Stored:
    """Add a new current revision to an artifact.

    :param content: the file, if it is text.
    :param file_content_base64: the file, whatever it is.
    :returns: a revision that was stored.
    :raises InvalidRequestError: an argument cannot be used.
    :raises TooLargeError: the file has too many bytes.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises ClosedError: it is archived.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: the file cannot be written.
    """
    store = app.stores.artifact
    return store.add_revision(
        artifact_id,
        given_content(content, file_content_base64, app.settings.max_artifact_bytes),
        filename,
        created_by=created_by,
        purpose=purpose,
        notes=notes,
    )


def artifact_get(
    app: App,
    artifact_id: int,
    revision: Annotated[int | None, "Number"] = None,
    text: Annotated[bool, "false: base64"] = True,
) -> RevisionContent:
    """Get an artifact's file and metadata.

    :param revision: its number; by default the newest.
    :param text: give text as text; what is not UTF-8, or has a NUL, comes in base64 all the same.
    :returns: one revision of an artifact, whole.
    :raises InvalidRequestError: a number is out of range.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: its files are gone, cannot be read, or were changed.
    """
    found, content = app.stores.artifact.content(artifact_id, revision)
    plain = as_text(content) if text else None
    return RevisionContent(
        **found.shared(RevisionContent),
        file_content=base64.b64encode(content).decode("ascii") if plain is None else None,
        content=plain,
    )


def artifact_list(
    app: App, limit: int | None = None, offset: int | None = None, archived: bool = False
) -> Page[ArtifactEntry]:
    """List artifacts, newest first.

    :param archived: those that are archived, in place of the others.
    :returns: a page; each item is an artifact in a list.
    :raises InvalidRequestError: the limit or the offset is out of range.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.artifact.list(limit, offset, archived=archived)


def artifact_history(
    app: App, artifact_id: int, limit: int | None = None, offset: int | None = None
) -> Page[RevisionEntry]:
    """List an artifact's revisions, newest first.

    :returns: a page; each item is a revision in a history.
    :raises InvalidRequestError: a number is out of range.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.artifact.history(artifact_id, limit, offset)


def artifact_archive(app: App, artifact_id: int, archived: bool = True) -> ArchivedArtifact:
    """Archive an artifact, or bring it back.

    :returns: an artifact that was archived or brought back.
    :raises InvalidRequestError: the number is out of range.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.artifact.archive(artifact_id, archived)


TOOLS = (
    ToolSpec(artifact_create, title="Create Artifact", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_add_revision, title="Add Revision", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_get, title="Get Artifact", lane="heavy"),
    ToolSpec(artifact_list, title="List Artifacts"),
    ToolSpec(artifact_history, title="List Revisions"),
    ToolSpec(artifact_archive, title="Archive Artifact", read_only=False),
)
