"""Pages of lists, ordered by id, with a cursor for callers that return for new entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Generic, TypeVar

from npl_mcp.stores.base import checks

T = TypeVar("T")

MAX_PAGE = 1_000
PAGE = 50
MAX_OFFSET = 10**9


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list.

    :param items: entries of the page.
    :param total: number of entries in the whole list.
    :param limit: maximum number of entries in a page, after capping.
    :param offset: number of entries before the page.
    :param cursor: cursor of a feed; send it as ``since`` to get later entries.
    """

    items: Sequence[T]
    total: int
    limit: int
    offset: int
    cursor: int | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """A requested part of a list.

    :param limit: maximum number of entries.
    :param offset: number of entries to skip.
    """

    limit: int
    offset: int

    @classmethod
    def parse(cls, limit: int | None, offset: int | None, default: int = PAGE, most: int = MAX_PAGE) -> Slice:
        """Check the requested part of a list.

        :param default: the limit if none is given.
        :param most: the maximum limit; a greater one is lowered to it.
        :raises InvalidRequestError: the limit is not above 0, or the offset below 0.
        """
        wanted = checks.whole(default if limit is None else limit, "limit", least=1)
        return cls(min(wanted, most), checks.whole(offset or 0, "offset", MAX_OFFSET))

    def page(self, items: Iterable[T], total: int, cursor: int | None = None) -> Page[T]:
        """Return a page with this part of a list.

        :param total: the number of entries in the whole list.
        """
        return Page(tuple(items), total, self.limit, self.offset, cursor)

    def cut(self, every: Sequence[T]) -> Page[T]:
        """Return this part of a complete list in memory."""
        return self.page(every[self.offset : self.offset + self.limit], len(every))


def now() -> str:
    """Return the current time of this machine in the stored form: UTC, ISO 8601, microseconds, ``Z``.

    Times that replicas compare are those of :attr:`~npl_mcp.stores.base.database.Transaction.now`.
    """
    return stamp(datetime.now(timezone.utc))


def stamp(moment: datetime) -> str:
    """Format a time for storage; a time without zone counts as UTC."""
    aware = moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)
    return aware.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment_of(text: str) -> datetime:
    """Parse a time written by :func:`stamp`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def later(text: str, by: timedelta) -> str:
    """Return a stored time plus a duration."""
    return stamp(moment_of(text) + by)
