"""Artifacts: files that are shared, reviewed and revised.

:raises InvalidRequestError: an argument cannot be used.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from npl_index.errors import InvalidRequestError
from npl_mcp.core.app import App
from npl_mcp.stores.artifact import store
from npl_mcp.stores.artifact.comparing import Comparison, compare, cut_line
from npl_mcp.stores.artifact.files import (
    RevisionDraft,
    as_text,
    check_filename,
    given_content,
    picture_type,
)
from npl_mcp.stores.artifact.store import (
    FIRST_PURPOSE,
    PURPOSE,
    ArchivedArtifact,
    ArtifactEntry,
    RevisionEntry,
    RevisionOrigin,
    Stored,
)
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import LARGEST_PAGE, Page, Slice
from npl_mcp.stores.base.values import filled
from npl_mcp.stores.review.annotation import count_lines, split_lines
from npl_mcp.tools.parameters import Check, Name, RowId, Text, Whole
from npl_mcp.tools.spec import ToolSpec

FileName = Annotated[str, Check(check_filename)]
Purpose = Annotated[str, Check(checks.line, PURPOSE)]


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


@dataclass(frozen=True, slots=True)
class Compared:
    """Two revisions of an artifact.

    :param artifact_id: the artifact.
    :param artifact_name: its name.
    :param old: number of the one.
    :param new: number of the other.
    :param changes: from the one to the other.
    """

    artifact_id: int
    artifact_name: str
    old: int
    new: int
    changes: Comparison


@dataclass(frozen=True, slots=True)
class Looked(RevisionOrigin):
    """A revision as people look at it.

    :param notes: text about it.
    :param filename: name of its file, as given.
    :param size: bytes of its file.
    :param media_type: of a picture that browsers show.
    :param text: of a text: its beginning, on request.
    :param lines: of a text: some of its lines, without their ends; long ones are cut.
    :param total: lines it has.
    """

    notes: str | None
    filename: str
    size: int
    media_type: str | None
    text: str | None
    lines: tuple[str, ...] | None
    total: int


def artifact_create(
    app: App,
    name: Name,
    artifact_type: Annotated[Name, "kind of file"],
    filename: FileName,
    content: str | None = None,
    file_content_base64: str | None = None,
    created_by: Name | None = None,
    purpose: Purpose | None = None,
    session_id: Name | None = None,
) -> Stored:
    """Store a file as a new artifact.

    :param content: the file, if it is text.
    :param file_content_base64: the file, whatever it is.
    :returns: a revision that was stored.
    :raises TooLargeError: the file has too many bytes.
    :raises AlreadyExistsError: the name is taken.
    :raises SessionNotFoundError: there is no such session.
    :raises ClosedError: the session is archived.
    """
    data = given_content(content, file_content_base64, app.settings.max_artifact_bytes)
    draft = RevisionDraft(data, filename, created_by, FIRST_PURPOSE if purpose is None else purpose)
    return app.stores.artifact.create(name, artifact_type, draft, session_id)


def artifact_add_revision(
    app: App,
    artifact_id: RowId,
    filename: FileName,
    content: str | None = None,
    file_content_base64: str | None = None,
    created_by: Name | None = None,
    purpose: Purpose | None = None,
    notes: Text | None = None,
) -> Stored:
    """Add a new current revision to an artifact.

    :param content: the file, if it is text.
    :param file_content_base64: the file, whatever it is.
    :returns: a revision that was stored.
    :raises TooLargeError: the file has too many bytes.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises ClosedError: it is archived.
    """
    data = given_content(content, file_content_base64, app.settings.max_artifact_bytes)
    draft = RevisionDraft(data, filename, created_by, purpose or "", notes)
    return app.stores.artifact.add_revision(artifact_id, draft)


def artifact_get(
    app: App,
    artifact_id: RowId,
    revision: Annotated[Whole | None, "Number"] = None,
    text: Annotated[bool, "false: base64"] = True,
) -> RevisionContent:
    """Get an artifact's file and metadata.

    :param revision: its number; by default the newest.
    :param text: give text as text; what is not UTF-8, or has a NUL, comes in base64 all the same.
    :returns: one revision of an artifact, whole.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    """
    found, content = app.stores.artifact.content(artifact_id, revision)
    plain = as_text(content) if text else None
    encoded = base64.b64encode(content).decode("ascii") if plain is None else None
    return filled(RevisionContent, found, content=plain, file_content=encoded)


def artifact_list(
    app: App, limit: int | None = None, offset: int | None = None, archived: bool = False
) -> Page[ArtifactEntry]:
    """List artifacts, newest first.

    :param archived: those that are archived, in place of the others.
    :returns: a page; each item is an artifact in a list.
    """
    part = Slice.parse(limit, offset)
    with app.database.read() as tx:
        return store.listed(tx, part, archived)


def artifact_history(
    app: App, artifact_id: RowId, limit: int | None = None, offset: int | None = None
) -> Page[RevisionEntry]:
    """List an artifact's revisions, newest first.

    :returns: a page; each item is a revision in a history.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    part = Slice.parse(limit, offset)
    with app.database.read() as tx:
        return store.history(tx, artifact_id, part)


