"""One search over everything that the other tools are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.library.references import near_names
from npl_mcp.core.app import App
from npl_mcp.core.searching import KINDS, Hit
from npl_mcp.core.searching import search as find
from npl_mcp.core.waiting import waits
from npl_mcp.stores.base.paging import Slice
from npl_mcp.tools.domain_names import domains_named
from npl_mcp.tools.spec import CommaList, ToolSpec

PAGE = 10
"""Hits of a page: some 700 tokens."""

LARGEST_PAGE = 50
LONGEST_QUERY = 1_000


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found.

    :param items: a page of it, best first: of each kind the best, of each kind the second, and so on.
    :param total: how much was found.
    :param counts: the same by kind.
    :param limit: most hits of a page.
    :param offset: hits left out before the first.
    :param capped: kinds of which there may be more: only the best were counted.
    :param missing_files: how many files are not indexed yet; ask again for them.
    :param not_searched: what else was not looked through: the oldest rows of many, and what cannot be read.
    """

    items: tuple[Hit, ...]
    total: int
    counts: Mapping[str, int]
    limit: int
    offset: int
    capped: tuple[str, ...] | None = None
    missing_files: int | None = None
    not_searched: tuple[str, ...] | None = None


@waits
async def search(
    app: App,
    query: str,
    kinds: Annotated[str | None, "Some of document, message, worklog, artifact, cr", CommaList] = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Hits:
    """Search everything, or some kinds of it.

    :param kinds: some of ``document``, ``message``, ``worklog``, ``artifact`` and ``cr``, with commas between
        them; by default all.
    :returns: what was found.
    :raises MissingRequestError: the query is empty.
    :raises InvalidRequestError: a kind is unknown, or another argument cannot be used.
    :raises DatabaseError: the database cannot be used.
    """
    text = query.strip()[:LONGEST_QUERY]
    if not text:
        raise MissingRequestError("query is empty", parameter="query", hint="write some words")
    page = Slice.parse(limit, offset, PAGE)
    most = min(page.limit, LARGEST_PAGE)
    wanted = _wanted(kinds)

    async def found() -> Hits:
        every = await find(app, text, seen(app), wanted)
        return Hits(
            items=tuple(made() for made in every.hits[page.offset : page.offset + most]),
            total=len(every.hits),
            counts=every.counts,
            limit=most,
            offset=page.offset,
            capped=tuple(kind for kind in every.counts if kind in every.capped) or None,
            missing_files=every.missing or None,
            not_searched=tuple(every.not_searched) or None,
        )

    return await app.unchanging(found)


def seen(app: App) -> tuple[str, ...]:
    """Return the kinds that the server has and the caller sees."""
    domains = domains_named(app.settings.domains)
    return tuple(kind for kind, domain in KINDS.items() if domain in domains and app.sight.has_domain(domain))


def _wanted(kinds: str | None) -> list[str]:
    wanted = [kind.strip() for kind in (kinds or "").split(",") if kind.strip()]
    for kind in wanted:
        if kind not in KINDS:
            near = near_names(kind[:64], KINDS)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(KINDS)}"
            raise InvalidRequestError(f"there is no kind {kind[:64]!r}", parameter="kinds", hint=hint)
    return wanted


TOOLS = (ToolSpec(search, title="Search", always=True, lane="search"),)
