"""The expected behaviour of all domains: reviews and worklogs on top of :mod:`.models_chat`."""

import base64
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from tests.npl_mcp.stores.models_base import WHEN, Answer, Refused, chosen, cut, given, paged
from tests.npl_mcp.stores.models_chat import Rooms


def usable(arguments: Answer) -> bool:
    """Tell whether all numbers are in range, which is checked first."""
    least = {"revision": 0, "since": 0, "x": 0}
    return all(
        value >= least.get(name, 1)
        for name, value in arguments.items()
        if isinstance(value, int) and (name in least or name.endswith("_id"))
    )


def lines_of(revision: Answer) -> list[str] | None:
    """Return the lines of a revision's file; ``None`` if it is no text."""
    content = base64.b64decode(revision["file_content"])
    return None if b"\0" in content else content.decode().splitlines()


@dataclass
class Review:
    artifact: int
    revision: Answer
    reviewer: str
    overall: str | None = None
    status: str = "in_progress"
    comments: list[Answer] = field(default_factory=list)


@dataclass
class Worklog:
    id: str
    task: str | None
    status: str = "active"
    archived_as: str | None = None
    entries: list[Answer] = field(default_factory=list)
    cursors: dict[str, int] = field(default_factory=dict)


class Worklogs(Rooms):
    """The worklog tools of one project."""

    def __init__(self) -> None:
        super().__init__()
        self.worklogs: list[Worklog] = []
        self.current: Worklog | None = None

    def worklog_init(self, session_id: str, task: str | None = None) -> Answer:
        known = self._live(session_id)
        if known is None:
            self.worklogs.append(Worklog(session_id, task))
        elif known.status != "active":
            raise Refused("OPERATION_FAILED")
        self.current = known or self.worklogs[-1]
        return {**self.described(self.current), "new": known is None}

    def worklog_log(
        self, agent_id: str, action: str, summary: str, session_id: str | None = None, **more: Any
    ) -> Answer:
        today = datetime.now(timezone.utc).date().isoformat()
        new = session_id is None and not self.worklogs
        log = (
            Worklog(today, None) if new else self.current if session_id is None else self._chosen(session_id)
        )
        assert log is not None
        if log.status != "active":
            raise Refused("OPERATION_FAILED")
        if log not in self.worklogs:
            self.worklogs.append(log)
        self.current = log if new else self.current
        seq = len(log.entries) + 1
        fields = {"agent_id": agent_id, "agent_type": "unknown", "action": action, "summary": summary}
        log.entries.append(given(seq=seq, ts=WHEN, **fields | more))
        return given(session_id=log.id, seq=seq, ts=WHEN, opened=new or None)

    def worklog_read(
        self,
        agent_id: str,
        peek: bool = False,
        since: int | None = None,
        session_id: str | None = None,
        limit: int | None = None,
    ) -> Answer:
        size, _ = cut(limit, None, 200)
        log = self._chosen(session_id)
        cursor = log.cursors.get(agent_id, 0)
        start = cursor if since is None else since
        entries = log.entries[start : start + size]
        end = entries[-1]["seq"] if entries else start
        if entries and not peek:
            log.cursors[agent_id] = cursor = end
        return {
            "session_id": log.id,
            "items": entries,
            "total": len(log.entries),
            "limit": size,
            "offset": min(start, len(log.entries)),
            "cursor": cursor,
            "remaining": max(len(log.entries) - end, 0),
        }

    def worklog_status(self, session_id: str | None = None) -> Answer:
        return self.described(self._chosen(session_id))

    def worklog_close(self, archive: bool = False, session_id: str | None = None) -> Answer:
        log = self._chosen(session_id)
        log.status = "closed"
        if archive and log.archived_as is None:
            taken = {worklog.archived_as for worklog in self.worklogs}
            names = [log.id, *(f"{log.id}-{copy}" for copy in range(2, len(taken) + 3))]
            log.archived_as = next(name for name in names if name not in taken)
        return self.described(log)

    def described(self, log: Worklog) -> Answer:
        """Return a worklog as the status and the list show it."""
        return given(
            session_id=log.id,
            status=log.status,
            created=WHEN,
            task=log.task,
            entry_count=len(log.entries),
            agents=sorted({entry["agent_id"] for entry in log.entries}),
            last_entry=WHEN if log.entries else None,
            current=log is self.current and log.status == "active",
            closed=WHEN if log.status == "closed" else None,
            archived_as=log.archived_as,
        )

    def _live(self, session_id: str) -> Worklog | None:
        matches = (
            worklog for worklog in self.worklogs if worklog.id == session_id and worklog.archived_as is None
        )
        return next(matches, None)

    def _chosen(self, session_id: str | None) -> Worklog:
        worklog = self.current if self.current is not None and self.current.status == "active" else None
        if session_id is not None:
            archived = (worklog for worklog in self.worklogs if worklog.archived_as == session_id)
            worklog = self._live(session_id) or next(archived, None)
        if worklog is None:
            raise Refused("SESSION_NOT_FOUND")
        return worklog


