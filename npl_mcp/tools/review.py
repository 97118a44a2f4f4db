"""Reviews: comments on an artifact's revision, and copies of the revision with its comments.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix
from npl_mcp.app.context import Context
from npl_mcp.stores import session
from npl_mcp.stores.artifact import artifacts
from npl_mcp.stores.artifact.artifacts import RevisionName
from npl_mcp.stores.artifact.files import as_text
from npl_mcp.stores.base import checks, errors
from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.base.values import conditions, fill, values_of
from npl_mcp.stores.review import annotation
from npl_mcp.stores.review.annotation import Comment
from npl_mcp.tools.contract.parameters import Actor, ActorIfOwn, Check, Name, RowId, Text, Unlisted, Whole
from npl_mcp.tools.contract.spec import ToolSpec

MAX_COMMENTS = 10_000
"""Maximum comments of a review."""

MAX_ANNOTATED = 4 * 1024 * 1024
"""Maximum characters of the comments in a copy of a revision."""

RevisionId = Annotated[RowId, "Not its number"]
Pixels = Annotated[int, Check(checks.whole, annotation.MAX_PIXEL)]
Verdict = Annotated[
    str | None, "approved or changes_needed", Check(checks.choice, ("approved", "changes_needed"))
]
Status = Annotated[str | None, "in_progress or completed", Check(checks.choice, ("in_progress", "completed"))]


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


def review_create(
    app: Context, artifact_id: RowId, revision_id: RevisionId, reviewer_persona: Actor
) -> NewReview:
    """Begin a review of a revision.

    :param revision_id: ``revision_id`` from an earlier answer, not the revision's number.
    :returns: a new review.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises ClosedError: the artifact is archived.
    """
    with app.database.write() as tx:
        revision = artifacts.require_revision(tx, artifact_id, revision_id=revision_id)
        return _create(tx, revision, reviewer_persona)


def _create(tx: Transaction, revision: Row, reviewer_persona: str) -> NewReview:
    """Begin a review.

    :param revision: the revision with the names of its artifact.
    """
    artifacts.require_open(tx, revision["artifact_id"])
    about = {"artifact_id": revision["artifact_id"], "revision_id": revision["id"]}
    about["reviewer_persona"] = reviewer_persona
    row = tx.insert("review", "id", created_at=tx.now, **about)
    number = revision["revision_num"]
    return NewReview(review_id=row["id"], **about, revision_num=number, status="in_progress")


def review_add_comment(
    app: Context,
    review_id: RowId,
    location: Annotated[str, "line:3, line:3-5 or a selector"],
    comment: Text,
    persona: Actor,
) -> NewComment:
    """Comment on lines or a section.

    :param location: ``line:3``, ``line:3-5``, ``@x:10,y:20`` on an image, or a selector.
    :returns: a new comment.
    :raises ReviewNotFoundError: there is no such review.
    :raises SectionNotFoundError: the selector selects nothing.
    :raises SelectorSyntaxError: the selector is not valid.
    :raises InvalidRequestError: the location lies outside the file.
    :raises ClosedError: the review is complete.
    """
    place = annotation.parse_place(location)
    with app.database.read() as tx:
        review = _in_progress(tx, review_id)
        revision, content = artifacts.content(tx, review["artifact_id"], review["revision_num"])
    # Other calls may write while the place is looked up.
    where, selector = annotation.locate(place, content, revision["filename"])
    with app.database.write() as tx:
        if _in_progress(tx, review_id)["comment_count"] >= MAX_COMMENTS:
            raise errors.ClosedError(f"review {review_id} is full", hint="begin another review")
        values: dict[str, Any] = {"review_id": review_id, "location": where, "selector": selector}
        values |= {"comment": comment, "persona": persona}
        return NewComment(tx.insert("review_comment", "id", created_at=tx.now, **values)["id"], **values)


def review_add_annotation(
    app: Context, review_id: RowId, x: Pixels, y: Pixels, comment: Text, persona: Actor
) -> NewComment:
    """Comment on a pixel of an image.

    :param x: column of the pixel, from 0.
    :param y: row of the pixel, from 0.
    :returns: a new comment.
    :raises ReviewNotFoundError: there is no such review.
    :raises ClosedError: the review is complete.
    """
    return review_add_comment(app, review_id, f"@x:{x},y:{y}", comment, persona)


def review_list(
    app: Context,
    artifact_id: RowId | None = None,
    reviewer_persona: Name | None = None,
    status: Status = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Page[Review]:
    """List reviews, newest first.

    :param artifact_id: only reviews of this artifact.
    :param reviewer_persona: only reviews of this persona.
    :returns: a page; each item is a review in a list.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    part, only = Slice.parse(limit, offset), {"artifact": artifact_id, "reviewer": reviewer_persona}
    with app.database.read() as tx:
        if artifact_id is not None:
            artifacts.require(tx, artifact_id)
        return find(tx, part, **only, status=status)


def find(tx: Transaction, part: Slice, **only: int | str | None) -> Page[Review]:
    """Return reviews, newest first.

    :param only: conditions by their names; ``None`` for any.
    """
    where, values = conditions(**{name: (_CONDITIONS[name], value) for name, value in only.items()})
    total = tx.value(f"SELECT count(*) FROM review WHERE {where}", **values)
    return tx.page(Review, _REVIEW.format(where=where), total, part, **values)


_CONDITIONS = {
    "artifact": "review.artifact_id = :artifact",
    "reviewer": "review.reviewer_persona = :reviewer",
    "status": "review.status = :status",
    "session": f"review.artifact_id IN {session.ARTIFACTS}",
}


