"""The libraries of the database as documents, addressed like files: ``lib:docs`` is a set, and so are a
folder and a pattern below it; ``lib:docs/guide.md`` is one document; ``@12`` after the name selects a
revision.

Each call looks up the current revision, so every replica sees a push at its next call. A revision never
changes: its listing and its parsed documents can be cached.
"""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import attrgetter

from cachetools import LRUCache

from npl_index.cached import cached_property
from npl_index.errors import DocumentNotFoundError, DocumentTooLargeError, NPLError, OutsideRootError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentRef, Fingerprint, Found
from npl_index.library.listing import Listed
from npl_index.library.patterns import PathPattern, alternatives, has_magic
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix, near_names
from npl_index.library.roots import fits, refuse_questions
from npl_mcp.core.sources import Texts
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.library.names import EVERY, SCHEME, LibraryRef, top_of
from npl_mcp.stores.library.store import Files, LibraryFile, LibraryRevision

_FILES_KEPT = 200_000
"""Maximum files in all cached listings, about a hundred MB."""

_PARTS_KEPT = 64
ALL = "."
"""The path of a whole library."""

_STATE = attrgetter("state")
_MAKE = "'npl-mcp library push FOLDER' makes one"


@dataclass(frozen=True, slots=True)
class FoundFile(Found):
    """A file of a library.

    :param below: its path in the library.
    :param file: its content.
    :param state: unique for this content.
    """

    below: str = field(kw_only=True)
    file: LibraryFile = field(kw_only=True)
    state: Fingerprint = field(kw_only=True, compare=False)

    @classmethod
    def of(cls, root: Root, below: str, file: LibraryFile) -> FoundFile:
        """Return a file of a revision, named after its root."""
        path = f"{root.path}/{below}"
        number = int(file.digest, 16)
        # Two numbers of 63 bits, as databases hold them. A negative time never counts as too recent.
        state = Fingerprint(path, -(number >> 65), file.size, number & (1 << 63) - 1)
        return cls(root, path, root.label, below=below, file=file, state=state)


class Listing:
    """The files of a revision.

    :param top: the prefix of their paths.
    :param files: in order, by their paths.
    """

    def __init__(self, top: str, files: Mapping[str, FoundFile]) -> None:
        self.top = top
        files = {path: one for path, one in files.items() if has_suffix(path, MARKDOWN_SUFFIXES)}
        self.every = Listed.of(files.values(), map(_STATE, files.values()))
        self._by_path = files
        self._lock = threading.Lock()
        self._parts: LRUCache[str, tuple[Found, ...]] = LRUCache(_PARTS_KEPT)

    @classmethod
    def of(cls, top: str, files: Files) -> Listing:
        """Return a listing of files in their given order."""
        root = Root(top, top)
        return cls(top, {path: FoundFile.of(root, path, file) for path, file in files.items()})

    def changed(self, files: Files, gone: Collection[str]) -> Listing:
        """Return the listing of a later revision; unchanged entries keep their identity.

        :param files: new or changed files.
        :param gone: paths of removed files.
        """
        root = Root(self.top, self.top)
        found = dict(self._by_path)
        for path in gone:
            found.pop(path, None)
        size = len(found)
        found.update((path, FoundFile.of(root, path, file)) for path, file in files.items())
        # A changed file keeps its position.
        return Listing(self.top, found if len(found) == size else dict(sorted(found.items())))

    @cached_property
    def _by_label(self) -> dict[str, FoundFile]:
        # Selectors write single spaces for any separators between words.
        return {_label(path): one for path, one in self._by_path.items() if _label(path) != path}

    @cached_property
    def _by_end(self) -> dict[str, list[FoundFile]]:
        ends: dict[str, list[FoundFile]] = {}
        for path, one in self._by_path.items():
            ends.setdefault(_label(path).rpartition("/")[2], []).append(one)
        return ends

    def one(self, path: str) -> FoundFile | None:
        """Return the file at a path; ``.md`` is optional."""
        for name in (path, f"{path}.md"):
            found = self._by_path.get(name) or self._by_label.get(name)
            if found is not None:
                return found
        return None

    def ending(self, name: str) -> Iterator[FoundFile]:
        """Return the files whose paths equal a name or end with it; ``.md`` is optional."""
        for wanted in (name, f"{name}.md"):
            for found in self._by_end.get(wanted.rpartition("/")[2], ()):
                if f"/{_label(found.below)}".endswith(f"/{wanted}"):
                    yield found

    def part(self, path: str) -> tuple[Found, ...]:
        """Return the file, or else the files of the folder or the pattern; always the same object for a set.

        :param path: as :func:`read_name` returns it.
        :raises InvalidRequestError: the pattern is not valid.
        """
        if path == ALL:
            return self.every
        found = self.one(path)
        if found is not None:
            return (found,)
        with self._lock:
            known = self._parts.get(path)
        if known is None:
            known = self._chosen(path)
            with self._lock:
                self._parts[path] = known
        return known

    def near(self, path: str) -> tuple[str, ...]:
        """Return the names of files and folders most similar to a path."""
        folders = dict.fromkeys(one.rpartition("/")[0] for one in self._by_path)
        near = near_names(path, chain(self._by_path, filter(None, folders)))
        return tuple(f"{self.top}/{name}" for name in near)

    def _chosen(self, path: str) -> tuple[Found, ...]:
        """Return the files of a folder, or else the matches of a pattern."""
        below = self._listed([_inside(path)])
        return below or self._listed([self._test(posixpath.normpath(one)) for one in alternatives(path)])

    def _test(self, path: str) -> Callable[[str], bool]:
        found = self.one(path)
        if found is not None:
            return found.below.__eq__
        return (
            partial(fits, PathPattern.compile(path.split("/"), parameter="file"))
            if has_magic(path)
            else _inside(path)
        )

    def _listed(self, tests: Sequence[Callable[[str], bool]]) -> tuple[Found, ...]:
        found = [one for path, one in self._by_path.items() if any(test(path) for test in tests)]
        return Listed.of(found, [one.state for one in found]) if found else ()


