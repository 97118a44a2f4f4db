"""The folder of a project's change requests: read without following links, written whole or not at all.

A file is written beside itself under a hidden name and synced. If the old one still holds what was read, the
two change places, where the system can do that in one step (Linux), and what stood there at that moment is
compared once more: if somebody wrote just then, they change back, and the caller gets what is there now.
Elsewhere the old file is replaced after the first comparison.

Writers of this program take turns by a lock on the folder itself, so that nothing is left behind.
"""

# Names relative to an open folder are what keeps links out; path objects cannot carry one.
# ruff: noqa: PTH118, PTH208

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

from npl_index.errors import DocumentTooLargeError, OutsideRootError, UnreadableDocumentError
from npl_mcp.stores.base.errors import StorageError

if sys.platform != "win32":
    import fcntl

SUFFIX = ".md"
LOCK_SECONDS = 10.0
MOST_BYTES = 16 << 20

_WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | _PLAIN | getattr(os, "O_NONBLOCK", 0)
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _PLAIN
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_SWAP = 2  # RENAME_EXCHANGE of linux/fs.h
_CANNOT_LOCK = (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL)
_CANNOT_LINK = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_READ_ATTEMPTS = 5

_THREADS: dict[str, threading.Lock] = {}


class Stamp(NamedTuple):
    """What tells two states of a file apart without reading it; see ``os.stat_result`` for the numbers."""

    mtime_ns: int
    size: int
    ctime_ns: int
    inode: int