def artifact_archive(app: App, artifact_id: RowId, archived: bool = True) -> ArchivedArtifact:
    """Archive an artifact, or bring it back.

    :returns: an artifact that was archived or brought back.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    with app.database.write() as tx:
        return store.archive(tx, artifact_id, archived)


def artifact_look(
    app: App,
    artifact_id: RowId,
    revision: Annotated[Whole | None, "Number; default: newest"] = None,
    offset: Annotated[int | None, "Lines left out before the first"] = None,
    limit: Annotated[int | None, "Most lines"] = None,
    text: Annotated[int | None, "Characters of the whole text to add"] = None,
) -> Looked:
    """Show some lines of an artifact's file, and what else is known of it.

    :returns: a revision as people look at it.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    """
    page = Slice.parse(limit, offset, LARGEST_PAGE)
    found, content = app.stores.artifact.content(artifact_id, revision)
    whole = as_text(content)
    shown = None if whole is None else islice(split_lines(whole), page.offset, page.offset + page.limit)
    return filled(
        Looked,
        found,
        media_type=picture_type(content),
        text=None if whole is None or text is None else whole[: max(0, text)],
        lines=None if shown is None else tuple(cut_line(line.rstrip("\r\n")) for line in shown),
        total=count_lines(whole or ""),
    )


def artifact_compare(
    app: App,
    artifact_id: RowId,
    old: Annotated[Whole, "Revision's number"],
    new: Annotated[Whole, "Revision's number"],
) -> Compared:
    """Show what changed between two revisions of a text.

    :returns: two revisions of an artifact.
    :raises InvalidRequestError: a revision is no text.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    """
    texts: list[str] = []
    for name, number in (("old", old), ("new", new)):
        revision, content = app.stores.artifact.content(artifact_id, number)
        text = as_text(content)
        if text is None:
            raise InvalidRequestError(
                f"revision {number} is no text", parameter=name, hint="only texts have lines to compare"
            )
        texts.append(text)
    return Compared(artifact_id, revision.artifact_name, old, new, compare(*texts))


TOOLS = (
    ToolSpec(artifact_create, title="Create Artifact", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_add_revision, title="Add Revision", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(artifact_get, title="Get Artifact", lane="heavy"),
    ToolSpec(artifact_list, title="List Artifacts"),
    ToolSpec(artifact_history, title="List Revisions"),
    ToolSpec(artifact_archive, title="Archive Artifact", read_only=False),
    ToolSpec(artifact_look, listed=False, lane="heavy"),
    ToolSpec(artifact_compare, listed=False, lane="heavy"),
)