class LibraryDocuments:
    """The libraries as documents.

    :param stores: the stores of the libraries.
    :param most: maximum documents of one name.
    :param seen: returns whether the caller may see a library; others are treated as missing.
    :param listings: cached listings, for all callers.
    """

    SCHEME = SCHEME

    def __init__(self, stores: Stores, most: int, seen: Callable[[str], bool], listings: Listings) -> None:
        self._stores = stores
        self._most = most
        self._seen = seen
        self._listings = listings

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find the documents of a name: a file, or all of a library, of a folder or of a pattern, sorted by
        path.

        :raises InvalidRequestError: the name is not valid.
        :raises OutsideRootError: it leads out of the library.
        :raises RecordNotFoundError: the library has no such revision.
        :raises DocumentNotFoundError: no document has that name; carries similar names.
        :raises DocumentTooLargeError: there are more documents than the limit.
        """
        text = ref.file or ""
        found = self._every() if text == EVERY else self._named(text)
        if len(found) > self._most:
            problem = f"there are more than {self._most:,} files"
            raise DocumentTooLargeError(problem, hint="name a folder of the library")
        return found

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name denotes a library, a folder or a pattern, whatever its number of files."""
        text = ref.file or ""
        if text == EVERY:
            return True
        wanted, path = read_name(text)
        if path.lower().endswith(MARKDOWN_SUFFIXES) and not has_magic(path) and "{" not in path:
            return False
        return self._listing(wanted).one(path) is None

    def holds(self, text: str) -> bool:
        """Return whether a text, commas included, is the name of one document."""
        try:
            wanted, path = read_name(text)
            return self._listing(wanted).one(path) is not None
        except NPLError:
            return False

    def find_called(self, name: str) -> tuple[Found, ...]:
        """Find the documents of current revisions whose paths equal a name or end with it."""
        found = [one for listing in self._current() for one in listing.ending(name)]
        exact = tuple(one for one in found if _label(one.below) in (name, f"{name}.md"))
        return exact or tuple(found)

    def aliases(self, found: Found) -> tuple[str, ...]:
        """Return the path in the library."""
        return (found.path.partition("/")[2],)

    def stat(self, found: Found) -> Fingerprint:
        """Return the state of a file when it was found: its digest."""
        return _file(found).state

    def read(self, found: Found) -> Document:
        """Read a file in the state in which it was found.

        :raises UnreadableDocumentError: the content in the database has changed.
        """
        one = _file(found)
        return _document(one, self._stores.library.content(one.path, one.file.digest))

    def apart(self) -> LibraryDocuments:
        """Return this object: other processes receive the texts, so they need no database."""
        return self

    def sent(self, founds: Sequence[Found]) -> Texts:
        """Return a reader of these documents for another process."""
        files = list(map(_file, founds))
        texts = self._stores.library.contents({one.file.digest for one in files})
        there = [one for one in files if one.file.digest in texts]
        return Texts({one.path: _document(one, texts[one.file.digest]) for one in there})

    def _named(self, text: str) -> tuple[Found, ...]:
        wanted, path = read_name(text)
        listing = self._listing(wanted)
        found = listing.part(path)
        if not found:
            refuse_questions(path, text)
            raise DocumentNotFoundError(f"there is no document {text!r}", near=listing.near(path))
        return found

    def _every(self) -> tuple[Found, ...]:
        found = self._listings.joined([listing.every for listing in self._current()])
        if not found:
            raise DocumentNotFoundError("there is no library", hint=_MAKE)
        return found

    def _current(self) -> Iterator[Listing]:
        """Return the listing of each library that the caller may see."""
        if self._is_there():
            for revision in self._stores.library.list():
                if self._seen(revision.library):
                    yield self._listings.get(self._stores, revision, top_of(revision.library, None))

    def _is_there(self) -> bool:
        """Return whether a database exists: the lookup of an unknown name must not create one."""
        return self._stores.database.engine.exists()

    def _listing(self, wanted: LibraryRef) -> Listing:
        if not self._is_there():
            raise DocumentNotFoundError(f"there is no library {wanted.library!r}", hint=_MAKE)
        revision = self._stores.library.revision(wanted.library, wanted.number, self._seen)
        return self._listings.get(self._stores, revision, wanted.top)


