"""One search over documents, messages, worklogs, artifacts and change requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from heapq import nlargest

from npl_index.errors import NPLError
from npl_index.library.documents import DocumentRef
from npl_index.library.documents import Found as FoundDocument
from npl_index.library.references import document_name
from npl_index.markdown.sections import Span
from npl_index.ranking.analysis import extract_keywords
from npl_index.ranking.scoring import LIMIT, Query, rank
from npl_index.selectors.writing import qualified
from npl_mcp.changes.documents import FoundRequest
from npl_mcp.core.app import App, Gathered
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.searching import MOST, Match

KINDS: Mapping[str, str] = {
    "document": "npl",
    "message": "chat",
    "worklog": "worklog",
    "artifact": "artifact",
    "cr": "cr",
}
"""What is searched, each with the domain that it belongs to."""

_CRS = "cr:*"

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


@dataclass(frozen=True, slots=True)
class Found:
    """All that a search found.

    :param counts: how much of each kind.
    :param capped: kinds of which only the best were counted.
    :param missing: files that are not indexed yet, since the call did not wait for them.
    :param hits: best first: of each kind the best, of each kind the second, and so on.
    """

    counts: Mapping[str, int]
    capped: tuple[str, ...]
    missing: int
    hits: Sequence[Made]


def words_of(query: str) -> list[str]:
    """Return the words that rows are compared with."""
    found = dict.fromkeys(word.strip("./-").lower() for word in _WORD.findall(query))
    long = [word for word in found if len(word) >= _SHORT or not word.isascii()]
    return (long or list(found))[:_MOST_WORDS]


def search(app: App, query: str, kinds: Sequence[str], wanted: Sequence[str] = ()) -> Found:
    """Find what fits a question.

    :param kinds: of :data:`KINDS`, as far as the caller sees them.
    :param wanted: those that are looked for; none means all.
    """
    words = words_of(query)
    crs = _sets(app, _CRS) if "cr" in kinds else []
    left_out = _paths(one for gathered in crs for one in gathered.founds)
    finders: Mapping[str, Callable[[], _Part]] = {
        "document": lambda: _ranked(app, query, _sets(app, "", "lib:*"), "document", words, left_out),
        "message": lambda: _rows(app.stores.searching.messages(words), _message, words),
        "worklog": lambda: _rows(app.stores.searching.worklog(words, app.project), _entry, words),
        "artifact": lambda: _artifacts(app, query, words),
        "cr": lambda: _ranked(app, query, crs, "cr", words),
    }
    parts = {kind: finders[kind]() for kind in kinds if not wanted or kind in wanted}
    every = {kind: part for kind, part in parts.items() if part.hits}
    longest = max((len(part.hits) for part in every.values()), default=0)
    return Found(
        counts={kind: len(part.hits) for kind, part in every.items()},
        capped=tuple(kind for kind, part in every.items() if part.capped),
        missing=sum(part.missing for part in parts.values()),
        hits=[part.hits[at] for at in range(longest) for part in every.values() if at < len(part.hits)],
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What was found of one kind.

    :param hits: best first.
    :param capped: there may be more.
    :param missing: files that are not indexed yet.
    """

    hits: Sequence[Made]
    capped: bool
    missing: int = 0


def _sets(app: App, *names: str) -> list[Gathered]:
    """Return the sets of documents of some names, as far as there are any that can be read."""
    found = []
    for name in names:
        with suppress(NPLError):
            found.append(app.gather(DocumentRef(file=name or None)))
    return found


def _paths(crs: Iterable[FoundDocument]) -> frozenset[str]:
    """Return where change requests lie; who sees them as such sees them nowhere else as well."""
    return frozenset(one.absolute for one in crs)


def _ranked(
    app: App,
    query: str,
    sets: Sequence[Gathered],
    kind: str,
    words: Sequence[str],
    left_out: frozenset[str] = frozenset(),
) -> _Part:
    """Return the sections of some sets of documents that fit, best first.

    :param left_out: paths of documents that do not count.
    """
    found: list[tuple[float, Made]] = []
    capped, missing = False, 0
    for gathered in sets:
        hits = rank(gathered.collection, Query(extract_keywords(query)), weights=app.settings.weights)
        capped, missing = capped or len(hits) >= LIMIT, missing + gathered.missing
        for hit in hits:
            if gathered.founds[hit.document].absolute in left_out:
                continue
            if not hit.section and not gathered.collection.size_of(hit.document, 0):
                continue  # a document without words before its first heading is found by its sections
            total = hit.score.total
            found.append((total, _section(gathered, hit.document, hit.section, kind, total, words)))
    return _Part([made for _, made in sorted(found, key=lambda one: -one[0])], capped, missing)


def _section(
    gathered: Gathered, document: int, section: int, kind: str, score: float, words: Sequence[str]
) -> Made:
    def made() -> Hit:
        file = gathered.files[document]
        parsed = gathered.collection.documents[document]
        one = parsed.tree.sections[section]
        selector = qualified(document_name(file), parsed.step(section))
        text = snippet(parsed.tree.text(Span(one.heading_lines.stop, one.own.stop)), words)
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


def _rows(matches: Sequence[Match], made: Callable[[Match, str], Hit], words: Sequence[str]) -> _Part:
    return _Part([partial(_row, one, made, words) for one in matches], len(matches) >= MOST)


def _row(match: Match, made: Callable[[Match, str], Hit], words: Sequence[str]) -> Hit:
    return made(match, snippet(match.text, words))


def _artifacts(app: App, query: str, words: Sequence[str]) -> _Part:
    """Return sections of artifacts that are Markdown, then artifacts by what they are called."""
    ranked = _ranked(app, query, _sets(app, "artifact:*"), "artifact", words)
    named = _rows(app.stores.searching.artifacts(words), _artifact, words)
    return _Part([*ranked.hits, *named.hits], ranked.capped or named.capped, ranked.missing)


def _message(match: Match, text: str) -> Hit:
    row = match.row
    return Hit(
        kind="message",
        title=row["room"],
        text=text,
        room_id=row["room_id"],
        event_id=row["event_id"],
        by=row["persona"],
        at=row["timestamp"],
    )


def _entry(match: Match, text: str) -> Hit:
    row = match.row
    return Hit(
        kind="worklog",
        title=row["action"],
        text=text,
        session_id=row["session_id"],
        seq=row["seq"],
        by=row["agent_id"],
        at=row["timestamp"],
    )


def _artifact(match: Match, text: str) -> Hit:
    row = match.row
    return Hit(
        kind="artifact",
        title=row["name"],
        text=text,
        artifact_id=row["artifact_id"],
        revision=row["revision"],
        at=row["timestamp"],
    )


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
    makers: Mapping[str, Callable[[Match, str], Hit]]
    makers = {"message": _message, "worklog": _entry, "artifact": _artifact}
    for kind, matches in app.stores.searching.newest(app.project, limit).items():
        if kind in kinds:
            yield from (makers[kind](one, snippet(one.text, ())) for one in matches)
