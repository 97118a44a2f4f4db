"""Reviews: comments on one revision of an artifact, and annotated copies of it.

Errors are those of :mod:`npl_mcp.stores.base.errors`, and ``InvalidRequestError`` for arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from npl_index.errors import InvalidRequestError
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix
from npl_mcp.stores.artifact import artifacts
from npl_mcp.stores.artifact.artifacts import RevisionName, require, require_open
from npl_mcp.stores.artifact.comparing import matching_lines
from npl_mcp.stores.artifact.files import as_text
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.database import Row, Transaction, damaged
from npl_mcp.stores.base.paging import MAX_PAGE, Page, Slice
from npl_mcp.stores.base.values import conditions, fill, values_of
from npl_mcp.stores.review import annotation
from npl_mcp.stores.review.annotation import Comment

STATUSES = ("in_progress", "completed")
VERDICTS = ("approved", "changes_needed")

MAX_COMMENTS = 10_000
"""Maximum comments of a review."""

MAX_ANNOTATED = 4 * 1024 * 1024
"""Maximum characters of the comments in a copy of a revision."""

MAX_FOLLOWED = 10
"""Latest revisions whose comments are followed to their lines in a later one; each takes up to 1/3 s."""


@dataclass(frozen=True, slots=True)
class NewReview:
    """A new review.

    :param review_id: id of the review.
    :param artifact_id: id of the artifact.
    :param revision_id: row id of the revision.
    :param revision_num: number of the revision.
    :param reviewer_persona: persona of the reviewer.
    :param status: ``in_progress``.
    """

    review_id: int
    artifact_id: int
    revision_id: int
    revision_num: int
    reviewer_persona: str
    status: str


@dataclass(frozen=True, slots=True)
class NewComment:
    """A new comment.

    :param comment_id: id of the comment.
    :param review_id: id of the review.
    :param location: place in the stored form.
    :param comment: text of the comment.
    :param persona: author.
    :param selector: selector of the commented section, if the comment has one.
    """

    comment_id: int
    review_id: int
    location: str
    comment: str
    persona: str
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A review.

    :param id: id of the review.
    :param artifact_id: id of the artifact.
    :param revision_id: row id of the revision.
    :param revision_num: number of the revision.
    :param reviewer_persona: persona of the reviewer.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param status: ``in_progress`` or ``completed``.
    :param verdict: ``approved`` or ``changes_needed``.
    """

    id: int
    artifact_id: int
    revision_id: int
    revision_num: int
    reviewer_persona: str
    created_at: str
    status: str
    verdict: str | None


@dataclass(frozen=True, slots=True)
class ReviewEntry(Review):
    """A review in a list.

    :param comment_count: number of comments.
    """

    comment_count: int


