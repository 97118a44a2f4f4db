"""Defects of the documents of a folder. All documents are read, by several calls if they are many."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

from cachetools import LRUCache

from npl_index.deadline import Deadline
from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.ranking.collection import Collection
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.app import App
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.waiting import HURRY
from npl_mcp.browsing.places import title_of
from npl_mcp.browsing.relations import INDEX_FILES, Relations, around
from npl_mcp.stores.access import Permissions

MAX_SECTION_TOKENS = 1_000
"""Tokens of a section's own text, twice the default answer; longer texts are too long."""

SECONDS = 2.0
"""Time of a call to read documents; the next call continues."""

CHECKS: Mapping[str, str] = {
    "broken": "Broken links",
    "long": "Too long",
    "empty": "Empty",
    "untitled": "Without a title",
    "fences": "Unclosed code fences",
    "orphaned": "No page links here",
}
"""Names and titles of the checks."""


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


class Health(NamedTuple):
    """The defects of a folder or file that are known so far.

    :param defects: the defects.
    :param documents: number of documents.
    :param left: number of documents that are still to be read, or to be indexed before.
    """

    defects: Sequence[Defect]
    documents: int
    left: int


@dataclass
class _Progress:
    """The state of an examination.

    :param done: number of documents that were read.
    :param linked: documents to which others link.
    """

    done: int = 0
    defects: list[Defect] = field(default_factory=list)
    linked: set[int | None] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)


_MAX_BEGUN = 8
"""Maximum examinations of one collection that are kept."""

_lock = Lock()
_begun: WeakKeyDictionary[Collection, LRUCache[tuple[DocumentRef, Permissions], _Progress]] = (
    WeakKeyDictionary()
)
"""Examinations of current collections; nothing in them keeps a collection."""


def find_defects(app: App, ref: DocumentRef) -> Health:
    """Return the defects of a folder or a file that are known now; the next call continues.

    :raises DocumentNotFoundError: there is no such folder.
    """
    return app.read_here(lambda: _find_defects(app, ref))


def _find_defects(app: App, ref: DocumentRef) -> Health:
    try:
        requested = gathered = app.gathered(ref, seconds=HURRY)
        if (whole := around(app, requested.locations[0])) != ref:
            gathered = app.gathered(whole, seconds=HURRY)
    except NotIndexedError as error:
        return Health((), error.files, error.files)
    if missing := max(requested.missing, gathered.missing):
        return Health((), len(requested.locations), missing)
    relations = Relations(app, gathered)
    own = {number for file in requested.locations if (number := relations.number_of(file)) is not None}
    if not own:
        raise DocumentNotFoundError(f"{ref.file!r} is not among the documents of its root")
    with _lock:
        of_collection = _begun.setdefault(gathered.collection, LRUCache(_MAX_BEGUN))
        progress = of_collection.setdefault((ref, app.permissions), _Progress())
    with progress.lock:
        _Checks(app, relations, progress, own).advance(time.monotonic() + SECONDS)
    return Health(progress.defects, len(own), len(relations.documents) - progress.done)


class _Checks:
    """The checks of documents.

    :param app: view of the caller.
    :param relations: documents with their links.
    :param progress: results of earlier calls, which are continued.
    :param own: numbers of the documents to check; the others are read for their links.
    """

    def __init__(self, app: App, relations: Relations, progress: _Progress, own: Set[int]) -> None:
        self._relations, self._progress, self._own = relations, progress, own
        collection = relations.gathered.collection
        self._counts: Callable[[int], TokenCounts] = app.counting(collection, app.clock("the folder"))
        self._clock: Deadline = app.clock("the folder")

    def advance(self, until: float) -> None:
        """Read a document at least, and more until a moment of ``time.monotonic()``."""
        progress, documents = self._progress, self._relations.documents
        while progress.done < len(documents):
            self._clock.check()
            number = documents[progress.done]
            progress.linked |= {target for _, _, target in self._relations.links(number)} - {number}
            if number in self._own:
                progress.defects += self._single(number)
            progress.done += 1
            if progress.done == len(documents):
                progress.defects += self._orphaned()
            if time.monotonic() >= until:
                return

    def _single(self, number: int) -> Iterator[Defect]:
        """Yield the defects of a document alone."""
        tree = self._relations.parsed(number).tree
        for link, why in self._relations.broken(number):
            self._clock.check()
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

    def _orphaned(self) -> Iterator[Defect]:
        """Yield documents without links from other documents, unless that is true of all of them."""
        files = self._relations.gathered.locations
        names = ((number, files[number].path) for number in self._relations.documents if number in self._own)
        pages = [number for number, name in names if name.rpartition("/")[2] not in INDEX_FILES]
        if not self._progress.linked.isdisjoint(pages):
            for number in pages:
                if number not in self._progress.linked:
                    yield self._in_document(number, "orphaned", "no other document links here")

    def _at_line(self, number: int, check: str, note: str, line: int) -> Defect:
        """Return a defect at a line, counted from 0."""
        sections = self._relations.parsed(number).tree.sections
        index = max(0, bisect_right(sections, line, key=lambda section: section.own.start) - 1)
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