def review_get(
    app: Context,
    review_id: RowId,
    limit: int | None = None,
    offset: int | None = None,
    comments: Annotated[bool, Unlisted] = False,
) -> ReviewContent:
    """Get a review with its comments.

    :param comments: also return the comments as ``comments``, as ``get_review`` does.
    :returns: a review with its comments.
    :raises ReviewNotFoundError: there is no such review.
    """
    part = Slice.parse(limit, offset)
    with app.database.read() as tx:
        review = _review(tx, review_id)
        page = tx.page(Comment, _OF_REVIEW, review["comment_count"], part, review=review_id)
    return fill(ReviewContent, values_of(page) | review, comments=page.items if comments else None)


def review_generate_annotated(app: Context, artifact_id: RowId, revision_id: RevisionId) -> AnnotatedRevision:
    """Copy a revision with all reviews' comments as footnotes.

    :param revision_id: ``revision_id`` from an earlier answer, not the revision's number.
    :returns: a revision with all its reviews.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises StoreError: the comments are too long for one copy.
    """
    with app.database.read() as tx:
        revision, content = artifacts.content(tx, artifact_id, revision_id=revision_id)
        size = tx.value(_SIZE, revision=revision_id)
        if size > MAX_ANNOTATED:
            problem = f"the reviews of revision_id {revision_id} have {size:,} characters; a copy takes"
            hint = "read them page by page with review_get"
            raise errors.StoreError(f"{problem} {MAX_ANNOTATED:,}", hint=hint)
        comments = comments_on(tx, revision_id)
        sql = "SELECT reviewer_persona, overall_comment FROM review WHERE revision_id = :revision ORDER BY id"
        rows = tx.all(sql, revision=revision_id)
    reviewers = [(row["reviewer_persona"], row["overall_comment"]) for row in rows]
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


def review_complete(
    app: Context,
    review_id: RowId,
    overall_comment: Text | None = None,
    reviewer_persona: ActorIfOwn = None,
    verdict: Annotated[Verdict, Unlisted] = None,
) -> Completion:
    """Complete a review.

    :param overall_comment: summary of the review.
    :param verdict: ``approved`` or ``changes_needed``.
    :returns: a completed review.
    :raises ReviewNotFoundError: there is no such review.
    :raises NotAllowedError: another persona began the review.
    :raises ClosedError: the review is complete, with another overall comment or verdict.
    """
    with app.database.write() as tx:
        review = _review(tx, review_id)
        if reviewer_persona not in (None, review["reviewer_persona"]):
            hint = "begin your own"
            raise errors.NotAllowedError(f"review {review_id} is {review['reviewer_persona']!r}'s", hint=hint)
        if review["status"] == "in_progress":
            sql = """
                UPDATE review SET status = 'completed', completed_at = :now, overall_comment = :comment,
                verdict = :verdict WHERE id = :review"""
            tx.run(sql, now=tx.now, comment=overall_comment, verdict=verdict, review=review_id)
            return Completion(review_id, "completed", overall_comment, verdict)
        for name, given in (("overall comment", overall_comment), ("verdict", verdict)):
            if given not in (None, review[name.replace(" ", "_")]):
                problem = f"review {review_id} is complete, with another {name}"
                raise errors.ClosedError(problem, hint="begin a new review to say more")
        return Completion(review_id, "completed", review["overall_comment"], review["verdict"])


def review_comment_own(
    app: Context, artifact_id: RowId, revision: Whole, reviewer_persona: Actor, location: str, comment: Text
) -> NewComment:
    """Comment in the persona's review of a revision, which begins unless it is in progress; both or neither.

    :param revision: the revision's number.
    :returns: a new comment.
    """
    with app.database.joined():
        review = _own_review(app, artifact_id, revision, reviewer_persona)
        return review_add_comment(app, review, location, comment, reviewer_persona)


def review_complete_own(
    app: Context,
    artifact_id: RowId,
    revision: Whole,
    reviewer_persona: Actor,
    overall_comment: Text | None = None,
    verdict: Verdict = None,
) -> Completion:
    """Complete the persona's review of a revision, which begins unless it is in progress; both or neither.

    :param revision: the revision's number.
    :returns: a completed review.
    """
    with app.database.joined():
        review = _own_review(app, artifact_id, revision, reviewer_persona)
        return review_complete(app, review, overall_comment, reviewer_persona, verdict)


def _own_review(app: Context, artifact_id: int, number: int, reviewer_persona: str) -> int:
    """Return the id of a persona's review in progress of a revision; begin a review if it has none.

    :param number: the revision's number.
    """
    sql = """
        SELECT max(id) FROM review WHERE revision_id = :revision AND reviewer_persona = :who
        AND status = 'in_progress'"""
    with app.database.write() as tx:
        revision = artifacts.require_revision(tx, artifact_id, number)
        known: int | None = tx.value(sql, revision=revision["id"], who=reviewer_persona)
        return known or _create(tx, revision, reviewer_persona).review_id


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

TOOLS = (
    ToolSpec(review_create, title="Begin Review", read_only=False, idempotent=False),
    ToolSpec(review_add_comment, title="Comment", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(review_add_annotation, title="Annotate Image", read_only=False, idempotent=False),
    ToolSpec(review_list, title="List Reviews"),
    ToolSpec(review_get, title="Get Review"),
    ToolSpec(review_generate_annotated, title="Copy with Comments", lane="heavy"),
    ToolSpec(review_complete, title="Complete Review", read_only=False),
    ToolSpec(review_comment_own, read_only=False, idempotent=False, lane="heavy", listed=False),
    ToolSpec(review_complete_own, read_only=False, idempotent=False, lane="heavy", listed=False),
)
