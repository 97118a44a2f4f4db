"""Find and read Markdown files under search roots.

Symlinks cannot lead outside a search root: a path is resolved and compared with the roots. Then
:mod:`npl_index.library.files` opens it without following a link that was created in the meantime.
"""

# A path object for each file costs more than the system call.
# ruff: noqa: PTH112, PTH117, PTH118, PTH206

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, islice, product, starmap

from npl_index import errors
from npl_index.library.catalog import PATCH_SUFFIX, Catalog, ItemFolder, Kind, Root, item_paths
from npl_index.library.files import read_below
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.ignoring import NOTHING, Ignoring
from npl_index.library.listing import FileListings, Listed, cached_listings
from npl_index.library.patterns import PathPattern, alternatives, has_magic
from npl_index.library.references import MARKDOWN_SUFFIXES, OTHER_TEXTS, DocumentRef, near_names, plain_name
from npl_index.library.roots import DocumentFile, Limits, Roots, outside, skipped_text, too_many, unusable
from npl_index.library.walking import Walk, sample

__all__ = ["Document", "DocumentFile", "DocumentRef", "Fingerprint", "Library", "Limits", "Root"]

_MAX_SEARCHED = 10_000
"""Maximum entries of a folder that a search for the end of a path visits, about 20 ms: the working directory
may be a whole home folder."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file and its content.

    :param name: file name without its suffix, the name of the document in selectors.
    :param path: path below its root, ``/`` between segments.
    :param fingerprint: fingerprint of the state that was read.
    :param data: its bytes as on disk.
    :param digest: BLAKE2b of ``data``, 16 bytes, in hex.
    :param npl: it lies under a root declared as NPL, so fences of equal length nest.
    :param filed: the name whose words count in ranking, if ``path`` is only a number.
    """

    name: str
    path: str
    fingerprint: Fingerprint
    data: bytes
    digest: str
    npl: bool
    filed: str | None = None


Read = Callable[[DocumentFile], Document]
"""A reader of documents."""


def read_document(file: DocumentFile, max_bytes: int, npl: tuple[str, ...] = ()) -> Document:
    """Read a whole file.

    :param max_bytes: maximum bytes of the file.
    :param npl: prefixes of the paths below roots declared as NPL.
    :raises DocumentNotFoundError: the file no longer exists.
    :raises DocumentTooLargeError: it has more bytes than the limit.
    :raises UnreadableDocumentError: it is no longer a regular file, may not be read, has become a link, or
        changed during every attempt to read it.
    """
    try:
        data, status = read_below(file.root.path, file.path, max_bytes)
    except OSError as error:
        raise unusable(file.path, error) from None
    state, digest = Fingerprint.of(file.absolute, status), blake2b(data, digest_size=16).hexdigest()
    return Document(file.name, file.path, state, data, digest, file.absolute.startswith(npl))


