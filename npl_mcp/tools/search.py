"""One search over documents and all records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Annotated, Any

from annotated_types import Interval

from npl_index.answer.forms import in_brackets, partial_note
from npl_index.answer.marks import change_marks, in_mark
from npl_index.answer.values import Written
from npl_index.errors import MissingRequestError
from npl_index.library.documents import DocumentRef
from npl_index.selectors.filters import SectionFilter
from npl_index.tokens.counting import TokenCounter
from npl_mcp.app.context import Context
from npl_mcp.app.queries import MAX_WAIT, QueryConditions, words_of
from npl_mcp.app.reading import report_changes
from npl_mcp.app.searching import KINDS, SearchHit, snippet, visible_kinds
from npl_mcp.app.searching import search as find
from npl_mcp.app.waiting import MAX_SECONDS
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import Slice
from npl_mcp.tools.contract.parameters import CommaList, Unlisted
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.npl import UnlistedFormat

PAGE = 8
"""Default number of hits."""

LINE_TOKENS = 40
"""Average tokens of a line in Markdown."""

WIDTHS = (80, 64, 52, 40, 30, 0)
"""Characters of a hit's text; the first width with fitting lines is used."""

MAX_HITS = 50
MAX_QUERY = 1_000

_GROUPS = {"message": "messages", "worklog": "worklogs", "artifact": "artifacts", "cr": "change requests"}


@dataclass(frozen=True, slots=True)
class Hits:
    """A page of hits.

    :param indexed: remark on hits in a part of the files.
    :param changed: selectors of sections that have changed since the caller read them.
    :param items: hits of documents, then of the other kinds, each best first. With several kinds, documents
        have at least half of the page, and the others share the rest evenly.
    :param total: number of all hits.
    :param counts: number of hits by kind.
    :param limit: maximum number of hits in a page.
    :param offset: number of hits before the page.
    :param absent: words and quoted phrases that no section has, the rarest first.
    :param not_served: numbers of documents below the roots that are not served, with the reasons, if nothing
        is found.
    :param near: similar words of sections, by absent word.
    :param capped: kinds that may have more hits, because only the best were counted.
    :param missing_files: number of files that are not indexed yet; a later call has them.
    :param not_searched: documents and kinds of records that were not searched, with the reasons.
    """

    indexed: str | None = field(default=None, kw_only=True)
    changed: tuple[str, ...] | None = field(default=None, kw_only=True)
    items: tuple[SearchHit, ...]
    total: int
    counts: Mapping[str, int]
    limit: int
    offset: int
    absent: tuple[str, ...] | None = None
    not_served: str | None = None
    near: Mapping[str, tuple[str, ...]] | None = None
    capped: tuple[str, ...] | None = None
    missing_files: int | None = None
    not_searched: tuple[str, ...] | None = None


