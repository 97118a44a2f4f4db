"""Artifacts: files with revisions, numbered from 0; the highest is the current one.

The database has a row for each revision, and :mod:`.contents` keeps its bytes. Errors are those of
:mod:`npl_mcp.stores.base.errors`, and ``InvalidRequestError`` for arguments.
"""

from __future__ import annotations

from pathlib import Path

from npl_mcp.stores import session
from npl_mcp.stores.artifact.contents import Contents
from npl_mcp.stores.artifact.files import RevisionDraft, check_filename, check_size, description
from npl_mcp.stores.artifact.values import ArchivedArtifact, ArtifactEntry, Revision, RevisionEntry, Stored
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.database import Database, Row, Transaction, digest_of
from npl_mcp.stores.base.errors import (
    AlreadyExistsError,
    ArtifactNotFoundError,
    ClosedError,
    RecordNotFoundError,
)
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.totals import add_total, read_total

FIRST_PURPOSE = "Initial version"

_PURPOSE_CHARACTERS = 500
_NEWEST = 5


def require(tx: Transaction, artifact_id: int) -> Row:
    """Return the row of table ``artifact``.

    :raises ArtifactNotFoundError: there is none with that id; names the newest.
    """
    row = tx.one(
        "SELECT id, name, type, created_at, revision_count, archived_at FROM artifact WHERE id = :id",
        id=checks.row_id(artifact_id, "artifact_id"),
    )
    if row is None:
        newest = tx.all("SELECT id, name FROM artifact ORDER BY id DESC LIMIT :most", most=_NEWEST)
        known = ", ".join(f"{one['id']} ({one['name']})" for one in newest)
        raise ArtifactNotFoundError(
            f"there is no artifact {artifact_id}",
            hint=f"the newest are {known}" if known else "there are none yet",
        )
    return row


def require_open(tx: Transaction, artifact_id: int) -> Row:
    """Return the row of an artifact that takes revisions and reviews.

    :raises ClosedError: it is archived.
    """
    row = require(tx, artifact_id)
    if row["archived_at"] is not None:
        raise ClosedError(
            f"artifact {artifact_id} is archived", hint="artifact_archive with archived=false brings it back"
        )
    return row


def require_revision(tx: Transaction, artifact_id: int, revision_num: int | None = None) -> Row:
    """Return the row of table ``revision``.

    :param revision_num: ``None``: the highest.
    :raises RecordNotFoundError: it has no such revision; says which it has.
    """
    return _revision(tx, require(tx, artifact_id), revision_num)


def _revision(tx: Transaction, artifact: Row, revision_num: int | None) -> Row:
    last = artifact["revision_count"] - 1
    row = tx.one(
        "SELECT id, artifact_id, revision_num, created_at, created_by, filename, size, digest, purpose, notes"
        " FROM revision WHERE artifact_id = :artifact AND revision_num = :number",
        artifact=artifact["id"],
        number=last if revision_num is None else checks.whole(revision_num, "revision"),
    )
    if row is None:
        raise RecordNotFoundError(
            f"artifact {artifact['id']} has no revision {revision_num}",
            hint=f"it has 0 to {last}" if last else "it has only revision 0",
        )
    return row


