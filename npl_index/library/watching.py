"""The files below a folder and their states, without asking the file system about each of them.

On local file systems of Linux, inotify reports changes. The system queues an event before the change returns
to the program that made it, and a call reads the queue in its own thread first, so it sees everything written
before it began. An empty queue means that the remembered list is current. After events the named files are
looked at again, or all files where a folder or a name changed.

Some changes make no event: those over a network, through another name of a file (a hard link), at the end of
a link that leads elsewhere. Such folders are asked each time, as without this module. Changes that cannot be
foreseen (a later hard link, a write through mapped memory) are found by a comparison once a minute.
"""

# A path object costs more than the system call it is made for, once per file.
# ruff: noqa: PTH114, PTH115, PTH116, PTH118

from __future__ import annotations

import ctypes
import errno
import logging
import os
import stat
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from npl_index.errors import NPLError
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.listing import Listed, fingerprint_of, is_file, state_of, status_of
from npl_index.library.references import MARKDOWN_SUFFIXES
from npl_index.library.roots import Found, Visitor, is_walked

if TYPE_CHECKING:
    from inotify_simple import Event, INotify

logger = logging.getLogger(__name__)

LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010})
"""File systems that only this machine changes, as statfs(2) numbers them: ext2 to ext4, XFS, Btrfs, tmpfs,
ZFS, F2FS. Layered ones (overlayfs) do not report what changes below them."""

MAX_FOLDERS = 4_096
"""Folders that are watched: half of what older systems allow all programs of a user together."""

MAX_TREES = 64
MAX_CHANGES = 1_024
"""Changed files of a tree that are remembered; with more, all its files are looked at."""

SWEEP_SECONDS = 60.0

# Of linux/inotify.h.
_CONTENT = 0x002 | 0x004 | 0x008  # modified, attributes changed, closed after writing
_NAMES = 0x080 | 0x100 | 0x040 | 0x200  # moved to, created, moved from, deleted
_SELF = 0x400 | 0x800  # the watched folder itself deleted, moved
_LOST = 0x2000 | 0x8000  # unmounted, no longer watched
_OVERFLOW = 0x4000
_IS_FOLDER = 0x40000000
_MASK = _CONTENT | _NAMES | _SELF | 0x01000000 | 0x02000000  # a folder only, and no link

# Why a folder cannot be watched that is not there, or may not be read; the one it is in tells of a change.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)

Look = Callable[["Visitor | None"], "tuple[Found, ...]"]


class UnwatchableError(Exception):
    """The files below a folder cannot be watched, or not all of them."""


