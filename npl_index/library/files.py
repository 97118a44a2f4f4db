"""Open and replace files with low-level system calls; no other module does this.

* **Opening.** A path is opened one segment at a time below a folder, and no segment may be a link. Resolving
  the path before opening it would lose a race against a link that is created in between.
  Only regular files are opened, without waiting (a pipe would block), and reads are limited in size.
* **Replacing.** New bytes are written to a temporary file in the same folder, which then replaces the old
  file atomically. Readers see the old file or the new one, never a part.

All functions raise :class:`OSError`. Systems without ``O_NOFOLLOW`` and ``dir_fd`` (Windows) open by path and
compare the real path.
"""

# Names relative to an open folder exclude links, and path objects cannot represent such names.
# ruff: noqa: PTH100, PTH103, PTH112, PTH114, PTH116, PTH118, PTH120, PTH208

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import Any

from npl_index.library.locks import is_being_written, locked

_HAS_DIR_FD = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# A pipe must not block, and a terminal must not become the controlling terminal of this process.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_EXCHANGE = 2  # RENAME_EXCHANGE of linux/fs.h
_BYTES = getattr(os, "O_BINARY", 0)

_READ_ATTEMPTS = 5

ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Errors of opening a path that does not exist, or that contains a link or a file as a folder."""

# Errors of file systems without hard links.
_CANNOT_LINK = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

# 64 random bits make the name unique: no other program uses it, and two of our processes never share one.
_TEMPORARY = re.compile(r"\.npl-[0-9a-f]{16}\.tmp")


class NotRegularError(OSError):
    """A path is a folder, pipe or device in place of a regular file."""


class FileTooLargeError(OSError):
    """A file has more bytes than the caller's limit."""


class FileChangedError(OSError):
    """A file changed during every attempt to read it."""


