"""Folders whose files other programs write as well: how their files are listed, changed and made.

:mod:`npl_index.library.files` opens and replaces files. Writers of this program take turns by a lock on the
folder itself, so that no lock file is left in it. Other programs write whenever they want, so a file is only
replaced while it holds what was read from it.
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
from npl_index.library.roots import Found, unusable
from npl_mcp.stores.base.errors import AlreadyExistsError, ConflictError, StorageError, TooLargeError

LOCK_SECONDS = 10.0
MAX_BYTES = 16 << 20

_LEFT_OVER = 60.0
"""Seconds after which a temporary file is one that a killed process left: not all writers take the lock."""

_ATTEMPTS = 100


def is_hidden(path: Iterable[str]) -> bool:
    """Return whether a path has a hidden segment: programs keep what they obey in such folders."""
    return any(segment.startswith(".") for segment in path)


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder whose files other programs write as well.

    :param root: real path of a folder above it, or its own.
    :param below: path of the folder below that, links resolved, ``/`` between segments; may be empty.
    :param most_bytes: larger files are neither read nor written.
    """

    root: str
    below: str
    most_bytes: int = MAX_BYTES

    @property
    def path(self) -> str:
        """The absolute path; not for messages."""
        return os.path.join(self.root, *filter(None, self.below.split("/")))  # noqa: PTH118

    def found(self, name: str) -> Found:
        """Return a file of the folder, which need not exist."""
        return Found(Root(self.root, ""), f"{self.below}/{name}".lstrip("/"), "")

    def states(self, suffix: str) -> dict[str, os.stat_result]:
        """Return the state of each regular file by name; links and hidden files are left out.

        :param suffix: the end of their names, in any case.
        :returns: nothing if there is no such folder.
        :raises StorageError: the folder cannot be listed.
        """
        found = {}
        try:
            with Folder.opened(self.root, self.below) as folder, folder.scan() as entries:
                for entry in entries:
                    if entry.name.lower().endswith(suffix) and entry.name[0] != ".":
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found[entry.name] = status
        except OSError as error:
            if error.errno not in ABSENT:
                raise _refused("the folder cannot be listed", error) from None
        return found

    @contextmanager
    def locked(self, label: str, *, make: bool = False) -> Iterator[Folder]:
        """Open the folder and keep other writers out, those of other processes included.

        :param label: what messages call the file that will be written.
        :param make: make the folder if it is absent.
        :raises StorageError: the folder cannot be opened or locked, or the block raises an :class:`OSError`.
        """
        try:
            with Folder.opened(self.root, self.below, make=make) as folder, folder.locked(LOCK_SECONDS):
                folder.remove_temporaries(_LEFT_OVER)
                yield folder
        except TimeoutError:
            problem = "another program has locked the folder for too long"
            raise StorageError(problem, hint="try again") from None
        except OSError as error:
            raise _refused(f"{label} cannot be written", error) from None

    def create(self, name: str, label: str, data: bytes) -> None:
        """Make a file, and the folder if it is absent; both are on the disk when this returns.

        :param label: what messages call the file.
        :raises AlreadyExistsError: the name is taken.
        :raises TooLargeError: the file could not be read again.
        :raises StorageError: it cannot be written.
        """
        self._check_size(label, data)
        with self.locked(label, make=True) as folder:
            if not folder.create(name, data):
                raise AlreadyExistsError(f"{label} exists already", hint="change its sections")

    def change(self, name: str, label: str, edit: Callable[[bytes], bytes | None]) -> bytes:
        """Change a file; the new content is on the disk when this returns.

        :param label: what messages call the file.
        :param edit: returns the new content, or ``None`` to remove the file; called again if another program
            wrote to the file in between. What it raises ends the change.
        :returns: the new content, of a removed file the last one.
        :raises DocumentNotFoundError: there is no such file.
        :raises DocumentError: it cannot be read.
        :raises ConflictError: another program is writing it, or writes to it again and again.
        :raises TooLargeError: the new content could not be read again.
        :raises StorageError: the file cannot be written, or is write-protected.
        """
        with self.locked(label) as folder:
            for _ in range(_ATTEMPTS):
                data, status = self._read(folder, name, label)
                new = edit(data)
                if new == data:
                    return data
                if not status.st_mode & 0o222:  # replacing it would not ask for that permission
                    raise StorageError(f"{label} is write-protected", hint="make the file writable first")
                if new is None:
                    folder.remove(name)
                    folder.sync()
                    return data
                self._check_size(label, new)
                present = folder.replace_if(name, data, new, self.most_bytes)
                if present is None:
                    return new
                if present == data:
                    break
        raise ConflictError(
            f"{label} is being written by another program", hint="read it again, then try again"
        )

    def _read(self, folder: Folder, name: str, label: str) -> tuple[bytes, os.stat_result]:
        try:
            return folder.read(name, self.most_bytes)
        except OSError as error:
            raise unusable(label, error) from None

    def _check_size(self, label: str, data: bytes) -> None:
        if len(data) > self.most_bytes:
            hint = f"at most {self.most_bytes:,}"
            raise TooLargeError(f"{label} would have {len(data):,} bytes", hint=hint)


def shown(name: str) -> str:
    """Return a file's name as messages and answers hold it: what is no character is escaped."""
    return UNSPEAKABLE.sub(lambda odd: ascii(odd[0])[1:-1], name)


def _refused(problem: str, error: OSError) -> StorageError:
    return StorageError(
        f"{problem}: {error.strerror or type(error).__name__}",
        hint="see that it is there, writable and has room, and try again",
    )
