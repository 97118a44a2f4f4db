"""Sessions and artifacts as the tools promise them, in lists and dictionaries; other models build on this.

Each method answers as the tool of its name should. Times are :data:`WHEN`. A refusal is :class:`Refused` with
the code, and changes nothing.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

WHEN = "when"

Answer = dict[str, Any]


class Refused(Exception):  # noqa: N818 - what should happen is no error of the model
    """The refusal of a tool with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def given(**fields: Any) -> Answer:
    """Make an answer without the values that are ``None``."""
    return {name: value for name, value in fields.items() if value is not None}


def cut(limit: int | None, offset: int | None, default: int, most: int = 1_000) -> tuple[int, int]:
    """Return the effective limit and offset."""
    wanted, skipped = default if limit is None else limit, offset or 0
    if wanted < 1 or not 0 <= skipped <= 10**9:
        raise Refused("INVALID_PARAMETER")
    return min(wanted, most), skipped


def paged(items: Sequence[Any], limit: int, offset: int) -> Answer:
    return given(items=list(items[offset : offset + limit]), total=len(items), limit=limit, offset=offset)


def chosen(word: str | None, *choices: str) -> None:
    if word is not None and word not in choices:
        raise Refused("INVALID_PARAMETER")


@dataclass
class Session:
    id: str
    title: str | None
    status: str = "active"
    artifacts: set[int] = field(default_factory=set)


@dataclass
class Artifact:
    name: str
    kind: str
    revisions: list[Answer] = field(default_factory=list)
    archived: bool = False


@dataclass
class Room:
    name: str
    members: list[str]
    description: str | None
    session: str | None
    events: list[Answer] = field(default_factory=list)
    archived: bool = False


class Sessions:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.artifacts: list[Artifact] = []
        self.revisions = 0
        self.rooms: list[Room] = []

    def session_create(self, title: str | None = None, session_id: str = "") -> Answer:
        if session_id in self.sessions:
            raise Refused("ALREADY_EXISTS")
        self.sessions[session_id] = Session(session_id, title)
        return given(session_id=session_id, title=title, created_at=WHEN, status="active")

    def session_update(self, session_id: str, title: str | None = None, status: str | None = None) -> Answer:
        if title is None and status is None:
            raise Refused("MISSING_REQUIRED")
        chosen(status, "active", "completed", "archived")
        session = self._session(session_id)
        if session.status == "archived" and title is not None and status in (None, "archived"):
            raise Refused("OPERATION_FAILED")
        session.title = session.title if title is None else title
        session.status = session.status if status is None else status
        return self._listed(session)

    def session_list(
        self, status: str | None = None, limit: int | None = None, offset: int | None = None
    ) -> Answer:
        chosen(status, "active", "completed", "archived")
        part = cut(limit, offset, 20)
        newest = reversed(self.sessions.values())
        return paged([self._listed(session) for session in newest if status in (None, session.status)], *part)

    def session_get(self, session_id: str) -> Answer:
        session = self._session(session_id)
        return {
            "session": self._listed(session),
            "chat_rooms": [
                self._room_entry(number)
                for number, room in reversed(list(enumerate(self.rooms, 1)))
                if room.session == session.id
            ],
            "artifacts": [self._entry(number) for number in sorted(session.artifacts, reverse=True)],
        }

    def _room_entry(self, number: int) -> Answer:
        room = self.rooms[number - 1]
        return given(
            id=number,
            name=room.name,
            created_at=WHEN,
            description=room.description,
            session_id=room.session,
            event_count=len(room.events),
            member_count=len(room.members),
            archived_at=WHEN if room.archived else None,
        )

    def _open_session(self, session_id: str | None) -> None:
        if session_id is not None and self.sessions[session_id].status == "archived":
            raise Refused("OPERATION_FAILED")

    def _session(self, session_id: str) -> Session:
        if session_id not in self.sessions:
            raise Refused("SESSION_NOT_FOUND")
        return self.sessions[session_id]

    def _listed(self, session: Session) -> Answer:
        return given(
            id=session.id,
            title=session.title,
            created_at=WHEN,
            updated_at=WHEN,
            status=session.status,
            room_count=sum(room.session == session.id for room in self.rooms),
            artifact_count=len(session.artifacts),
        )

    def _entry(self, number: int) -> Answer:
        artifact = self.artifacts[number - 1]
        newest = artifact.revisions[-1]
        return {
            "id": number,
            "name": artifact.name,
            "type": artifact.kind,
            "created_at": WHEN,
            "current_revision_id": newest["id"],
            "current_revision": newest["revision_num"],
            "revision_count": len(artifact.revisions),
        }