@dataclass(frozen=True, slots=True)
class ReviewContent(Review):
    """A review with its comments.

    :param artifact_name: name of the artifact.
    :param artifact_type: type of the artifact.
    :param completed_at: time of its completion, UTC, ISO 8601.
    :param overall_comment: overall comment of the reviewer.
    :param items: comments of the page, oldest first.
    :param total: number of all comments.
    :param limit: maximum number of comments in a page.
    :param offset: number of comments before the page.
    :param comments: the same as ``items``, for clients of ``get_review``.
    """

    artifact_name: str
    artifact_type: str
    completed_at: str | None
    overall_comment: str | None
    items: Sequence[Comment]
    total: int
    limit: int
    offset: int
    comments: Sequence[Comment] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A completed review, or a thread with its new state.

    :param review_id: id of the review.
    :param status: ``completed``; for a thread ``resolved`` or ``open``.
    :param overall_comment: overall comment of the reviewer.
    :param verdict: ``approved`` or ``changes_needed``.
    :param comment_id: id of the thread's first comment.
    """

    review_id: int
    status: str
    overall_comment: str | None = None
    verdict: str | None = None
    comment_id: int | None = None


@dataclass(frozen=True, slots=True)
class AnnotatedRevision(RevisionName):
    """A revision with all its reviews.

    :param annotated_content: text with footnotes; of another file, all comments with their places.
    :param reviewer_files: comments and overall comment of each reviewer, numbered as in the copy.
    :param total_comments: number of comments in all reviews.
    :param reviewers: personas, in the order of their first reviews.
    """

    annotated_content: str
    reviewer_files: Mapping[str, str]
    total_comments: int
    reviewers: Sequence[str]


def create(tx: Transaction, artifact_id: int, revision_id: int, reviewer_persona: str) -> NewReview:
    """Begin a review.

    :param revision_id: the row id of a revision of the artifact.
    """
    revision = artifacts.require_revision(tx, artifact_id, revision_id=revision_id)
    require_open(tx, artifact_id)
    about = {"artifact_id": artifact_id, "revision_id": revision_id}
    row = tx.insert("review", "id", reviewer_persona=reviewer_persona, created_at=tx.now, **about)
    number = revision["revision_num"]
    return NewReview(row["id"], artifact_id, revision_id, number, reviewer_persona, "in_progress")


def open_review(tx: Transaction, artifact_id: int, number: int, reviewer_persona: str) -> int:
    """Return the id of a persona's review in progress of a revision; begin one if there is none.

    :param number: the revision's number.
    """
    revision = artifacts.require_revision(tx, artifact_id, number)["id"]
    sql = (
        "SELECT max(id) FROM review WHERE artifact_id = :artifact AND revision_id = :revision"
        " AND reviewer_persona = :who AND status = 'in_progress'"
    )
    known = tx.value(sql, artifact=artifact_id, revision=revision, who=reviewer_persona)
    return known or create(tx, artifact_id, revision, reviewer_persona).review_id


def revision_of(tx: Transaction, review_id: int) -> tuple[Row, bytes]:
    """Return the revision of a review in progress, and its content.

    :raises ClosedError: the review is complete.
    """
    review = _in_progress(tx, review_id)
    return artifacts.content(tx, review["artifact_id"], review["revision_num"])


def comment(
    tx: Transaction,
    review_id: int,
    location: str,
    selector: str | None,
    comment: str,
    persona: str,
    reply_to: int | None,
) -> NewComment:
    """Add a comment.

    :param location: the place in the stored form; see :func:`~npl_mcp.stores.review.annotation.locate`.
    :param reply_to: the id of the answered comment, on the same artifact.
    :raises RecordNotFoundError: the answered comment does not exist.
    :raises ClosedError: the review is complete or full.
    """
    review = _in_progress(tx, review_id)
    if reply_to is not None:
        reply_to = _thread(tx, reply_to, review["artifact_id"])["id"]
    if review["comment_count"] >= MAX_COMMENTS:
        raise errors.ClosedError(f"review {review_id} is full", hint="begin another review")
    values: dict[str, Any] = {"review_id": review_id, "location": location, "selector": selector}
    values |= {"comment": comment, "persona": persona}
    row = tx.insert("review_comment", "id", created_at=tx.now, reply_to=reply_to, **values)
    return NewComment(row["id"], **values)


def find(
    tx: Transaction,
    part: Slice,
    artifact_id: int | None = None,
    reviewer_persona: str | None = None,
    status: str | None = None,
    session_id: str | None = None,
) -> Page[ReviewEntry]:
    """Return reviews, newest first.

    :param artifact_id: the artifact; ``None`` for any.
    :param reviewer_persona: the reviewer; ``None`` for any.
    :param status: the status; ``None`` for any.
    :param session_id: the session with links to the artifacts; ``None`` for all artifacts.
    """
    where, values = conditions(
        artifact=("review.artifact_id = :artifact", artifact_id),
        persona=("review.reviewer_persona = :persona", reviewer_persona),
        status=("review.status = :status", status),
        session=(_OF_SESSION, session_id),
    )
    if artifact_id is not None:
        require(tx, artifact_id)
    total = tx.value(f"SELECT count(*) FROM review WHERE {where}", **values)
    return tx.page(ReviewEntry, _REVIEW.format(where=where), total, part, **values)


def get(tx: Transaction, review_id: int, part: Slice) -> ReviewContent:
    """Return a review with a page of its comments, oldest first."""
    review = _review(tx, review_id)
    page = tx.page(Comment, _OF_REVIEW, review["comment_count"], part, review=review_id)
    return fill(ReviewContent, values_of(page) | review)


def resolve(
    tx: Transaction, review_id: int, comment_id: int, persona: str | None, *, resolved: bool
) -> Completion:
    """Resolve or reopen a thread. Idempotent.

    :param comment_id: any comment of the thread.
    :param persona: the persona that resolves or reopens it.
    :raises RecordNotFoundError: the review's artifact has no such comment.
    """
    review = _review(tx, review_id)
    thread = _thread(tx, comment_id, review["artifact_id"])
    if resolved != (thread["resolved_at"] is not None):
        sql = "UPDATE review_comment SET resolved_at = :at, resolved_by = :who WHERE id = :id"
        tx.run(sql, at=tx.now if resolved else None, who=persona if resolved else None, id=thread["id"])
    return Completion(review_id, "resolved" if resolved else "open", comment_id=thread["id"])


def complete(
    tx: Transaction,
    review_id: int,
    overall_comment: str | None,
    reviewer: str | None,
    verdict: str | None = None,
) -> Completion:
    """Complete a review. Idempotent.

    :param reviewer: the required reviewer of the review; ``None`` for any.
    :param verdict: one of :data:`VERDICTS`.
    :raises NotAllowedError: the review has another reviewer.
    :raises ClosedError: the review is complete, with another overall comment or verdict.
    """
    review = _review(tx, review_id)
    if reviewer not in (None, review["reviewer_persona"]):
        hint = "begin your own"
        raise errors.NotAllowedError(f"review {review_id} is {review['reviewer_persona']!r}'s", hint=hint)
    if review["status"] == "in_progress":
        sql = (
            "UPDATE review SET status = 'completed', completed_at = :now, overall_comment = :comment,"
            " verdict = :verdict WHERE id = :review"
        )
        tx.run(sql, now=tx.now, comment=overall_comment, verdict=verdict, review=review_id)
        return Completion(review_id, "completed", overall_comment, verdict)
    for name, given in (("overall comment", overall_comment), ("verdict", verdict)):
        if given not in (None, review[name.replace(" ", "_")]):
            problem = f"review {review_id} is complete, with another {name}"
            raise errors.ClosedError(problem, hint="begin a new review to say more")
    return Completion(review_id, "completed", review["overall_comment"], review["verdict"])


def annotated_copy(tx: Transaction, artifact_id: int, revision_id: int) -> AnnotatedRevision:
    """Return a copy of a revision with the comments of all its reviews.

    A text gets footnotes; of another file, the copy has only the comments.
    """
    revision, content = artifacts.content(tx, artifact_id, revision_id=revision_id)
    size = tx.value(_SIZE, revision=revision_id)
    if size > MAX_ANNOTATED:
        problem = f"the reviews of revision_id {revision_id} have {size:,} characters; a copy takes"
        hint = "read them page by page with review_get"
        raise errors.StoreError(f"{problem} {MAX_ANNOTATED:,}", hint=hint)
    about = {"artifact": artifact_id, "number": revision["revision_num"]}
    sql = _ON_REVISION.format(which="revision.revision_num = :number")
    comments = _comments(tx.all(sql, **about, most=checks.MAX_ID))
    sql = "SELECT reviewer_persona, overall_comment FROM review WHERE revision_id = :revision ORDER BY id"
    reviewers = [
        (row["reviewer_persona"], row["overall_comment"]) for row in tx.all(sql, revision=revision_id)
    ]
    text = as_text(content)
    footnotes = annotation.labels(comments, text or "")
    is_markdown = has_suffix(revision["filename"], MARKDOWN_SUFFIXES)
    return fill(
        AnnotatedRevision,
        revision,
        annotated_content=annotation.annotate(text, footnotes, markdown=is_markdown),
        reviewer_files=annotation.reviewer_files(reviewers, footnotes),
        total_comments=len(comments),
        reviewers=tuple(dict(reviewers)),
    )


def comments_on(tx: Transaction, artifact_id: int, revision_id: int) -> tuple[list[Comment], bytes]:
    """Return the comments on a revision and those of the open threads on earlier ones, and its content.

    The places of comments on earlier revisions are those in these; see :func:`follow`.

    :returns: at most 1,000 comments, those on the latest revision first, and the revision's content.
    """
    revision, content = artifacts.content(tx, artifact_id, revision_id=revision_id)
    about = {"artifact": artifact_id, "number": revision["revision_num"]}
    is_open = "coalesce(thread.resolved_at, review_comment.resolved_at) IS NULL"
    which = f"revision.revision_num <= :number AND (revision.revision_num = :number OR {is_open})"
    rows = tx.first_rows(_ON_REVISION.format(which=which), **about, most=MAX_PAGE)
    return _comments(rows), content


def follow(
    comments: Sequence[Comment], content: bytes, content_of: Callable[[int], bytes]
) -> Iterator[Comment]:
    """Yield comments with those on earlier revisions at their places in a later content.

    Nothing is known about the places of comments that are not followed.

    :param comments: the comments, those on the latest revision first.
    :param content_of: returns the content of an earlier revision.
    """
    new = list(_lines(content))
    left = MAX_FOLLOWED
    for number, of_revision in groupby(comments, lambda comment: comment.revision_num):
        if number is None:
            yield from of_revision
            continue
        kept = matching_lines(list(_lines(content_of(number))), new) if left else {}
        for comment in of_revision:
            lines = range(comment.first, comment.last + 1) if comment.first and comment.last else ()
            present = [kept[line] for line in lines if line in kept]
            first, last = (present[0], present[-1]) if present else (None, None)
            outdated = True if left and lines and not present else None
            yield replace(comment, first=first, last=last, outdated=outdated)
        left = max(left - 1, 0)


def _lines(content: bytes) -> Iterator[str]:
    return (line.rstrip("\r\n") for line in annotation.split_lines(as_text(content) or ""))


_OF_SESSION = """
review.artifact_id IN (SELECT session_artifact.artifact_id FROM session_artifact
JOIN session ON session.number = session_artifact.session_number WHERE session.id = :session)
"""

_REVIEW = """
SELECT review.id, review.artifact_id, artifact.name AS artifact_name, artifact.type AS artifact_type,
    review.revision_id, revision.revision_num, review.reviewer_persona, review.created_at, review.status,
    review.completed_at, review.overall_comment, review.verdict,
    (SELECT count(*) FROM review_comment WHERE review_comment.review_id = review.id) AS comment_count
