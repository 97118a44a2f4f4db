"""Defects of the documents of a folder; all documents are read."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from weakref import WeakKeyDictionary
from zlib import crc32

from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.markdown.state import Deadline
from npl_index.ranking.analysis import terms
from npl_index.ranking.indexing import Collection
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.app import App
from npl_mcp.app.waiting import limit_wait
from npl_mcp.browsing.places import HURRY, title_of
from npl_mcp.browsing.relations import INDEX_FILES, Relations, around
from npl_mcp.browsing.tables import arranged
from npl_mcp.stores.access import Sight

MAX_SECTION_TOKENS = 1_000
"""Tokens of a section's own text, twice the default answer; longer texts are too long."""

MIN_WORDS = 20
"""Words of the shortest text that is compared with others."""

MIN_SIMILARITY = 0.8
"""Share of equal word sequences (Jaccard index) of two texts that are nearly the same."""

_SEQUENCE, _SKETCH, _KEYS = 4, 32, 4
"""Words of a sequence; sequences in the sketch of a text; sequences of it that select texts to compare."""

_MAX_COMPARED = 50
"""Texts that are compared with a text because of one sequence."""

CHECKS: Mapping[str, str] = {
    "broken": "Broken links",
    "same": "Same or nearly the same",
    "long": "Too long",
    "empty": "Empty",
    "untitled": "Without a title",
    "fences": "Unclosed code fences",
    "orphaned": "No page links here",
}
"""Names and titles of the checks."""

COLUMNS = ("file", "line", "selector", "tokens", "note")
"""Columns of the table of defects."""

_cached: WeakKeyDictionary[Collection, dict[tuple[DocumentRef, Sight], tuple[Defect, ...]]] = (
    WeakKeyDictionary()
)
"""Defects of current collections, so that a filter does not read the documents again."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of a document.

    :param check: one of :data:`CHECKS`.
    :param file: name of the document.
    :param line: line in the document, from 1.
    :param selector: selector of the section.
    :param tokens: tokens of the section's own text, or of the whole document.
    :param note: description of the defect.
    """

    check: str
    file: str
    line: int
    selector: str
    tokens: int
    note: str


@dataclass(frozen=True, slots=True)
class HealthPage:
    """The defects of a folder or file: their numbers, and a page of the defects of one check.

    :param counts: number of defects by check.
    :param checks: titles of the checks, by name.
    :param check: check of the page's defects.
    :param items: defects of the page.
    :param total: number of defects that pass the filter.
    :param limit: maximum number of defects in a page.
    :param offset: number of defects before the page.
    :param searched: number of documents that were read.
    :param documents: number of documents.
    """

    counts: Mapping[str, int]
    checks: Mapping[str, str]
    check: str
    items: Sequence[Defect]
    total: int
    limit: int
    offset: int
    searched: int
    documents: int


async def examined(
    app: App, ref: DocumentRef, check: str | None, offset: int, limit: int, sort: str, words: str
) -> HealthPage:
    """Return a page of the defects of a folder or a file.

    :param check: check whose defects are shown; by default the first one with defects.
    :raises DocumentNotFoundError: there is no such folder.
    :raises InvalidRequestError: there is no such column.
    """
    began = time.monotonic()
    requested = await limit_wait(app.gathered(ref), began, HURRY)
    rest = around(app, requested.founds[0])
    relations = Relations(app, await limit_wait(app.gathered(rest), began, HURRY))
    own = set(map(relations.number_of, requested.founds))
    part = [number for number in relations.documents if number in own]
    if not part:
        raise DocumentNotFoundError(f"{ref.file!r} is not among the documents of its root")
    checks = _Checks(app, relations)
    cached = _cached.setdefault(relations.gathered.collection, {})
    if (found := cached.get((ref, app.sight))) is None:
        found = (*checks.single(part), *checks.similar(part), *checks.orphaned(part))
        cached[ref, app.sight] = found
    counts = Counter(defect.check for defect in found)
    shown = check or next((name for name in CHECKS if counts[name]), "broken")
    kept = arranged([defect for defect in found if defect.check == shown], COLUMNS, sort, words)
    return HealthPage(
        counts={name: counts[name] for name in CHECKS},
        checks=CHECKS,
        check=shown,
        items=kept[offset : offset + limit],
        total=len(kept),
        limit=limit,
        offset=offset,
        searched=len(part),
        documents=len(requested.founds) + requested.missing,
    )