class Folder:
    """An open folder. Names in it are opened relative to its descriptor and never through a link.

    :param path: path of the folder, for locks and for systems without ``dir_fd``.
    :param handle: its descriptor; ``None`` on systems without ``dir_fd``.
    :param mode: permissions of new folders in it, less the umask; new files are not executable.
    """

    def __init__(self, path: str, handle: int | None, mode: int = 0o777) -> None:
        self.path, self._mode = path, mode
        self._handle = handle
        self._itself: str | int = path if handle is None else handle

    def __fspath__(self) -> str:
        return self.path

    @classmethod
    @contextmanager
    def opened(
        cls, root: str | os.PathLike[str], below: str = "", *, make: bool = False, mode: int = 0o777
    ) -> Iterator[Folder]:
        """Open a folder below a root.

        :param root: a folder that exists; links in its own path are followed, unless it is an open folder.
        :param below: path below the root, ``/`` between segments; no segment may be a link.
        :param make: make the missing folders below the root.
        :param mode: permissions of new folders, and of new files in the folder, less the umask.
        :raises OSError: a folder is absent, is a link (``ELOOP`` or ``ENOTDIR``), or cannot be used.
        """
        path = os.path.join(root, *below.split("/"))
        if not _HAS_DIR_FD:
            _open_by_path(root, path, make, mode)
            yield cls(path, None, mode)
            return
        start = root._handle if isinstance(root, Folder) else None
        start = os.open(root, _FOLDER) if start is None else os.dup(start)
        handle = _descend(start, below, make, mode)
        try:
            yield cls(path, handle, mode)
        finally:
            os.close(handle)

    def open(self, name: str, flags: int = _READ, mode: int | None = None) -> int:
        """Return a descriptor of a regular file.

        :param flags: as for :func:`os.open`.
        :param mode: permissions of a new file, less the umask; by default as the folder says.
        :raises NotRegularError: the name is a folder, pipe or device.
        :raises OSError: the file cannot be opened, or is a link (``ELOOP``).
        """
        path = self._at(name)
        if self._handle is None and os.path.islink(path):
            raise _link()
        mode = self._mode & 0o666 if mode is None else mode
        file = _regular(os.open(path, flags | _NO_LINK | _BYTES, mode, dir_fd=self._handle))
        # Without O_NOFOLLOW, a link may have replaced the file.
        if self._handle is None and not os.path.samestat(os.fstat(file), os.lstat(path)):
            os.close(file)
            raise _link()
        return file

    def read(self, name: str, limit: int) -> tuple[bytes, os.stat_result]:
        """Return the content of a file and the state it belongs to.

        A file that changes during reading is read again, so that the bytes belong to one state.

        :param limit: maximum bytes of the file.
        :raises FileTooLargeError: the file is larger.
        :raises FileChangedError: the file changed at each attempt.
        :raises OSError: see :meth:`open`.
        """
        return _read_whole(lambda: self.open(name), limit)

    def read_start(self, name: str, most: int) -> bytes:
        """Return the first bytes of a file.

        :param most: maximum number of bytes.
        :raises OSError: see :meth:`open`.
        """
        with os.fdopen(self.open(name), "rb") as file:
            return file.read(most)

    def stat(self, name: str) -> os.stat_result | None:
        """Return the state of the file, folder or link with a name; ``None`` without one."""
        try:
            return os.stat(self._at(name), dir_fd=self._handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def state(self) -> os.stat_result:
        """Return the state of the folder itself, which changes when a name is added or removed."""
        return os.stat(self._itself)

    def names(self) -> list[str]:
        """Return all names in the folder, unordered."""
        return os.listdir(self._itself)

    def scan(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """Open the folder's entries, like :func:`os.scandir`."""
        return os.scandir(self._itself)

    def create(self, name: str, data: bytes, *, durable: bool = True) -> bool:
        """Make a file that is complete when its name appears.

        :param durable: write to the disk before returning, to survive a loss of power.
        :returns: whether the name was free; otherwise nothing happens.
        :raises OSError: the file cannot be written.
        """
        with self._temporary((data,), durable=durable) as fresh:
            if not self._take_name(fresh, name):
                return False
            if durable:
                self.sync()
        return True

    def replace(
        self, name: str, data: bytes | Iterable[bytes], *, mode: int | None = None, durable: bool = True
    ) -> None:
        """Write a whole file in place of the one with its name.

        :param data: its content, or pieces of it in order.
        :param mode: its permissions, less the umask; by default those of the replaced file, with its owner.
        :param durable: write to the disk before returning, to survive a loss of power.
        :raises OSError: the file cannot be written; the old one is unchanged.
        """
        pieces, like = (data,) if isinstance(data, bytes) else data, name if mode is None else ""
        with self._temporary(pieces, mode, durable=durable, like=like) as fresh:
            self._rename(fresh, name)
            if durable:
                self.sync()

    def replace_if(self, name: str, old: bytes, new: bytes, limit: int) -> bytes | None:
        """Write a whole file if it still has the expected content.

        Programs without our lock, such as editors, may write at any moment. So the new and the old file are
        exchanged in one step, and the file with the temporary name is exactly the replaced one. If its
        content is unexpected, or a program has it open for writing, the two are exchanged back. On systems
        without such an exchange, the content is only compared directly before the replacement.

        :param old: the expected content.
        :param limit: maximum bytes of the file.
        :returns: ``None``, or the present content if nothing was written: the expected one if another program
            has the file open for writing.
        :raises OSError: the file does not exist, or cannot be read or written.
        """
        if (present := self.read(name, limit)[0]) != old:
            return present
        with self._temporary((new,), like=name) as fresh:
            if not self._holds(name, old):
                return self.read(name, limit)[0]
            if not self._exchange(fresh, name):
                self._rename(fresh, name)
            elif not self._holds(fresh, old):
                self._exchange(fresh, name)
                if not self._holds(fresh, new):  # a program has written to the new file
                    self._exchange(fresh, name)
                return self.read(name, limit)[0]
            self.sync()
        return None

    def _holds(self, name: str, data: bytes) -> bool:
        """Return whether a file has exactly the given content, and no program has it open for writing."""
        with os.fdopen(self.open(name), "rb") as file:
            return not is_being_written(file.fileno()) and file.read(len(data) + 1) == data

    def _rename(self, old: str, new: str) -> None:
        """Rename a file, in place of the one with the new name."""
        os.replace(self._at(old), self._at(new), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name), dir_fd=self._handle)

    def remove_temporaries(self, age: float = 0.0) -> None:
        """Remove the temporary files of killed processes of this program.

        They look like files of running writers. So call this only under the lock of all writers in this
        folder, or with an age longer than any write.

        :param age: seconds; younger files stay.
        """
        for name in self.names():
            if _TEMPORARY.fullmatch(name):
                with suppress(OSError):
                    status = self.stat(name) if age else None
                    if status is None or time.time() - status.st_mtime > age:
                        self.remove(name)

    def sync(self) -> None:
        """Write the names in the folder to the disk."""
        if self._handle is not None:
            os.fsync(self._handle)

    def locked(self, seconds: float) -> AbstractContextManager[None]:
        """Lock the folder itself, without a lock file; see :func:`locked`."""
        return locked(self._handle, self.path, seconds)

    @contextmanager
    def _temporary(
        self, pieces: Iterable[bytes], mode: int | None = None, *, durable: bool = True, like: str = ""
    ) -> Iterator[str]:
        """Write a temporary file and yield its name; afterwards the file with that name is removed.

        :param mode: permissions of the file, less the umask, if it replaces none.
        :param like: name of the file to replace, whose owner, permissions and attributes are copied.
        """
        name = f".npl-{os.urandom(8).hex()}.tmp"
        old = self.stat(like) if like else None
        if old is not None and not stat.S_ISREG(old.st_mode):
            old = None
        # Private until it has the permissions of the file to replace.
        handle = self.open(name, _CREATE, mode if old is None else 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                if old is not None:
                    with suppress(OSError), os.fdopen(self.open(like), "rb") as source:
                        _take_attributes(handle, source.fileno())
                    _take_permissions(handle, old)
                file.writelines(pieces)
                file.flush()
                if durable:
                    os.fsync(handle)
            yield name
        finally:
            with suppress(OSError):
                self.remove(name)

    def _take_name(self, fresh: str, name: str) -> bool:
        """Give a temporary file a second, free name; return whether the name was free."""
        try:
            os.link(self._at(fresh), self._at(name), src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
            # Without hard links, an empty file takes the name first: an immediate rename could replace a file
            # that another program makes at this moment.
            try:
                os.close(self.open(name, _CREATE))
            except FileExistsError:
                return False
            self._rename(fresh, name)
        return True

    def _exchange(self, name: str, other: str) -> bool:
        """Exchange two files in one step; return whether the system could do that."""
        old, new = os.fsencode(name), os.fsencode(other)
        call = None if self._handle is None else _renameat2()
        return call is not None and call(self._handle, old, self._handle, new, _EXCHANGE) == 0

    def _at(self, name: str) -> str:
        return os.path.join(self.path, name) if self._handle is None else name


def read_below(root: str, path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Return the content of a file below a root, and the state it belongs to; see :meth:`Folder.read`.

    :param path: path below the root, ``/`` between segments; no segment may be a link.
    """
    below, _, name = path.rpartition("/")
    with Folder.opened(root, below) as folder:
        return folder.read(name, limit)


def read_path(path: str | os.PathLike[str], limit: int) -> tuple[bytes, os.stat_result]:
    """Return the content of a user's file, through links, and its state; see :meth:`Folder.read`."""
    return _read_whole(lambda: _regular(os.open(path, _READ | _BYTES)), limit)


def make_folder(path: str | os.PathLike[str], mode: int = 0o777) -> None:
    """Make a folder and its missing parents, and write its name to the disk.

    :param mode: permissions of the folder, less the umask.
    """
    if not os.path.isdir(path):
        os.makedirs(path, mode, exist_ok=True)
        with Folder.opened(os.path.dirname(os.path.abspath(path))) as above:
            above.sync()


def _descend(handle: int, below: str, make: bool, mode: int) -> int:
    """Open a folder below an open one, segment by segment, and close the latter."""
    for segment in filter(None, below.split("/")):
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(segment, mode, dir_fd=handle)
                    os.fsync(handle)
            inner = os.open(segment, _FOLDER | _NO_LINK, dir_fd=handle)
        finally:
            os.close(handle)
        handle = inner
    return handle


def _open_by_path(root: str | os.PathLike[str], path: str, make: bool, mode: int) -> None:
    """Check that no link lies between a root and a path, on systems without ``dir_fd``."""
    inside = os.path.relpath(path, root)
    if os.path.realpath(path) != os.path.normpath(os.path.join(os.path.realpath(root), inside)):
        raise _link()
    if make and os.path.isdir(root):
        os.makedirs(path, mode, exist_ok=True)
    if not os.path.isdir(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _link() -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _regular(file: int) -> int:
    """Return the descriptor of a regular file; close any other."""
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise NotRegularError(errno.EINVAL, "not a regular file")
    return file


def _read_whole(opening: Callable[[], int], limit: int) -> tuple[bytes, os.stat_result]:
    """Return the content of a file and the state it belongs to; see :meth:`Folder.read`.

    :param opening: opens the file; called again if it changes during reading.
    """
    for _ in range(_READ_ATTEMPTS):
        with os.fdopen(opening(), "rb") as file:
            before = os.fstat(file.fileno())
            data = file.read(before.st_size + 1) if before.st_size <= limit else b""
            after = os.fstat(file.fileno())
        if max(before.st_size, len(data)) > limit:
            raise FileTooLargeError(errno.EFBIG, f"larger than {limit:,} bytes")
        if before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size == len(data):
            return data, after
    raise FileChangedError(errno.EBUSY, "changed while it was read")


def _take_permissions(file: int, old: os.stat_result) -> None:
    """Copy the owner and the mode of a file to its replacement, as far as the system allows."""
    if not hasattr(os, "fchown"):  # Windows
        return
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except PermissionError:
            # Only root may change owners. Without the change, setuid would run the file as a different user.
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
            with suppress(PermissionError):
                os.fchown(file, -1, old.st_gid)
    os.fchmod(file, mode)


def _take_attributes(file: int, old: int) -> None:
    """Copy extended attributes, including access control lists, as far as the system allows.

    :param old: the open file with the attributes.
    """
    if not hasattr(os, "listxattr"):  # Python has them on Linux only
        return
    for name in os.listxattr(old):
        with suppress(OSError):
            os.setxattr(file, name, os.getxattr(old, name))


@cache
def _renameat2() -> Callable[..., Any] | None:
    """Return the system call that exchanges two files, if there is one; see ``renameat2(2)``."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # only writing needs it

    call: Callable[..., Any] | None = getattr(ctypes.CDLL(None), "renameat2", None)
    return call