class Library:
    """The Markdown files below the given roots: finds, checks and reads them.

    Every call checks the file system.

    :param roots: roots of relative paths, the first match wins; the catalog's roots follow.
    :param catalog: the kinds of items and their places.
    :param limits: bounds on one request.
    :param searched: the default roots of a request without a name; without them the core reference is used.
    :param or_reference: use the core reference also if these roots hold no Markdown.
    :param listings: cached listings of folders, so that unchanged files keep their objects.
    :param ignoring: entries that folders and patterns leave out below the roots.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        catalog: Catalog,
        limits: Limits | None = None,
        searched: Sequence[Root] = (),
        *,
        or_reference: bool = False,
        listings: FileListings | None = None,
        ignoring: Ignoring = NOTHING,
    ) -> None:
        self.catalog, self._listings = catalog, listings or cached_listings()
        self._or_reference = or_reference
        self._markdown_kinds = [kind for kind in catalog.kinds if kind.suffix in MARKDOWN_SUFFIXES]
        # A path with ".." or through a link would lie below another root.
        self._searched = tuple(root._replace(path=os.path.realpath(root.path)) for root in searched)
        self.limits = limits or Limits()
        self.roots = Roots((*roots, *catalog.roots()), self.limits, ignoring)
        self._key = (tuple(self.roots), self.limits, ignoring)
        # It can be sent to another process.
        self.read: Read = partial(read_document, max_bytes=self.limits.max_bytes, npl=self.roots.npl_prefixes)

    def find(self, ref: DocumentRef) -> tuple[DocumentFile, ...]:
        """Find the files of a reference: one file, or all of a folder or pattern, sorted by path.

        A relative path is searched below each root, first as given, then with ``.md``. A pattern matches
        below the first root with a match; braces (``{a,b}/*.md``) stand for several patterns. Then the name
        is looked up as an item, kind by kind. An empty reference means all files of the default roots.

        :raises DocumentNotFoundError: nothing matches; carries similar names.
        :raises OutsideRootError: the path lies outside every root, or a link leads outside.
        :raises UnreadableDocumentError: the path exists but is not a regular Markdown file.
        :raises DocumentTooLargeError: a folder or pattern exceeds the limits.
        :raises InvalidRequestError: the kind is unknown or contains no Markdown, or the pattern is invalid.
        """
        if ref.file is not None:
            return self._find_file(ref.file)
        if ref == DocumentRef() and (searched := self.searched):
            return self._find_all(searched)
        kind = self.catalog.init if ref.kind is None else self.catalog.kind(ref.kind)
        if kind.suffix not in MARKDOWN_SUFFIXES:
            problem = f"a {kind.name} has no sections"
            raise errors.InvalidRequestError(problem, parameter="resource_type", hint="load it whole")
        item = ref.item or kind.only or ""
        if not (items := self.find_items(kind, item)):
            raise self.no_item(kind, item)
        return tuple(items[name] for name in sorted(items))

    @property
    def searched(self) -> tuple[Root, ...]:
        """The roots of an empty reference; without any, it means the core reference."""
        if not self._or_reference or any(map(self.holds_any, self._searched)):
            return self._searched
        return ()

    def holds_any(self, root: Root) -> bool:
        """Return whether a short search finds Markdown below a root."""
        with suppress(errors.DocumentTooLargeError):
            return any(Walk(self.roots, most=_MAX_SEARCHED).files(root.path))
        return False

    def is_set(self, ref: DocumentRef) -> bool:
        """Return whether a reference names a folder or a pattern, with any number of files."""
        if ref.file is None:
            return has_magic(ref.item or "") or (ref == DocumentRef() and bool(self.searched))
        clean = os.path.normpath(ref.file)
        is_pattern = has_magic(clean) or len(alternatives(clean)) > 1
        # A text with wildcards may be the name of a file.
        there = next(self.roots.existing(self.roots.spellings(clean), ref.file), None)
        return is_pattern if there is None else os.path.isdir(there)

    def _find_file(self, text: str) -> tuple[DocumentFile, ...]:
        """Return the files of a path, or else of a pattern, or else the item of any kind with this name."""
        problems: list[errors.NPLError] = []
        for name in dict.fromkeys((text, plain_name(text))):
            if (clean := os.path.normpath(name)).split(os.sep, 1)[0] == os.pardir:
                raise outside(text)
            if files := self._files_at(clean, text, problems):
                return files
            paths = map(os.path.normpath, alternatives(clean))
            each = [self._files_at(path, text, problems) or self._find_matches(path, text) for path in paths]
            files = each[0] if len(each) == 1 else tuple(dict.fromkeys(chain(*each)))
            if files := files or self._find_named(clean):
                return files
        raise problems[0] if problems else self._no_file(text)

    def holds(self, text: str) -> bool:
        """Return whether a text, taken literally, is the path of a usable file or folder."""
        with suppress(errors.NPLError):
            return bool(self._files_at(os.path.normpath(text), text, []))
        return False

    def _files_at(self, clean: str, text: str, problems: list[errors.NPLError]) -> tuple[DocumentFile, ...]:
        """Return the file, or the files of the folder, at the first usable path; note ``problems``."""
        for path in self.roots.existing(self.roots.spellings(clean), text):
            if not os.path.isdir(path):
                try:
                    return (self.roots.regular(path, text, MARKDOWN_SUFFIXES),)
                except (errors.DocumentNotFoundError, errors.UnreadableDocumentError) as problem:
                    problems.append(problem)
            elif files := self._collect([path]):
                return files
            else:
                problems.append(errors.DocumentNotFoundError(f"the folder {text!r} contains no Markdown"))
        return ()

    def _find_all(self, searched: Sequence[Root]) -> tuple[DocumentFile, ...]:
        """Return the files below all default roots."""
        if not (files := self._collect([root.path for root in searched])):
            hint = 'name a file or a folder; "npl.md" is the reference of NPL'
            skipped = self.left_out()
            others = f" (not served: {skipped_text(skipped)})" if skipped else ""
            raise errors.DocumentNotFoundError(f"the search roots hold no Markdown{others}", hint=hint)
        return files

    def left_out(self) -> Counter[str]:
        """Return the numbers of the files below the default roots that are not served, by their kinds."""
        folders = [root.path for root in self._searched]
        if not self.searched:
            self._collect(folders)
        return self._listings((self._key, *folders, None)).left_out()

    def not_served(self) -> str:
        """Return the numbers of documents below the default roots that are not served, with the reasons."""
        kinds = self.left_out().items()
        return skipped_text({kind: number for kind, number in kinds if kind not in OTHER_TEXTS})

    def find_called(self, name: str) -> tuple[DocumentFile, ...]:
        """Return the file with a name from a selector: a path, an item name, or the end of a path.

        :param name: as :func:`npl_index.selectors.labels.label` returns it.
        :returns: several files if several paths have this end; an empty tuple without a match.
        """
        for spelled in dict.fromkeys((name, plain_name(name))):
            clean = os.path.normpath(spelled)
            path = clean if clean.lower().endswith(MARKDOWN_SUFFIXES) else f"{clean}.md"
            with suppress(errors.NPLError):
                found = self._files_at(path, name, []) or self._find_named(clean)
                if found := found or self._find_ending(spelled):
                    return found
        return ()

    def _find_ending(self, name: str) -> tuple[DocumentFile, ...]:
        """Return the files below the user's roots whose path is a name or ends with it."""
        roots = [root.path for root in self.roots if not root.npl and os.path.isdir(root.path)]
        walks = (Walk(self.roots, most=_MAX_SEARCHED).files(root) for root in roots)
        paths = {file: " ".join(file.path.split()) for _, file in chain.from_iterable(walks)}
        spellings = {name, f"{name}.md"}
        exact = tuple(file for file, path in paths.items() if path in spellings)
        ends = tuple(f"/{spelling}" for spelling in spellings)
        return exact or tuple(file for file, path in paths.items() if path.endswith(ends))

    def _find_matches(self, clean: str, text: str) -> tuple[DocumentFile, ...]:
        """Return the files that match a pattern below the first root with a match."""
        if not has_magic(clean):
            return ()
        segments = clean.split(os.sep)
        first = next(at for at, segment in enumerate(segments) if has_magic(segment))
        pattern = PathPattern.compile(segments[first:], parameter="file")
        folder = os.sep.join(segments[:first]) or (os.sep if os.path.isabs(clean) else os.curdir)
        for path in self.roots.existing((folder,), text):
            if os.path.isdir(path) and (files := self._collect([path], pattern)):
                return files
        return ()

    def _collect(self, folders: Sequence[str], pattern: PathPattern | None = None) -> Listed:
        """Return the files below real folders, each once, sorted by root and path."""
        listing = self._listings((self._key, *folders, pattern))
        listed = listing.now(Walk(self.roots, pattern=pattern), folders)
        self._check_number(listed)
        return listed

    def _check_number(self, files: Sized) -> None:
        if len(files) > self.limits.max_files:
            raise too_many(f"{self.limits.max_files:,} files")

    def _find_named(self, clean: str) -> tuple[DocumentFile, ...]:
        """Return the item with this name of the first kind that has one."""
        if os.path.isabs(clean):
            return ()
        name = clean.replace(os.sep, "/")
        readings = ((kind, reading) for kind in self._markdown_kinds for reading in kind.readings(name))
        items = starmap(self.find_item, readings)
        return tuple(islice(filter(None, items), 1))

    def find_item(self, kind: Kind, item: str) -> DocumentFile | None:
        """Find the item with exactly this name; the first place with the file wins.

        :raises OutsideRootError: the name is absolute or contains ``..``, or a link leads out of every root.
        :raises UnreadableDocumentError: the path exists but is not a regular file.
        """
        if item.startswith("/") or not {os.curdir, os.pardir}.isdisjoint(item.split("/")):
            raise outside(item)
        if kind.only not in (None, item):
            return None
        return self._first_item(self.places(kind), item, kind.suffix)

    def find_patch(self, kind: Kind, item: str) -> DocumentFile | None:
        """Find the patch of an item: the file whose text goes before the item's; see :meth:`find_item`."""
        return self._first_item(kind.patches, item, PATCH_SUFFIX)

    def _first_item(self, places: Sequence[ItemFolder], item: str, suffix: str) -> DocumentFile | None:
        for place, path in product(places, item_paths(item, suffix)):
            real = self.roots.below(place, path)
            if real is not None and self.roots.is_there(real, item):
                return replace(self.roots.regular(real, item, (suffix,)), label=place.root.label, item=item)
        return None

    def find_items(self, kind: Kind, pattern: str) -> dict[str, DocumentFile]:
        """Find an item by name, or all items that match a pattern.

        In a pattern, dots and slashes separate folders: ``*`` is the top level, ``syntax.*`` one folder,
        ``**`` or ``**.*`` all folders.

        :returns: files by item name; empty without a match.
        :raises DocumentError: see :meth:`find_item`; or there are more items than the limits allow.
        :raises InvalidRequestError: the pattern is too long.
        """
        if exact := self.find_item(kind, pattern):
            return {pattern: exact}
        if not has_magic(pattern):
            return {}
        compiled = PathPattern.compile(re.split(r"[./]", pattern), parameter="items")
        return {
            name: file
            for name, (path, file) in self._items(kind, pattern=True).items()
            if compiled.matches(path.split("/")) or compiled.matches(name.split("."))
        }

    def item_names(self, kind: Kind) -> tuple[str, ...]:
        """Return the names of all items of a kind, sorted.

        :raises DocumentTooLargeError: there are more items than the limits allow.
        """
        return tuple(sorted(self._items(kind)))

    def places(self, kind: Kind, *, pattern: bool = False) -> Sequence[ItemFolder]:  # noqa: ARG002
        """Return the places of a kind that count.

        :param pattern: for a pattern, rather than for the name of an item.
        """
        return kind.places

    def _items(self, kind: Kind, *, pattern: bool = False) -> dict[str, tuple[str, DocumentFile]]:
        """Return, for every item by name, its path below its place without the suffix, and its file."""
        places = self.places(kind, pattern=pattern)
        if kind.only is not None:
            single = self._first_item(places, kind.only, kind.suffix)
            return {} if single is None else {kind.only: (kind.only, single)}
        items: dict[str, tuple[str, DocumentFile]] = {}
        for place in places:
            folder = self.roots.below(place, "")
            for below, file in Walk(self.roots, (kind.suffix,)).files(folder) if folder else ():
                path = below[: -len(kind.suffix)]
                name = path.replace("/", ".")
                if name not in items and not below.endswith(PATCH_SUFFIX):
                    items[name] = (path, replace(file, label=place.root.label, item=name))
            self._check_number(items)
        return items

    def no_item(self, kind: Kind, item: str) -> errors.DocumentNotFoundError:
        """Return the error for a missing item, with similar names."""
        problem = f"there is no {kind.name} {item!r}"
        return errors.DocumentNotFoundError(problem, near=near_names(item, self.item_names(kind)))

    def _no_file(self, text: str) -> errors.DocumentNotFoundError:
        """Return the error for a missing file, with similar file and item names."""
        items = chain.from_iterable(map(self.item_names, self._markdown_kinds))
        near = near_names(text, chain(items, sample(self.roots)))
        hint = None if near else "give a path below a root, a folder, a pattern or an item name"
        return errors.DocumentNotFoundError(f"there is no document {text!r}", near=near, hint=hint)
