"""Push and pull between folders and libraries: a folder becomes a revision, a revision becomes files."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from npl_index.errors import DocumentNotFoundError
from npl_index.library.catalog import Root
from npl_index.library.documents import FileReader, Found
from npl_index.library.files import FileTooLargeError, Folder, NotRegularError
from npl_index.library.references import MARKDOWN_SUFFIXES
from npl_index.library.roots import Limits, Roots, too_many
from npl_index.markdown.sections import decoded
from npl_mcp.stores.base.database import digest_of
from npl_mcp.stores.base.errors import StorageError
from npl_mcp.stores.library.names import LibraryRef
from npl_mcp.stores.library.store import LibraryFile, LibraryRevision, LibraryStore, Push


@dataclass
class Pulled:
    """The result of a pull.

    :param revision: what the folder has now.
    :param written: files that were not there.
    :param replaced: files that were other ones.
    :param removed: files that the revision has no longer.
    :param same: how many were as they are.
    :param kept: files that could not be what the revision says, and why.
    """

    revision: LibraryRevision
    written: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    same: int = 0
    kept: list[str] = field(default_factory=list)


class Libraries:
    """Push and pull of folders.

    :param store: the store of the libraries.
    :param limits: those of searched folders.
    """

    def __init__(self, store: LibraryStore, limits: Limits) -> None:
        self._store, self._limits = store, limits
        self._reader = FileReader(limits.max_bytes, ())

    def push(
        self,
        folder: Path,
        name: str,
        *,
        message: str | None = None,
        created_by: str | None = None,
        dry_run: bool = False,
    ) -> Push:
        """Push the Markdown of a folder as the next revision of a library; see :meth:`LibraryStore.push`.

        :raises DocumentNotFoundError: the folder contains no Markdown: it is probably the wrong one.
        :raises DocumentError: a file cannot be used; nothing was pushed.
        """
        founds = self._found(folder)
        if not founds:
            raise DocumentNotFoundError(f"{folder} holds no Markdown", hint="name another folder")
        files = {}
        for path, found in founds.items():
            # Contents are read twice, because together they may not fit into memory.
            document = self._reader.read(found)
            decoded(document.data, path)
            files[path] = LibraryFile(document.digest, len(document.data))
        return self._store.push(
            name,
            files,
            lambda path: self._reader.read(founds[path]).data,
            message=message,
            created_by=created_by,
            dry_run=dry_run,
        )

    def pull(self, ref: LibraryRef, folder: Path, *, force: bool = False) -> Pulled:
        """Update the Markdown of a folder to a revision, without loss of the user's files.

        A file is replaced or removed if the library has had exactly this content at this path. Any other file
        belongs to the user: it is replaced only by force, if it has a path of the revision, and never
        removed.

        :param force: replace any file at a path of the revision.
        :raises StorageError: the folder cannot be created, or a file cannot be written; earlier writes
            remain.
        """
        revision = self._store.revision(ref.library, ref.number)
        files, held = self._store.files(revision), self._store.held(ref.library)
        done = Pulled(revision)
        at = "."
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for at, file in files.items():
                self._put(folder, at, file, done, None if force else held)
            once = {path for path, _ in held}.difference(files)
            for at, found in self._found(folder).items():
                if at in once and (at, self._reader.read(found).digest) in held:
                    _remove(folder, at)
                    done.removed.append(at)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(f"{folder / at} cannot be written: {reason}") from None
        return done

    def _found(self, folder: Path) -> Mapping[str, Found]:
        """Return the Markdown files below a folder by their paths, as searches find them."""
        root = Root(os.path.realpath(folder), str(folder))
        founds = {}
        for _, found in Roots([root], self._limits).walk(root.path, None, MARKDOWN_SUFFIXES):
            founds[found.path] = found
            if len(founds) > self._limits.max_files:
                raise too_many(f"{self._limits.max_files:,} files")
        return dict(sorted(founds.items()))

    def _put(self, folder: Path, path: str, file: LibraryFile, done: Pulled, held: Held | None) -> None:
        """Write or remove one file.

        :param held: contents that may be replaced; ``None`` for any.
        """
        below, _, name = path.rpartition("/")
        try:
            with Folder.opened(folder, below, make=True) as place:
                kept = self._put_in(place, name, path, file, done, held)
        except FileTooLargeError:
            kept = "it is too large to be compared"
        except OSError as error:
            if not isinstance(error, NotRegularError) and error.errno not in _IN_THE_WAY:
                raise
            kept = "a link, a folder or a file is in the way"
        if kept is not None:
            done.kept.append(f"{path}: {kept}")

    def _put_in(
        self, place: Folder, name: str, path: str, file: LibraryFile, done: Pulled, held: Held | None
    ) -> str | None:
        """Update a file of a folder; return the reason if that is impossible."""
        limit = self._limits.max_bytes
        old = place.read(name, limit)[0] if place.stat(name) is not None else None
        if old is not None and digest_of(old) == file.digest:
            done.same += 1
            return None
        if old is not None and held is not None and (path, digest_of(old)) not in held:
            return "it was changed here; --force replaces it"
        data = self._store.content(path, file.digest)
        if old is None:
            fresh = place.create(name, data, durable=False)
        else:
            fresh = place.replace_if(name, old, data, limit) is None
        if not fresh:
            return "it changed meanwhile"
        (done.written if old is None else done.replaced).append(path)
        return None


Held = frozenset[tuple[str, str]]
"""Paths, each with the digest of a content."""

_IN_THE_WAY = (errno.ENOTDIR, errno.ELOOP)


def _remove(folder: Path, path: str) -> None:
    below, _, name = path.rpartition("/")
    with Folder.opened(folder, below) as place:
        place.remove(name)
