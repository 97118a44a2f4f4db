"""What the store of artifacts answers with."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class RevisionName:
    """Which revision of which artifact.

    :param artifact_id: the artifact.
    :param artifact_name: its name.
    :param artifact_type: its type.
    :param revision_id: row id of the revision, unique over all artifacts.
    :param revision_num: number of the revision, from 0 on.
    """

    artifact_id: int
    artifact_name: str
    artifact_type: str
    revision_id: int
    revision_num: int


@dataclass(frozen=True, slots=True)
class Stored(RevisionName):
    """A revision that was stored.

    :param file_path: absolute path of its file.
    :param meta_path: absolute path of its description.
    """

    file_path: str
    meta_path: str


@dataclass(frozen=True, slots=True)
class RevisionOrigin(RevisionName):
    """A revision, and where it comes from.

    :param created_by: who made it.
    :param created_at: UTC, ISO 8601.
    :param purpose: what it is for.
    """

    created_by: str | None
    created_at: str
    purpose: str


@dataclass(frozen=True, slots=True)
class Revision(RevisionOrigin):
    """A revision of an artifact.

    :param notes: text about it.
    :param filename: name of its file, as given.
    :param size: bytes of its content.
    :param digest: BLAKE2b of its content, 16 bytes, in hex.
    :param file_path: absolute path of its file.
    :param metadata: text of its description.
    """

    notes: str | None
    filename: str
    size: int
    digest: str
    file_path: str
    metadata: str

    def shared(self, kind: type[RevisionOrigin]) -> dict[str, Any]:
        """Return the fields that another description of a revision has as well."""
        names = {field.name for field in fields(kind)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in names}


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """An artifact in a list.

    :param id: the artifact.
    :param name: its name.
    :param type: its type.
    :param created_at: UTC, ISO 8601.
    :param current_revision_id: row id of the highest revision.
    :param current_revision: its number.
    """

    id: int
    name: str
    type: str
    created_at: str
    current_revision_id: int
    current_revision: int


@dataclass(frozen=True, slots=True)
class ArchivedArtifact:
    """An artifact that was archived or brought back.

    :param artifact_id: the artifact.
    :param artifact_name: its name.
    :param archived_at: since when it takes no more.
    """

    artifact_id: int
    artifact_name: str
    archived_at: str | None


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision in a history.

    :param id: row id of the revision, unique over all artifacts.
    :param revision_num: number of the revision, from 0 on.
    :param created_by: who made it.
    :param created_at: UTC, ISO 8601.
    :param purpose: what it is for.
    :param notes: text about it.
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
