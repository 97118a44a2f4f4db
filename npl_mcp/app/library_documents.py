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
from contextlib import suppress
from functools import partial
from itertools import chain
from operator import attrgetter

from cachetools import LRUCache, cachedmethod

from npl_index.cached import cached_property
from npl_index.errors import DocumentNotFoundError, DocumentTooLargeError, NPLError, OutsideRootError
from npl_index.library.catalog import Root
from npl_index.library.documents import Document, DocumentRef, Fingerprint, Found
from npl_index.library.listing import Listed
from npl_index.library.patterns import PathPattern, alternatives, has_magic
from npl_index.library.references import MARKDOWN_SUFFIXES, has_suffix, near_names
from npl_index.library.roots import fits, refuse_questions
from npl_mcp.app.sources import StoredDocuments, StoredFound, stored
from npl_mcp.stores.data_folder import Stores
from npl_mcp.stores.library.libraries import Files, LibraryFile, LibraryRevision
from npl_mcp.stores.library.names import EVERY, SCHEME, LibraryRef, top_of

_MAX_FILES = 200_000
"""Files in all cached listings, about a hundred MB."""

_MAX_PARTS = 64
ALL = "."
"""Path of a whole library."""

_STATE = attrgetter("state")
_CREATE = "'npl-mcp library push FOLDER' creates one"


def _found(root: Root, below: str, file: LibraryFile) -> StoredFound:
    """Return a file of a revision, named after its root."""
    path = f"{root.path}/{below}"
    number = int(file.digest, 16)
    # Two numbers of 63 bits, as databases hold them. A negative time never counts as too recent.
    state = Fingerprint(path, -(number >> 65), file.size, number & (1 << 63) - 1)
    return StoredFound(root, path, root.label, filed=below, digest=file.digest, state=state)


class Listing:
    """The files of a revision.

    :param top: prefix of their paths.
    :param files: files by path, in order.
    """

    def __init__(self, top: str, files: Mapping[str, StoredFound]) -> None:
        self.top = top
        files = {path: file for path, file in files.items() if has_suffix(path, MARKDOWN_SUFFIXES)}
        self.every = Listed.of(files.values(), map(_STATE, files.values()))
        self._by_path = files
        self._lock = threading.Lock()
        self._parts: LRUCache[str, tuple[Found, ...]] = LRUCache(_MAX_PARTS)

    @classmethod
    def of(cls, top: str, files: Files) -> Listing:
        """Return a listing of files in their given order."""
        root = Root(top, top)
        return cls(top, {path: _found(root, path, file) for path, file in files.items()})

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
        found.update((path, _found(root, path, file)) for path, file in files.items())
        # A changed file keeps its position.
        return Listing(self.top, found if len(found) == size else dict(sorted(found.items())))

    @cached_property
    def _by_label(self) -> dict[str, StoredFound]:
        # Selectors write single spaces for any separators between words.
        return {_label(path): file for path, file in self._by_path.items() if _label(path) != path}

    @cached_property
    def _by_end(self) -> dict[str, list[StoredFound]]:
        ends: dict[str, list[StoredFound]] = {}
        for path, file in self._by_path.items():
            ends.setdefault(_label(path).rpartition("/")[2], []).append(file)
        return ends

    def one(self, path: str) -> StoredFound | None:
        """Return the file at a path; ``.md`` is optional."""
        for name in (path, f"{path}.md"):
            found = self._by_path.get(name) or self._by_label.get(name)
            if found is not None:
                return found
        return None

    def ending(self, name: str) -> Iterator[StoredFound]:
        """Yield the files whose paths equal a name or end with it; ``.md`` is optional."""
        for wanted in (name, f"{name}.md"):
            for found in self._by_end.get(wanted.rpartition("/")[2], ()):
                if f"/{_label(found.filed)}".endswith(f"/{wanted}"):
                    yield found

    def part(self, path: str) -> tuple[Found, ...]:
        """Return a file, or the files of a folder or a pattern; a set is always the same object.

        :param path: path in the form of :func:`read_name`.
        :raises InvalidRequestError: the pattern is not valid.
        """
        if path == ALL:
            return self.every
        found = self.one(path)
        return self._matching(path) if found is None else (found,)

    def near(self, path: str) -> tuple[str, ...]:
        """Return the names of files and folders most similar to a path."""
        folders = dict.fromkeys(file.rpartition("/")[0] for file in self._by_path)
        near = near_names(path, chain(self._by_path, filter(None, folders)))
        return tuple(f"{self.top}/{name}" for name in near)

    @cachedmethod(attrgetter("_parts"), lock=attrgetter("_lock"))
    def _matching(self, path: str) -> tuple[Found, ...]:
        """Return the files of a folder, or else the matches of a pattern."""
        below = self._passing([_starts_in(path)])
        tests = (self._test(posixpath.normpath(pattern)) for pattern in alternatives(path))
        return below or self._passing(list(tests))

    def _test(self, path: str) -> Callable[[str], bool]:
        found = self.one(path)
        if found is not None:
            return found.filed.__eq__
        if not has_magic(path):
            return _starts_in(path)
        return partial(fits, PathPattern.compile(path.split("/"), parameter="file"))

    def _passing(self, tests: Sequence[Callable[[str], bool]]) -> tuple[Found, ...]:
        found = [file for path, file in self._by_path.items() if any(test(path) for test in tests)]
        return Listed.of(found, map(_STATE, found)) if found else ()


