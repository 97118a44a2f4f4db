"""Artifacts: files with revisions, numbered from 0; the highest is the current one.

The functions run in the caller's transaction. Errors are those of :mod:`npl_mcp.stores.base.errors`, and
``InvalidRequestError`` for arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_mcp.stores import session
from npl_mcp.stores.artifact.files import check_filename
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.database import Row, Transaction, content_digest, damaged
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import columns, fill

FIRST_PURPOSE = "Initial version"

PURPOSE = 500
"""Maximum characters of a purpose."""


@dataclass(frozen=True, slots=True)
class RevisionName:
    """The names of an artifact and of one of its revisions.

    :param artifact_id: id of the artifact.
    :param artifact_name: name of the artifact.
    :param artifact_type: type of the artifact.
    :param revision_id: row id of the revision, unique over all artifacts.
    :param revision_num: number of the revision, from 0 on.
    """

    artifact_id: int
    artifact_name: str
    artifact_type: str
    revision_id: int
    revision_num: int


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


def require(tx: Transaction, artifact_id: int) -> Row:
    """Return the row of table ``artifact``.

    :raises ArtifactNotFoundError: no artifact has that id.
    """
    sql = "SELECT id, name, type, created_at, revision_count, archived_at FROM artifact WHERE id = :id"
    hint = "artifact_list lists all artifacts"
    missing = errors.ArtifactNotFoundError(f"there is no artifact {artifact_id}", hint=hint)
    return tx.require(missing, sql, id=artifact_id)


def require_open(tx: Transaction, artifact_id: int) -> Row:
    """Return the row of an artifact that accepts revisions and reviews.

    :raises ClosedError: the artifact is archived.
    """
    row = require(tx, artifact_id)
    if row["archived_at"] is not None:
        hint = "artifact_archive with archived=false restores it"
        raise errors.ClosedError(f"artifact {artifact_id} is archived", hint=hint)
    return row


def require_revision(
    tx: Transaction, artifact_id: int, revision_num: int | None = None, *, revision_id: int | None = None
) -> Row:
    """Return a revision with the names of its artifact.

    :param revision_num: the number of the revision; ``None`` for the highest.
    :param revision_id: its row id, which replaces the number.
    :raises RecordNotFoundError: the revision does not exist; the message names the existing ones.
    """
    artifact = require(tx, artifact_id)
    last = artifact["revision_count"] - 1
    column, value = "revision_num", last if revision_num is None else revision_num
    if revision_id is not None:
        column, value = "id", revision_id
    sql = f"SELECT {_COLUMNS} FROM revision WHERE artifact_id = :artifact AND {column} = :value"
    row = tx.first(sql, artifact=artifact_id, value=value)
    if row is None:
        which, known = f"revision {value}", f"0 to {last}"
        if revision_id is not None:
            ids = tx.all(_IDS, artifact=artifact_id, most=checks.LISTED)
            which, known = f"revision_id {value}", ", ".join(str(entry["id"]) for entry in ids)
        hint = f"it has {known}; artifact_history lists all"
        raise errors.RecordNotFoundError(f"artifact {artifact_id} has no {which}", hint=hint)
    return _with_names(artifact, row)


def create(
    tx: Transaction,
    name: str,
    kind: str,
    content: bytes,
    about: Mapping[str, str | None],
    session_id: str | None = None,
) -> Row:
    """Create an artifact; return its revision 0 with the names of the artifact.

    :param kind: the artifact's type.
    :param content: the content of the file.
    :param about: filename, and if known created_by, purpose and notes.
    :param session_id: the id of a session to link it to.
    """
    number = None if session_id is None else session.find(tx, session_id)["number"]
    known = "id, name, type, revision_count"
    artifact: Row | None = tx.insert("artifact", known, "name", name=name, type=kind, created_at=tx.now)
    if artifact is None:
        taken = tx.value("SELECT id FROM artifact WHERE name = :name", name=name)
        hint = f"add a revision to artifact {taken}, or choose another name"
        raise errors.AlreadyExistsError(f"there is already an artifact {name!r}", hint=hint)
    row = _store(tx, artifact, content, about)
    if number is not None:
        session.link_artifact(tx, number, row["artifact_id"])
    return row


def add_revision(
    tx: Transaction,
    artifact_id: int,
    content: bytes,
    about: Mapping[str, str | None],
    expect: int | None = None,
) -> Row:
    """Add a revision, which becomes the current one; return it with the names of the artifact.

    :param expect: the number of the current one.
    """
    artifact = require_open(tx, artifact_id)
    current = artifact["revision_count"] - 1
    if expect not in (None, current):
        problem = f"artifact {artifact_id} is at revision {current}, not {expect}"
        hint = f"read revision {current}, then send expect={current}"
        raise errors.ConflictError(problem, hint=hint)
    return _store(tx, artifact, content, about)


def content(
    tx: Transaction, artifact_id: int, revision_num: int | None = None, *, revision_id: int | None = None
) -> tuple[Row, bytes]:
    """Return a revision with the names of its artifact, and its bytes; see :func:`require_revision`.

    :raises DatabaseError: the content or its file name is damaged.
    """
    row = require_revision(tx, artifact_id, revision_num, revision_id=revision_id)
    which = f"revision {row['revision_num']} of artifact {artifact_id}"
    try:
        check_filename(row["filename"])
    except (InvalidRequestError, TypeError):
        raise damaged(f"{which} has a file name that no file can have") from None
    data = tx.contents("content", [row["digest"]]).get(row["digest"])
    if data is None:
        raise damaged(f"the content of {which} is not the one that was stored")
    return row, data


def _store(tx: Transaction, artifact: Row, content: bytes, about: Mapping[str, str | None]) -> Row:
    owner, number, digest = artifact["id"], artifact["revision_count"], content_digest(content)
    tx.run("UPDATE artifact SET revision_count = :count WHERE id = :id", count=number + 1, id=owner)
    tx.insert("content", "digest", "digest", digest=digest, data=content)
    row = {"artifact_id": owner, "revision_num": number, "created_at": tx.now, "purpose": "", **about}
    return _with_names(artifact, tx.insert("revision", _COLUMNS, **row, size=len(content), digest=digest))


def _with_names(artifact: Row, revision: Row) -> Row:
    names = {"artifact_name": artifact["name"], "artifact_type": artifact["type"]}
    return {**revision, **names, "revision_id": revision["id"]}


def archive(tx: Transaction, artifact_id: int, archived: bool) -> ArchivedArtifact:
    """Archive or reopen an artifact; an archived one is hidden from lists and cannot be changed.

    :param archived: whether to archive it.
    """
    row = require(tx, artifact_id)
    moment = (row["archived_at"] or tx.now) if archived else None
    tx.run("UPDATE artifact SET archived_at = :moment WHERE id = :id", moment=moment, id=row["id"])
    return ArchivedArtifact(row["id"], row["name"], moment)


def load_page(tx: Transaction, part: Slice, archived: bool = False) -> Page[ArtifactEntry]:
    """Return artifacts, newest first.

    :param archived: whether to return the archived artifacts instead of the others.
    """
    where = f"archived_at IS {'NOT ' if archived else ''}NULL"
    total = tx.value(f"SELECT count(*) FROM artifact WHERE {where}")
    return tx.page(ArtifactEntry, _LIST.format(where=where), total, part)


def of_session(tx: Transaction, session_id: str, most: int) -> tuple[ArtifactEntry, ...]:
    """Return the newest artifacts that are linked to a session."""
    rows = tx.all(_LIST.format(where=f"id IN {session.ARTIFACTS}"), session=session_id, limit=most, offset=0)
    return tuple(fill(ArtifactEntry, row) for row in rows)


def history(tx: Transaction, artifact_id: int, part: Slice) -> Page[RevisionEntry]:
    """Return the revisions of an artifact, newest first."""
    total = require(tx, artifact_id)["revision_count"]
    return tx.page(RevisionEntry, _HISTORY, total, part, artifact=artifact_id)


_IDS = "SELECT id FROM revision WHERE artifact_id = :artifact ORDER BY revision_num DESC LIMIT :most"

_COLUMNS = "id, artifact_id, revision_num, created_at, created_by, filename, size, digest, purpose, notes"

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
