"""One search over documents, messages, worklogs, artifacts and change requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Annotated, Any, NamedTuple

from npl_index.answer.document_set import DocumentSet
from npl_index.answer.finding import MAX_LINE, matching_line, nowhere
from npl_index.answer.steps import LIMITS
from npl_index.errors import NotFoundError, NPLError, OutsideRootError
from npl_index.index.collection import MAX_CANDIDATES
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import Span
from npl_index.ranking.keywords import Keywords, extract_keywords
from npl_index.ranking.naming import read
from npl_index.ranking.scoring import LIMIT, SCORE_CUTOFF, Hit, Query, Score, rank
from npl_index.ranking.spelling import cut_word, holds
from npl_index.ranking.verdict import Coverage, judge
from npl_index.selectors.filters import ANY
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.lanes import end_if_abandoned
from npl_mcp.app.queries import QueryConditions, pattern_of, phrases_of, texts_of, words_of
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.app.sources import DamagedRevisionError
from npl_mcp.config.domains import Of, domains_named
from npl_mcp.stores.base.database import Row
from npl_mcp.stores.base.errors import DatabaseError
from npl_mcp.stores.base.values import fill
from npl_mcp.stores.searching import KINDS as ROWS
from npl_mcp.stores.searching import MAX_MATCHES

KINDS: Mapping[str, str] = {
    "document": "npl",
    "message": "chat",
    "worklog": "worklog",
    **{name: scheme.domain for name, scheme in SCHEMES.items()},
}
"""The kinds of hits, each with its domain."""

_SETS = {"document": DocumentRef()} | {name: DocumentRef(file=f"{name}:*") for name in SCHEMES}
"""The set of documents of each kind of hit, if it has one."""

AT_A_TIME = 4
"""Hits in documents per hit of another kind: they fill at least half a page, and every kind appears."""

SNIPPET = 160
"""Characters of a snippet."""

MAX_SCANNED = 500
"""Maximum documents that are read for a text without a word of the index."""

_ALL = 0.99

_MAX_TEXT = 20_000
"""Characters of a text that are searched for a snippet."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A hit of a search, with its location.

    :param kind: document, message, worklog, artifact or cr.
    :param title: title for people.
    :param text: part of the text around a word of the query; for a section, the line with most of the words.
    :param score: relevance from 0 to 1, comparable within one kind.
    :param file: value of ``file`` for a document, or for an artifact or CR that is Markdown.
    :param line: line of the text in the file, from 1; the heading's line if only the heading has a word.
    :param selector: selector of the section's own text, for ``npl_load_tailored``.
    :param tokens: tokens of the section's own text.
    :param room_id: id of a message's room.
    :param event_id: id of a message.
    :param session_id: id of a worklog session.
    :param seq: number of a worklog entry.
    :param artifact_id: id of an artifact.
    :param revision: number of its current revision.
    :param key: key of a CR.
    :param note: standing of its document and copies of its text, as in ``npl_load_tailored``.
    :param by: author.
    :param at: time.
    """

    kind: str
    title: str
    text: str
    score: float | None = None
    file: str | None = None
    line: int | None = None
    selector: str | None = None
    tokens: int | None = None
    room_id: Annotated[int | None, Of("chat")] = None
    event_id: int | None = None
    session_id: str | None = None
    seq: int | None = None
    artifact_id: Annotated[int | None, Of("artifact")] = None
    revision: Annotated[int | None, Of("artifact")] = None
    key: str | None = None
    note: str | None = None
    by: str | None = None
    at: str | None = None


@dataclass
class SearchResult:
    """The result of a search, with its omissions.

    :param app: context of the call.
    :param keywords: keywords of the question.
    :param phrases: quoted phrases of the question.
    :param words: words that are compared with rows.
    :param conditions: conditions of hits.
    :param counts: number of hits of each kind.
    :param capped: kinds of which only the best hits were counted.
    :param indexed: number of indexed files.
    :param missing: number of files that are not indexed yet.
    :param not_searched: other omissions, with the reasons.
    :param absent: words that no section has, with similar words; ``None`` if no sections were searched.
    :param hits: hits, best first: documents, with the best of each other kind among them.
    """

    app: Context
    keywords: Keywords
    phrases: Sequence[str]
    words: Sequence[str]
    conditions: QueryConditions
    counts: Counter[str] = field(default_factory=Counter)
    capped: list[str] = field(default_factory=list)
    indexed: int = 0
    missing: int = 0
    not_searched: list[str] = field(default_factory=list)
    absent: dict[str, tuple[str, ...]] | None = None
    hits: Iterable[SearchHit] = ()

    def lacks(self, absent: Mapping[str, tuple[str, ...]]) -> None:
        """Record absent words of one set, with similar words; a word is absent if all sets lack it."""
        if self.absent is not None:
            absent = {word: (*self.absent[word], *absent[word]) for word in self.absent if word in absent}
        self.absent = {word: tuple(dict.fromkeys(near)) for word, near in absent.items()}


def visible_kinds(app: Context) -> tuple[str, ...]:
    """Return the kinds that the server has and the caller may see."""
    domains = domains_named(app.settings.domains)
    is_seen = app.permissions.has_domain
    return tuple(kind for kind, domain in KINDS.items() if domain in domains and is_seen(domain))


def search(
    app: Context, query: str, wanted: Sequence[str], ref: DocumentRef | None, conditions: QueryConditions
) -> SearchResult:
    """Search for a question.

    :param wanted: kinds to search; empty means all.
    :param ref: the only documents to search.
    :param conditions: conditions of hits.
    """
    result = SearchResult(app, extract_keywords(query), phrases_of(query), words_of(query), conditions)
    if ref is not None:
        result.hits = _section_hits(result, "document", app.documents_of(ref))
        return result
    kinds = visible_kinds(app)
    # Change requests that the caller may see are not hits of kind document as well.
    crs: set[str] = set()
    with suppress(NPLError):
        crs = {cr.absolute for cr in app.documents.find(_SETS["cr"])} if "cr" in kinds else crs
    hits: dict[str, Iterator[SearchHit]] = {}
    for kind in kinds if not wanted else filter(wanted.__contains__, kinds):
        sections: Iterator[SearchHit] = iter(())
        if kind in _SETS and (gathered := _set_of(result, kind)) is not None:
            sections = _section_hits(result, kind, gathered, crs if kind == "document" else ())
        # Sections of artifacts that are Markdown, then artifacts by their names.
        hits[kind] = chain(sections, _row_hits(result, kind))
    result.hits = _mixed(hits)
    return result


def _mixed(left: dict[str, Iterator[SearchHit]]) -> Iterator[SearchHit]:
    while left:
        for kind in list(left):
            taken = list(islice(left[kind], AT_A_TIME if kind == "document" else 1))
            yield from taken
            if not taken:
                del left[kind]


def _set_of(result: SearchResult, kind: str) -> DocumentSet | None:
    """Return the documents of a kind of hit; ``None`` if they cannot be read."""
    end_if_abandoned()
    seconds = result.conditions.seconds if kind == "document" else 1.0
    try:
        return result.app.documents_of(_SETS[kind], seconds=seconds)
    except (NotFoundError, OutsideRootError):
        pass  # the caller sees no documents of this set
    except NotIndexedError as error:
        result.missing += error.files
    except NPLError as error:
        result.not_searched.append(f"{_SETS[kind].file or 'documents'}: {error.message}")
    return None


class _Section(NamedTuple):
    """A section in the results.

    :param documents: documents of its set.
    :param hit: its place and score.
    """

    documents: DocumentSet
    hit: Hit

    @property
    def text(self) -> str:
        """Headings above it, for a page's first section the front matter, and its own text; empty if it was
        damaged after it was indexed.

        :raises DocumentTimeoutError: the time for reading the documents is over.
        """
        self.documents.clock.check()
        tree = self.documents.tree(self.hit.document)
        section = tree.sections[self.hit.section]
        names = [tree.sections[index].name for index in tree.ancestors(section.index)]
        try:
            if section.level <= 1:
                names.append(tree.source[: tree.line_starts[tree.sections[0].own.start]])
            return "\n".join([*names, section.title, section.name, tree.text(section.own)])
        except DamagedRevisionError:
            return ""

    @property
    def path(self) -> str:
        """The absolute path of its document."""
        return self.documents.locations[self.hit.document].absolute

    def is_hit(self, result: SearchResult, keywords: Keywords) -> bool:
        """Return whether it belongs to the result of a search."""
        # A document without text before its first heading is a hit by its sections.
        has_text = self.hit.section or self.hit.size
        # If the question has only identifiers, a match of their parts alone does not count.
        is_named = self.hit.score.content or not all(word.identifier for word in keywords.written)
        is_named = is_named or self.hit.place in keywords.places
        unwanted, path = result.conditions.unwanted, self.documents.path(self.hit.document).casefold()
        is_allowed = all(part.casefold() in path for part in result.conditions.path)
        return bool(has_text and is_named and is_allowed) and not (unwanted and unwanted.search(self.text))


def _section_hits(
    result: SearchResult, kind: str, gathered: DocumentSet, left_out: Collection[str] = ()
) -> Iterator[SearchHit]:
    """Return the matching sections of a set of documents, best first.

    Sections with a quoted phrase come first; sections without any word as spelt come last.

    :param left_out: paths of excluded documents.
    """
    keywords = read(result.keywords.text, gathered.collection)
    together = tuple(filter(None, map(_terms, result.phrases)))
    spelt = pattern_of([word.shown for word in keywords.written])
    end_if_abandoned()
    result.indexed += len(gathered.collection.documents)
    result.missing += gathered.missing
    if bad := gathered.unreadable:
        result.not_searched.append(f"{len(bad):,} of {gathered.file}, such as {bad[0]}")
    cutoff, limit = (0, len(gathered.collection) + 1) if result.phrases else (SCORE_CUTOFF, LIMIT)
    weights, among = result.app.settings.weights, result.conditions.among
    with gathered.collection.reading():
        collection, asked = gathered.collection, Query(keywords, together=together)
        ranking = rank(collection, asked, weights=weights, score_cutoff=cutoff, limit=limit, among=among)
        documents = gathered.ranked_by(ranking)
        sections = [_Section(documents, hit) for hit in ranking.hits]
        holders = {phrase: _holders(phrase, sections, ranking.coverage) for phrase in result.phrases}
        absent = nowhere(documents, ranking.coverage)
    lost = [phrase for phrase, flags in holders.items() if not any(flags)]
    unheld = {f'"{cut_word(phrase)}"': () for phrase in lost if _certain(phrase, ranking.coverage)}
    result.lacks(absent | unheld)
    kept = []
    for number, section in enumerate(sections):
        if section.path not in left_out and section.is_hit(result, keywords):
            kept.append((sum(flags[number] for flags in holders.values()), section))
    if not any(map(any, holders.values())) and judge(ranking.coverage).state == "absent":
        # If a word is absent everywhere, sections with one or two of the others match by chance.
        few = kept[: LIMITS["absent"].names]
        kept = [pair for pair in few if spelt.search(pair[1].text)] or ([] if absent or unheld else few)
    elif len(sections) >= limit or len({section.hit.document for section in sections}) >= MAX_CANDIDATES:
        result.capped.append(kind)
    if not kept and not keywords.written:  # the index has no stop words and no signs
        others = (section for section in _scanned(result, documents) if section.path not in left_out)
        kept = [(1, section) for section in others if section.is_hit(result, keywords)]
    result.counts[kind] += len(kept)
    kept.sort(key=lambda pair: (-pair[0], -pair[1].hit.score.total))
    return _exact_first([section for _, section in kept], kind, spelt, result.words)


def _scanned(result: SearchResult, documents: DocumentSet) -> Iterator[_Section]:
    """Yield the sections of the first documents whose text has what a question quotes."""
    texts, score = texts_of(result.keywords.text), Score(1.0, 0.0, 1.0, 0.0)
    trees = documents.collection.documents if texts else ()
    if len(trees) > MAX_SCANNED:
        result.not_searched.append(f"{len(trees) - MAX_SCANNED:,} files of {documents.file} for {texts[0]!r}")
    found = False
    for number in range(min(len(trees), MAX_SCANNED)):
        for node in documents.tree(number).sections:
            section = _Section(documents, Hit(number, node.index, score, 1))
            if all(holds(documents.text(section.hit.place), text) for text in texts):
                found = True
                yield section
    if texts and not found:
        result.lacks({f'"{cut_word(text)}"': () for text in texts})


def _holders(phrase: str, sections: Sequence[_Section], coverage: Coverage) -> list[bool]:
    """Return for each section whether it contains a phrase; only texts that contain its words are read."""
    rows = _certain(phrase, coverage)
    may = coverage.shares[rows].min(axis=0, initial=float(bool(rows))) > _ALL
    pairs = zip(sections, may.tolist(), strict=False)
    return [likely and holds(section.text, phrase) for section, likely in pairs]


def _certain(phrase: str, coverage: Coverage) -> list[int]:
    """Return the numbers of the question's words that every text with a phrase contains."""
    words = {word.terms for word in extract_keywords(phrase).written if word.is_certain}
    return [number for number, word in enumerate(coverage.words) if word.terms in words]


