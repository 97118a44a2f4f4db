"""One search over documents, messages, worklogs, artifacts and change requests."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from typing import NamedTuple

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.nowhere import nowhere
from npl_index.answer.packing import MORE_POINTERS
from npl_index.answer.pointers import LINE_CHARACTERS, matching_line
from npl_index.errors import NotFoundError, NPLError, OutsideRootError
from npl_index.library.documents import DocumentRef, Found
from npl_index.markdown.sections import Span
from npl_index.ranking.analysis import Keywords, cut_word, extract_keywords
from npl_index.ranking.coverage import Coverage, evidence
from npl_index.ranking.scoring import LIMIT, SCORE_CUTOFF, Query, rank
from npl_mcp.core.app import App, Gathered
from npl_mcp.core.document_sets import NotIndexedError
from npl_mcp.core.progress import end_if_abandoned
from npl_mcp.core.waiting import hurried
from npl_mcp.documents.cr_documents import FoundRequest
from npl_mcp.stores.base.errors import StoreError
from npl_mcp.stores.base.paging import stamp
from npl_mcp.stores.searching import MOST, Match

KINDS: Mapping[str, str] = {
    "document": "npl",
    "message": "chat",
    "worklog": "worklog",
    "artifact": "artifact",
    "cr": "cr",
}
"""The kinds of hits, each with its domain."""

_CRS = DocumentRef(file="cr:*")
_SETS = {
    "document": (DocumentRef(), DocumentRef(file="lib:*")),
    "artifact": (DocumentRef(file="artifact:*"),),
    "cr": (_CRS,),
}
"""The sets of documents by kind of hit."""

_SECONDS = {"document": 8.0}
"""Seconds that a search waits for an index, if not one second: a folder of some hundred files is answered."""

AT_A_TIME = 4
"""Hits in documents per hit of another kind: at least half a page, and no kind is hidden."""

SNIPPET = 160
"""Maximum characters of a snippet."""

_WORD = re.compile(r"\w[\w.+#@/-]*")
_PHRASE = re.compile(r"""["“]([^"“”]+)["”]""")
_MARKUP = str.maketrans("", "", "`*")
_SPELT_WORTH = 0.5
"""Weight of a word as spelt, relative to its stem, in the choice of a line."""

_ALL = 0.99
_MOST_WORDS = 8
"""Maximum words of a question that are compared with rows; each costs a scan of all of them."""

_LOOKED_FOR = 6
"""Maximum words and stems for the choice of a section's line."""