class Watcher:
    """Opens nothing when made; safe for several threads.

    :param sweep_seconds: time between two comparisons of a tree with the file system.
    :param most: folders that are watched.
    :param local: numbers of the file systems that are.
    """

    def __init__(
        self, sweep_seconds: float = SWEEP_SECONDS, most: int = MAX_FOLDERS, local: Set[int] = LOCAL
    ) -> None:
        self.sweep_seconds, self.local, self._most = sweep_seconds, local, most
        self._lock = threading.Lock()
        self._notify: INotify | None = None
        self._trees: OrderedDict[Hashable, _Tree] = OrderedDict()
        self._watched: dict[int, set[tuple[_Tree, str]]] = {}
        self._closed = False

    def find(self, key: Hashable, start: str, look: Look) -> tuple[Found, ...]:
        """Return the files below a folder as they are now.

        :param key: identifies the result for equal files.
        :param start: real path of the folder.
        :param look: finds the files; tells the visitor where it looks.
        :returns: :class:`Listed` where changes are noticed.
        """
        with self._lock:
            tree = self._trees.setdefault(key, _Tree(self, start, look))
            self._trees.move_to_end(key)
            if len(self._trees) > MAX_TREES:
                self._drop(next(iter(self._trees)))
        return tree.now()

    def doubt(self) -> None:
        """Look at everything again at the next call."""
        with self._lock:
            for tree in self._trees.values():
                tree.changed = None

    def close(self) -> None:
        """Stop watching, for good."""
        with self._lock:
            self._closed = True
            for key in list(self._trees):
                self._drop(key)
            if self._notify is not None:
                self._notify.close()
            self._notify = None

    @property
    def watched(self) -> int:
        """Number of watched folders."""
        return len(self._watched)

    def changed(self, tree: _Tree) -> set[str] | None:
        """Read the queue; return the paths that changed in a tree, ``None`` where all may have."""
        with self._lock:
            for event in () if self._notify is None else self._notify.read(0):
                if event.mask & _OVERFLOW:
                    for one in self._trees.values():
                        one.changed = None
                for one, folder in self._watched.get(event.wd, ()):
                    one.note(folder, event)
                if event.mask & _LOST:
                    self._watched.pop(event.wd, None)
            changed, tree.changed = tree.changed, set()
        return changed

    def watch(self, tree: _Tree, folder: str) -> int | None:
        """Watch a folder for a tree.

        :returns: the number of the watch; ``None`` if the folder is not there, or may not be read.
        :raises UnwatchableError: it cannot be.
        """
        with self._lock:
            if self._closed or tree.dropped or len(self._watched) >= self._most:
                raise UnwatchableError
            try:
                number: int = self._opened().add_watch(folder, _MASK)
            except OSError as error:
                if error.errno in _ABSENT:
                    return None
                logger.warning("%s cannot be watched, all files are looked at instead: %s", folder, error)
                raise UnwatchableError from None
            self._watched.setdefault(number, set()).add((tree, folder))
        return number

    def unwatch(self, tree: _Tree, folders: Iterable[tuple[str, int]]) -> None:
        """Stop watching folders for a tree."""
        with self._lock:
            # A tree may be dropped while it adds folders.
            self._unwatch(tree, {*folders, *tree.folders.items()} if tree.dropped else folders)

    def _unwatch(self, tree: _Tree, folders: Iterable[tuple[str, int]]) -> None:
        for folder, number in folders:
            users = self._watched.get(number, set())
            users.discard((tree, folder))
            if not users and self._watched.pop(number, None) is not None and self._notify is not None:
                with suppress(OSError):  # the folder is gone, and the watch with it
                    self._notify.rm_watch(number)

    def _drop(self, key: Hashable) -> None:
        tree = self._trees.pop(key)
        tree.dropped, tree.changed = True, None
        self._unwatch(tree, tree.folders.items())

    def _opened(self) -> INotify:
        if self._notify is None:
            if not sys.platform.startswith("linux"):
                raise UnwatchableError
            import inotify_simple  # there is one for Linux only

            self._notify = inotify_simple.INotify(nonblocking=True)
            weakref.finalize(self, self._notify.close)
        return self._notify


class _Tree:
    """The known files below a folder.

    ``changed`` belongs to the watcher's lock, the rest to the tree's own.
    """

    def __init__(self, watcher: Watcher, start: str, look: Look) -> None:
        self._watcher, self._start, self._look = watcher, start, look
        self._lock = threading.Lock()
        self._listed: Listed | None = None
        self._identity: tuple[int, int] | None = None
        self._links: frozenset[str] = frozenset()
        self._places: dict[str, int] = {}
        self._next = 0.0
        self.folders: dict[str, int] = {}
        self.dropped = False
        self.changed: set[str] | None = None

    def note(self, folder: str, event: Event) -> None:
        """Note an event in a folder."""
        if self.changed is None or (event.name and not is_walked(event.name)):
            return
        self.changed.add(os.path.join(folder, event.name))
        # An event without a name is one of the folder itself: the mode of all its files may count.
        if not event.name or event.mask & _IS_FOLDER or len(self.changed) > MAX_CHANGES:
            self.changed = None

    def now(self) -> tuple[Found, ...]:
        """Return the files as they are now."""
        with self._lock:
            due = time.monotonic() >= self._next
            if due:
                self._next = time.monotonic() + self._watcher.sweep_seconds
            if due or self._listed is not None:
                changed = self._watcher.changed(self)
                same = changed is not None and _identity(self._start) == self._identity
                if not (self._listed is not None and same and self._look_again(changed or ())):
                    self._look_at_all()
                elif due:
                    threading.Thread(target=self._compare, name="npl-sweep", daemon=True).start()
            listed = self._listed
        return self._look(None) if listed is None else listed

    def _compare(self) -> None:
        """Compare the remembered files with the file system."""
        listed = self._listed
        try:
            found = self._look(None)
            same = found == listed and tuple(map(state_of, found)) == listed.states
        except NPLError:
            same = False
        with self._lock:
            if not same and self._listed is listed:
                self._listed, self._next = None, 0.0

    def _look_again(self, changed: Iterable[str]) -> bool:
        """Look at the files that may have changed; return whether that was enough."""
        listed, states = self._listed, dict[int, Fingerprint]()
        assert listed is not None
        if changed and not self._places:
            self._places = {found.absolute: place for place, found in enumerate(listed)}
        for path in changed:
            place, status = self._places.get(path), status_of(path)
            if place is not None and status is not None and is_file(status) and status.st_nlink == 1:
                states[place] = Fingerprint.of(path, status)
            elif place is not None or path in self._links or (status and _matters(path, status.st_mode)):
                return False
        if states:
            # Equal fingerprints may be those of different contents, so that this is a new object anyway.
            every = (states.get(place, state) for place, state in enumerate(listed.states))
            self._listed = Listed.of(listed, every)
        return True

    def _look_at_all(self) -> None:
        """Watch each folder, then look into it: a change in between makes an event."""
        before, self._listed, self.folders = self.folders, None, {}
        visit = _Visit(self._watcher, self)
        try:
            self._identity = _identity(self._start)
            found = self._look(visit)
            visit.check(self._start)
            every = [status_of(one.absolute) for one in found]
            if any(status is not None and status.st_nlink > 1 for status in every):
                raise UnwatchableError
            self._listed = Listed.of(found, map(fingerprint_of, found, every))
            self._places, self._links = {}, frozenset(os.path.join(*link) for link in visit.links)
            self.folders = visit.folders
        except UnwatchableError:
            logger.debug("the files below %s are asked for each time", self._start)
        finally:
            watched = {*before.items(), *visit.folders.items()}
            self._watcher.unwatch(self, watched.difference(self.folders.items()))