def _terms(phrase: str) -> tuple[str, ...]:
    """Return the index terms that every text with a phrase contains."""
    words = (word for word in extract_keywords(phrase).written if word.is_certain)
    return tuple(dict.fromkeys(chain(*(word.meant for word in words))))


def _exact_first(
    sections: Iterable[_Section], kind: str, spelt: re.Pattern[str], words: Sequence[str]
) -> Iterator[SearchHit]:
    """Yield sections with a word as spelt in the question, then the others; texts are read one by one."""
    others = []
    for section in sections:
        if spelt.search(section.text):
            yield _section_hit(section, kind, words)
        else:
            others.append(section)
    yield from (_section_hit(section, kind, words) for section in others)


def _section_hit(ranked: _Section, kind: str, words: Sequence[str]) -> SearchHit:
    documents, hit = ranked
    file, tree = documents.path(hit.document), documents.tree(hit.document)
    section, part = tree.sections[hit.section], documents.part(hit.place, chosen=False)
    tokens = None
    try:
        body = tree.text(Span(section.heading_lines.stop, section.own.stop))
        line, text = matching_line(documents, part) or (section.own.start, snippet(body, words, MAX_LINE))
        tokens = part.size.last
    except DamagedRevisionError as error:  # damaged since it was indexed
        line, text = section.own.start, error.message
    name, _, revision = file.partition(":")[2].partition("@")
    of_kind: dict[str, Any] = {"key": name} if kind == "cr" else {}
    if kind == "artifact":
        of_kind = {"artifact_id": int(name), "revision": int(revision)}
    return SearchHit(
        kind=kind,
        title=section.title,
        text=text,
        score=round(hit.score.total, 3),
        file=file,
        line=line + 1,
        selector=documents.selector(hit.place, own=True),
        tokens=tokens,
        note=documents.note(part),
        **of_kind,
    )