class Model(Worklogs):
    """All domains: the review tools on top of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.reviews: list[Review] = []
        self.comments = 0

    def review_create(self, artifact_id: int, revision_id: int, reviewer_persona: str) -> Answer:
        artifact = self._artifact(artifact_id)
        for revision in artifact.revisions:
            if revision["id"] == revision_id:
                if artifact.archived:
                    raise Refused("OPERATION_FAILED")
                self.reviews.append(Review(artifact_id, revision, reviewer_persona))
                return {"review_id": len(self.reviews), **self._head(self.reviews[-1])}
        raise Refused("NOT_FOUND")

    def review_add_comment(self, review_id: int, location: str, comment: str, persona: str) -> Answer:
        place = re.fullmatch(r"line:([1-9])(?:-([1-9]))?|@x:\d+,y:\d+", location)
        if place is None or (place[2] and place[2] < place[1]):
            raise Refused("INVALID_PARAMETER")
        review = self._review(review_id)
        if review.status == "completed":
            raise Refused("OPERATION_FAILED")
        lines = lines_of(review.revision)
        if int(place[2] or place[1]) > len(lines or ()) if place[1] else lines is not None:
            raise Refused("INVALID_PARAMETER")
        self.comments += 1
        fields = {"location": location, "comment": comment, "persona": persona}
        review.comments.append({"id": self.comments, **fields, "created_at": WHEN})
        return {"comment_id": self.comments, "review_id": review_id, **fields}

    def review_add_annotation(self, review_id: int, x: int, y: int, comment: str, persona: str) -> Answer:
        return self.review_add_comment(review_id, f"@x:{x},y:{y}", comment, persona)

    def review_list(
        self,
        artifact_id: int | None = None,
        reviewer_persona: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Answer:
        part = cut(limit, offset, 50)
        chosen(status, "in_progress", "completed")
        if artifact_id is not None:
            self._artifact(artifact_id)
        shown = [
            self._listed_review(number, review)
            for number, review in reversed(list(enumerate(self.reviews, 1)))
            if artifact_id in (None, review.artifact)
            and reviewer_persona in (None, review.reviewer)
            and status in (None, review.status)
        ]
        return paged(shown, *part)

    def _listed_review(self, number: int, review: Review) -> Answer:
        return {"id": number, **self._head(review), "created_at": WHEN, "comment_count": len(review.comments)}

    def session_get(self, session_id: str) -> Answer:
        linked = self._session(session_id).artifacts
        reviews = [
            self._listed_review(number, review)
            for number, review in reversed(list(enumerate(self.reviews, 1)))
            if review.artifact in linked
        ]
        named = [worklog for worklog in self.worklogs if worklog.id == session_id]
        worklog = self.described(named[-1]) if named else None
        return given(**super().session_get(session_id), reviews=reviews, worklog=worklog)

    def review_get(self, review_id: int) -> Answer:
        review = self._review(review_id)
        return given(
            **self._listed_review(review_id, review),
            completed_at=WHEN if review.status == "completed" else None,
            overall_comment=review.overall,
            artifact_name=self.artifacts[review.artifact - 1].name,
            artifact_type=self.artifacts[review.artifact - 1].kind,
            items=review.comments[:50],
            total=len(review.comments),
            limit=50,
            offset=0,
        )

    def review_complete(self, review_id: int, overall_comment: str | None = None) -> Answer:
        review = self._review(review_id)
        if review.status == "completed" and overall_comment not in (None, review.overall):
            raise Refused("OPERATION_FAILED")
        if review.status == "in_progress":
            review.status, review.overall = "completed", overall_comment
        return given(review_id=review_id, status="completed", overall_comment=review.overall)

    def review_generate_annotated(self, artifact_id: int, revision_id: int) -> Answer:
        """Answer without the texts."""
        for revision in self._artifact(artifact_id).revisions:
            if revision["id"] == revision_id:
                break
        else:
            raise Refused("NOT_FOUND")
        reviews = [review for review in self.reviews if review.revision is revision]
        return {
            "artifact_id": artifact_id,
            "artifact_name": self.artifacts[artifact_id - 1].name,
            "artifact_type": self.artifacts[artifact_id - 1].kind,
            "revision_id": revision_id,
            "revision_num": revision["revision_num"],
            "total_comments": sum(len(review.comments) for review in reviews),
            "reviewers": list(dict.fromkeys(review.reviewer for review in reviews)),
        }

    def _review(self, number: int) -> Review:
        if number > len(self.reviews):
            raise Refused("REVIEW_NOT_FOUND")
        return self.reviews[number - 1]

    def _head(self, review: Review) -> Answer:
        return {
            "artifact_id": review.artifact,
            "revision_id": review.revision["id"],
            "revision_num": review.revision["revision_num"],
            "reviewer_persona": review.reviewer,
            "status": review.status,
        }