class TicketFolder:
    """A folder of change requests inside a project.

    :param root: real path of the project.
    :param below: path of the folder below it, links resolved, ``/`` between segments; may be empty.
    """

    def __init__(self, root: str, below: str) -> None:
        self.root = root
        self.below = below
        self.path = os.path.join(root, *below.split("/")) if below else root

    @contextmanager
    def opened(self, *, make: bool = False) -> Iterator[OpenFolder | None]:
        """Open the folder.

        :param make: make it if it is absent; otherwise ``None`` stands for an absent one.
        :raises StorageError: it cannot be made or opened.
        """
        try:
            handle = self._open(make) if _WALKS else None
            absent = handle is None and not self._is_there(make)
        except OSError as error:
            if make or error.errno not in _ABSENT:
                raise _cannot("opened", error) from None
            handle, absent = None, True
        try:
            yield None if absent else OpenFolder(self.path, handle)
        finally:
            if handle is not None:
                os.close(handle)

    def _is_there(self, make: bool) -> bool:
        if make:
            os.makedirs(self.path, exist_ok=True)  # noqa: PTH103
        return os.path.isdir(self.path)  # noqa: PTH112

    def _open(self, make: bool) -> int:
        handle = os.open(self.root, _FOLDER)
        try:
            for segment in filter(None, self.below.split("/")):
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(segment, dir_fd=handle)
                inner = os.open(segment, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
        except OSError:
            os.close(handle)
            raise
        return handle


class OpenFolder:
    """An open folder; what is named in it is not reached through a link.

    :param path: for systems without names relative to a folder, and for the lock among threads.
    :param handle: the folder, where the system has such names.
    """

    def __init__(self, path: str, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other writers out, those of other processes included.

        :raises StorageError: somebody keeps the lock for too long.
        """
        # Threads first: they need not wake up to look, and where folders cannot be locked this is all.
        threads = _THREADS.setdefault(self._path, threading.Lock())
        if not threads.acquire(timeout=LOCK_SECONDS):
            raise _busy()
        try:
            held = self._lock()
            try:
                yield
            finally:
                if held and self._handle is not None and sys.platform != "win32":
                    fcntl.flock(self._handle, fcntl.LOCK_UN)
        finally:
            threads.release()

    def _lock(self) -> bool:
        if sys.platform == "win32" or self._handle is None:
            return False
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() > end:
                    raise _busy() from None
                time.sleep(0.001)
            except OSError as error:
                if error.errno not in _CANNOT_LOCK:
                    raise _cannot("locked", error) from None
                return False  # a network file system that locks no folders

    def entries(self) -> dict[str, Stamp]:
        """Return the regular Markdown files of the folder, by name; links are none.

        :raises StorageError: it cannot be listed.
        """
        found = {}
        try:
            with os.scandir(self._path if self._handle is None else self._handle) as listed:
                for entry in listed:
                    if entry.name.lower().endswith(SUFFIX) and entry.name[0] != ".":
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found[entry.name] = _stamp(status)
        except OSError as error:
            raise _cannot("listed", error) from None
        return found

    def names(self) -> list[str]:
        """List the names in the folder.

        :raises StorageError: it cannot be listed.
        """
        try:
            return os.listdir(self._path if self._handle is None else self._handle)
        except OSError as error:
            raise _cannot("listed", error) from None

    def stat(self, name: str) -> Stamp | None:
        """Return a file's state; ``None`` if it is gone, or is no regular file."""
        try:
            status = os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        except OSError:
            return None
        return _stamp(status) if stat.S_ISREG(status.st_mode) else None

    def read(self, name: str) -> tuple[bytes, Stamp] | None:
        """Read a file whole; if it changes meanwhile, again.

        :returns: ``None`` if it is absent, a link, or no regular file.
        :raises DocumentTooLargeError: it has more bytes than the limit.
        :raises UnreadableDocumentError: it may not be read, or changed each time.
        """
        try:
            for _ in range(_READ_ATTEMPTS):
                with os.fdopen(os.open(self._at(name), _READ, dir_fd=self._handle), "rb") as file:
                    before = os.fstat(file.fileno())
                    if not stat.S_ISREG(before.st_mode):
                        return None
                    if before.st_size > MOST_BYTES:
                        raise DocumentTooLargeError(f"{name!r} is larger than {MOST_BYTES:,} bytes")
                    data = file.read(MOST_BYTES + 1)
                    after = os.fstat(file.fileno())
                if before.st_mtime_ns == after.st_mtime_ns and len(data) == after.st_size:
                    return data, _stamp(after)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            reason = error.strerror or type(error).__name__
            raise UnreadableDocumentError(f"{name!r} cannot be read: {reason.lower()}") from None
        raise UnreadableDocumentError(f"{name!r} changed while it was read", hint="try again")

    def replace(self, name: str, old: bytes, new: bytes) -> bytes | None:
        """Put new bytes in the place of a file's; they are on the disk when this returns.

        :param old: what the file is believed to hold.
        :returns: what it holds instead, if it was changed; nothing was written then.
        :raises StorageError: it cannot be written, or is gone.
        """
        fresh = f".{name}.tmp"
        try:
            status = os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
            self._write(fresh, new, stat.S_IMODE(status.st_mode))
            return self._swapped(fresh, name, old)
        except OSError as error:
            raise _cannot("written", error) from None
        finally:
            with suppress(OSError):
                os.unlink(self._at(fresh), dir_fd=self._handle)

    def _swapped(self, fresh: str, name: str, old: bytes) -> bytes | None:
        """Let the two files change places; back, if the old one is not what it should be."""
        found = self._content(name)
        if found != old:
            return found
        if self._exchange(fresh, name):
            found = self._content(fresh)
            if found != old:
                self._exchange(fresh, name)
                return found
        else:
            os.replace(self._at(fresh), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        self._sync()
        return None

    def _exchange(self, one: str, other: str) -> bool:
        call = _exchange_call()
        if call is None or self._handle is None:
            return False
        result: int = call(self._handle, os.fsencode(one), self._handle, os.fsencode(other), _SWAP)
        return result == 0

    def create(self, name: str, data: bytes) -> bool:
        """Make a file; it is on the disk, whole, when this returns.

        :returns: whether the name was free.
        :raises StorageError: it cannot be written.
        """
        fresh = f".{name}.tmp"
        try:
            self._write(fresh, data, None)
            if not self._named(fresh, name):
                return False
            self._sync()
        except OSError as error:
            raise _cannot("written", error) from None
        finally:
            with suppress(OSError):
                os.unlink(self._at(fresh), dir_fd=self._handle)
        return True

    def _named(self, fresh: str, name: str) -> bool:
        """Return a new file its name, if that is free."""
        try:
            os.link(self._at(fresh), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            # The name is taken first, so that nobody else's file is replaced.
            try:
                os.close(os.open(self._at(name), _MAKE | os.O_EXCL, 0o666, dir_fd=self._handle))
            except FileExistsError:
                return False
            os.replace(self._at(fresh), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        return True

    def remove(self, name: str) -> None:
        """Remove a file.

        :raises StorageError: it cannot be removed.
        """
        try:
            os.unlink(self._at(name), dir_fd=self._handle)
            self._sync()
        except OSError as error:
            raise _cannot("removed", error) from None

    def _content(self, name: str) -> bytes:
        with os.fdopen(os.open(self._at(name), _READ, dir_fd=self._handle), "rb") as file:
            return file.read(MOST_BYTES + 1)

    def _write(self, name: str, data: bytes, mode: int | None) -> None:
        with os.fdopen(os.open(self._at(name), _MAKE, 0o666, dir_fd=self._handle), "wb") as file:
            if mode is not None and sys.platform != "win32":
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _sync(self) -> None:
        if self._handle is not None:
            os.fsync(self._handle)

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name) if self._handle is None else name


def locate(root: str, path: str) -> TicketFolder:
    """Find the folder of change requests of a project; it need not exist.

    :param root: the project.
    :param path: below it.
    :raises OutsideRootError: a link leads out of the project.
    """
    real = os.path.realpath(root)
    inner = os.path.realpath(os.path.join(real, path))
    if inner == real:
        return TicketFolder(real, "")
    prefix = os.path.join(real, "")
    if not inner.startswith(prefix):
        raise OutsideRootError(f"{path!r} leads out of the project", hint="keep change requests inside of it")
    return TicketFolder(real, inner[len(prefix) :].replace(os.sep, "/"))


@cache
def _exchange_call() -> Callable[..., Any] | None:
    """Return the system's call that lets two files change places, where there is one."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # only writing needs it

    call: Callable[..., Any] | None = getattr(ctypes.CDLL(None), "renameat2", None)
    return call


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_size, status.st_ctime_ns, status.st_ino)


def _busy() -> StorageError:
    return StorageError("another program has locked the change requests for too long", hint="try again")


def _cannot(what: str, error: OSError) -> StorageError:
    return StorageError(
        f"the change request cannot be {what}: {error.strerror or type(error).__name__}",
        hint="see that its folder is there, writable and has room, and try again",
    )