FROM review
JOIN artifact ON artifact.id = review.artifact_id
JOIN revision ON revision.id = review.revision_id
WHERE {where} ORDER BY review.id DESC LIMIT :limit OFFSET :offset
"""

_COLUMNS = """
review_comment.id, review_comment.location, review_comment.comment, review_comment.persona,
    review_comment.created_at, review_comment.selector, review_comment.reply_to, review_comment.resolved_at,
    review_comment.resolved_by
"""

_OF_REVIEW = f"""
SELECT {_COLUMNS} FROM review_comment
WHERE review_id = :review ORDER BY id LIMIT :limit OFFSET :offset
"""

_ON_REVISION = f"""
SELECT {_COLUMNS}, review.id AS review_id, review.reviewer_persona,
    nullif(revision.revision_num, :number) AS revision_num
FROM review
JOIN review_comment ON review_comment.review_id = review.id
JOIN revision ON revision.id = review.revision_id
LEFT JOIN review_comment AS thread ON thread.id = review_comment.reply_to
WHERE review.artifact_id = :artifact AND {{which}}
ORDER BY revision.revision_num DESC, review_comment.id LIMIT :most
"""

_SIZE = """
SELECT coalesce(sum(length(review.overall_comment)), 0)
    + coalesce(sum((SELECT sum(length(comment)) FROM review_comment WHERE review_id = review.id)), 0)
