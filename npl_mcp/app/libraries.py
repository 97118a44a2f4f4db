"""Push and pull: a folder becomes a revision of a library, a revision becomes files of a folder.

The file ``.npl/library`` of a folder names its revision. A push merges the later revisions of others.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from npl_index.errors import DocumentError, DocumentNotFoundError, NotFoundError
from npl_index.library.catalog import Root
from npl_index.library.documents import FileReader, Found
from npl_index.library.files import FileTooLargeError, Folder, NotRegularError
from npl_index.library.references import MARKDOWN_SUFFIXES
from npl_index.library.roots import Limits, Roots, too_many
from npl_index.markdown.merging import merge_sections
from npl_index.markdown.sections import decoded, parse_sections
from npl_mcp.stores.base.checks import some
from npl_mcp.stores.base.database import digest_of
from npl_mcp.stores.base.errors import ConflictError, StorageError
from npl_mcp.stores.library.libraries import (
    Files,
    LibraryDifference,
    LibraryFile,
    LibraryRevision,
    LibraryStore,
    Push,
)
from npl_mcp.stores.library.names import LibraryRef, top_of

NOTE_FOLDER, NOTE = ".npl", "library"
"""File of a folder with its revision of each library: JSON, number and digest by the library's name."""

_MAX_NOTE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Pushed:
    """The result of a push from a folder.

    :param push: new revision with its changes.
    :param merged: files that others changed since the folder's revision; the folder has these changes now.
    :param replaced: files of others that were replaced by force.
    """

    push: Push
    merged: tuple[str, ...]
    replaced: tuple[str, ...]


@dataclass
class Pulled:
    """The result of a pull.

    :param revision: revision that the folder has now.
    :param written: new files.
    :param replaced: files with a changed content.
    :param removed: files that the revision does not have.
    :param same: number of unchanged files.
    :param kept: files that differ from the revision, with the reasons.
    """

    revision: LibraryRevision
    written: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    same: int = 0
    kept: list[str] = field(default_factory=list)


