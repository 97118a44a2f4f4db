"""Reviews: comments on one revision of an artifact, and annotated copies of it.

Errors are those of :mod:`npl_mcp.stores.base.errors`, and ``InvalidRequestError`` for arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix
from npl_mcp.stores import session
from npl_mcp.stores.artifact import artifacts
from npl_mcp.stores.artifact.artifacts import RevisionName, require, require_open
from npl_mcp.stores.artifact.files import as_text
from npl_mcp.stores.base import errors
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import conditions, fill, values_of
from npl_mcp.stores.review import annotation
from npl_mcp.stores.review.annotation import Comment

STATUSES = ("in_progress", "completed")
VERDICTS = ("approved", "changes_needed")

MAX_COMMENTS = 10_000
"""Maximum comments of a review."""

MAX_ANNOTATED = 4 * 1024 * 1024
"""Maximum characters of the comments in a copy of a revision."""


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
    """A review in a list.

    :param id: id of the review.
    :param artifact_id: id of the artifact.
    :param revision_id: row id of the revision.
    :param revision_num: number of the revision.
    :param reviewer_persona: persona of the reviewer.
    :param created_at: time of its creation, UTC, ISO 8601.
    :param status: ``in_progress`` or ``completed``.
    :param verdict: ``approved`` or ``changes_needed``.
    :param comment_count: number of comments.
    """

    id: int
    artifact_id: int
    revision_id: int
    revision_num: int
    reviewer_persona: str
    created_at: str
    status: str
    verdict: str | None
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
    """A completed review.

    :param review_id: id of the review.
    :param status: ``completed``.
    :param overall_comment: overall comment of the reviewer.
    :param verdict: ``approved`` or ``changes_needed``.
    """

    review_id: int
    status: str
    overall_comment: str | None
    verdict: str | None


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
    tx: Transaction, review_id: int, location: str, selector: str | None, comment: str, persona: str
) -> NewComment:
    """Add a comment.

    :param location: the place in the stored form; see :func:`~npl_mcp.stores.review.annotation.locate`.
    :raises ClosedError: the review is complete or full.
    """
    if _in_progress(tx, review_id)["comment_count"] >= MAX_COMMENTS:
        raise errors.ClosedError(f"review {review_id} is full", hint="begin another review")
    values: dict[str, Any] = {"review_id": review_id, "location": location, "selector": selector}
    values |= {"comment": comment, "persona": persona}
    row = tx.insert("review_comment", "id", created_at=tx.now, **values)
    return NewComment(row["id"], **values)


def find(
    tx: Transaction,
    part: Slice,
    artifact_id: int | None = None,
    reviewer_persona: str | None = None,
    status: str | None = None,
    session_id: str | None = None,
) -> Page[Review]:
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
        session=(f"review.artifact_id IN {session.ARTIFACTS}", session_id),
    )
    if artifact_id is not None:
        require(tx, artifact_id)
    total = tx.value(f"SELECT count(*) FROM review WHERE {where}", **values)
    return tx.page(Review, _REVIEW.format(where=where), total, part, **values)


def get(tx: Transaction, review_id: int, part: Slice) -> ReviewContent:
    """Return a review with a page of its comments, oldest first."""
    review = _review(tx, review_id)
    page = tx.page(Comment, _OF_REVIEW, review["comment_count"], part, review=review_id)
    return fill(ReviewContent, values_of(page) | review)


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
    comments = comments_on(tx, revision_id)
    sql = "SELECT reviewer_persona, overall_comment FROM review WHERE revision_id = :revision ORDER BY id"
    reviewers = [
        (row["reviewer_persona"], row["overall_comment"]) for row in tx.all(sql, revision=revision_id)
    ]
    text = as_text(content)
    footnotes = annotation.labels(list(comments), text or "")
    reviewer_of = {comment.id: reviewer for comment, reviewer in comments.items()}
    is_markdown = has_suffix(revision["filename"], MARKDOWN_SUFFIXES)
    return fill(
        AnnotatedRevision,
        revision,
        annotated_content=annotation.annotate(text, footnotes, markdown=is_markdown),
        reviewer_files=annotation.reviewer_files(reviewers, footnotes, reviewer_of),
        total_comments=len(comments),
        reviewers=tuple(dict(reviewers)),
    )


def comments_on(tx: Transaction, revision_id: int) -> dict[Comment, str]:
    """Return the comments of all reviews of a revision, each with the persona of its review."""
    rows = tx.all(_ON_REVISION, revision=revision_id)
    return {fill(Comment, row): row["reviewer_persona"] for row in rows}


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

_COLUMNS = ", ".join(f"review_comment.{field.name}" for field in fields(Comment))

_OF_REVIEW = f"""
SELECT {_COLUMNS} FROM review_comment
WHERE review_id = :review ORDER BY id LIMIT :limit OFFSET :offset
"""

_ON_REVISION = f"""
SELECT {_COLUMNS}, review.reviewer_persona
FROM review JOIN review_comment ON review_comment.review_id = review.id
WHERE review.revision_id = :revision ORDER BY review_comment.id
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


def _in_progress(tx: Transaction, review_id: int) -> Row:
    review = _review(tx, review_id)
    if review["status"] != "in_progress":
        raise errors.ClosedError(f"review {review_id} is complete", hint="begin a new review to say more")
    return review
