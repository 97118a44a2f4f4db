"""Where the comments on a revision belong: lines of a text, spots of a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npl_mcp.stores.base.database import Row, Transaction
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.stores.base.paging import LARGEST_PAGE
from npl_mcp.stores.review.annotation import Lines, Spot, parse_location
from npl_mcp.stores.review.overlay import picture_format, picture_size


@dataclass(frozen=True, slots=True)
class Placed:
    """A comment and its place.

    :param id: the comment.
    :param review_id: its review.
    :param reviewer_persona: whose review that is.
    :param persona: who wrote the comment.
    :param created_at: UTC, ISO 8601.
    :param comment: the text.
    :param location: the place, as it is kept.
    :param selector: of the section that has these lines, if the place was given so.
    :param first: of a comment on lines: the first of them, from 1.
    :param last: the last of them.
    :param x: of a comment on a spot: pixels from the left.
    :param y: pixels from the top.
    """

    id: int
    review_id: int
    reviewer_persona: str
    persona: str
    created_at: str
    comment: str
    location: str
    selector: str | None
    first: int | None
    last: int | None
    x: int | None
    y: int | None


@dataclass(frozen=True, slots=True)
class Places:
    """The comments on a revision.

    :param items: in the order in which they were written; the first 1,000.
    :param total: comments there are.
    :param width: of a PNG or JPEG: pixels.
    :param height: pixels.
    """

    items: Sequence[Placed]
    total: int
    width: int | None = None
    height: int | None = None


def read(tx: Transaction, revision_id: int) -> tuple[tuple[Placed, ...], int]:
    """Return the first comments of all reviews of a revision, and how many there are."""
    total = tx.value(f"SELECT count(*) {_FROM}", revision=revision_id)
    rows = tx.some(
        f"{_SELECT} {_FROM} ORDER BY review_comment.id LIMIT :most", revision=revision_id, most=LARGEST_PAGE
    )
    return tuple(map(_placed, rows)), total


def size_of(content: bytes) -> tuple[int, int] | tuple[None, None]:
    """Return width and height of a picture on which marks can be shown."""
    if picture_format(content) is None:
        return None, None
    try:
        return picture_size(content)
    except StoreError:  # damaged, too large, or nothing to measure it with: shown as far as a browser can
        return None, None


def _placed(row: Row) -> Placed:
    place = parse_location(row["location"])
    lines = (place.first, place.last) if isinstance(place, Lines) else (None, None)
    spot = (place.x, place.y) if isinstance(place, Spot) else (None, None)
    return Placed(**row, first=lines[0], last=lines[1], x=spot[0], y=spot[1])


_SELECT = """
SELECT review_comment.id, review.id AS review_id, review.reviewer_persona, review_comment.persona,
    review_comment.created_at, review_comment.comment, review_comment.location, review_comment.selector
"""

_FROM = (
    "FROM review JOIN review_comment ON review_comment.review_id = review.id"
    " WHERE review.revision_id = :revision"
)
