"""Defects of the documents of a folder. Each document is read, by several calls if they are many."""

from __future__ import annotations

import posixpath
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from npl_index.answer.document_set import DocumentSet
from npl_index.cached import cached_property
from npl_index.errors import DocumentNotFoundError
from npl_index.library.documents import DocumentFile, DocumentRef, Root
from npl_index.library.references import MARKDOWN_SUFFIXES, document_name
from npl_index.markdown.links import Reference, own_anchors, references, slugs
from npl_index.selectors.writing import qualified
from npl_index.tokens.sections import TokenCounts
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.schemes import SCHEMES
from npl_mcp.app.waiting import HURRY
from npl_mcp.browsing.places import folder_name

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


INDEX_FILES = ("README.md", "readme.md", "index.md", "INDEX.md")


def place_of(file: DocumentFile) -> str:
    """Return the location of a document, from which its relative links are resolved."""
    return f"{file.root.path}/{file.path}"


def targets_of(app: Context, file: DocumentFile) -> DocumentRef:
    """Return the documents in which the links of a document are resolved."""
    if file.root.path in {searched.path for searched in app.library.searched}:
        return DocumentRef()
    return DocumentRef(file=f"{file.root.scheme}:*" if is_flat(file.root) else folder_name(file, ""))


def is_flat(root: Root) -> bool:
    """Return whether the names of a root's documents are no paths."""
    return root.scheme in SCHEMES


class Links:
    """The links among the documents that a caller sees.

    :param app: view of the caller.
    :param gathered: documents.
    """

    def __init__(self, app: Context, gathered: DocumentSet) -> None:
        self._app, self.gathered = app, gathered
        self.numbers: Mapping[str, int] = {place_of(file): n for n, file in enumerate(gathered.locations)}
        self._anchors: dict[int, frozenset[str]] = {}

    def broken(self, document: int) -> Iterator[tuple[Reference, str]]:
        """Yield the broken links of a document, each with the reason.

        Only links to Markdown are checked, because other files are not documents. A wiki link may name a
        document to be written.
        """
        tree, clock = self.gathered.tree(document), self._app.clock("the folder")
        for reference in references(tree.source, nested=tree.dialect == "npl"):
            clock.check()
            place = self._place(document, reference)
            target = self._target(reference, place)
            if target is not None:
                if not self._has_anchor(target, reference.anchor):
                    yield reference, "no such heading"
            elif place is not None and not reference.wiki and self._is_missing(place):
                yield reference, "no document"

    def _place(self, document: int, reference: Reference) -> str | None:
        """Return the target of a link as a location; ``None`` for a document outside of all folders."""
        file = self.gathered.locations[document]
        if not reference.path:
            return place_of(file)
        if is_flat(file.root):
            return None
        start = "" if reference.path.startswith("/") else posixpath.dirname(file.path)
        return posixpath.normpath(f"{file.root.path}/{start}/{reference.path.lstrip('/')}")

    def _target(self, reference: Reference, place: str | None) -> int | None:
        """Return the document of a link; a wiki link may have its path below the root, or its mere name."""
        target = self._document_at(place)
        if target is None and reference.wiki and reference.path:
            target = self._document_at(self._place(0, reference._replace(path=f"/{reference.path}")))
            name = document_name(reference.path).lower()
            target = self._by_name.get(name) if target is None else target
        return target

    def _document_at(self, place: str | None) -> int | None:
        """Return the document at a location; the suffix is optional, and a folder denotes its first page."""
        files = (f"{place}{suffix}" for suffix in ("", *MARKDOWN_SUFFIXES))
        pages = (f"{place}/{name}" for name in INDEX_FILES)
        return next((self.numbers[path] for path in (*files, *pages) if path in self.numbers), None)

    @cached_property
    def _by_name(self) -> Mapping[str, int]:
        """Documents by the name of their file in lower case; of equal names the shortest path counts."""
        places = sorted(self.numbers, key=lambda place: (-place.count("/"), -len(place), place))
        return {document_name(place.rpartition("/")[2]).lower(): self.numbers[place] for place in places}

    def _is_missing(self, place: str) -> bool:
        # A listing omits hidden folders.
        return place.lower().endswith(MARKDOWN_SUFFIXES) and not self._app.library.holds(place)

    def _has_anchor(self, document: int, anchor: str) -> bool:
        """Return whether a document has an anchor; its beginning has several names."""
        wanted = anchor.lower()
        if wanted in ("", "top") or wanted.startswith(":~:"):
            return True
        if document not in self._anchors:
            tree = self.gathered.tree(document)
            headings = [section for section in tree.sections if section.level]
            self._anchors[document] = frozenset([*slugs(headings), *map(str.lower, own_anchors(tree.source))])
        return wanted in self._anchors[document]
