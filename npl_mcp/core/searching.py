"""One search over documents, messages, worklogs, artifacts and change requests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from heapq import nlargest
from itertools import zip_longest

from npl_index.errors import NotFoundError, NPLError, OutsideRootError
from npl_index.library.documents import DocumentRef
from npl_index.library.documents import Found as FoundDocument
from npl_index.library.references import document_name
from npl_index.markdown.sections import Span
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.scoring import LIMIT, Query, rank
from npl_index.selectors.writing import qualified
from npl_mcp.changes.documents import FoundRequest
from npl_mcp.core.app import App, Gathered
from npl_mcp.core.document_sets import NotIndexedError
from npl_mcp.core.progress import end_if_abandoned
from npl_mcp.core.waiting import hurried
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.searching import MOST, Match, Rows

KINDS: Mapping[str, str] = {
    "document": "npl",
    "message": "chat",
    "worklog": "worklog",
    "artifact": "artifact",
    "cr": "cr",
}
"""What is searched, each with the domain that it belongs to."""

_CRS = "cr:*"
_NAMES = {"document": ("", "lib:*"), "artifact": ("artifact:*",), "cr": (_CRS,)}
"""Sets of documents, by the kind that is searched in them."""

SNIPPET = 160
"""Characters that are shown of a text."""

_WORD = re.compile(r"\w[\w.+#@/-]*")
_MOST_WORDS = 8
"""Words of a question that rows are compared with; each costs a look at all of them."""

_BEFORE = 40
_SHORT = 3
_LOOKED_AT = 20_000
"""Characters of a text that a snippet is looked for in."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found, and where it is.

    :param kind: document, message, worklog, artifact or cr.
    :param title: what people call it.
    :param text: some of it, around the first word that was asked for.
    :param score: how well it fits, 0 to 1; within one kind.
    :param file: of a document, and of an artifact or CR that is Markdown: what tools accept as a file.
    :param selector: of the section.
    :param room_id: of a message.
    :param event_id: of a message.
    :param session_id: of a worklog.
    :param seq: of the entry.
    :param artifact_id: of an artifact.
    :param revision: its current one.
    :param key: of a CR.
    :param by: who said it.
    :param at: when.
    """

    kind: str
    title: str
    text: str
    score: float | None = None
    file: str | None = None
    selector: str | None = None
    room_id: int | None = None
    event_id: int | None = None
    session_id: str | None = None
    seq: int | None = None
    artifact_id: int | None = None
    revision: int | None = None
    key: str | None = None
    by: str | None = None
    at: str | None = None


Made = Callable[[], Hit]
"""Makes a hit that is shown: the text of a document is read for it."""


@dataclass
class Found:
    """What a search found, and what it has not looked through.

    :param app: as the caller sees it.
    :param query: what is looked for.
    :param words: that rows are compared with.
    :param began: when the search did, in seconds of the monotonic clock.
    :param counts: how much of each kind.
    :param capped: kinds of which only the best were counted.
    :param missing: files that are not indexed yet, since the call did not wait for them.
    :param not_searched: what else was not looked through, and why.
    :param hits: best first: of each kind the best, of each kind the second, and so on.
    """

    app: App
    query: str
    words: Sequence[str]
    began: float = field(default_factory=time.monotonic)
    counts: Mapping[str, int] = field(default_factory=dict)
    capped: list[str] = field(default_factory=list)
    missing: int = 0
    not_searched: list[str] = field(default_factory=list)
    hits: Sequence[Made] = ()


def words_of(query: str) -> list[str]:
    """Return the words that rows are compared with."""
    found = dict.fromkeys(word.strip("./-").lower() for word in _WORD.findall(query))
    long = [word for word in found if len(word) >= _SHORT or not word.isascii()]
    return (long or list(found))[:_MOST_WORDS]


async def search(app: App, query: str, kinds: Sequence[str], wanted: Sequence[str] = ()) -> Found:
    """Find what fits a question.

    :param kinds: of :data:`KINDS`, as far as the caller sees them.
    :param wanted: those that are looked for; none means all.
    """
    found, store = Found(app, query, words_of(query)), app.stores.searching
    # Who sees change requests as such sees them nowhere else as well, so that these are always known.
    searched = [kind for kind in _NAMES if kind in kinds and (not wanted or kind in wanted or kind == "cr")]
    sets = {kind: await _sets(found, *_NAMES[kind]) for kind in searched}
    left_out = _paths(one for gathered in sets.get("cr", ()) for one in gathered.founds)
    finders: Mapping[str, Callable[[str], list[Made]]] = {
        "document": lambda kind: _ranked(found, kind, sets[kind], left_out),
        "message": lambda kind: _rows(found, kind, store.messages(found.words)),
        "worklog": lambda kind: _rows(found, kind, store.worklog(found.words, app.project)),
        # Sections of artifacts that are Markdown, then artifacts by what they are called.
        "artifact": lambda kind: [
            *_ranked(found, kind, sets[kind]),
            *_rows(found, kind, store.artifacts(found.words)),
        ],
        "cr": lambda kind: _ranked(found, kind, sets[kind]),
    }
    parts = {kind: finders[kind](kind) for kind in kinds if not wanted or kind in wanted}
    found.counts = {kind: len(part) for kind, part in parts.items() if part}
    found.hits = [hit for level in zip_longest(*parts.values()) for hit in level if hit is not None]
    return found


async def _sets(found: Found, *names: str) -> list[Gathered]:
    """Return the sets of documents of some names, as far as there are any that can be read."""
    sets = []
    for name in names:
        end_if_abandoned()
        try:
            gathered = await hurried(found.app.gathered(DocumentRef(file=name or None)), found.began)
        except (NotFoundError, OutsideRootError):
            pass  # there are none that the caller sees
        except NotIndexedError as error:
            found.missing += error.files
        except NPLError as error:
            found.not_searched.append(f"{name or 'documents'}: {error.message}")
        else:
            sets.append(gathered)
            found.missing += gathered.missing
            if bad := gathered.unreadable:
                found.not_searched.append(f"{len(bad):,} of {name or 'the documents'}, such as {bad[0]}")
    return sets


def _paths(crs: Iterable[FoundDocument]) -> frozenset[str]:
    """Return where change requests lie; who sees them as such sees them nowhere else as well."""
    return frozenset(one.absolute for one in crs)


def _ranked(
    found: Found, kind: str, sets: Sequence[Gathered], left_out: frozenset[str] = frozenset()
) -> list[Made]:
    """Return the sections of some sets of documents that fit, best first.

    :param left_out: paths of documents that do not count.
    """
    best: list[tuple[float, Made]] = []
    query, weights = Query(extract_keywords(found.query)), found.app.settings.weights
    for gathered in sets:
        end_if_abandoned()
        hits = rank(gathered.collection, query, weights=weights)
        if len(hits) >= LIMIT:
            found.capped.append(kind)
        for hit in hits:
            if gathered.founds[hit.document].absolute in left_out:
                continue
            if not hit.section and not gathered.collection.size_of(hit.document, 0):
                continue  # a document without words before its first heading is found by its sections
            total = hit.score.total
            best.append((total, _section(gathered, hit.document, hit.section, kind, total, found.words)))
    return [made for _, made in sorted(best, key=lambda one: -one[0])]


def _section(
    gathered: Gathered, document: int, section: int, kind: str, score: float, words: Sequence[str]
) -> Made:
    def made() -> Hit:
        file = gathered.files[document]
        parsed = gathered.collection.documents[document]
        one = parsed.tree.sections[section]
        selector = qualified(document_name(file), parsed.step(section))
        try:
            text = snippet(parsed.tree.text(Span(one.heading_lines.stop, one.own.stop)), words)
        except StoreError as error:  # it was damaged since it was indexed
            text = error.message
        artifact, _, revision = file.partition(":")[2].partition("@") if kind == "artifact" else ("", "", "")
        return Hit(
            kind=kind,
            title=one.name,
            text=text,
            score=round(score, 3),
            file=file,
            selector=selector,
            artifact_id=int(artifact) if artifact else None,
            revision=int(revision) if revision else None,
            key=file.partition(":")[2] if kind == "cr" else None,
        )

    return made


def _rows(found: Found, kind: str, rows: Rows) -> list[Made]:
    end_if_abandoned()
    matches, not_searched = rows
    found.not_searched += not_searched
    if len(matches) >= MOST:
        found.capped.append(kind)
    return [partial(_hit, kind, one, found.words) for one in matches]


def _hit(kind: str, match: Match, words: Sequence[str]) -> Hit:
    """Return a row as a hit: its columns have the names of the fields."""
    columns = {name: value for name, value in match.row.items() if name in Hit.__slots__}
    return Hit(kind=kind, text=snippet(match.text, words), **columns)


def snippet(text: str, words: Sequence[str]) -> str:
    """Return a part of a text around the first word that it holds, on one line."""
    line = " ".join(text[:_LOOKED_AT].split())
    lower = line.lower()
    places = [at for word in words if (at := lower.find(word)) >= 0]
    begin = max(0, min(places, default=0) - _BEFORE) if len(line) > SNIPPET else 0
    if begin:
        begin = line.find(" ", begin, begin + _BEFORE) + 1 or begin
    part = line[begin : begin + SNIPPET]
    if begin + SNIPPET < len(line):
        part = f"{part[: part.rfind(' ', SNIPPET // 2) + 1] or part}…"
    return f"… {part}" if begin else part


def _found(app: App, name: str | None) -> Sequence[FoundDocument]:
    """Return where the documents of a name are, if there are any."""
    try:
        return app.documents.find(DocumentRef(file=name))
    except NPLError:
        return ()


def _changed(
    app: App, kind: str, found: Sequence[FoundDocument], limit: int, left_out: Container[str] = ()
) -> Iterator[Hit]:
    """Yield the files of a set that changed last, but for those of some paths."""
    listed = app.documents.listed(found)
    counted = (one for one in listed.there if one[0].absolute not in left_out)
    last = nlargest(limit, counted, key=lambda one: one[1].mtime_ns)
    for (one, state), name in zip(last, app.documents.names([one for one, _ in last]), strict=True):
        at = stamp(datetime.fromtimestamp(state.mtime_ns / 1e9, timezone.utc))
        if isinstance(one, FoundRequest):
            key = name.partition(":")[2]
            yield Hit(kind, key, one.title, file=name, key=key, at=at)
        else:
            yield Hit(kind, name, "", file=name, at=at)


def newest(app: App, kinds: Sequence[str], limit: int) -> Iterator[Hit]:
    """Yield what was written last, as far as the caller sees it.

    :param limit: of each kind.
    """
    crs = _found(app, _CRS) if "cr" in kinds else ()
    if "document" in kinds:
        yield from _changed(app, "document", _found(app, None), limit, _paths(crs))
    yield from _changed(app, "cr", crs, limit)
    for kind, matches in app.stores.searching.newest(app.project, limit).items():
        if kind in kinds:
            yield from (_hit(kind, one, ()) for one in matches)