class Artifacts(Sessions):
    """The artifact tools; paths and descriptions of files are left out of answers."""

    def artifact_create(
        self,
        name: str,
        artifact_type: str,
        filename: str,
        file_content_base64: str | None = None,
        content: str | None = None,
        session_id: str | None = None,
        created_by: str | None = None,
    ) -> Answer:
        session = None if session_id is None else self._session(session_id)
        if any(artifact.name == name for artifact in self.artifacts):
            raise Refused("ALREADY_EXISTS")
        self._open_session(session_id)
        data = self._content(content, file_content_base64)
        self.artifacts.append(Artifact(name, artifact_type))
        if session is not None:
            session.artifacts.add(len(self.artifacts))
        return self._add(len(self.artifacts), data, filename, created_by, "Initial version")

    def artifact_add_revision(
        self,
        artifact_id: int,
        filename: str,
        file_content_base64: str | None = None,
        content: str | None = None,
        created_by: str | None = None,
        notes: str | None = None,
    ) -> Answer:
        if self._artifact(artifact_id).archived:
            raise Refused("OPERATION_FAILED")
        data = self._content(content, file_content_base64)
        return self._add(artifact_id, data, filename, created_by, "", notes)

    def _content(self, content: str | None, file_content_base64: str | None) -> str:
        return file_content_base64 or base64.b64encode((content or "").encode()).decode()

    def artifact_archive(self, artifact_id: int, archived: bool) -> Answer:
        artifact = self._artifact(artifact_id)
        artifact.archived = archived
        return given(
            artifact_id=artifact_id, artifact_name=artifact.name, archived_at=WHEN if archived else None
        )

    def artifact_get(self, artifact_id: int, revision: int | None = None, text: bool = True) -> Answer:
        shown = dict(self._revision(artifact_id, revision))
        if text and b"\0" not in (raw := base64.b64decode(shown["file_content"])):
            shown["content"] = raw.decode()
            del shown["file_content"]
        hidden = ("id", "notes", "size")
        return {
            **{name: value for name, value in shown.items() if name not in hidden},
            "artifact_id": artifact_id,
            "artifact_name": self.artifacts[artifact_id - 1].name,
            "artifact_type": self.artifacts[artifact_id - 1].kind,
            "revision_id": shown["id"],
        }

    def artifact_list(
        self, limit: int | None = None, offset: int | None = None, archived: bool = False
    ) -> Answer:
        part = cut(limit, offset, 50)
        newest = range(len(self.artifacts), 0, -1)
        shown = [number for number in newest if self.artifacts[number - 1].archived is archived]
        return paged([self._entry(number) for number in shown], *part)

    def artifact_history(
        self, artifact_id: int, limit: int | None = None, offset: int | None = None
    ) -> Answer:
        part = cut(limit, offset, 50)
        newest = reversed(self._artifact(artifact_id).revisions)
        shown = [{key: value for key, value in row.items() if key != "file_content"} for row in newest]
        return paged(shown, *part)

    def _add(
        self, number: int, content: str, filename: str, by: str | None, purpose: str, notes: str | None = None
    ) -> Answer:
        artifact = self.artifacts[number - 1]
        self.revisions += 1
        made = given(
            id=self.revisions,
            revision_num=len(artifact.revisions),
            created_by=by,
            created_at=WHEN,
            purpose=purpose,
            notes=notes,
            filename=filename,
            size=len(content) // 4 * 3 - content.count("="),
            file_content=content,
        )
        artifact.revisions.append(made)
        return {
            "artifact_id": number,
            "artifact_name": artifact.name,
            "artifact_type": artifact.kind,
            "revision_id": made["id"],
            "revision_num": made["revision_num"],
        }

    def _artifact(self, number: int) -> Artifact:
        if number > len(self.artifacts):
            raise Refused("ARTIFACT_NOT_FOUND")
        return self.artifacts[number - 1]

    def _revision(self, number: int, revision: int | None) -> Answer:
        revisions = self._artifact(number).revisions
        wanted = len(revisions) - 1 if revision is None else revision
        if wanted >= len(revisions):
            raise Refused("NOT_FOUND")
        return revisions[wanted]