class Listings:
    """The cached listing of the last requested revision of each library; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[str, tuple[LibraryRevision, Listing]] = LRUCache(_FILES_KEPT, _weight)
        self._joined: tuple[list[Listed], Listed] | None = None

    def get(self, stores: Stores, revision: LibraryRevision, top: str) -> Listing:
        """Return the listing of a revision.

        :param top: the prefix of the paths of its files.
        """
        with self._lock:
            kept = self._kept.get(top)
        # By digest: after a restored backup, a number may denote another revision.
        if kept is not None and kept[0].digest == revision.digest:
            return kept[1]
        since = None if kept is None else stores.library.since(kept[0], revision)
        if kept is None or since is None:
            listing = Listing.of(top, stores.library.files(revision))
        else:
            listing = kept[1].changed(*since)
        with self._lock:
            self._kept[top] = revision, listing
        return listing

    def joined(self, parts: list[Listed]) -> Listed:
        """Return the files of several listings; the same object while they are unchanged."""
        last = self._joined
        if last is None or list(map(id, last[0])) != list(map(id, parts)):
            last = self._joined = parts, Listed.joined(parts)
        return last[1]


def read_name(text: str) -> tuple[LibraryRef, str]:
    """Parse a name into a reference and a normalised path.

    :raises InvalidRequestError: the name is not valid.
    :raises OutsideRootError: it leads out of the library.
    """
    wanted = LibraryRef.parse(text)
    path = posixpath.normpath(wanted.path.lstrip("/"))
    if path.split("/", 1)[0] == "..":
        raise OutsideRootError(f"{text[:64]!r} leads out of the library", hint="give a path below it")
    return wanted, path


def _document(found: FoundFile, data: bytes) -> Document:
    return Document(
        name=found.name,
        path=found.path,
        root=found.root.label,
        fingerprint=found.state,
        data=data,
        digest=found.file.digest,
        npl=False,
        filed=found.below,
    )


def _weight(kept: tuple[LibraryRevision, Listing]) -> int:
    return min(len(kept[1].every), _FILES_KEPT)


def _label(path: str) -> str:
    return " ".join(path.split())


def _inside(folder: str) -> Callable[[str], bool]:
    begin = f"{folder}/"
    return lambda path: path.startswith(begin)


def _file(found: Found) -> FoundFile:
    assert isinstance(found, FoundFile)
    return found
