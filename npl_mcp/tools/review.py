"""Reviews: comments on an artifact's revision, and copies of it with the comments in them."""

from __future__ import annotations

from typing import Annotated

from npl_mcp.core.app import App
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Page
from npl_mcp.stores.review.annotation import Spot
from npl_mcp.stores.review.overlay import MOST_PIXELS
from npl_mcp.stores.review.places import Places
from npl_mcp.stores.review.values import (
    AnnotatedRevision,
    Completion,
    NewComment,
    NewReview,
    ReviewContent,
    ReviewEntry,
)
from npl_mcp.tools.spec import ToolSpec

RevisionId = Annotated[int, "Not its number"]


def review_create(app: App, artifact_id: int, revision_id: RevisionId, reviewer_persona: str) -> NewReview:
    """Begin a review of a revision.

    :param revision_id: the ``revision_id`` of other answers, not the number of the revision.
    :returns: a review that was begun.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises ClosedError: the artifact is archived.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.review.create(artifact_id, revision_id, reviewer_persona)


def review_add_comment(
    app: App,
    review_id: int,
    location: Annotated[str, "line:3, line:3-5 or a selector"],
    comment: str,
    persona: str,
) -> NewComment:
    """Comment on lines or a section.

    :param location: ``line:3``, ``line:3-5``, ``@x:10,y:20`` on an image, or a selector.
    :returns: a comment that was added.
    :raises ReviewNotFoundError: there is no such review.
    :raises SectionNotFoundError: the selector selects nothing.
    :raises SelectorSyntaxError: the selector cannot be read.
    :raises InvalidRequestError: the location lies outside the file, or another argument cannot be used.
    :raises ClosedError: the review is complete.
    :raises StorageError: the file cannot be read.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.review.comment(review_id, location, comment, persona)


def review_add_annotation(app: App, review_id: int, x: int, y: int, comment: str, persona: str) -> NewComment:
    """Comment on a pixel of an image.

    :returns: a comment that was added.
    :raises ReviewNotFoundError: there is no such review.
    :raises InvalidRequestError: the spot lies outside the picture, or another argument cannot be used.
    :raises ClosedError: the review is complete.
    :raises StorageError: the file cannot be read.
    :raises DatabaseError: the database cannot be used.
    """
    spot = Spot(checks.whole(x, "x", MOST_PIXELS), checks.whole(y, "y", MOST_PIXELS))
    return app.stores.review.comment(review_id, str(spot), comment, persona)


def review_list(
    app: App,
    artifact_id: int | None = None,
    reviewer_persona: str | None = None,
    status: Annotated[str | None, "in_progress or completed"] = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Page[ReviewEntry]:
    """List reviews, newest first.

    :returns: a page; each item is a review in a list.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.review.list(artifact_id, reviewer_persona, status, limit=limit, offset=offset)


def review_get(
    app: App, review_id: int, limit: int | None = None, offset: int | None = None
) -> ReviewContent:
    """Get a review with its comments.

    :returns: a review with its comments.
    :raises ReviewNotFoundError: there is no such review.
    :raises InvalidRequestError: the id cannot be one, or the limit or the offset is out of range.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.review.get(review_id, limit, offset)


def review_generate_annotated(app: App, artifact_id: int, revision_id: RevisionId) -> AnnotatedRevision:
    """Copy a revision with all reviews' comments as footnotes, or marks on an image.

    :param revision_id: the ``revision_id`` of other answers, not the number of the revision.
    :returns: a revision with all its reviews.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises InvalidRequestError: an id cannot be one.
    :raises StoreError: it is neither text nor a PNG or JPEG.
    :raises StorageError: a file cannot be read or written.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.review.annotated(artifact_id, revision_id)


def review_complete(
    app: App,
    review_id: int,
    overall_comment: str | None = None,
    reviewer_persona: Annotated[str | None, "Only if it is this persona's; a token implies its own"] = None,
) -> Completion:
    """Complete a review.

    :returns: a review that is complete.
    :raises ReviewNotFoundError: there is no such review.
    :raises NotAllowedError: it is somebody else's.
    :raises ClosedError: it is complete, with another overall comment.
    :raises InvalidRequestError: an argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    return app.stores.review.complete(review_id, overall_comment, reviewer_persona)


def review_places(app: App, artifact_id: int, revision_id: int) -> Places:
    """Show all comments on a revision, each with its place.

    :returns: the comments on a revision.
    :raises ArtifactNotFoundError: there is no such artifact.
    :raises RecordNotFoundError: it has no such revision.
    :raises InvalidRequestError: an id cannot be one.
    :raises DatabaseError: the database cannot be used.
    :raises StorageError: the file is gone, cannot be read, or was changed.
    """
    return app.stores.review.places(artifact_id, revision_id)


TOOLS = (
    ToolSpec(review_create, title="Begin Review", read_only=False, idempotent=False),
    ToolSpec(review_add_comment, title="Comment", read_only=False, idempotent=False, lane="heavy"),
    ToolSpec(review_add_annotation, title="Annotate Image", read_only=False, idempotent=False),
    ToolSpec(review_list, title="List Reviews"),
    ToolSpec(review_get, title="Get Review"),
    ToolSpec(review_generate_annotated, title="Copy with Comments", read_only=False, lane="heavy"),
    ToolSpec(review_complete, title="Complete Review", read_only=False, implied=("reviewer_persona",)),
    ToolSpec(review_places, listed=False, lane="heavy"),
)
