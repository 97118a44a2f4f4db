"""Defects of the documents of a folder. Each document is read, by several calls if they are many."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from npl_index.answer.document_set import DocumentSet
from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.markdown.sections import Section, SectionTree, Span
from npl_index.selectors.writing import qualified
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.waiting import HURRY
from npl_mcp.browsing.links import Links, place_of, targets_of
from npl_mcp.browsing.places import title_of

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


def find_defects(app: Context, ref: DocumentRef) -> Health:
    """Return the defects of a folder or a file that are known now; the next call continues.

    :raises DocumentNotFoundError: there is no such folder.
    """
    return app.read_here(lambda: _find_defects(app, ref))


def _find_defects(app: Context, ref: DocumentRef) -> Health:
    try:
        requested = gathered = app.documents_of(ref, seconds=HURRY)
        if (targets := targets_of(app, requested.locations[0])) != ref:
            gathered = app.documents_of(targets, seconds=HURRY)
    except NotIndexedError as error:
        return Health((), error.files, error.files)
    if missing := max(requested.missing, gathered.missing):
        return Health((), len(requested.locations), missing)
    examination = _Examination(app, gathered)
    places = map(place_of, requested.locations)
    numbers = [number for place in places if (number := examination.numbers.get(place)) is not None]
    if not numbers:
        raise DocumentNotFoundError(f"{ref.file!r} is not among the documents of its root")
    key = "health", gathered.collection.state, ref, app.permissions
    with app.state.lock:
        known = cast("Health", app.state.outcomes.get(key, Health((), len(numbers), len(numbers))))
    defects, left, until = [*known.defects], known.left, time.monotonic() + SECONDS
    while (left and time.monotonic() < until) or left == known.left > 0:
        defects += examination.defects(numbers[-left])
        left -= 1
    with app.state.lock:
        app.state.outcomes[key] = health = Health(defects, len(numbers), left)
    return health


class _Examination(Links):
    """The checks of documents.

    :param app: view of the caller.
    :param gathered: documents in which links are resolved.
    """

    def __init__(self, app: Context, gathered: DocumentSet) -> None:
        super().__init__(app, gathered)
        self._clock = app.clock("the folder")
        self._counts = app.counting(gathered.collection, self._clock)

    def defects(self, number: int) -> Iterator[Defect]:
        """Yield the defects of a document."""
        tree, counts = self._gathered.tree(number), self._counts(number)
        for link, why in self.broken(number):
            self._clock.check()
            target = link.path + (f"#{link.anchor}" if link.anchor else "")
            yield self._at_line(number, "broken", f"{target}: {why}", link.line)
        for line in tree.doubtful_fences:
            yield self._at_line(number, "fences", "the code fence opened here is not closed", line)
        without = None if tree.sections[0].whole_traits.word_count else ("empty", "no text")
        if without is None and title_of(tree) is None:
            without = "untitled", "no heading and no title in front matter"
        if without is not None:
            yield replace(self._defect(number, 0, *without), tokens=counts.total(range(len(tree.sections))))
        for section in tree.sections:
            tokens = counts.last(section.index)
            if tokens > MAX_SECTION_TOKENS:
                yield self._defect(number, section.index, "long", f"{tokens:,} tokens in one piece")
            if section.level and not section.children and not _own_text(tree, section).strip():
                yield self._defect(number, section.index, "empty", "a heading without text")

    def _at_line(self, number: int, check: str, note: str, line: int) -> Defect:
        """Return a defect at a line, counted from 0."""
        sections = self._gathered.tree(number).sections
        index = max(0, bisect_right(sections, line, key=lambda section: section.own.start) - 1)
        return replace(self._defect(number, index, check, note), line=line + 1)

    def _defect(self, number: int, index: int, check: str, note: str) -> Defect:
        parsed, file = self._gathered.collection.documents[number], self._gathered.files[number]
        selector = qualified(document_name(file), parsed.step(index))
        line = parsed.tree.sections[index].own.start + 1
        return Defect(check, file, line, selector, self._counts(number).last(index), note)


def _own_text(tree: SectionTree, section: Section) -> str:
    """Return the own text of a section without its heading."""
    return tree.text(Span(max(section.heading_lines.stop, section.own.start), section.own.stop))
