"""One search over everything that the other tools are about, and what is new in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Annotated

from annotated_types import Interval

from npl_index.answer.forms import partial_note
from npl_index.answer.marks import in_mark
from npl_index.answer.values import Written
from npl_index.errors import MissingRequestError
from npl_index.library.documents import DocumentRef
from npl_index.tokens.counting import TokenCounter
from npl_mcp.core.app import App
from npl_mcp.core.places import Crumb, places_of
from npl_mcp.core.searching import KINDS, Hit, newest, snippet, words_of
from npl_mcp.core.searching import search as find
from npl_mcp.core.waiting import waits
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Slice
from npl_mcp.tools.domain_names import domains_named
from npl_mcp.tools.npl import Format
from npl_mcp.tools.parameters import CommaList, Unlisted
from npl_mcp.tools.spec import ToolSpec

PAGE = 8
LINE_TOKENS = 40
"""Hits of a page, and tokens of a line in Markdown on average."""

WIDTHS = (80, 64, 52, 40, 30, 0)
"""Characters of a hit's text: the first width whose lines fit."""

LARGEST_PAGE = 50
LONGEST_QUERY = 1_000

_GROUPS = {"message": "messages", "worklog": "worklogs", "artifact": "artifacts", "cr": "change requests"}


@dataclass(frozen=True, slots=True)
class Hits:
    """What was found.

    :param items: a page of it: documents, then the other kinds, each best first. Where there are several
        kinds, half a page at least is documents, and the rest is shared evenly.
    :param total: how much was found.
    :param counts: the same by kind.
    :param limit: most hits of a page.
    :param offset: hits left out before the first.
    :param absent: words and quoted phrases that no section has, the most telling first.
    :param near: words that sections have, by the absent word that they are near.
    :param capped: kinds of which there may be more: only the best were counted.
    :param missing_files: how many files are not indexed yet; ask again for them.
    :param not_searched: what else was not looked through, such as what cannot be read.
    """

    items: tuple[Hit, ...]
    total: int
    counts: Mapping[str, int]
    limit: int
    offset: int
    absent: tuple[str, ...] | None = None
    near: Mapping[str, tuple[str, ...]] | None = None
    capped: tuple[str, ...] | None = None
    missing_files: int | None = None
    not_searched: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Newest:
    """What is new.

    :param items: the newest of each kind, newest first.
    :param kinds: what the caller may search.
    :param places: roots and libraries.
    """

    items: tuple[Hit, ...]
    kinds: tuple[str, ...]
    places: tuple[Crumb, ...]


@waits
async def search(
    app: App,
    query: str,
    kinds: Annotated[str | None, "Some of document, message, worklog, artifact, cr", CommaList] = None,
    limit: int | None = None,
    offset: int | None = None,
    file: Annotated[str | None, Unlisted] = None,
    resource_type: Annotated[str | None, Unlisted] = None,
    item: Annotated[str | None, Unlisted] = None,
    format: Annotated[Format, Unlisted] = None,
) -> Hits | Written[Hits]:
    """Search documents, then messages and other records; one line a hit. "Phrases" and identifiers match as
    written.

    The selectors of its lines go back to ``npl_load_tailored``.

    :param query: words, "phrases" and identifiers.
    :param kinds: some of ``document``, ``message``, ``worklog``, ``artifact`` and ``cr``, with commas between
        them; by default all.
    :param limit: most hits; 8 by default.
    :param offset: hits to leave out before the first.
    :param file: documents that are searched, and nothing else; as for ``npl_load_tailored``.
    :param resource_type: kind of the item: ``component``, ``meta``, ``style``, ``agent``, ``spec``,
        ``prompt``, ``persona``, ``prd``, ``story`` or ``workflow``.
    :param item: name of an item of that kind, or a pattern.
    :returns: what was found.
    :raises MissingRequestError: the query is empty.
    :raises InvalidRequestError: a kind is unknown, or another argument cannot be used.
    :raises DocumentNotFoundError: there is no such file or item.
    :raises DatabaseError: the database cannot be used.
    """
    text = query.strip()[:LONGEST_QUERY]
    if not text:
        raise MissingRequestError("query is empty", parameter="query", hint="write some words")
    page = Slice.parse(limit, offset, PAGE, LARGEST_PAGE)
    named = (kind.strip() for kind in (kinds or "").split(","))
    wanted = checks.choices([kind for kind in named if kind], "kinds", tuple(KINDS))
    ref = DocumentRef.parse(file, resource_type, item)

    async def found() -> Hits:
        every = await find(app, text, seen(app), wanted, None if ref == DocumentRef() else ref)
        absent = {} if every.missing else every.absent or {}  # what is missing may have it
        items = [made() for made in islice(every.hits, page.offset, page.offset + page.limit)]
        return Hits(
            items=tuple(sorted(items, key=lambda hit: list(KINDS).index(hit.kind))),
            total=sum(every.counts.values()),
            counts=every.counts,
            limit=page.limit,
            offset=page.offset,
            absent=tuple(absent) or None,
            near={word: near for word, near in absent.items() if near} or None,
            capped=tuple(kind for kind in every.counts if kind in every.capped) or None,
            missing_files=every.missing or None,
            not_searched=tuple(every.not_searched) or None,
        )

    hits = await app.unchanging(found)
    return Written(hits, _text(hits, words_of(text), app.counter)) if app.form(format) == "markdown" else hits


