"""Artifacts: files with revisions, numbered from 0; the highest is the current one.

The functions run in the caller's transaction. Errors are those of :mod:`npl_mcp.stores.base.errors`, and
``InvalidRequestError`` for arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from npl_index.errors import InvalidRequestError
from npl_mcp.stores.artifact.files import check_filename
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.database import Row, Transaction, content_digest, damaged


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


def insert(tx: Transaction, artifact: Row, content: bytes, about: Mapping[str, str | None]) -> Row:
    """Add a revision, which becomes the current one; return it with the names of its artifact.

    :param artifact: the row of the artifact.
    :param about: filename, and if known created_by, purpose and notes.
    """
    owner, number, digest = artifact["id"], artifact["revision_count"], content_digest(content)
    tx.run("UPDATE artifact SET revision_count = :count WHERE id = :id", count=number + 1, id=owner)
    tx.insert("content", "digest", "digest", digest=digest, data=content)
    row = {"artifact_id": owner, "revision_num": number, "created_at": tx.now, "purpose": "", **about}
    return _with_names(artifact, tx.insert("revision", _COLUMNS, **row, size=len(content), digest=digest))


def _with_names(artifact: Row, revision: Row) -> Row:
    names = {"artifact_name": artifact["name"], "artifact_type": artifact["type"]}
    return {**revision, **names, "revision_id": revision["id"]}


_IDS = "SELECT id FROM revision WHERE artifact_id = :artifact ORDER BY revision_num DESC LIMIT :most"

_COLUMNS = "id, artifact_id, revision_num, created_at, created_by, filename, size, digest, purpose, notes"
