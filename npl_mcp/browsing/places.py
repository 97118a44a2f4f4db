"""Browsing of documents by people: roots, folders and files, with their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from npl_index.answer.document_set import DocumentSet
from npl_index.errors import NPLError
from npl_index.library.documents import DocumentFile, DocumentRef
from npl_index.library.roots import real_path
from npl_index.markdown.sections import SectionTree
from npl_index.selectors.filters import TraitFilter
from npl_index.tokens.estimated import estimator
from npl_mcp.app.context import Context
from npl_mcp.app.document_sets import NotIndexedError
from npl_mcp.app.waiting import HURRY

MAX_MEASURED = 5_000
"""Files whose tokens are added up in one call: about half a second."""

MAX_WHILE_INDEXING = 200
"""The same while others are being indexed."""


@dataclass(frozen=True, slots=True)
class Crumb:
    """A folder of a breadcrumb.

    :param name: name for people.
    :param address: value of ``file`` for the folder.
    """

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """An entry of a folder.

    :param kind: ``root``, ``folder`` or ``file``.
    :param name: name for people.
    :param address: value of ``file`` for the entry.
    :param files: number of files.
    :param sections: number of their headings.
    :param tokens: number of their tokens; absent if there are too many files.
    :param title: title of a single document.
    :param missing_files: number of files that are not indexed yet.
    """

    kind: str
    name: str
    address: str
    files: int
    sections: int
    tokens: int | None
    title: str | None = None
    missing_files: int | None = None


def folder_name(file: DocumentFile, path: str) -> str:
    """Return the address of a folder of a document's root.

    :param path: path below the root; empty for the root.
    """
    return f"{file.root.label}:{path}"


def title_of(tree: SectionTree) -> str | None:
    """Return the title of a document: of its front matter, or its first heading; ``None`` without both."""
    first = tree.title or next((section.index for section in tree.sections[1:2] if section.level), None)
    return tree.sections[0].heading or (None if first is None else tree.sections[first].name) or None


def file_entries(app: Context, gathered: DocumentSet) -> list[FolderEntry]:
    """Return an entry for each document."""
    collection = gathered.collection
    sizes: Iterable[tuple[int, int | None, str | None]]
    if len(gathered.locations) > (MAX_WHILE_INDEXING if gathered.missing else MAX_MEASURED):
        every = collection.summaries(TraitFilter(), estimator(app.settings.vocabulary))
        sizes = ((summary.headings, summary.tokens, None) for summary in every)
    else:
        counts = app.counting(collection, app.clock("the folder"))
        sizes = (
            (collection.headings(number), counts(number).total(range(len(tree.sections))), title_of(tree))
            for number, tree in enumerate(parsed.tree for parsed in collection.documents)
        )
    rows = zip(gathered.files, sizes, strict=True)
    return [FolderEntry("file", name, name, 1, *size) for name, size in rows]


def entry_of_many(kind: str, crumb: Crumb, parts: Sequence[FolderEntry], missing: int = 0) -> FolderEntry:
    """Return one entry for several.

    :param missing: number of further files, which are not indexed yet.
    """
    tokens = [part.tokens for part in parts] or ([None] if missing else [])
    files, sections = sum(part.files for part in parts), sum(part.sections for part in parts)
    known = None if None in tokens else sum(size or 0 for size in tokens)
    left = missing + sum(part.missing_files or 0 for part in parts) or None
    return FolderEntry(kind, crumb.name, crumb.address, files, sections, known, missing_files=left)


def roots_of(app: Context) -> Iterator[Crumb]:
    """Yield the roots that contain Markdown.

    A working directory that is not an explicit root may be a whole home; it is omitted.
    """
    searched = {real_path(root.path) for root in app.library.searched}
    for root in app.library.roots:
        if (root.npl or root.path in searched) and app.library.holds_any(root):
            yield Crumb(root.label, f"{root.label}:")


def root_entries(app: Context, whole: bool) -> Iterator[FolderEntry]:
    """Yield the roots with Markdown.

    :param whole: whether to yield the files below a root instead.
    """
    for root in roots_of(app):
        try:
            gathered = app.documents_of(DocumentRef(file=root.address), seconds=HURRY)
            files, missing = file_entries(app, gathered), gathered.missing
        except NotIndexedError as error:
            files, missing = [], error.files
        except NPLError:  # the root has no Markdown
            continue
        yield from files if whole else [entry_of_many("root", root, files, missing)]


def place(file: str, documents: Sequence[DocumentFile]) -> tuple[DocumentFile, str]:
    """Return a document of a folder or file, and the path of the latter below the document's root.

    :param file: address of the folder or file.
    """
    wanted = file.rstrip("/")
    for document in documents:
        path = document.path
        for lead in (f"{document.root.label}:", f"{document.root.path}/", ""):
            if wanted.startswith(lead):
                own = wanted[len(lead) :].strip("/")
                if not own or path == own or path.startswith(f"{own}/"):
                    return document, own
    return documents[0], ""


def breadcrumb(file: str, documents: Sequence[DocumentFile]) -> tuple[Crumb, ...]:
    """Return the breadcrumb from the root to a folder or file, inclusive."""
    document, path = place(file, documents)
    parts = path.split("/") if path else []
    paths = accumulate(parts, "{}/{}".format)
    steps = zip((document.root.label, *parts), ("", *paths), strict=True)
    return tuple(Crumb(name, folder_name(document, folder)) for name, folder in steps)


def folder_entries(file: str, gathered: DocumentSet, files: Sequence[FolderEntry]) -> Iterator[FolderEntry]:
    """Yield the entries of a folder: folders, then files.

    :param files: entries of the documents below it.
    """
    top, path = place(file, gathered.locations)
    lead = f"{path}/" if path else ""
    folders: dict[str, list[FolderEntry]] = {}
    single: list[FolderEntry] = []
    for document, entry in zip(gathered.locations, files, strict=True):
        own = document.path
        inside = document.root == top.root and own.startswith(lead)
        first, _, deeper = own[len(lead) :].partition("/") if inside else (entry.name, "", "")
        if deeper:
            folders.setdefault(first, []).append(entry)
        else:
            single.append(replace(entry, name=first))
    for name, parts in sorted(folders.items()):
        yield entry_of_many("folder", Crumb(name, folder_name(top, lead + name)), parts)
    yield from sorted(single, key=lambda entry: entry.name)