class ArtifactStore:
    """Artifacts.

    :param database: where their rows are kept.
    :param folder: where copies of their files lie.
    :param max_bytes: larger contents are refused.
    """

    def __init__(self, database: Database, folder: Path, max_bytes: int) -> None:
        self._database = database
        # Each database has its own numbers.
        name = database.engine.name
        self.contents = Contents(folder.with_name(f"{folder.name}-{name}") if name else folder)
        self._max_bytes = max_bytes

    def create(
        self,
        name: str,
        artifact_type: str,
        content: bytes,
        filename: str,
        *,
        created_by: str | None = None,
        purpose: str | None = None,
        session_id: str | None = None,
    ) -> Stored:
        """Make an artifact with its revision 0.

        :param session_id: a session to link it to.
        """
        clean = checks.line(name, "name")
        kind = checks.line(artifact_type, "artifact_type")
        draft = self._draft(
            content, filename, created_by, FIRST_PURPOSE if purpose is None else purpose, None
        )

        with self._database.write() as tx:
            number = None if session_id is None else session.require(tx, session_id)
            artifact = _insert(tx, clean, kind)
            stored = self._store(tx, artifact, draft)
            if number is not None:
                session.link_artifact(tx, number, stored.artifact_id)
        return self._copied(stored, tx.now, draft)

    def add_revision(
        self,
        artifact_id: int,
        content: bytes,
        filename: str,
        *,
        created_by: str | None = None,
        purpose: str | None = None,
        notes: str | None = None,
        once: bool = False,
    ) -> Stored:
        """Add a revision; it becomes the current one.

        :param once: add nothing, and answer with the revision there is, if the same maker stored the same
            content before.
        """
        draft = self._draft(content, filename, created_by, purpose, notes)

        with self._database.write() as tx:
            artifact = require_open(tx, artifact_id)
            same = (
                tx.one(_SAME, owner=artifact_id, digest=digest_of(content), by=draft.created_by)
                if once
                else None
            )
            if same is not None:
                return self._stored(artifact, **same)
            stored = self._store(tx, artifact, draft)
        return self._copied(stored, tx.now, draft)

    def content(self, artifact_id: int, revision_num: int | None = None) -> tuple[Revision, bytes]:
        """Return a revision and its bytes.

        :param revision_num: ``None``: the highest.
        """
        with self._database.read() as tx:
            artifact = require(tx, artifact_id)
            row = _revision(tx, artifact, revision_num)
            content, metadata = self.contents.read(tx, artifact, row)
        revision = Revision(
            artifact_name=artifact["name"],
            artifact_type=artifact["type"],
            revision_id=row.pop("id"),
            file_path=str(self.contents.paths(artifact_id, row["revision_num"], row["filename"])[0]),
            metadata=metadata,
            **row,
        )
        return revision, content

    def archive(self, artifact_id: int, archived: bool = True) -> ArchivedArtifact:
        """Take an artifact out of lists and let it take no more, or bring it back.

        :param archived: whether it is to be archived.
        """
        with self._database.write() as tx:
            row = require(tx, artifact_id)
            moment = row["archived_at"]
            if archived != (moment is not None):
                moment = tx.now if archived else None
                tx.run(
                    "UPDATE artifact SET archived_at = :moment WHERE id = :id", moment=moment, id=row["id"]
                )
                add_total(tx, _TOTALS[not archived], -1)
                add_total(tx, _TOTALS[archived], 1)
        return ArchivedArtifact(row["id"], row["name"], moment)

    def list(
        self, limit: int | None = None, offset: int | None = None, *, archived: bool = False
    ) -> Page[ArtifactEntry]:
        """List artifacts, newest first.

        :param archived: those that are archived, in place of the others.
        """
        part = Slice.parse(limit, offset)
        sql = _LIST.format(archived="NOT NULL" if archived else "NULL")
        with self._database.read() as tx:
            rows = tx.all(sql, limit=part.limit, offset=part.offset)
            total = read_total(tx, _TOTALS[archived])
        return Page(tuple(ArtifactEntry(**row) for row in rows), total, part.limit, part.offset)

    def history(
        self, artifact_id: int, limit: int | None = None, offset: int | None = None
    ) -> Page[RevisionEntry]:
        """List the revisions of an artifact, newest first."""
        part = Slice.parse(limit, offset)
        with self._database.read() as tx:
            total = require(tx, artifact_id)["revision_count"]
            rows = tx.some(_HISTORY, artifact=artifact_id, limit=part.limit, offset=part.offset)
        return Page(tuple(RevisionEntry(**row) for row in rows), total, part.limit, part.offset)

    def _draft(
        self, content: bytes, filename: str, created_by: str | None, purpose: str | None, notes: str | None
    ) -> RevisionDraft:
        check_size(len(content), self._max_bytes)
        return RevisionDraft(
            content=content,
            filename=check_filename(filename),
            created_by=checks.maybe(checks.line, created_by, "created_by"),
            purpose=checks.maybe(checks.line, purpose, "purpose", _PURPOSE_CHARACTERS) or "",
            notes=checks.maybe(checks.text, notes, "notes"),
        )

    def _store(self, tx: Transaction, artifact: Row, draft: RevisionDraft) -> Stored:
        owner, number = artifact["id"], artifact["revision_count"]
        tx.run("UPDATE artifact SET revision_count = :count WHERE id = :id", count=number + 1, id=owner)
        revision_id = tx.value(
            _INSERT,
            owner=owner,
            number=number,
            now=tx.now,
            by=draft.created_by,
            filename=draft.filename,
            size=len(draft.content),
            digest=self.contents.put(tx, draft.content),
            purpose=draft.purpose,
            notes=draft.notes,
        )
        return self._stored(artifact, revision_id, number, draft.filename)

    def _copied(self, stored: Stored, moment: str, draft: RevisionDraft) -> Stored:
        """Copy what was committed to its files."""
        meta = description(stored.artifact_name, stored.revision_num, moment, draft)
        self.contents.copy((Path(stored.file_path), Path(stored.meta_path)), draft.content, meta)
        return stored

    def _stored(self, artifact: Row, id: int, revision_num: int, filename: str) -> Stored:
        file, meta = self.contents.paths(artifact["id"], revision_num, filename)
        return Stored(
            artifact_id=artifact["id"],
            artifact_name=artifact["name"],
            artifact_type=artifact["type"],
            revision_id=id,
            revision_num=revision_num,
            file_path=str(file),
            meta_path=str(meta),
        )


