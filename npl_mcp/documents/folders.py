"""Folders that other programs write to as well: their files are listed, changed and created here.

:mod:`npl_index.library.files` opens and replaces files. Writers of this program take turns by a lock on the
folder itself, so that it needs no lock file. Other programs write at any time, so a file is only replaced
while its content is the content that was read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from npl_index.library.catalog import Root
from npl_index.library.files import ABSENT, Folder
from npl_index.library.references import UNSPEAKABLE
from npl_index.library.roots import DocumentFile, unusable
from npl_mcp.stores.base.errors import AlreadyExistsError, ConflictError, StorageError, TooLargeError

LOCK_SECONDS = 10.0
MAX_BYTES = 16 << 20

_LEFT_OVER = 15.0
"""Age in seconds from which a temporary file counts as that of a killed process: some writers do not lock."""

_MAX_ATTEMPTS = 100


def is_hidden(path: Iterable[str]) -> bool:
    """Return whether a path has a hidden segment: programs keep their settings in such folders."""
    return any(segment.startswith(".") for segment in path)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder that other programs write to as well.

    :param root: real path of the folder or of one above it.
    :param below: path of the folder below the root, links resolved, ``/`` between segments; may be empty.
    :param max_bytes: limit of a file that is read or written.
    """

    root: str
    below: str
    max_bytes: int = MAX_BYTES

    def file(self, name: str) -> DocumentFile:
        """Return a file of the folder; it need not exist."""
        return DocumentFile(Root(self.root, ""), f"{self.below}/{name}".lstrip("/"), "")

    def states(self, suffix: str) -> dict[str, os.stat_result]:
        """Return the status of each regular file by name, without links and hidden files.

        :param suffix: lower-case end of the names; their case does not count.
        :returns: empty if the folder does not exist.
        :raises StorageError: the folder cannot be listed.
        """
        states = {}
        try:
            with Folder.opened(self.root, self.below) as folder, folder.scan() as entries:
                for entry in entries:
                    if entry.name.lower().endswith(suffix) and entry.name[0] != ".":
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            states[entry.name] = status
        except OSError as error:
            if error.errno not in ABSENT:
                raise _refused("the folder cannot be listed", error) from None
        return states

    @contextmanager
    def locked(self, label: str, *, make: bool = False) -> Iterator[Folder]:
        """Open and lock the folder; writers of other processes respect the lock too.

        :param label: name of the file to write, for messages.
        :param make: create the folder if it is absent.
        :raises StorageError: the folder cannot be opened or locked, or the block raises an :class:`OSError`.
        """
        try:
            with Folder.opened(self.root, self.below, make=make) as folder, folder.locked(LOCK_SECONDS):
                folder.remove_temporaries(_LEFT_OVER)
                yield folder
        except TimeoutError:
            problem = f"another program has locked the folder for {LOCK_SECONDS:g} seconds"
            raise StorageError(problem, hint="try again") from None
        except OSError as error:
            raise _refused(f"{label} cannot be written", error) from None

    def create(self, name: str, label: str, data: bytes) -> None:
        """Create a file, and the folder if it is absent; both are on the disk when this returns.

        :param label: name of the file, for messages.
        :raises AlreadyExistsError: the name is taken.
        :raises TooLargeError: the content is larger than the limit of files.
        :raises StorageError: the file cannot be written.
        """
        self._check_size(label, data)
        with self.locked(label, make=True) as folder:
            if not folder.create(name, data):
                raise AlreadyExistsError(f"{label} already exists", hint="change its sections")

    def change(self, name: str, label: str, edit: Callable[[bytes], bytes | None]) -> bytes:
        """Change a file; the new content is on the disk when this returns.

        :param label: name of the file, for messages.
        :param edit: returns the new content, or ``None`` to remove the file; called again if another program
            wrote to the file in between. Its errors end the change.
        :returns: the new content; of a removed file, its last content.
        :raises DocumentNotFoundError: the file does not exist.
        :raises DocumentError: the file cannot be read.
        :raises ConflictError: another program keeps writing to the file.
        :raises TooLargeError: the new content is larger than the limit of files.
        :raises StorageError: the file cannot be written, or is write-protected.
        """
        with self.locked(label) as folder:
            for _ in range(_MAX_ATTEMPTS):
                try:
                    data, status = folder.read(name, self.max_bytes)
                except OSError as error:
                    raise unusable(label, error) from None
                new = edit(data)
                if new == data:
                    return data
                if not status.st_mode & 0o222:  # a replacement would not need this permission
                    raise StorageError(f"{label} is write-protected", hint="make the file writable first")
                if new is None:
                    folder.remove(name)
                    folder.sync()
                    return data
                self._check_size(label, new)
                present = folder.replace_if(name, data, new, self.max_bytes)
                if present is None:
                    return new
                if present == data:
                    break
        problem = f"{label} is being written by another program"
        raise ConflictError(problem, hint="read it again, then try again")

    def _check_size(self, label: str, data: bytes) -> None:
        if len(data) > self.max_bytes:
            hint = f"at most {self.max_bytes:,}"
            raise TooLargeError(f"{label} would have {len(data):,} bytes", hint=hint)


def printable(name: str) -> str:
    """Return a file's name for messages and answers: bytes that are not text are escaped."""
    return UNSPEAKABLE.sub(lambda unprintable: ascii(unprintable[0])[1:-1], name)


def _refused(problem: str, error: OSError) -> StorageError:
    hint = "check that the folder exists, is writable and has room, then try again"
    return StorageError(f"{problem}: {error.strerror or type(error).__name__}", hint=hint)