class _Checks:
    """The checks of documents.

    :param app: view of the caller.
    :param relations: documents with their links.
    """

    def __init__(self, app: App, relations: Relations) -> None:
        self._relations = relations
        collection = relations.gathered.collection
        self._counts: Callable[[int], TokenCounts] = app.counting(collection, app.clock("the folder"))
        self._clock: Deadline = app.clock("the folder")

    def single(self, part: Sequence[int]) -> Iterator[Defect]:
        """Yield the defects of single documents."""
        for number in part:
            self._clock.check()
            tree = self._relations.parsed(number).tree
            for link, why in self._relations.broken(number):
                target = link.path + (f"#{link.anchor}" if link.anchor else "")
                yield self._at_line(number, "broken", f"{target}: {why}", link.line)
            for line in tree.doubtful_fences:
                yield self._at_line(number, "fences", "the code fence opened here is not closed", line)
            if not tree.sections[0].whole_traits.word_count:
                yield self._in_document(number, "empty", "no text")
            elif title_of(tree) is None:
                yield self._in_document(number, "untitled", "no heading and no title in front matter")
            for section in tree.sections:
                tokens = self._counts(number).last(section.index)
                if tokens > MAX_SECTION_TOKENS:
                    yield self._in_section(number, section.index, "long", f"{tokens:,} tokens in one piece")
                if section.level and not section.children and not _own_text(tree, section).strip():
                    yield self._in_section(number, section.index, "empty", "a heading without text")

    def similar(self, part: Sequence[int]) -> Iterator[Defect]:
        """Yield sections with the same text as another section, or nearly the same."""
        sketches: list[tuple[int, int, frozenset[int]]] = []
        by_key: dict[int, list[int]] = {}
        for number in part:
            self._clock.check()
            tree = self._relations.parsed(number).tree
            for section in tree.sections:
                if section.own_traits.word_count < MIN_WORDS:
                    continue
                words = terms(_own_text(tree, section), keep_stop_words=True)
                # The sequences with the smallest hashes; equal texts have equal ones (MinHash, Broder 1997).
                least = nsmallest(_SKETCH, set(_sequences(words)))
                sketch, keys = frozenset(least), least[:_KEYS]
                other = _nearest(sketch, {at for key in keys for at in by_key.get(key, ())}, sketches)
                if other is not None:
                    share, at = other
                    same = "the same as" if share == 1 else f"{share:.0%} the same as"
                    twin = self._in_section(sketches[at][0], sketches[at][1], "", "")
                    note = f"{same} {twin.selector}, line {twin.line}"
                    yield self._in_section(number, section.index, "same", note)
                for key in keys:
                    if len(others := by_key.setdefault(key, [])) < _MAX_COMPARED:
                        others.append(len(sketches))
                sketches.append((number, section.index, sketch))

    def orphaned(self, part: Sequence[int]) -> Iterator[Defect]:
        """Yield documents without links from other documents, unless that is true of all of them."""
        linked: set[int | None] = set()
        for number in self._relations.documents:
            linked |= {target for _, _, target in self._relations.links(number)} - {number}
        names = ((number, self._relations.gathered.founds[number].path) for number in part)
        pages = [number for number, name in names if name.rpartition("/")[2] not in INDEX_FILES]
        if not linked.isdisjoint(pages):
            for number in pages:
                if number not in linked:
                    yield self._in_document(number, "orphaned", "no other document links here")

    def _at_line(self, number: int, check: str, note: str, line: int) -> Defect:
        """Return a defect at a line, counted from 0."""
        index = self._relations.section_at(number, line)
        return replace(self._in_section(number, index, check, note), line=line + 1)

    def _in_document(self, number: int, check: str, note: str) -> Defect:
        tokens = self._counts(number).total(range(len(self._relations.parsed(number).tree.sections)))
        return replace(self._in_section(number, 0, check, note), tokens=tokens)

    def _in_section(self, number: int, index: int, check: str, note: str) -> Defect:
        file, selector = self._relations.gathered.files[number], self._relations.selector(number, index)
        line = self._relations.parsed(number).tree.sections[index].own.start + 1
        return Defect(check, file, line, selector, self._counts(number).last(index), note)


def _own_text(tree: SectionTree, section: Section) -> str:
    """Return the own text of a section without its heading."""
    return tree.text(Span(max(section.heading_lines.stop, section.own.start), section.own.stop))


def _sequences(words: Sequence[str]) -> Iterator[int]:
    """Yield a hash of each sequence of words."""
    for at in range(max(1, len(words) - _SEQUENCE + 1)):
        yield crc32(" ".join(words[at : at + _SEQUENCE]).encode())


def _nearest(
    sketch: frozenset[int], among: Iterable[int], sketches: Sequence[tuple[int, int, frozenset[int]]]
) -> tuple[float, int] | None:
    """Return the similarity and the number of the most similar text; ``None`` without a similar one."""
    shares = [(_similarity(sketch, sketches[at][2]), -at) for at in among]
    share, at = max(shares, default=(0.0, 0))
    return (share, -at) if share >= MIN_SIMILARITY else None


def _similarity(sketch: frozenset[int], other: frozenset[int]) -> float:
    """Return an estimate of the Jaccard index of two texts from their sketches."""
    both = nsmallest(_SKETCH, sketch | other)
    return sum(key in sketch and key in other for key in both) / len(both)