def _row_hits(result: SearchResult, kind: str) -> Iterator[SearchHit]:
    end_if_abandoned()
    matches: list[tuple[Row, str]] = []
    database = result.app.database
    if kind in ROWS and result.conditions.among != ANY:
        result.not_searched.append(f"{kind}: the filter is one of documents")
    elif kind in ROWS and result.words:
        try:
            if database.engine.exists():  # a search must not create a data folder
                matches = database.reading(ROWS[kind].matching, result.words, result.app.project)
        except DatabaseError as error:
            result.not_searched.append(f"{kind}: {error.message}")
    if len(matches) >= MAX_MATCHES:
        result.capped.append(kind)
    if unwanted := result.conditions.unwanted:
        matches = [pair for pair in matches if not unwanted.search(f"{pair[0].get('title', '')} {pair[1]}")]
    if result.conditions.path:  # records have none
        matches = []
    result.counts[kind] += len(matches)
    words = result.words  # columns of a row have the names of the fields
    return (fill(SearchHit, row, kind=kind, text=snippet(text, words)) for row, text in matches)


def snippet(text: str, words: Sequence[str], width: int = SNIPPET) -> str:
    """Return the part of a text around its first matching word, on one line.

    :param width: maximum number of characters, without the ellipses; 0 for no text.
    """
    if not width:
        return ""
    line, before = " ".join(text[:_MAX_TEXT].split()), width // 4
    lower = line.lower()
    places = [at for word in words if (at := lower.find(word)) >= 0]
    begin = min(max(0, min(places, default=0) - before), max(0, len(line) - width))
    if begin:
        begin = line.find(" ", begin, begin + before) + 1 or begin
    part = line[begin : begin + width]
    if begin + width < len(line):
        part = f"{part[: part.rfind(' ', width // 2) + 1] or part}…"
    return f"… {part}" if begin else part
