"""Which files lie below a folder, and in what state, without asking the file system about each of them.

On local file systems of Linux, inotify says what changed. The system queues an event before the change
returns to the program that made it, and a call reads the queue in its own thread before anything else, so
that it sees all that was written before it began. Nothing in the queue means that what is remembered is how
things are; else the files that events name are looked at again, or everything where a folder changed.

Not every change makes an event: those over a network, through another name of a file (a hard link), at the
end of a link that leads elsewhere. Such files and folders are asked each time, as without this module. What
nobody can foresee (a name that a file gets elsewhere later, a write through mapped memory) is found by a
sweep every minute.
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
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from npl_index.errors import NPLError
from npl_index.library.fingerprints import Fingerprint, is_settled
from npl_index.library.listing import Listed, fingerprint_of, is_file, state_of, status_of
from npl_index.library.references import MARKDOWN_SUFFIXES
from npl_index.library.roots import Found, Visitor, is_walked

if TYPE_CHECKING:
    from inotify_simple import Event, INotify

logger = logging.getLogger(__name__)

LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010})
"""File systems that only this machine changes, as statfs(2) numbers them: ext2 to ext4, XFS, Btrfs, tmpfs,
ZFS, F2FS. Layered ones (overlayfs) do not report what changes below them."""

MOST_FOLDERS = 4_096
"""Folders that are watched: half of what older systems allow all programs of a user together."""

MOST_TREES = 64
MOST_CHANGES = 1_024
"""Events of a tree that are kept; with more, all its files are looked at."""

SWEEP_SECONDS = 60.0
IDLE_SECONDS = 3_600.0
"""A tree that nobody asked for so long is not watched any longer."""

# Of linux/inotify.h.
_CONTENT = 0x002 | 0x004 | 0x008  # modified, attributes changed, closed after writing
_APPEARED = 0x080 | 0x100  # moved to, created
_GONE = 0x040 | 0x200  # moved from, deleted
_SELF = 0x400 | 0x800  # the watched folder itself deleted, moved
_LOST = 0x2000 | 0x8000  # unmounted, no longer watched
_OVERFLOW = 0x4000
_ATTRIBUTES = 0x004
_UNMOUNTED = 0x2000
_IS_FOLDER = 0x40000000
_MASK = _CONTENT | _APPEARED | _GONE | _SELF | 0x01000000 | 0x02000000  # a folder only, and no link

# Why a folder cannot be watched that is not there, or may not be read; the one it is in tells of a change.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES)

Look = Callable[["Visitor | None"], "tuple[Found, ...]"]


@dataclass(slots=True)
class _News:
    """What happened below a folder.

    :param stale: it is not known what.
    :param moved: folders came or went.
    :param changed: files that are another way; those that may be new are ``True``.
    """

    stale: bool = False
    moved: bool = False
    changed: dict[str, bool] = field(default_factory=dict)

    def add(self, folder: str, event: Event) -> None:
        """Take down what happened in a folder."""
        if not event.name:
            # Who changed the mode of a folder may have changed what can be seen of all its files.
            self.stale = self.stale or bool(event.mask & (_ATTRIBUTES | _UNMOUNTED))
            self.moved = True
        elif is_walked(event.name):
            path = os.path.join(folder, event.name)
            self.changed[path] = self.changed.get(path, False) or bool(event.mask & _APPEARED)
            self.moved = self.moved or bool(event.mask & _IS_FOLDER)
            self.stale = self.stale or len(self.changed) > MOST_CHANGES
        if self.stale:
            self.changed = {}


class UnwatchableError(Exception):
    """The files below a folder cannot be watched, or not all of them."""


class Watcher:
    """Opens nothing when made; safe for several threads.

    :param sweep_seconds: time between two comparisons with the file system.
    :param most: folders that are watched.
    :param local: numbers of the file systems that are.
    """

    def __init__(
        self, sweep_seconds: float = SWEEP_SECONDS, most: int = MOST_FOLDERS, local: Set[int] = LOCAL
    ) -> None:
        self.sweep_seconds, self.local, self._most = sweep_seconds, local, most
        self._lock = threading.Lock()
        self._notify: INotify | None = None
        self._trees: OrderedDict[Hashable, _Tree] = OrderedDict()
        self._watched: dict[int, set[tuple[_Tree, str]]] = {}
        self._closing = threading.Event()

    def find(self, key: Hashable, start: str, look: Look) -> tuple[Found, ...]:
        """Return what is found below a folder now.

        :param key: what the result depends on, beside the files.
        :param start: real path of the folder.
        :param look: finds the files; tells the visitor where it looks.
        :returns: :class:`Listed` where changes are noticed.
        """
        with self._lock:
            tree = self._trees.setdefault(key, _Tree(self, start, look))
            self._trees.move_to_end(key)
            if len(self._trees) > MOST_TREES:
                self._drop(next(iter(self._trees)))
        return tree.now()

    def doubt(self) -> None:
        """Look at everything again when it is asked for next."""
        with self._lock:
            for tree in self._trees.values():
                tree.news.stale = True

    def close(self) -> None:
        """Stop watching, for good."""
        self._closing.set()
        with self._lock:
            for key in list(self._trees):
                self._drop(key)
            if self._notify is not None:
                self._notify.close()
            self._notify = None

    @property
    def watched(self) -> int:
        """How many folders are watched."""
        return len(self._watched)

    def news(self, tree: _Tree) -> _News:
        """Read what happened, and return what of it concerns a tree."""
        with self._lock:
            for event in () if self._notify is None else self._notify.read(0):
                if event.mask & _OVERFLOW:
                    for one in self._trees.values():
                        one.news.stale = True
                for one, folder in self._watched.get(event.wd, ()):
                    one.news.add(folder, event)
                if event.mask & _LOST:
                    self._watched.pop(event.wd, None)
            news, tree.news = tree.news, _News()
        return news

    def watch(self, tree: _Tree, folder: str) -> int | None:
        """Watch a folder for a tree.

        :returns: the number of the watch; ``None`` if the folder is not there, or may not be read.
        :raises UnwatchableError: it cannot be.
        """
        with self._lock:
            if self._closing.is_set() or tree.dropped or len(self._watched) >= self._most:
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
            # Whoever dropped the tree meanwhile did not know of its new folders.
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
        tree.dropped = tree.news.stale = True
        self._unwatch(tree, tree.folders.items())

    def _opened(self) -> INotify:
        if self._notify is None:
            if not sys.platform.startswith("linux"):
                raise UnwatchableError
            import inotify_simple  # there is one for Linux only

            self._notify = inotify_simple.INotify(nonblocking=True)
            weakref.finalize(self, self._notify.close)
            # The thread must not keep alive what nobody uses any longer.
            arguments = (weakref.ref(self), self._closing, self.sweep_seconds)
            threading.Thread(target=_sweep, args=arguments, name="npl-sweep", daemon=True).start()
        return self._notify

    def sweep(self) -> None:
        """Compare what is remembered with the file system; forget what nobody asks for."""
        with self._lock:
            trees = dict(self._trees)
        for key, tree in trees.items():
            if self._closing.is_set():
                return
            wrong = tree.is_wrong()
            with self._lock:
                tree.news.stale = tree.news.stale or wrong
                if self._trees.get(key) is tree and time.monotonic() - tree.used > IDLE_SECONDS:
                    self._drop(key)


def _sweep(watcher: weakref.ref[Watcher], closing: threading.Event, seconds: float) -> None:
    while not closing.wait(seconds):
        one = watcher()
        if one is None:
            return
        one.sweep()
        del one


class _Tree:
    """What is known of the files below a folder.

    ``news`` belongs to the watcher's lock, the rest to the tree's own.
    """

    def __init__(self, watcher: Watcher, start: str, look: Look) -> None:
        self._watcher, self._start, self._look = watcher, start, look
        self._lock = threading.Lock()
        self._listed: Listed | None = None
        self._identity: tuple[int, int] | None = None
        self._links: frozenset[str] = frozenset()
        self._places: dict[str, int] = {}
        self._shared: set[int] = set()
        self._asked_until = 0.0
        self.folders: dict[str, int] = {}
        self.used = time.monotonic()
        self.dropped = False
        self.news = _News()

    def now(self) -> tuple[Found, ...]:
        """Return the files as they are now."""
        self.used = time.monotonic()
        if self.used < self._asked_until:
            return self._look(None)
        with self._lock:
            news = self._watcher.news(self)
            if self._listed is None or news.stale or _identity(self._start) != self._identity:
                self._look_at_all({})
            elif news.moved or not self._look_again(news.changed):
                self._look_at_all(self._unchanged(news.changed))
            listed = self._listed
        return self._look(None) if listed is None else listed

    def is_wrong(self) -> bool:
        """Tell whether files are another way than is remembered."""
        listed = self._listed
        if listed is None:
            return False
        try:
            found = self._look(None)
        except NPLError:
            return True
        return self._listed is listed and (found != listed or tuple(map(state_of, found)) != listed.states)

    def _look_again(self, changed: Mapping[str, bool]) -> bool:
        """Look at the files that may have changed; say whether that was enough."""
        listed = self._listed
        assert listed is not None
        if not changed and not self._shared:
            return True
        if not self._places:
            self._places = {found.absolute: place for place, found in enumerate(listed)}
        states: dict[int, Fingerprint] = {}
        for path, appeared in changed.items():
            place, status = self._places.get(path), status_of(path)
            if path in self._links or (place is not None and not is_file(status)):
                return False
            if place is not None and status is not None:
                states[place] = Fingerprint.of(path, status)
                (self._shared.add if status.st_nlink > 1 else self._shared.discard)(place)
            elif appeared and status is not None and _matters(path, status.st_mode):
                return False
        for place in self._shared.difference(states):
            state = state_of(listed[place])
            if state is None:
                return False
            if state != listed.states[place] or not is_settled(state.mtime_ns, time.time_ns()):
                states[place] = state
        if states:
            # Equal fingerprints may be those of different contents, so that this is a new object anyway.
            every = (states.get(place, state) for place, state in enumerate(listed.states))
            self._listed = Listed.of(listed, every)
        return True

    def _unchanged(self, changed: Mapping[str, bool]) -> dict[str, Fingerprint]:
        """Return the states of the files that nothing happened to, by path."""
        listed = self._listed or Listed.of((), ())
        return {
            state.path: state
            for place, state in enumerate(listed.states)
            if state is not None and state.path not in changed and place not in self._shared
        }

    def _look_at_all(self, unchanged: Mapping[str, Fingerprint]) -> None:
        """Watch each folder, then look what is in it: what comes in between makes an event.

        :param unchanged: states of files that need not be looked at, if their folders are where they were.
        """
        before, self._listed, self.folders = self.folders, None, {}
        visit = _Visit(self._watcher, self)
        try:
            self._identity = _identity(self._start)
            found = self._look(visit)
            visit.check(self._start)
            stayed = {folder for folder, number in visit.folders.items() if before.get(folder) == number}
            states, self._shared = [], set()
            for place, one in enumerate(found):
                path = one.absolute
                state = unchanged.get(path) if path.rpartition("/")[0] in stayed else None
                if state is None:
                    status = status_of(path)
                    state = fingerprint_of(one, status)
                    if status is not None and status.st_nlink > 1:
                        self._shared.add(place)
                states.append(state)
            self._listed = Listed.of(found, states)
            self._places, self._links = {}, frozenset(os.path.join(*link) for link in visit.links)
            self.folders = visit.folders
        except UnwatchableError:
            self._asked_until = time.monotonic() + self._watcher.sweep_seconds
        finally:
            every = {*before.items(), *visit.folders.items()}
            self._watcher.unwatch(self, every.difference(self.folders.items()))


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
        """Check that nothing depends on what is not watched.

        :raises UnwatchableError: the first folder is not, or a link leads elsewhere.
        """
        if start not in self.folders or not all(_stays(*link, self.folders) for link in self.links):
            raise UnwatchableError


def _stays(folder: str, name: str, folders: Mapping[str, int]) -> bool:
    """Return whether a link leads straight to a name in a watched folder, so that each change is noticed."""
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
    """Return what tells the folder at a path from another one that takes its place."""
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