FROM review WHERE revision_id = :revision
"""


def _review(tx: Transaction, review_id: int) -> Row:
    hint = "review_list lists all reviews"
    missing = errors.ReviewNotFoundError(f"there is no review {review_id}", hint=hint)
    sql = _REVIEW.format(where="review.id = :review")
    return tx.require(missing, sql, review=review_id, limit=1, offset=0)


def _thread(tx: Transaction, comment_id: int, artifact_id: int) -> Row:
    """Return the first comment of a comment's thread."""
    sql = (
        "SELECT thread.id, thread.resolved_at FROM review_comment"
        " JOIN review ON review.id = review_comment.review_id"
        " JOIN review_comment AS thread ON thread.id = coalesce(review_comment.reply_to, review_comment.id)"
        " WHERE review_comment.id = :comment AND review.artifact_id = :artifact"
    )
    hint = "review_get lists the comments of a review"
    missing = errors.RecordNotFoundError(f"artifact {artifact_id} has no comment {comment_id}", hint=hint)
    return tx.require(missing, sql, comment=comment_id, artifact=artifact_id)


def _in_progress(tx: Transaction, review_id: int) -> Row:
    review = _review(tx, review_id)
    if review["status"] != "in_progress":
        raise errors.ClosedError(f"review {review_id} is complete", hint="begin a new review to say more")
    return review


def _comments(rows: Sequence[Row]) -> list[Comment]:
    """Return comments with their places.

    :raises DatabaseError: a location is damaged.
    """
    comments = []
    for row in rows:
        try:
            place = annotation.parse_location(row["location"])
        except (InvalidRequestError, TypeError):
            raise damaged(f"review_comment {row['id']}, column location is not a valid place") from None
        comments.append(Comment(**row, **place._asdict()))
    return comments
