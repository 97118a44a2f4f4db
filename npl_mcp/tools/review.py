"""Reviews: comments on an artifact's revision, and copies of the revision with its comments.

:raises InvalidRequestError: an argument is invalid.
:raises DatabaseError: the database cannot be used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from npl_mcp.app.context import Context
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Page, Slice
from npl_mcp.stores.review import annotation
from npl_mcp.stores.review import reviews as store
from npl_mcp.tools.contract.parameters import Actor, ActorIfOwn, Check, Name, RowId, Text, Unlisted, Whole
from npl_mcp.tools.contract.spec import ToolSpec

RevisionId = Annotated[RowId, "Not its number"]
Pixels = Annotated[int, Check(checks.whole, annotation.MAX_PIXEL)]
Verdict = Annotated[str | None, "approved or changes_needed", Check(checks.choice, store.VERDICTS)]
Status = Annotated[str | None, "in_progress or completed", Check(checks.choice, store.STATUSES)]


def review_create(
    app: Context, artifact_id: RowId, revision_id: RevisionId, reviewer_persona: Actor
) -> store.NewReview:
    """Begin a review of a revision.

    :param revision_id: ``revision_id`` from an earlier answer, not the revision's number.
    :returns: a new review.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises ClosedError: the artifact is archived.
    """
    return app.database.writing(store.create, artifact_id, revision_id, reviewer_persona)


def review_add_comment(
    app: Context,
    review_id: RowId,
    location: Annotated[str, "line:3, line:3-5 or a selector"],
    comment: Text,
    persona: Actor,
) -> store.NewComment:
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
    # Other calls may write while the place is looked up.
    revision, content = app.database.reading(store.revision_of, review_id)
    where, selector = annotation.locate(place, content, revision["filename"])
    return app.database.writing(store.comment, review_id, where, selector, comment, persona)


def review_add_annotation(
    app: Context, review_id: RowId, x: Pixels, y: Pixels, comment: Text, persona: Actor
) -> store.NewComment:
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
) -> Page[store.Review]:
    """List reviews, newest first.

    :param artifact_id: only reviews of this artifact.
    :param reviewer_persona: only reviews of this persona.
    :returns: a page; each item is a review in a list.
    :raises ArtifactNotFoundError: there is no such artifact.
    """
    part = Slice.parse(limit, offset)
    return app.database.reading(store.find, part, artifact_id, reviewer_persona, status)


def review_get(
    app: Context,
    review_id: RowId,
    limit: int | None = None,
    offset: int | None = None,
    comments: Annotated[bool, Unlisted] = False,
) -> store.ReviewContent:
    """Get a review with its comments.

    :param comments: also return the comments as ``comments``, as ``get_review`` does.
    :returns: a review with its comments.
    :raises ReviewNotFoundError: there is no such review.
    """
    review = app.database.reading(store.get, review_id, Slice.parse(limit, offset))
    return replace(review, comments=review.items) if comments else review


def review_generate_annotated(
    app: Context, artifact_id: RowId, revision_id: RevisionId
) -> store.AnnotatedRevision:
    """Copy a revision with all reviews' comments as footnotes.

    :param revision_id: ``revision_id`` from an earlier answer, not the revision's number.
    :returns: a revision with all its reviews.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises StoreError: the comments are too long for one copy.
    """
    return app.database.reading(store.annotated_copy, artifact_id, revision_id)


def review_complete(
    app: Context,
    review_id: RowId,
    overall_comment: Text | None = None,
    reviewer_persona: ActorIfOwn = None,
    verdict: Annotated[Verdict, Unlisted] = None,
) -> store.Completion:
    """Complete a review.

    :param overall_comment: summary of the review.
    :param verdict: ``approved`` or ``changes_needed``.
    :returns: a completed review.
    :raises ReviewNotFoundError: there is no such review.
    :raises NotAllowedError: another persona began the review.
    :raises ClosedError: the review is complete, with another overall comment or verdict.
    """
    return app.database.writing(store.complete, review_id, overall_comment, reviewer_persona, verdict)


def review_comment_own(
    app: Context,
    artifact_id: RowId,
    revision: Whole,
    reviewer_persona: Actor,
    location: str,
    comment: Text,
) -> store.NewComment:
    """Comment in the persona's review of a revision, which begins unless it is in progress; both or neither.

    :param revision: the revision's number.
    :returns: a new comment.
    """
    with app.database.joined():
        review = app.database.writing(store.open_review, artifact_id, revision, reviewer_persona)
        return review_add_comment(app, review, location, comment, reviewer_persona)


def review_complete_own(
    app: Context,
    artifact_id: RowId,
    revision: Whole,
    reviewer_persona: Actor,
    overall_comment: Text | None = None,
    verdict: Verdict = None,
) -> store.Completion:
    """Complete the persona's review of a revision, which begins unless it is in progress; both or neither.

    :param revision: the revision's number.
    :returns: a completed review.
    """
    with app.database.write() as tx:
        review = store.open_review(tx, artifact_id, revision, reviewer_persona)
        return store.complete(tx, review, overall_comment, reviewer_persona, verdict)


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
