"""Find and read Markdown files under search roots. The library opens files here and nowhere else.

A file is opened segment by segment below its root without following links, so
that a link put in place after the path was resolved is refused (resolving and
then opening by path loses that race). Systems without ``O_NOFOLLOW`` and
``dir_fd`` (Windows) open the resolved path and compare it before and after.
"""

# A path object costs more than the system call it is made for, once per file.
# ruff: noqa: PTH112, PTH116, PTH117, PTH118, PTH206

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain, islice, product

from npl_index.errors import (
    DocumentNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    NPLError,
    UnreadableDocumentError,
)
from npl_index.library.catalog import PATCH_SUFFIX, Catalog, Kind, Place, Root, item_paths
from npl_index.library.patterns import PathPattern, has_magic
from npl_index.library.references import DocumentRef, near_names
from npl_index.library.roots import (
    MARKDOWN_SUFFIXES,
    Found,
    Limits,
    Roots,
    irregular,
    outside,
    real_path,
    resolve,
    too_many,
    unusable,
)

__all__ = [
    "Document",
    "DocumentRef",
    "Fingerprint",
    "Found",
    "Library",
    "Limits",
    "Root",
]

_READ_ATTEMPTS = 4
_READ_SIZE = 1 << 20
_WALKS_FILE_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells two states of a file apart without reading it.

    :param path: absolute path, links resolved.
    :param mtime_ns: time of the last change, nanoseconds; programs may set it back.
    :param size: bytes.
    :param ctime_ns: time of the last change of the file's record, which no program can set, nanoseconds.
    """

    path: str
    mtime_ns: int
    size: int
    ctime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """One file, read.

    :param name: file name without its suffix, which is what selectors call the document.
    :param path: path below its root, ``/`` between segments.
    :param root: label of the root.
    :param fingerprint: state of the file the bytes belong to.
    :param data: its bytes as on disk.
    :param digest: BLAKE2b of ``data``, 16 bytes, in hex.
    :param npl: it lies under a root declared as NPL, so fences of equal length nest.
    """

    name: str
    path: str
    root: str
    fingerprint: Fingerprint
    data: bytes
    digest: str
    npl: bool


class Library:
    """Finds, checks and reads the Markdown files under some roots.

    A library remembers nothing about files: every call looks anew.

    :param roots: where relative paths are looked for, first one wins; the catalog's roots follow.
    :param catalog: the kinds of items and their places.
    :param limits: bounds on one request.
    """

    def __init__(self, roots: Sequence[Root], catalog: Catalog, limits: Limits | None = None) -> None:
        self.catalog = catalog
        self.limits = limits if limits is not None else Limits()
        self.roots = Roots((*roots, *catalog.roots()), self.limits)

    def find(self, ref: DocumentRef) -> tuple[Found, ...]:
        """Find what a reference names: one file, or all of a folder or pattern in order of their paths.

        A relative path is looked for below each root, first as given, then with ``.md``; a pattern below
        the first root that has a match; then a name is looked up as an item, kind after kind.

        :raises DocumentNotFoundError: nothing is there; carries near names.
        :raises OutsideRootError: it lies outside every root, or a link leads there.
        :raises UnreadableDocumentError: it is there and is not a regular Markdown file.
        :raises DocumentTooLargeError: a folder or pattern goes beyond the limits.
        :raises InvalidRequestError: the kind is unknown or holds no Markdown, or the pattern is not one.
        """
        if ref.file is not None:
            return self._find_file(ref.file)
        kind = self.catalog.init if ref.kind is None else self.catalog.kind(ref.kind)
        if kind.suffix not in MARKDOWN_SUFFIXES:
            problem = f"a {kind.name} has no sections"
            raise InvalidRequestError(problem, parameter="resource_type", hint="load it whole")
        item = ref.item if ref.item is not None else kind.only or ""
        found = self.find_items(kind, item)
        if not found:
            raise self.no_item(kind, item)
        return tuple(found[name] for name in sorted(found))

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a folder or a pattern, however many files that is.

        :raises OutsideRootError: it lies outside every root.
        """
        if ref.file is None:
            return has_magic(ref.item or "")
        clean = os.path.normpath(ref.file)
        if has_magic(clean) or clean.lower().endswith(MARKDOWN_SUFFIXES):
            return has_magic(clean)
        return any(os.path.isdir(path) for path in self._existing((clean,), ref.file)[:1])

    def _find_file(self, text: str) -> tuple[Found, ...]:
        """Find a path, else a pattern, else an item of any kind."""
        clean = os.path.normpath(text)
        if clean.split(os.sep, 1)[0] == os.pardir:
            raise outside(text)
        problems: list[NPLError] = []
        for path in self._existing(self._spellings(clean), text):
            try:
                return self._at(path, text)
            except (DocumentNotFoundError, UnreadableDocumentError) as problem:
                problems.append(problem)
        found = self._find_matches(clean, text) if has_magic(clean) else self._find_named(clean)
        if found:
            return found
        raise problems[0] if problems else self._no_file(text)

    def _existing(self, spellings: Sequence[str], text: str) -> list[str]:
        """Return the real paths that a path, spelled in different ways, may mean: those that exist.

        :raises OutsideRootError: one of them lies under no root.
        """
        if os.path.isabs(spellings[0]):
            meant = [real_path(spelling) for spelling in spellings]
        else:
            meant = [resolve(root.path, spelling) for root, spelling in product(self.roots, spellings)]
        return [path for path in meant if path is not None and self.roots.is_there(path, text)]

    def _spellings(self, clean: str) -> tuple[str, ...]:
        """Return a path as it is and, unless it has a suffix or is a root, with ``.md``."""
        if clean.lower().endswith(MARKDOWN_SUFFIXES):
            return (clean,)
        if os.path.isabs(clean) and real_path(clean) in {root.path for root in self.roots}:
            return (clean,)
        return (clean, f"{clean}.md")

    def _at(self, path: str, text: str) -> tuple[Found, ...]:
        """Return the file at a real path, or the files of a folder.

        :raises DocumentNotFoundError: a folder without Markdown.
        :raises UnreadableDocumentError: not a regular Markdown file.
        """
        if path.lower().endswith(MARKDOWN_SUFFIXES) or not os.path.isdir(path):
            return (self.roots.regular(path, text, MARKDOWN_SUFFIXES),)
        found = self._collect(path, None)
        if not found:
            raise DocumentNotFoundError(f"the folder {text!r} holds no Markdown")
        return found

    def _find_matches(self, clean: str, text: str) -> tuple[Found, ...]:
        """Return the files that match a pattern, all of them below the first root that has any."""
        segments = clean.split(os.sep)
        first = next(at for at, segment in enumerate(segments) if has_magic(segment))
        pattern = PathPattern.compile(segments[first:], parameter="file")
        folder = os.sep.join(segments[:first]) or (os.sep if os.path.isabs(clean) else os.curdir)
        for path in self._existing((folder,), text):
            found = self._collect(path, pattern) if os.path.isdir(path) else ()
            if found:
                return found
        return ()

    def _collect(self, folder: str, pattern: PathPattern | None) -> tuple[Found, ...]:
        """Return the files below a real folder, each once, in order of their paths."""
        files: dict[tuple[str, str], Found] = {}
        for _, found in self.roots.walk(folder, pattern, MARKDOWN_SUFFIXES):
            files[found.root.path, found.path] = found
            if len(files) > self.limits.max_files:
                raise too_many(f"{self.limits.max_files:,} files")
        return tuple(files[key] for key in sorted(files))

    def _find_named(self, clean: str) -> tuple[Found, ...]:
        """Return the item of this name of the first kind that has it."""
        if os.path.isabs(clean):
            return ()
        name = clean.replace(os.sep, "/")
        kinds = (kind for kind in self.catalog.kinds if kind.suffix in MARKDOWN_SUFFIXES)
        items = (self.find_item(kind, reading) for kind in kinds for reading in kind.readings(name))
        return tuple(islice((found for found in items if found is not None), 1))

    def find_item(self, kind: Kind, item: str) -> Found | None:
        """Find the item of exactly this name: the first place that has it wins.

        :raises OutsideRootError: the name is absolute, climbs, or a link leads out of every root.
        :raises UnreadableDocumentError: it is there and is not a regular file.
        """
        if item.startswith("/") or not {os.curdir, os.pardir}.isdisjoint(item.split("/")):
            raise outside(item)
        if kind.only not in (None, item):
            return None
        return self._first(kind.places, item, kind.suffix)

    def find_patch(self, kind: Kind, item: str) -> Found | None:
        """Find the file that is to be put in front of an item.

        :raises OutsideRootError: a link leads out of every root.
        :raises UnreadableDocumentError: it is there and is not a regular file.
        """
        return self._first(kind.patches, item, PATCH_SUFFIX)

    def _first(self, places: Sequence[Place], item: str, suffix: str) -> Found | None:
        paths = item_paths(item, suffix)
        for place, path in product(places, paths):
            real = self.roots.below(place, path)
            if real is not None and self.roots.is_there(real, item):
                return replace(self.roots.regular(real, item, (suffix,)), label=place.root.label, item=item)
        return None

    def find_items(self, kind: Kind, pattern: str) -> dict[str, Found]:
        """Find one item, or all whose names match a pattern.

        In a pattern dots and slashes separate folders: ``*`` is the top level, ``syntax.*`` one folder,
        ``**`` or ``**.*`` all of them.

        :returns: files by item name; empty if there is none.
        :raises OutsideRootError: the name is absolute, climbs, or a link leads out of every root.
        :raises UnreadableDocumentError: the one item is there and is not a regular file.
        :raises DocumentTooLargeError: there are more items than the limits allow.
        :raises InvalidRequestError: the pattern has more than one ``**``, or is too long.
        """
        exact = self.find_item(kind, pattern)
        if exact is not None:
            return {pattern: exact}
        if not has_magic(pattern):
            return {}
        compiled = PathPattern.compile(re.split(r"[./]", pattern), parameter="items")
        return {
            name: found
            for name, (path, found) in self._items(kind).items()
            if compiled.matches(path.split("/")) or compiled.matches(name.split("."))
        }

    def item_names(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of all items of a kind, sorted.

        :raises DocumentTooLargeError: there are more items than the limits allow.
        """
        return tuple(sorted(self._items(kind)))

    def _items(self, kind: Kind) -> dict[str, tuple[str, Found]]:
        """Return path below its place, without suffix, and file of every item, by name."""
        if kind.only is not None:
            single = self.find_item(kind, kind.only)
            return {} if single is None else {kind.only: (kind.only, single)}
        items: dict[str, tuple[str, Found]] = {}
        for place in kind.places:
            folder = self.roots.below(place, "")
            for below, found in self.roots.walk(folder, None, (kind.suffix,)) if folder else ():
                path = below[: -len(kind.suffix)]
                name = path.replace("/", ".")
                if name not in items and not below.endswith(PATCH_SUFFIX):
                    items[name] = (path, replace(found, label=place.root.label, item=name))
            if len(items) > self.limits.max_files:
                raise too_many(f"{self.limits.max_files:,} files")
        return items

    def no_item(self, kind: Kind, item: str) -> DocumentNotFoundError:
        """Make the error for an item that is not there, with near names."""
        if item == kind.only:
            return DocumentNotFoundError(
                f"{item}{kind.suffix}, the core reference, lies under no search root"
            )
        near = near_names(item, self.item_names(kind))
        return DocumentNotFoundError(f"there is no {kind.name} {item!r}", near=near)

    def _no_file(self, text: str) -> DocumentNotFoundError:
        """Make the error for a file that is not there, with near file and item names."""
        kinds = [kind for kind in self.catalog.kinds if kind.suffix in MARKDOWN_SUFFIXES]
        items = (name for kind in kinds for name in self.item_names(kind))
        near = near_names(text, chain(items, self.roots.sample(MARKDOWN_SUFFIXES)))
        hint = None if near else "give a path below a root, a folder, a pattern or an item name"
        return DocumentNotFoundError(f"there is no document {text!r}", near=near, hint=hint)

    def stat(self, found: Found) -> Fingerprint:
        """Return the present state of a file, without opening it.

        :raises DocumentNotFoundError: it is gone.
        :raises UnreadableDocumentError: it is no regular file any more.
        """
        path = found.absolute
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError as error:
            raise unusable(found.path, error) from None
        if not stat.S_ISREG(status.st_mode):
            raise irregular(found.path)
        return Fingerprint(path, status.st_mtime_ns, status.st_size, status.st_ctime_ns)

    def read(self, found: Found) -> Document:
        """Read a file whole; if it changes meanwhile, again.

        :raises DocumentNotFoundError: it is gone.
        :raises DocumentTooLargeError: it has more bytes than the limit.
        :raises UnreadableDocumentError: it is no regular file, may not be read, has become a link, or
            changed each time while it was read.
        """
        for _ in range(_READ_ATTEMPTS):
            state = self._read_once(found)
            if state is not None:
                break
        else:
            raise UnreadableDocumentError(f"{found.path!r} changed while it was read", hint="try again")
        data, fingerprint = state
        return Document(
            name=found.name,
            path=found.path,
            root=found.root.label,
            fingerprint=fingerprint,
            data=data,
            digest=blake2b(data, digest_size=16).hexdigest(),
            npl=self.roots.is_npl(found.absolute),
        )

    def _read_once(self, found: Found) -> tuple[bytes, Fingerprint] | None:
        """Return a file's bytes and the state they belong to, ``None`` if it changed meanwhile."""
        limit = self.limits.max_bytes
        try:
            with _opened(found.root.path, found.path) as file:
                before = os.fstat(file)
                if not stat.S_ISREG(before.st_mode):
                    raise irregular(found.path)
                data = _read_up_to(file, limit + 1) if before.st_size <= limit else None
                after = os.fstat(file)
        except OSError as error:
            raise unusable(found.path, error) from None
        if data is None or len(data) > limit:
            problem = f"{found.path!r} is larger than {limit:,} bytes"
            raise DocumentTooLargeError(problem, hint="split it into smaller files")
        same = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data)
        state = Fingerprint(found.absolute, after.st_mtime_ns, len(data), after.st_ctime_ns)
        return (data, state) if same else None


@contextmanager
def _opened(root: str, path: str) -> Iterator[int]:
    """Open a file below a root for reading, following no link below the root.

    :raises OSError: a segment is absent, a link, or may not be entered.
    """
    file = _open_below(root, path) if _WALKS_FILE_DESCRIPTORS else _open_compared(root, path)
    try:
        yield file
    finally:
        os.close(file)


def _open_below(root: str, path: str) -> int:
    """Open segment by segment; a pipe or device does not block and is told by its mode afterwards."""
    *folders, name = path.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for segment in folders:
            inner = os.open(segment, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
    finally:
        os.close(folder)


def _open_compared(root: str, path: str) -> int:
    """Open where segments cannot be opened one by one: the real path must be the same before and after."""
    whole = os.path.join(root, *path.split("/"))
    if not stat.S_ISREG(os.lstat(whole).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    file = os.open(whole, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    if os.path.realpath(whole) != whole or not os.path.samestat(os.fstat(file), os.lstat(whole)):
        os.close(file)
        raise OSError(errno.ELOOP, "a link")
    return file


def _read_up_to(file: int, limit: int) -> bytes:
    """Read to the end, or to the limit."""
    chunks = []
    while limit > 0 and (chunk := os.read(file, min(limit, _READ_SIZE))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)
