"""Results of the store of reviews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npl_mcp.stores.base.values import Picture
from npl_mcp.stores.review.annotation import Remark


@dataclass(frozen=True, slots=True)
class NewReview:
    """A review that was begun.

    :param review_id: the review.
    :param artifact_id: the artifact.
    :param revision_id: row id of the revision.
    :param revision_num: its number.
    :param reviewer_persona: whose review it is.
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
    """A comment that was added.

    :param comment_id: the comment.
    :param review_id: the review.
    :param location: the place, as it is kept.
    :param comment: the text.
    :param persona: who wrote it.
    :param selector: of the section that has these lines, if the place was given so.
    """

    comment_id: int
    review_id: int
    location: str
    comment: str
    persona: str
    selector: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a review.

    :param id: the comment.
    :param location: ``line:<n>``, ``line:<first>-<last>`` or ``@x:<n>,y:<n>``.
    :param comment: the text.
    :param persona: who wrote it.
    :param created_at: UTC, ISO 8601.
    :param selector: of the section that has these lines, if the place was given so.
    :param reply_to: the comment that it answers.
    :param resolved_at: when its thread was resolved, UTC, ISO 8601.
    :param resolved_by: by whom.
    """

    id: int
    location: str
    comment: str
    persona: str
    created_at: str
    selector: str | None
    reply_to: int | None
    resolved_at: str | None
    resolved_by: str | None


@dataclass(frozen=True, slots=True)
class ReviewEntry:
    """A review in a list.

    :param id: the review.
    :param artifact_id: the artifact.
    :param revision_id: row id of the revision.
    :param revision_num: its number.
    :param reviewer_persona: whose review it is.
    :param created_at: UTC, ISO 8601.
    :param status: ``in_progress`` or ``completed``.
    :param comment_count: comments.
    :param verdict: ``approved`` or ``changes_needed``.
    """

    id: int
    artifact_id: int
    revision_id: int
    revision_num: int
    reviewer_persona: str
    created_at: str
    status: str
    comment_count: int
    verdict: str | None


@dataclass(frozen=True, slots=True)
class ReviewContent:
    """A review with its comments.

    :param id: the review.
    :param artifact_id: the artifact.
    :param artifact_name: its name.
    :param artifact_type: its type.
    :param revision_id: row id of the revision.
    :param revision_num: its number.
    :param reviewer_persona: whose review it is.
    :param created_at: UTC, ISO 8601.
    :param status: ``in_progress`` or ``completed``.
    :param completed_at: UTC, ISO 8601.
    :param overall_comment: what the reviewer says about the whole.
    :param verdict: ``approved`` or ``changes_needed``.
    :param items: a page of the comments, oldest first.
    :param total: comments there are.
    :param limit: most of a page.
    :param offset: comments before the first of the page.
    """

    id: int
    artifact_id: int
    artifact_name: str
    artifact_type: str
    revision_id: int
    revision_num: int
    reviewer_persona: str
    created_at: str
    status: str
    completed_at: str | None
    overall_comment: str | None
    verdict: str | None
    items: Sequence[Comment]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A review that is complete, or a thread of it that was resolved or reopened.

    :param review_id: the review.
    :param status: ``completed``; of a thread ``resolved`` or ``open``.
    :param overall_comment: what the reviewer says about the whole.
    :param verdict: ``approved`` or ``changes_needed``.
    :param comment_id: the comment that begins the thread.
    """

    review_id: int
    status: str
    overall_comment: str | None = None
    verdict: str | None = None
    comment_id: int | None = None


@dataclass(frozen=True, slots=True)
class AnnotatedRevision:
    """A revision with all its reviews.

    :param artifact_id: the artifact.
    :param artifact_name: its name.
    :param revision_id: row id of the revision.
    :param revision_num: its number.
    :param annotated_content: of a text: the text with footnotes.
    :param image: of a picture: the picture with marks and a legend; sent beside this text.
    :param annotated_revision_id: of a picture: row id of the revision it was stored as.
    :param annotated_revision_num: its number.
    :param file_path: its absolute path.
    :param reviewer_files: each reviewer's comments and overall comment; the numbers are those of the copy.
    :param total_comments: comments of all reviews.
    :param reviewers: in the order of their first reviews.
    """

    artifact_id: int
    artifact_name: str
    revision_id: int
    revision_num: int
    annotated_content: str | None
    image: Picture | None
    annotated_revision_id: int | None
    annotated_revision_num: int | None
    file_path: str | None
    reviewer_files: Mapping[str, str]
    total_comments: int
    reviewers: Sequence[str]


@dataclass(frozen=True, slots=True)
class Places:
    """The comments on a revision.

    :param items: in the order in which they were written; the first 1,000.
    :param total: comments there are.
    :param carried: open threads of earlier revisions, at their places in this one.
    :param width: of a PNG or JPEG: pixels.
    :param height: pixels.
    """

    items: Sequence[Remark]
    total: int
    carried: Sequence[Remark] = ()
    width: int | None = None
    height: int | None = None