async def search(
    app: Context,
    query: str,
    kinds: Annotated[str | None, "document, message, worklog, artifact, cr", CommaList] = None,
    limit: int | None = None,
    offset: int | None = None,
    file: Annotated[str | None, Unlisted] = None,
    resource_type: Annotated[str | None, Unlisted] = None,
    item: Annotated[str | None, Unlisted] = None,
    format: UnlistedFormat = None,
    filter: Annotated[dict[str, Any] | None, Unlisted] = None,
    path: Annotated[str | None, "docs/api", CommaList] = None,
    without: Annotated[list[str] | None, Unlisted] = None,
    seconds: Annotated[float, Interval(ge=0, le=MAX_SECONDS), Unlisted] = MAX_WAIT,
) -> Hits | Written[Hits]:
    """Search documents, then messages and other records; one line a hit. "Phrases" and identifiers match as
    written.

    ``npl_load_tailored`` takes the selectors of its lines.

    :param query: words, "phrases" and identifiers.
    :param kinds: some of ``document``, ``message``, ``worklog``, ``artifact`` and ``cr``, separated by
        commas; by default all.
    :param limit: maximum number of hits; 8 by default.
    :param offset: number of hits to skip.
    :param file: the only documents to search, in the form of ``npl_load_tailored``.
    :param filter: conditions of sections, as in ``npl_section_index``; no other records are searched then.
    :param path: parts of the path of the documents to search, separated by commas.
    :param without: words that no hit has.
    :param seconds: maximum wait for the index of documents.
    :returns: a page of hits.
    :raises MissingRequestError: the query is empty.
    :raises InvalidRequestError: a kind is unknown, or another argument is invalid.
    :raises DocumentNotFoundError: there is no such file or item.
    :raises DatabaseError: the database cannot be used.
    """
    text = query.strip()[:MAX_QUERY]
    if not text:
        raise MissingRequestError("query is empty", parameter="query", hint="write some words")
    page = Slice.parse(limit, offset, PAGE, MAX_HITS)
    wanted = [checks.choice(kind, "kinds", tuple(KINDS)) for kind in _parts(kinds)]
    wanted = wanted or ["document"] * bool(filter)
    only = DocumentRef(file, resource_type, item) if file or resource_type or item else None
    is_all = only is None and "document" in (wanted or visible_kinds(app))

    def hits_now() -> Hits | Written[Hits]:
        conditions = QueryConditions(_parts(path), tuple(without or ()), seconds, SectionFilter.parse(filter))
        every = find(app, text, wanted, only, conditions)
        absent = {} if every.missing else every.absent or {}  # missing files may have the words
        items = list(islice(every.hits, page.offset, page.offset + page.limit))
        hits = Hits(
            changed=report_changes(app),
            items=tuple(sorted(items, key=lambda hit: list(KINDS).index(hit.kind))),
            total=sum(every.counts.values()),
            counts=+every.counts,  # without zeros
            limit=page.limit,
            offset=page.offset,
            absent=tuple(absent) or None,
            not_served=(not items and is_all and app.library.not_served()) or None,
            near={word: near for word, near in absent.items() if near} or None,
            capped=tuple(kind for kind in every.counts if kind in every.capped) or None,
            indexed=partial_note(every.indexed, every.missing),
            missing_files=every.missing or None,
            not_searched=tuple(every.not_searched) or None,
        )
        if app.form(format) != "markdown":
            return hits
        return Written(hits, _hits_text(hits, words_of(text), app.counter))

    return await app.read(hits_now)


def _parts(names: str | None) -> tuple[str, ...]:
    """Return names separated by commas."""
    return tuple(name for part in (names or "").split(",") if (name := part.strip()))


def _hits_text(hits: Hits, words: Sequence[str], counter: TokenCounter) -> str:
    """Return the hits as text for a model; long addresses leave less room for matching lines."""
    room = LINE_TOKENS * max(PAGE, len(hits.items))
    for width in WIDTHS:
        text = "\n".join(_hit_lines(hits, words, width))
        if counter.upper_bound(counter.count(text)) <= room:
            break
    return (f"{hits.indexed}\n" if hits.indexed else "") + change_marks(hits.changed or ()) + text


def _hit_lines(hits: Hits, words: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of an answer.

    :param words: words of the query.
    :param width: maximum characters of a hit's text.
    """
    if hits.absent:
        notes = {word: f" (near: {', '.join(alike)})" for word, alike in (hits.near or {}).items()}
        yield in_mark(f"no section has: {', '.join(word + notes.get(word, '') for word in hits.absent)}")
    for kind, group in groupby(hits.items, lambda hit: hit.kind):
        if kind in _GROUPS:
            yield f"{_GROUPS[kind]} {hits.counts[kind]}{'+' * (kind in (hits.capped or ()))}:"
        for hit in group:
            yield in_mark(f"{_place_text(hit)}  {snippet(hit.text, words, width)}".rstrip())
    shown = hits.offset + len(hits.items)
    if hits.total > shown:
        yield f"{hits.total - shown}{'+' * bool(hits.capped)} more: offset={shown}"
    elif not hits.items:
        yield "nothing found"
    if hits.not_served:
        yield in_mark(f"not served: {hits.not_served}")
    yield from (in_mark(f"not searched: {' '.join(part.split())}") for part in hits.not_searched or ())


def _place_text(hit: SearchHit) -> str:
    """Return the place of a hit with its name or author."""
    if hit.file:
        selector = hit.selector or ""
        title = None if "#" in selector or (hit.title or "") in selector else hit.title  # of front matter
        return f"{hit.file}:{hit.line}  {selector}  {hit.tokens or 0}{in_brackets(title, hit.note)}"
    if hit.room_id:
        return f"room {hit.room_id} event {hit.event_id}  {hit.by}"
    if hit.session_id:
        return f"{hit.session_id} entry {hit.seq}  {hit.by}"
    return f"artifact:{hit.artifact_id}  {hit.title}"


TOOLS = (ToolSpec(search, title="Search", always=True, lane="search"),)
