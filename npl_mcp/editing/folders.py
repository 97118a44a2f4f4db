"""Folders whose files other programs write as well: how they are read and replaced.

:mod:`npl_index.library.files` opens and replaces files. Writers of this program take turns by a lock on the
folder itself, so that no lock file is left in it. Other programs write whenever they want, so a file is only
replaced if it still holds what was read from it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import NamedTuple

from npl_index.errors import DocumentTooLargeError, UnreadableDocumentError
from npl_index.library.attributes import is_marked_whole
from npl_index.library.files import (
    ABSENT,
    FileChangedError,
    FileTooLargeError,
    Folder,
    NotRegularError,
)
from npl_index.library.references import UNSPEAKABLE
from npl_mcp.stores.base.errors import ConflictError, StorageError, TooLargeError

LOCK_SECONDS = 10.0
MOST_BYTES = 16 << 20

SETTLING_NS = 300_000_000
"""How long a file must have been left alone: programs that write in place pause between two pieces."""

LONGEST_WAIT = 3.0
"""Seconds to wait for such a program; less than others wait for the lock."""

_ATTEMPTS = 100


def is_hidden(path: Iterable[str]) -> bool:
    """Return whether a path has a hidden segment: programs keep what they obey in such folders."""
    return any(segment.startswith(".") for segment in path)


class Stamp(NamedTuple):
    """What tells two states of a file apart without reading it; see ``os.stat_result`` for the numbers."""

    mtime_ns: int
    size: int
    ctime_ns: int
    inode: int


class FolderState(NamedTuple):
    """What changes when a name in a folder comes or goes; its times alone can stay for some milliseconds."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int


class SharedFolder:
    """A folder whose files other programs write as well.

    :param root: real path of a folder above it, or its own.
    :param below: path of the folder below that, links resolved, ``/`` between segments; may be empty.
    :param most_bytes: larger files are neither read nor written.
    :param left_over: age in seconds from which a temporary file is one that a killed process left; 0 if all
        of this program who write here hold the lock.
    """

    def __init__(self, root: str, below: str, most_bytes: int = MOST_BYTES, left_over: float = 0.0) -> None:
        self.root = root
        self.below = below
        self.most_bytes = most_bytes
        self.left_over = left_over
        self.clean: FolderState | None = None  # when it had no left-over temporary files
        self.path = os.path.join(root, *below.split("/")) if below else root  # noqa: PTH118

    @contextmanager
    def opened(self, *, make: bool = False) -> Iterator[OpenFolder | None]:
        """Open the folder.

        :param make: make it if it is absent; otherwise the value is ``None`` for an absent one.
        :raises StorageError: it cannot be made or opened.
        """
        with ExitStack() as stack:
            folder: OpenFolder | None = None
            try:
                folder = OpenFolder(
                    stack.enter_context(Folder.opened(self.root, self.below, make=make)), self
                )
            except OSError as error:
                if make or error.errno not in ABSENT:
                    raise _cannot("the folder", "opened", error) from None
            yield folder