class Libraries:
    """Push and pull of folders.

    :param store: store of the libraries.
    :param limits: limits of folders.
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
        force: bool = False,
    ) -> Pushed:
        """Push the Markdown of a folder as the next revision of a library.

        Later pushes of others than the folder's noted revision are merged by section and written to the
        folder. A folder without a note replaces the library's files.

        :param force: whether to replace the files that others changed.
        :raises DocumentNotFoundError: the folder contains no Markdown: it is probably the wrong one.
        :raises DocumentError: a file cannot be read; nothing was pushed.
        :raises ConflictError: others changed the same sections, or the library does not have the noted
            revision.
        """
        details: dict[str, Any] = {"message": message, "created_by": created_by, "dry_run": dry_run}
        while True:
            founds = self._markdown_files(folder)
            if not founds:
                raise DocumentNotFoundError(f"{folder} has no Markdown", hint="name another folder")
            files = {path: self._library_file(path, found) for path, found in founds.items()}
            current = None
            with suppress(DocumentNotFoundError):
                current = self._store.revision(name)
            number = 0 if current is None else current.number
            theirs = {} if current is None else self._store.files(current)
            base = None if current is None else self._noted_files(folder, name, force=force)
            every, texts, taken = files, dict[str, bytes](), tuple[str, ...]()
            if base is not None and not force:
                every, texts, taken = self._merged(top_of(name, number), base, files, theirs, founds)
            read = partial(self._content, founds, texts)
            done = self._store.push(name, every, read, **details, expect=number)
            if done is not None:  # otherwise another push came first
                break
        others = LibraryDifference.between(base or {}, theirs) if force else LibraryDifference((), (), ())
        changed = {*others.added, *others.changed}
        replaced = tuple(path for path in sorted(changed) if files.get(path) != theirs[path])
        if not dry_run:
            revision = self._store.revision(name, done.number)
            if taken:
                own = frozenset((path, file.digest) for path, file in files.items())
                self._write_files(Pulled(revision), folder, every, own)
            self._note(folder, revision)
        return Pushed(done, taken, replaced)

    def _library_file(self, path: str, found: Found) -> LibraryFile:
        # Contents are read twice, because together they may not fit into memory.
        document = self._reader.read(found)
        decoded(document.data, path)
        return LibraryFile(document.digest, len(document.data))

    def _content(self, founds: Mapping[str, Found], texts: Mapping[str, bytes], path: str) -> bytes:
        return texts[path] if path in texts else self._reader.read(founds[path]).data

    def _merged(
        self, top: str, base: Files, ours: Files, theirs: Files, founds: Mapping[str, Found]
    ) -> tuple[dict[str, LibraryFile], dict[str, bytes], tuple[str, ...]]:
        """Merge the files of a folder with those of others.

        Return all files, the merged contents by path, and the paths of files that differ from the folder's.

        :param top: name of the others' revision.
        :raises ConflictError: both sides changed the same section of a file, or one removed it.
        """
        files, texts, taken, conflicts = dict(ours), {}, [], []
        changes = LibraryDifference.between(base, theirs)
        for path in (*changes.added, *changes.changed, *changes.removed):
            own, old, new = (side.get(path) for side in (ours, base, theirs))
            if own == new:
                continue
            text = None
            if own == old:
                files.pop(path, None)
                files |= {} if new is None else {path: new}
            elif own and old and new:
                old_text, new_text = (self._store.content(path, file.digest) for file in (old, new))
                with suppress(DocumentError):
                    own_text = self._reader.read(founds[path]).data
                    text = merge_sections(old_text, own_text, new_text, partial(parse_sections, name=path))
            if text is not None:
                texts[path], files[path] = text, LibraryFile(digest_of(text), len(text))
            elif own != old:
                conflicts.append(path)
            taken.append(path)
        if conflicts:
            raise ConflictError(
                f"others changed the same sections of {some(conflicts)}",
                hint=f"their text is {top}/{conflicts[0]}; put both into your file, then push --force",
            )
        return files, texts, tuple(sorted(taken))

    def _noted_files(self, folder: Path, name: str, *, force: bool) -> Files | None:
        """Return the files of the revision in a folder's note; ``None`` without a note.

        :param force: whether a revision that the library does not have is ignored.
        :raises ConflictError: the library does not have the revision.
        """
        noted = self._notes(folder).get(name)
        if noted is None:
            return None
        with suppress(NotFoundError, LookupError, TypeError):
            revision = self._store.revision(name, noted["revision"])
            if revision.digest == noted["digest"]:
                return self._store.files(revision)
        if force:
            return None
        problem = f"{folder} has a revision that library {name} does not have"
        raise ConflictError(problem, hint="pull into a new folder, or push --force")

    def _notes(self, folder: Path) -> dict[str, Any]:
        with suppress(OSError, ValueError), Folder.opened(folder, NOTE_FOLDER) as place:
            notes = json.loads(place.read(NOTE, _MAX_NOTE_BYTES)[0])
            return notes if isinstance(notes, dict) else {}
        return {}

    def _note(self, folder: Path, revision: LibraryRevision) -> None:
        noted = {revision.library: {"revision": revision.number, "digest": revision.digest}}
        text = json.dumps({**self._notes(folder), **noted}, indent=1)
        # A read-only folder is pushed without a note.
        with suppress(OSError), Folder.opened(folder, NOTE_FOLDER, make=True) as place:
            place.replace(NOTE, f"{text}\n".encode(), durable=False)

    def pull(self, ref: LibraryRef, folder: Path, *, force: bool = False) -> Pulled:
        """Update the Markdown of a folder to a revision, without loss of the user's files.

        A file is replaced or removed if the library has had exactly this content at this path. Any other file
        belongs to the user: it is replaced only by force, if it has a path of the revision, and never
        removed.

        :param force: whether to replace all files at paths of the revision.
        :raises StorageError: the folder cannot be created, or a file cannot be written; earlier writes
            remain.
        """
        revision = self._store.revision(ref.library, ref.number)
        files, held = self._store.files(revision), self._store.held(ref.library)
        done = Pulled(revision)
        self._write_files(done, folder, files, held, force=force)
        if not done.kept:  # otherwise the folder keeps its noted revision
            self._note(folder, revision)
        return done

    def _write_files(
        self, done: Pulled, folder: Path, files: Files, held: Held, *, force: bool = False
    ) -> None:
        """Write files to a folder, and remove files that the revision does not have.

        :param done: result, which gets the paths.
        :param held: contents that may be replaced and removed.
        :param force: whether to replace all files at paths of the revision.
        """
        at = "."
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for at, file in files.items():
                self._put(folder, at, file, done, None if force else held)
            once = {path for path, _ in held}.difference(files)
            for at, found in self._markdown_files(folder).items():
                if at in once and (at, self._reader.read(found).digest) in held:
                    below, _, name = at.rpartition("/")
                    with Folder.opened(folder, below) as place:
                        place.remove(name)
                    done.removed.append(at)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StorageError(f"{folder / at} cannot be written: {reason}") from None

    def _markdown_files(self, folder: Path) -> Mapping[str, Found]:
        """Return the Markdown files below a folder by path, the same that searches find."""
        root = Root(os.path.realpath(folder), str(folder))
        founds = {}
        for _, found in Roots([root], self._limits).walk(root.path, None, MARKDOWN_SUFFIXES):
            founds[found.path] = found
            if len(founds) > self._limits.max_files:
                raise too_many(f"{self._limits.max_files:,} files")
        return dict(sorted(founds.items()))

    def _put(self, folder: Path, path: str, file: LibraryFile, done: Pulled, held: Held | None) -> None:
        """Write a file and record the result.

        :param held: contents that may be replaced; ``None`` for all.
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
"""Pairs of a path and the digest of a content."""

_IN_THE_WAY = (errno.ENOTDIR, errno.ELOOP)