class LibraryDocuments(StoredDocuments):
    """The libraries as documents.

    :param stores: stores of the libraries.
    :param max_files: maximum number of documents of one name.
    :param may_see: function that returns whether the caller may see a library; others count as missing.
    :param listings: cached listings, for all callers.
    """

    SCHEME = SCHEME

    def __init__(
        self, stores: Stores, max_files: int, may_see: Callable[[str], bool], listings: Listings
    ) -> None:
        self._stores = stores
        self._max_files = max_files
        self._may_see = may_see
        self._listings = listings

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find the documents of a name: a file, or the files of a library, a folder or a pattern, by path.

        :raises InvalidRequestError: the name is not valid.
        :raises OutsideRootError: the name leads out of the library.
        :raises RecordNotFoundError: the library has no such revision.
        :raises DocumentNotFoundError: no document has that name; ``near`` has similar names.
        :raises DocumentTooLargeError: there are more documents than the limit.
        """
        text = ref.file or ""
        if text == EVERY:
            found: tuple[Found, ...] = self._listings.joined([one.every for one in self._current_listings()])
            if not found:
                raise DocumentNotFoundError("there is no library", hint=_CREATE)
        else:
            wanted, path = read_name(text)
            listing = self._listing(wanted)
            found = listing.part(path)
            if not found:
                refuse_questions(path, text)
                raise DocumentNotFoundError(f"there is no document {text!r}", near=listing.near(path))
        if len(found) > self._max_files:
            problem = f"there are more than {self._max_files:,} files"
            raise DocumentTooLargeError(problem, hint="name a folder of the library")
        return found

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a name denotes a library, a folder or a pattern, even with a single file."""
        text = ref.file or ""
        if text == EVERY:
            return True
        wanted, path = read_name(text)
        if path.lower().endswith(MARKDOWN_SUFFIXES) and not has_magic(path) and "{" not in path:
            return False
        return self._listing(wanted).one(path) is None

    def holds(self, text: str) -> bool:
        """Return whether a text, commas included, is the name of one document."""
        with suppress(NPLError):
            wanted, path = read_name(text)
            return self._listing(wanted).one(path) is not None
        return False

    def find_called(self, name: str) -> tuple[Found, ...]:
        """Find the documents of current revisions whose paths equal a name or end with it."""
        found = [file for listing in self._current_listings() for file in listing.ending(name)]
        exact = tuple(file for file in found if _label(file.filed) in (name, f"{name}.md"))
        return exact or tuple(found)

    def aliases(self, found: Found) -> tuple[str, ...]:
        """Return the path in the library."""
        return (found.path.partition("/")[2],)

    def read(self, found: Found) -> Document:
        """Read a file in the state in which it was found.

        :raises UnreadableDocumentError: the content in the database has changed.
        """
        digest = stored(found).digest
        return stored(found).document(self._stores.library.content(found.path, digest), digest)

    def texts(self, founds: Sequence[Found]) -> Mapping[str, bytes]:
        """Return the contents of files by digest."""
        return self._stores.library.contents({stored(found).digest for found in founds})

    def _current_listings(self) -> Iterator[Listing]:
        """Yield the current listing of each library that the caller may see."""
        if self._stores.database.engine.exists():  # the lookup of an unknown name must not create one
            for revision in self._stores.library.list():
                if self._may_see(revision.library):
                    yield self._listings.get(self._stores, revision, top_of(revision.library, None))

    def _listing(self, wanted: LibraryRef) -> Listing:
        if not self._stores.database.engine.exists():
            raise DocumentNotFoundError(f"there is no library {wanted.library!r}", hint=_CREATE)
        revision = self._stores.library.revision(wanted.library, wanted.number, self._may_see)
        return self._listings.get(self._stores, revision, wanted.top)


class Listings:
    """The cached listing of the last requested revision of each library; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[str, tuple[LibraryRevision, Listing]] = LRUCache(
            _MAX_FILES, lambda kept: min(len(kept[1].every), _MAX_FILES)
        )
        self._joined: tuple[list[Listed], Listed] | None = None

    def get(self, stores: Stores, revision: LibraryRevision, top: str) -> Listing:
        """Return the listing of a revision.

        :param top: prefix of the paths of its files.
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
        """Return the files of several listings; the same object while the listings are unchanged."""
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


def _label(path: str) -> str:
    return " ".join(path.split())


def _starts_in(folder: str) -> Callable[[str], bool]:
    begin = f"{folder}/"
    return lambda path: path.startswith(begin)