def _text(hits: Hits, words: Sequence[str], counter: TokenCounter) -> str:
    """Return what was found for a model; long addresses leave less room for the lines that match."""
    room = LINE_TOKENS * max(PAGE, len(hits.items))
    for width in WIDTHS:
        text = "\n".join(_lines(hits, words, width))
        if counter.upper_bound(counter.count(text)) <= room:
            break
    return text


def _lines(hits: Hits, words: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of an answer.

    :param words: of the query.
    :param width: most characters of a hit's text.
    """
    if hits.absent:
        near = hits.near or {}
        lacking = (
            f"{word} (near: {', '.join(near[word])})" if word in near else word for word in hits.absent
        )
        yield in_mark(f"no section has: {', '.join(lacking)}")
    for kind, group in groupby(hits.items, lambda hit: hit.kind):
        if kind in _GROUPS:
            yield f"{_GROUPS[kind]} {hits.counts[kind]}{'+' * (kind in (hits.capped or ()))}:"
        yield from (in_mark(f"{_address(hit)}  {snippet(hit.text, words, width)}".rstrip()) for hit in group)
    shown = hits.offset + len(hits.items)
    if hits.total > shown:
        yield f"{hits.total - shown}{'+' * bool(hits.capped)} more: offset={shown}"
    elif not hits.items:
        yield "nothing found"
    if hits.missing_files:
        yield partial_note(hits.missing_files)
    yield from (in_mark(f"not searched: {' '.join(part.split())}") for part in hits.not_searched or ())


def _address(hit: Hit) -> str:
    """Return where a hit is, and what it is called or who said it."""
    if hit.file:
        return f"{hit.file}:{hit.line}  {hit.selector}  {hit.tokens or 0}"
    if hit.room_id:
        return f"room {hit.room_id} event {hit.event_id}  {hit.by}"
    if hit.session_id:
        return f"{hit.session_id} entry {hit.seq}  {hit.by}"
    return f"artifact:{hit.artifact_id}  {hit.title}"


def seen(app: App) -> tuple[str, ...]:
    """Return the kinds that the server has and the caller sees."""
    domains = domains_named(app.settings.domains)
    return tuple(kind for kind, domain in KINDS.items() if domain in domains and app.sight.has_domain(domain))


def search_newest(
    app: App, limit: Annotated[int, Interval(ge=1, le=LARGEST_PAGE), "Of each kind"] = 5
) -> Newest:
    """Show the newest messages, worklog entries and artifacts.

    :returns: what is new.
    :raises DatabaseError: the database cannot be used.
    """
    kinds = seen(app)
    places = (Crumb(name, address) for _, name, address in places_of(app))
    return Newest(tuple(newest(app, kinds, limit)), kinds, tuple(places) if "document" in kinds else ())


TOOLS = (
    ToolSpec(search, title="Search", always=True, lane="search"),
    ToolSpec(search_newest, listed=False),
)