class _Visit(Visitor):
    """Watches the folders of a walk."""

    def __init__(self, watcher: Watcher, tree: _Tree) -> None:
        self._watcher, self._tree = watcher, tree
        self._devices: set[int] = set()
        self.folders: dict[str, int] = {}
        self.links: list[tuple[str, str]] = []

    def enter(self, folder: str) -> None:
        """Watch a folder.

        :raises UnwatchableError: it cannot be.
        """
        try:
            device = os.stat(folder).st_dev
        except OSError:
            return
        if device not in self._devices:
            if _file_system(folder) not in self._watcher.local:
                raise UnwatchableError
            self._devices.add(device)
        number = self._watcher.watch(self._tree, folder)
        if number is not None:
            self.folders[folder] = number

    def link(self, folder: str, name: str) -> None:
        """Note a link."""
        self.links.append((folder, name))

    def check(self, start: str) -> None:
        """Check that the result depends on watched folders alone.

        :raises UnwatchableError: the first folder is not watched, or a link leads elsewhere.
        """
        if start not in self.folders or not all(_stays(*link, self.folders) for link in self.links):
            raise UnwatchableError


def _stays(folder: str, name: str, folders: Mapping[str, int]) -> bool:
    """Return whether a link leads straight to a name in a watched folder: each change makes an event."""
    try:
        text = os.readlink(os.path.join(folder, name))
    except OSError:
        return False
    climbs = text.lstrip("./") if text.startswith(".") else text
    target = os.path.normpath(os.path.join(folder, text))
    above, last = os.path.split(target)
    direct = os.pardir not in climbs.split("/")
    return direct and above in folders and is_walked(last) and not os.path.islink(target)


def _matters(path: str, mode: int) -> bool:
    """Return whether a new name may change what is found."""
    if stat.S_ISREG(mode):
        return path.lower().endswith(MARKDOWN_SUFFIXES)
    return stat.S_ISLNK(mode) or stat.S_ISDIR(mode)


def _identity(folder: str) -> tuple[int, int] | None:
    """Return the device and inode of a folder: another folder at the same path has others."""
    try:
        status = os.stat(folder, follow_symlinks=False)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _file_system(path: str) -> int | None:
    """Return the number of the file system that a path is in; see ``statfs(2)``."""
    call = _statfs()
    if call is None:
        return None
    # The first field is the number, a long on all systems that matter; no system fills more than this.
    buffer = (ctypes.c_long * 64)()
    return None if call(os.fsencode(path), buffer) else buffer[0] & 0xFFFFFFFF


@cache
def _statfs() -> Callable[..., Any] | None:
    return getattr(ctypes.CDLL(None), "statfs", None) if sys.platform.startswith("linux") else None