_SHORT = 3
_LOOKED_AT = 20_000
"""Maximum characters of a text that are searched for a snippet."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A hit of a search, with its location.

    :param kind: document, message, worklog, artifact or cr.
    :param title: what people call it.
    :param text: some of it, around a word that was asked for; of a section the line that holds most of them.
    :param score: how well it fits, 0 to 1; within one kind.
    :param file: of a document, and of an artifact or CR that is Markdown: what tools accept as a file.
    :param line: of the file, from 1: that of the text, or of the heading if only that holds a word.
    :param selector: of the section's own text; ``npl_load_tailored`` takes it as it is.
    :param tokens: of the section's own text.
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
    line: int | None = None
    selector: str | None = None
    tokens: int | None = None
    room_id: int | None = None
    event_id: int | None = None
    session_id: str | None = None
    seq: int | None = None
    artifact_id: int | None = None
    revision: int | None = None
    key: str | None = None
    by: str | None = None
    at: str | None = None


Made = Callable[[], SearchHit]
"""Returns a displayed hit: the text of a document is read only then."""


@dataclass
class SearchResult:
    """The result of a search, and its omissions.

    :param app: the caller's view.
    :param keywords: of the question.
    :param phrases: quoted phrases of the question.
    :param words: the words that are compared with rows.
    :param counts: number of hits of each kind.
    :param capped: kinds of which only the best hits were counted.
    :param missing: files that are not indexed yet, because the call did not wait for them.
    :param not_searched: other omissions, with the reasons.
    :param absent: words that no section has, with similar words; ``None`` if no sections were searched.
    :param hits: best first: documents, with the best of each other kind among them.
    """

    app: App
    keywords: Keywords
    phrases: Sequence[str]
    words: Sequence[str]
    counts: dict[str, int] = field(default_factory=dict)
    capped: list[str] = field(default_factory=list)
    missing: int = 0
    not_searched: list[str] = field(default_factory=list)
    absent: dict[str, tuple[str, ...]] | None = None
    hits: Iterable[Made] = ()

    def count(self, kind: str, number: int) -> None:
        """Record the number of hits of a kind."""
        if number:
            self.counts[kind] = self.counts.get(kind, 0) + number

    def lacks(self, absent: Mapping[str, tuple[str, ...]]) -> None:
        """Record absent words of one set, with similar words; a word is absent if all sets lack it."""
        if self.absent is not None:
            absent = {word: (*self.absent[word], *absent[word]) for word in self.absent if word in absent}
        self.absent = {word: tuple(dict.fromkeys(near)) for word, near in absent.items()}


def phrases_of(query: str) -> list[str]:
    """Return the quoted phrases, normalised for comparison."""
    return [phrase for quoted in _PHRASE.findall(query) if (phrase := _flat(quoted))]


def _flat(text: str) -> str:
    return " ".join(text.translate(_MARKUP).split()).casefold()


def words_of(query: str) -> list[str]:
    """Return the phrases and words that are compared with rows."""
    found = dict.fromkeys(word.strip("./-").lower() for word in _WORD.findall(query))
    long = [word for word in found if len(word) >= _SHORT or not word.isascii()]
    return list(dict.fromkeys([*phrases_of(query), *(long or found)]))[:_MOST_WORDS]


async def search(
    app: App, query: str, kinds: Sequence[str], wanted: Sequence[str] = (), ref: DocumentRef | None = None
) -> SearchResult:
    """Search for a question.

    :param kinds: of :data:`KINDS`, as far as the caller sees them.
    :param wanted: the kinds to search; an empty sequence means all.
    :param ref: search only these documents.
    """
    found = SearchResult(app, extract_keywords(query), phrases_of(query), words_of(query))
    store = app.stores.searching
    if ref is not None:
        found.hits = _ranked(found, "document", {ref: await app.gathered(ref)})
        return found
    # Change requests are left out of the other document results if the caller sees them as such, so they are
    # always listed.
    searched = [kind for kind in _SETS if kind in kinds and (not wanted or kind in wanted or kind == "cr")]
    sets = {kind: await _sets(found, _SETS[kind], _SECONDS.get(kind, 1.0)) for kind in searched}
    left_out = _paths(one for gathered in sets.get("cr", {}).values() for one in gathered.founds)
    finders: Mapping[str, Callable[[str], Iterable[Made]]] = {
        "document": lambda kind: _ranked(found, kind, sets[kind], left_out),
        "message": lambda kind: _rows(found, kind, store.messages(found.words)),
        "worklog": lambda kind: _rows(found, kind, store.worklog(found.words, app.project)),
        # Sections of artifacts that are Markdown, then artifacts by their names.
        "artifact": lambda kind: chain(
            _ranked(found, kind, sets[kind]), _rows(found, kind, store.artifacts(found.words))
        ),
        "cr": lambda kind: _ranked(found, kind, sets[kind]),
    }
    parts = {kind: finders[kind](kind) for kind in kinds if not wanted or kind in wanted}
    found.hits = _mixed(parts)
    return found


def _mixed(parts: Mapping[str, Iterable[Made]]) -> Iterator[Made]:
    left = {kind: iter(part) for kind, part in parts.items()}
    while left:
        for kind in list(left):
            taken = list(islice(left[kind], AT_A_TIME if kind == "document" else 1))
            yield from taken
            if not taken:
                del left[kind]


async def _sets(
    found: SearchResult, refs: Iterable[DocumentRef], seconds: float
) -> dict[DocumentRef, Gathered]:
    """Return the readable sets of documents.

    :param seconds: patience with each set that is being indexed.
    """
    sets = {}
    for ref in refs:
        end_if_abandoned()
        try:
            gathered = await hurried(found.app.gathered(ref), time.monotonic(), seconds)
        except (NotFoundError, OutsideRootError):
            pass  # the caller sees no documents of this set
        except NotIndexedError as error:
            found.missing += error.files
        except NPLError as error:
            found.not_searched.append(f"{ref.file or 'documents'}: {error.message}")
        else:
            sets[ref] = gathered
    return sets


def _paths(crs: Iterable[Found]) -> frozenset[str]:
    """Paths of change requests, to leave out of the document results."""
    return frozenset(one.absolute for one in crs)


class _Section(NamedTuple):
    """A section in the results.

    :param score: 0 to 1.
    """

    documents: DocumentSet
    document: int
    section: int
    score: float

    @property
    def text(self) -> str:
        """Its own text with the heading."""
        tree = self.documents.tree(self.document)
        return tree.text(tree.sections[self.section].own)

    @property
    def names(self) -> str:
        """Further text that counts as its words: the headings above it, and the front matter for a page's
        first section.
        """
        tree = self.documents.tree(self.document)
        one = tree.sections[self.section]
        names = [tree.sections[index].name for index in tree.ancestors(self.section)]
        if one.level <= 1:
            names.append(tree.source[: tree.line_starts[tree.sections[0].own.start]])
        return "\n".join([*names, one.title, one.name])

    def spells(self, words: re.Pattern[str]) -> bool:
        """Return whether it contains one of some words as spelt."""
        try:
            return bool(words.search(self.text) or words.search(self.names))
        except StoreError:  # damaged since it was indexed
            return False

    def holds(self, phrase: str) -> bool:
        """Return whether it contains a phrase verbatim."""
        try:
            return (
                re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", _flat(f"{self.names}\n{self.text}"))
                is not None
            )
        except StoreError:
            return False


def _ranked(
    found: SearchResult,
    kind: str,
    sets: Mapping[DocumentRef, Gathered],
    left_out: Collection[str] = (),
) -> Iterator[Made]:
    """Return the matching sections of some sets of documents, best first.

    Sections with a quoted phrase come first; sections without any word as spelt come last.

    :param left_out: paths of excluded documents.
    """
    best: list[tuple[int, _Section]] = []
    together = tuple(map(_terms, found.phrases))
    spelt, names = _spelt(found.keywords), all(word.identifier for word in found.keywords.written)
    for ref, gathered in sets.items():
        end_if_abandoned()
        found.missing += gathered.missing
        if bad := gathered.unreadable:
            found.not_searched.append(f"{len(bad):,} of {ref.file or 'the documents'}, such as {bad[0]}")
        limit = len(gathered.collection) + 1 if found.phrases else LIMIT
        ranking = rank(
            gathered.collection,
            Query(found.keywords, together=together),
            weights=found.app.settings.weights,
            score_cutoff=0 if found.phrases else SCORE_CUTOFF,
            limit=limit,
        )
        documents = _shown(found, ref, gathered, ranking.coverage)
        sections = [_Section(documents, one.document, one.section, one.score.total) for one in ranking.hits]
        holders = {phrase: _holders(phrase, sections, ranking.coverage) for phrase in found.phrases}
        absent = nowhere(documents, ranking.coverage)
        unheld = {f'"{cut_word(phrase)}"': () for phrase, some in holders.items() if not any(some)}
        found.lacks(absent | unheld)
        kept = [
            (sum(some[number] for some in holders.values()), one)
            for number, one in enumerate(sections)
            if gathered.founds[one.document].absolute not in left_out
            # A document without text before its first heading is found by its sections.
            and (one.section or gathered.collection.size_of(one.document, 0))
            # If the question has only identifiers, their parts are a different matter.
            and (not names or ranking.hits[number].score.content)
        ]
        if not any(map(any, holders.values())) and evidence(ranking.coverage).verdict == "absent":
            # A section with a word or two of such a question is a chance match, if another word is nowhere.
            few = kept[:MORE_POINTERS]
            kept = [one for one in few if one[1].spells(spelt)] or ([] if absent or unheld else few)
        elif len(sections) >= limit:
            found.capped.append(kind)
        found.count(kind, len(kept))
        best += kept
    best.sort(key=lambda one: (-one[0], -one[1].score))
    return _spelt_first([one for _, one in best], kind, spelt, found.words)


def _shown(found: SearchResult, ref: DocumentRef, gathered: Gathered, coverage: Coverage) -> DocumentSet:
    """Return documents under the names for hits, the same as in pointers of a tailored load."""
    counter, counts = found.app.counting(gathered.collection)
    telling = sorted(zip(coverage.weights.tolist(), coverage.words, strict=True), reverse=True)[:_LOOKED_FOR]
    wanted = {term: weight for weight, word in telling for term in word.meant}
    for weight, word in telling:
        wanted.setdefault(word.shown.lower(), weight * _SPELT_WORTH)
    return DocumentSet(
        collection=gathered.collection,
        several=gathered.several,
        file="",
        counts=counts,
        counter=counter,
        files=gathered.files,
        complete=gathered.several and not gathered.missing and found.app.searches_all(ref, ()),
        wanted=tuple(wanted.items())[:_LOOKED_FOR],
    )


def _holders(phrase: str, sections: Sequence[_Section], coverage: Coverage) -> list[bool]:
    """Return which sections contain a phrase; only texts that contain its words are read."""
    terms = {word.terms for word in extract_keywords(phrase).written}
    rows = [number for number, word in enumerate(coverage.words) if word.terms in terms]
    may = coverage.shares[rows].min(axis=0, initial=float(bool(rows))) > _ALL
    return [likely and one.holds(phrase) for one, likely in zip(sections, may.tolist(), strict=False)]


def _terms(phrase: str) -> tuple[str, ...]:
    """Return the index terms that every text with the phrase contains."""
    return tuple(dict.fromkeys(chain(*(word.terms for word in extract_keywords(phrase).written))))


def _spelt(keywords: Keywords) -> re.Pattern[str]:
    """Return a pattern for some words as spelt, ignoring case."""
    words = [word.shown for word in keywords.written]
    bounded = (rf"(?<!\w){re.escape(word)}(?!\w)" if word.isascii() else re.escape(word) for word in words)
    return re.compile("|".join(bounded), re.IGNORECASE)


def _spelt_first(
    sections: Iterable[_Section], kind: str, spelt: re.Pattern[str], words: Sequence[str]
) -> Iterator[Made]:
    """Yield sections with a word as spelt in the question, then the others; only displayed ones are read."""
    others = []
    for one in sections:
        if one.spells(spelt):
            yield partial(_made, one, kind, words)
        else:
            others.append(one)
    yield from (partial(_made, one, kind, words) for one in others)


def _made(one: _Section, kind: str, words: Sequence[str]) -> SearchHit:
    documents, place = one.documents, (one.document, one.section)
    file, tree = documents.path(one.document), documents.tree(one.document)
    section, part = tree.sections[one.section], documents.part(place, chosen=False)
    tokens = None
    try:
        body = tree.text(Span(section.heading_lines.stop, section.own.stop))
        line, text = matching_line(documents, part) or (
            section.own.start,
            snippet(body, words, LINE_CHARACTERS),
        )
        tokens = part.size.last
    except StoreError as error:  # damaged since it was indexed
        line, text = section.own.start, error.message
    artifact, _, revision = file.partition(":")[2].partition("@") if kind == "artifact" else ("", "", "")
    return SearchHit(
        kind=kind,
        title=section.name,
        text=text,
        score=round(one.score, 3),
        file=file,
        line=line + 1,
        selector=documents.selector(place, own=True),
        tokens=tokens,
        artifact_id=int(artifact) if artifact else None,
        revision=int(revision) if revision else None,
        key=file.partition(":")[2] if kind == "cr" else None,
    )


def _rows(found: SearchResult, kind: str, matches: Sequence[Match]) -> list[Made]:
    end_if_abandoned()
    found.count(kind, len(matches))
    if len(matches) >= MOST:
        found.capped.append(kind)
    return [partial(_hit, kind, one, found.words) for one in matches]


def _hit(kind: str, match: Match, words: Sequence[str]) -> SearchHit:
    """Return a row as a hit: its columns have the names of the fields."""
    columns = {name: value for name, value in match.row.items() if name in SearchHit.__slots__}
    return SearchHit(kind=kind, text=snippet(match.text, words), **columns)


def snippet(text: str, words: Sequence[str], most: int = SNIPPET) -> str:
    """Return the part of a text around its first matching word, on one line.

    :param most: maximum characters, without the ellipses.
    """
    line, before = " ".join(text[:_LOOKED_AT].split()), most // 4
    lower = line.lower()
    places = [at for word in words if (at := lower.find(word)) >= 0]
    begin = min(max(0, min(places, default=0) - before), max(0, len(line) - most))
    if begin:
        begin = line.find(" ", begin, begin + before) + 1 or begin
    part = line[begin : begin + most]
    if begin + most < len(line):
        part = f"{part[: part.rfind(' ', most // 2) + 1] or part}…"
    return f"… {part}" if begin else part


def _found(app: App, ref: DocumentRef) -> Sequence[Found]:
    """Return the locations of documents, if any."""
    try:
        return app.documents.find(ref)
    except NPLError:
        return ()


def _changed(
    app: App, kind: str, found: Sequence[Found], limit: int, left_out: Container[str] = ()
) -> Iterator[SearchHit]:
    """Yield the most recently changed files of a set, without some paths."""
    listed = app.documents.listed(found)
    counted = (one for one in listed.there if one[0].absolute not in left_out)
    last = nlargest(limit, counted, key=lambda one: one[1].mtime_ns)
    for (one, state), name in zip(last, app.documents.names([one for one, _ in last]), strict=True):
        at = stamp(datetime.fromtimestamp(state.mtime_ns / 1e9, timezone.utc))
        if isinstance(one, FoundRequest):
            key = name.partition(":")[2]
            yield SearchHit(kind, key, one.title, file=name, key=key, at=at)
        else:
            yield SearchHit(kind, name, "", file=name, at=at)


def newest(app: App, kinds: Sequence[str], limit: int) -> Iterator[SearchHit]:
    """Yield the newest entries that the caller sees.

    :param limit: of each kind.
    """
    crs = _found(app, _CRS) if "cr" in kinds else ()
    if "document" in kinds:
        yield from _changed(app, "document", _found(app, DocumentRef()), limit, _paths(crs))
    yield from _changed(app, "cr", crs, limit)
    for kind, matches in app.stores.searching.newest(app.project, limit).items():
        if kind in kinds:
            yield from (_hit(kind, one, ()) for one in matches)