class OpenFolder:
    """A folder that is open.

    :param folder: opened.
    :param place: where it is.
    """

    def __init__(self, folder: Folder, place: SharedFolder) -> None:
        self._folder = folder
        self._place = place

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out, those of other processes included.

        :raises StorageError: somebody keeps the lock for too long, or the folder cannot be locked.
        """
        with ExitStack() as stack:
            try:
                alone = stack.enter_context(self._folder.locked(LOCK_SECONDS))
                # Listing a large folder takes as long as a write; nothing is left over since our last one.
                if alone and self.state() != self._place.clean:
                    self._folder.remove_temporaries(self._place.left_over)
            except TimeoutError:
                raise StorageError(
                    "another program has locked the folder for too long", hint="try again"
                ) from None
            except OSError as error:
                raise _cannot("the folder", "locked", error) from None
            yield
            if alone:
                self._place.clean = self.state()

    def state(self) -> FolderState:
        """Return the state of the folder itself."""
        status = self._folder.state()
        return FolderState(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)

    def entries(self, suffix: str) -> dict[str, Stamp]:
        """Return the state of each regular file of the folder, by name; links are left out, and hidden files.

        :param suffix: what ends their names, in any case.
        :raises StorageError: the folder cannot be listed.
        """
        found = {}
        try:
            with self._folder.scan() as listed:
                for entry in listed:
                    if entry.name.lower().endswith(suffix) and entry.name[0] != ".":
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found[entry.name] = _stamp(status)
        except OSError as error:
            raise _cannot("the folder", "listed", error) from None
        return found

    def names(self) -> list[str]:
        """Return all names in the folder.

        :raises StorageError: it cannot be listed.
        """
        try:
            return self._folder.names()
        except OSError as error:
            raise _cannot("the folder", "listed", error) from None

    def stat(self, name: str) -> Stamp | None:
        """Return a file's state; ``None`` if it is gone, or is not a regular file."""
        try:
            status = self._folder.stat(name)
        except OSError:
            return None
        return _stamp(status) if status is not None and stat.S_ISREG(status.st_mode) else None

    def read(self, name: str) -> tuple[bytes, Stamp] | None:
        """Return the content of a file and the state it belongs to.

        :returns: ``None`` if it is absent, a link, or not a regular file.
        :raises DocumentTooLargeError: it has more bytes than the limit.
        :raises UnreadableDocumentError: it may not be read, or changed each time while it was read.
        """
        try:
            data, status = self._folder.read(name, self._place.most_bytes)
        except NotRegularError:
            return None
        except FileTooLargeError:
            problem = f"{shown(name)} is larger than {self._place.most_bytes:,} bytes"
            raise DocumentTooLargeError(problem) from None
        except FileChangedError:
            raise UnreadableDocumentError(
                f"{shown(name)} changed while it was read", hint="try again"
            ) from None
        except OSError as error:
            if error.errno in ABSENT:
                return None
            reason = error.strerror or type(error).__name__
            raise UnreadableDocumentError(f"{shown(name)} cannot be read: {reason.lower()}") from None
        return data, _stamp(status)

    def wait_for_rest(self, name: str) -> bool:
        """Wait until a file that was just written has been left alone for a while, so that it is whole.

        Files that this program wrote are whole at once.

        :returns: whether it had to wait; the file may be another now.
        :raises ConflictError: it is written again and again.
        """
        end = time.monotonic() + LONGEST_WAIT
        waited = False
        while (pause := self._unrest(name)) > 0:
            if time.monotonic() + pause > end:
                raise ConflictError(
                    f"{shown(name)} is being written by another program", hint="try again when it has ended"
                )
            time.sleep(pause)
            waited = True
        return waited

    def _unrest(self, name: str) -> float:
        """Return for how many seconds a file must still be left alone."""
        stamp = self.stat(name)
        if stamp is None or is_marked_whole(stamp.mtime_ns):
            return 0.0
        age = time.time_ns() - stamp.mtime_ns
        # A time in the future comes from another clock and proves nothing.
        return (SETTLING_NS - age) / 1e9 + 0.001 if -SETTLING_NS < age < SETTLING_NS else 0.0

    def change(
        self,
        name: str,
        data: bytes,
        change: Callable[[bytes], bytes],
        label: str,
        writing: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> bytes:
        """Change a file's content, again if another program wrote to it in between.

        :param data: what the file holds, as it was read under the lock.
        :param change: returns the new content for what the file holds; raises if it cannot be made of that.
        :param label: what messages call the file.
        :param writing: surrounds each attempt to write.
        :returns: the new content.
        :raises ConflictError: other programs write to it again and again, or it is gone.
        :raises TooLargeError: it would be too large to be read.
        :raises StorageError: it cannot be written.
        """
        for _ in range(_ATTEMPTS):
            new = change(data)
            if new == data:
                return new
            if len(new) > self._place.most_bytes:
                hint = f"at most {self._place.most_bytes:,}"
                raise TooLargeError(f"{label} would have {len(new):,} bytes", hint=hint)
            with writing():
                other = self.replace(name, data, new)
            if other is None:
                return new
            if self.wait_for_rest(name):
                read = self.read(name)
                if read is None:
                    break
                other = read[0]
            data = other
        raise being_changed(label)

    def replace(self, name: str, old: bytes, new: bytes) -> bytes | None:
        """Replace a file's content; the new one is on the disk when this returns.

        :param old: what the file is believed to hold.
        :returns: what it holds instead if it was changed, and nothing was written then; otherwise ``None``.
        :raises StorageError: it cannot be written, is write-protected, or is gone.
        """
        self._refuse_protected(name)
        try:
            return self._folder.replace_if(name, old, new, self._place.most_bytes)
        except OSError as error:
            raise _cannot(shown(name), "written", error) from None

    def create(self, name: str, data: bytes) -> bool:
        """Make a file; it is on the disk, whole, when this returns.

        :returns: whether the name was free.
        :raises StorageError: it cannot be written.
        """
        try:
            return self._folder.create(name, data)
        except OSError as error:
            raise _cannot(shown(name), "written", error) from None

    def remove(self, name: str) -> None:
        """Remove a file.

        :raises StorageError: it cannot be removed, or is write-protected.
        """
        self._refuse_protected(name)
        try:
            self._folder.remove(name)
            self._folder.sync()
        except OSError as error:
            raise _cannot(shown(name), "removed", error) from None

    def _refuse_protected(self, name: str) -> None:
        """Refuse a file that nobody may write; replacing it would not ask for that permission."""
        try:
            status = self._folder.stat(name)
        except OSError:
            return
        if status is not None and stat.S_ISREG(status.st_mode) and not status.st_mode & 0o222:
            raise StorageError(f"{shown(name)} is write-protected", hint="make the file writable first")


def being_changed(label: str) -> ConflictError:
    """Return the error for a file that other programs write to again and again, or made another."""
    return ConflictError(f"{label} is being changed by another program", hint="read it again, then try again")


def shown(name: str) -> str:
    """Return a file's name as messages and answers hold it: what is no character is escaped."""
    return UNSPEAKABLE.sub(lambda odd: ascii(odd[0])[1:-1], name)


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ctime_ns, status.st_ino)


def _cannot(name: str, what: str, error: OSError) -> StorageError:
    return StorageError(
        f"{name} cannot be {what}: {error.strerror or type(error).__name__}",
        hint="see that it is there, writable and has room, and try again",
    )
