"""Defects of the documents of a folder. Each document is read, by several calls if they are many."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentRef
from npl_index.library.references import document_name
from npl_index.selectors.writing import qualified
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.waiting import HURRY
from npl_mcp.browsing.links import Links, place_of, targets_of

MAX_SECTION_TOKENS = 1_000
"""Tokens of a section's own text, twice the default answer; longer texts are too long."""

SECONDS = 2.0
"""Time of a call to read documents; the next call continues."""

CHECKS = {"broken": "Broken links", "long": "Too long"}
"""Names and titles of the checks."""


@dataclass(frozen=True, slots=True)
class Defect:
    """A defect of a document.

    :param check: one of :data:`CHECKS`.
    :param file: name of the document.
    :param line: line in the document, from 1.
    :param selector: selector of the section.
    :param tokens: tokens of the section's own text.
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
    links, counts = Links(app, gathered), app.counting(gathered.collection, app.clock("the folder"))
    places = map(place_of, requested.locations)
    numbers = [number for place in places if (number := links.numbers.get(place)) is not None]
    if not numbers:
        raise DocumentNotFoundError(f"{ref.file!r} is not among the documents of its root")
    key = "health", gathered.collection.state, ref, app.permissions
    with app.state.lock:
        known = cast("Health", app.state.outcomes.get(key, Health((), len(numbers), len(numbers))))
    defects, left, until = [*known.defects], known.left, time.monotonic() + SECONDS
    while (left and time.monotonic() < until) or left == known.left > 0:
        defects += _defects(links, numbers[-left], counts(numbers[-left]))
        left -= 1
    with app.state.lock:
        app.state.outcomes[key] = health = Health(defects, len(numbers), left)
    return health


def _defects(links: Links, number: int, counts: TokenCounts) -> Iterator[Defect]:
    """Yield the defects of a document."""
    parsed, file = links.gathered.collection.documents[number], links.gathered.files[number]
    sections = parsed.tree.sections

    def defect(check: str, index: int, line: int, note: str) -> Defect:
        selector = qualified(document_name(file), parsed.step(index))
        return Defect(check, file, line + 1, selector, counts.last(index), note)

    for link, why in links.broken(number):
        index = max(0, bisect_right(sections, link.line, key=lambda section: section.own.start) - 1)
        target = link.path + (f"#{link.anchor}" if link.anchor else "")
        yield defect("broken", index, link.line, f"{target}: {why}")
    for section in sections:
        tokens = counts.last(section.index)
        if tokens > MAX_SECTION_TOKENS:
            yield defect("long", section.index, section.own.start, f"{tokens:,} tokens in one piece")
