"""Results of the store of reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npl_mcp.stores.artifact.artifacts import RevisionName
from npl_mcp.stores.review.annotation import Comment, Remark


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
    """

    artifact_name: str
    artifact_type: str
    completed_at: str | None
    overall_comment: str | None
    items: Sequence[Comment]
    total: int
    limit: int
    offset: int


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


@dataclass(frozen=True, slots=True)
class Places:
    """The comments on a revision.

    :param items: comments in the order of writing, at most 1,000.
    :param total: number of all comments.
    :param carried: open threads of earlier revisions, at their places in this one.
    """

    items: Sequence[Remark]
    total: int
    carried: Sequence[Remark]
