"""Links among documents."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import replace

from npl_index.answer.document_set import DocumentSet
from npl_index.cached import cached_property
from npl_index.library.documents import DocumentFile, DocumentRef, Root
from npl_index.library.references import MARKDOWN_SUFFIXES, document_name
from npl_index.markdown.links import Reference, own_anchors, slugs
from npl_index.ranking.documents import ParsedDocument
from npl_index.selectors.writing import qualified
from npl_mcp.app.app import App
from npl_mcp.app.schemes import SCHEMES

MAX_CHECKED = 200
"""Targets outside of the listing that are looked up one by one."""

INDEX_FILES = ("README.md", "readme.md", "index.md", "INDEX.md")


def place_of(file: DocumentFile) -> str:
    """Return the location of a document, from which its relative links are resolved."""
    return f"{file.root.path}/{file.path}"


def folder_name(file: DocumentFile, path: str) -> str:
    """Return the address of a folder of a document's root.

    :param path: path below the root; empty for the root.
    """
    return f"{file.root.label}:{path}"


def around(app: App, file: DocumentFile) -> DocumentRef:
    """Return the documents in which the links of a document are resolved."""
    if file.root.path in {searched.path for searched in app.library.searched}:
        return DocumentRef()
    return DocumentRef(file=f"{file.root.scheme}:*" if is_flat(file.root) else folder_name(file, ""))


def is_flat(root: Root) -> bool:
    """Return whether the names of a root's documents are no paths."""
    return root.scheme in SCHEMES


class Relations:
    """The links among the documents that a caller sees.

    :param app: view of the caller.
    :param gathered: documents.
    """

    def __init__(self, app: App, gathered: DocumentSet) -> None:
        self._app, self.gathered = app, gathered
        self.documents = range(len(gathered.locations))
        self._checked: dict[str, bool] = {}
        self._anchors: dict[int, frozenset[str]] = {}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {place_of(file): number for number, file in enumerate(self.gathered.locations)}

    @cached_property
    def _folders(self) -> frozenset[str]:
        folders: set[str] = set()
        for place in self._numbers:
            folder = place.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(folders)

    def parsed(self, document: int) -> ParsedDocument:
        """Return a document."""
        return self.gathered.collection.documents[document]

    def number_of(self, file: DocumentFile) -> int | None:
        """Return the number of a document; ``None`` if it is not in this set."""
        return self._numbers.get(place_of(file))

    def place(self, document: int, reference: Reference) -> str | None:
        """Return the target of a link as a location; ``None`` for a document outside of all folders."""
        file = self.gathered.locations[document]
        root, path = file.root.path, reference.path
        if not path:
            return place_of(file)
        if is_flat(file.root):
            return None
        start = "" if path.startswith("/") else posixpath.dirname(file.path)
        return posixpath.normpath(f"{root}/{start}/{path.lstrip('/')}")

    def target(self, place: str) -> int | None:
        """Return the document at a location; the suffix is optional, and a folder denotes its first page."""
        files = (place, *(place + suffix for suffix in MARKDOWN_SUFFIXES))
        pages = (f"{place}/{name}" for name in INDEX_FILES)
        return next((self._numbers[path] for path in (*files, *pages) if path in self._numbers), None)

    @cached_property
    def _named(self) -> Mapping[str, int]:
        """Documents by the name of their file in lower case; of equal names the shortest path counts."""
        places = sorted(self._numbers, key=lambda place: (-place.count("/"), -len(place), place))
        return {document_name(place.rpartition("/")[2]).lower(): self._numbers[place] for place in places}

    def _target_of(self, reference: Reference, place: str | None) -> int | None:
        """Return the document of a link; a wiki link may have its path below the root, or its mere name."""
        target = None if place is None else self.target(place)
        if target is not None or not reference.wiki:
            return target
        below_root = replace(reference, path=f"/{reference.path}")
        place = self.place(0, below_root) if reference.path else None
        target = None if place is None else self.target(place)
        return self._named.get(document_name(reference.path).lower()) if target is None else target

    def links(self, document: int) -> Iterator[tuple[Reference, str | None, int | None]]:
        """Yield the links of a document, each with its target: location, and number of the document."""
        for reference in self._app.state.references(self.parsed(document)):
            place = self.place(document, reference)
            yield reference, place, self._target_of(reference, place)

    def selector(self, document: int, section: int) -> str:
        """Return the selector of a section."""
        return qualified(document_name(self.gathered.files[document]), self.parsed(document).step(section))

    def broken(self, document: int) -> Iterator[tuple[Reference, str]]:
        """Yield the broken links of a document, each with the reason.

        Only links to Markdown are checked, because other files are not documents. A wiki link may name a
        document to be written.
        """
        for reference, place, target in self.links(document):
            if target is not None:
                if not self.has_anchor(target, reference.anchor):
                    yield reference, "no such heading"
            elif place is not None and not reference.wiki and self._is_missing(place):
                yield reference, "no document"

    def _is_missing(self, place: str) -> bool:
        if not place.lower().endswith(MARKDOWN_SUFFIXES) or place in self._folders:
            return False
        if place not in self._checked and len(self._checked) < MAX_CHECKED:
            # A listing omits hidden folders.
            self._checked[place] = self._app.library.holds(place)
        return not self._checked.get(place, True)

    def has_anchor(self, document: int, anchor: str) -> bool:
        """Return whether a document has an anchor; its beginning has several names."""
        wanted = anchor.lower()
        if wanted in ("", "top") or wanted.startswith(":~:"):
            return True
        known = self._anchors.get(document)
        if known is None:
            tree = self.parsed(document).tree
            headings = [section for section in tree.sections if section.level]
            known = frozenset([*slugs(headings), *map(str.lower, own_anchors(tree.source))])
            self._anchors[document] = known
        return wanted in known