_TOTALS = {False: "artifact", True: "archived-artifact"}
"""Names of the totals of artifacts, by whether those are archived."""

_INSERT = """
INSERT INTO revision
    (artifact_id, revision_num, created_at, created_by, filename, size, digest, purpose, notes)
VALUES (:owner, :number, :now, :by, :filename, :size, :digest, :purpose, :notes)
RETURNING id
"""

_SAME = """
SELECT id, revision_num, filename FROM revision
WHERE artifact_id = :owner AND digest = :digest AND created_by = :by ORDER BY id LIMIT 1
"""

# The page is cut before its revisions are looked up.
_LIST = """
SELECT page.id, page.name, page.type, page.created_at,
    revision.id AS current_revision_id, revision.revision_num AS current_revision
FROM (
    SELECT * FROM artifact WHERE archived_at IS {archived} ORDER BY id DESC LIMIT :limit OFFSET :offset
) AS page
JOIN revision ON revision.artifact_id = page.id AND revision.revision_num = page.revision_count - 1
ORDER BY page.id DESC
"""

_HISTORY = """
SELECT id, revision_num, created_by, created_at, purpose, notes, filename, size
FROM revision WHERE artifact_id = :artifact ORDER BY revision_num DESC LIMIT :limit OFFSET :offset
"""


def _insert(tx: Transaction, name: str, kind: str) -> Row:
    row = tx.one(
        "INSERT INTO artifact (name, type, created_at) VALUES (:name, :type, :now)"
        " ON CONFLICT (name) DO NOTHING RETURNING id, name, type, revision_count",
        name=name,
        type=kind,
        now=tx.now,
    )
    if row is None:
        taken = tx.value("SELECT id FROM artifact WHERE name = :name", name=name)
        raise AlreadyExistsError(
            f"there is already an artifact {name!r}",
            hint=f"add a revision to artifact {taken}, or choose another name",
        )
    add_total(tx, "artifact", 1)
    return row
