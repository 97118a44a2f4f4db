"""Search roots: the root of a real path, and the files below a folder.

This module opens no files. It resolves all links of a path, and compares the result with the real paths of
the roots by whole segments.
"""

# A path object for each file costs more than the system call.
# ruff: noqa: PTH112, PTH116, PTH118

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple
from unicodedata import normalize

from npl_index import errors
from npl_index.library import references
from npl_index.library.catalog import ItemFolder, Root
from npl_index.library.files import FileChangedError, FileTooLargeError, NotRegularError
from npl_index.library.fingerprints import Fingerprint, entry_state, settled_states
from npl_index.library.ignoring import NOTHING, RULES_FILE, Ignoring, Rules, everything
from npl_index.library.lazy import LazySequence
from npl_index.library.patterns import PathPattern, fits

_SAMPLE = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one request.

    :param max_bytes: size of one file, and of the whole result of one load.
    :param max_files: files of one folder or pattern.
    :param max_entries: directory entries that one walk may visit.
    :param max_depth: levels of folders below the start of a walk.
    """

    max_bytes: int = 16 << 20
    max_files: int = 1_000_000
    max_entries: int = 2_000_000
    max_depth: int = 32


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """The file of a document; its content is not read yet.

    :param root: the first root that contains it.
    :param path: path below that root, links resolved, ``/`` between segments.
    :param label: label of the root, or of the item's place.
    :param item: its item name, if a request named it so.
    """

    root: Root
    path: str
    label: str
    item: str | None = None

    @property
    def name(self) -> str:
        """The file name without its suffix."""
        return self.path.rpartition("/")[2].rpartition(".")[0]

    @property
    def absolute(self) -> str:
        """The file's absolute path; not for messages."""
        return f"{self.root.path}/{self.path}"

    @property
    def aliases(self) -> tuple[str, ...]:
        """Further names of the document in selectors."""
        return () if self.item is None else (self.item,)

    def stat(self) -> Fingerprint:
        """Return the present fingerprint, without opening the file.

        :raises DocumentNotFoundError: the file no longer exists.
        :raises UnreadableDocumentError: it is no longer a regular file.
        """
        path = self.absolute
        try:
            status = os.stat(path, follow_symlinks=False)
        except OSError as error:
            raise unusable(self.path, error) from None
        if not stat.S_ISREG(status.st_mode):
            raise unusable(self.path, NotRegularError())
        return Fingerprint.of(path, status)


Walked = list[tuple[str, DocumentFile]]  # files of one folder, with their paths below the start of a walk


class WalkedFolder(NamedTuple):
    """What a walk finds in one folder while neither the folder nor its file of rules changes.

    :param states: their states; that of the rules is empty if it has none.
    :param above: the rules above it.
    :param visited: number of its visited entries.
    :param files: its files.
    :param folders: folders to enter with their paths, and the rules above them.
    """

    states: tuple[tuple[int, ...], ...]
    above: Rules | None
    visited: int
    files: Walked
    folders: list[tuple[str, str, Rules | None]]

    def is_current(self, folder: str, above: Rules | None, most: int) -> bool:
        """Return whether a walk certainly finds the same again.

        :param above: the rules above it.
        :param most: maximum entries to visit.
        """
        own, rules = self.states
        same = self.above is above and self.visited <= most and entry_state(folder) == own
        return same and (not rules or entry_state(f"{folder}/{RULES_FILE}") == rules)


Known = dict[str, WalkedFolder]


@dataclass(slots=True)
class _Walk:
    """A walk; see :meth:`Roots.walk_folders`. ``waiting`` has the folders to enter."""

    pattern: PathPattern | None
    suffixes: tuple[str, ...]
    most: int
    counted: bool
    skipped: Counter[str]
    waiting: list[tuple[str, str, Rules | None]]
    visited: int = 0


class Roots:
    """The folders with the files, in order.

    :param roots: a file belongs to the first root that contains it.
    :param limits: bounds on one walk.
    :param ignoring: entries that walks leave out.
    """

    def __init__(self, roots: Iterable[Root], limits: Limits, ignoring: Ignoring = NOTHING) -> None:
        self._limits, self._ignoring = limits, ignoring
        self._real: dict[str, str] = {}
        merged: dict[str, Root] = {}
        for root in dict.fromkeys(roots):  # kinds of items share roots
            real = self._real[root.path] = os.path.realpath(root.path)
            known = merged.get(real, Root(real, root.label))
            merged[real] = Root(real, known.label, known.npl or root.npl)
        ordered = list(merged.values())
        self._prefixes = [(os.path.join(root.path, ""), root) for root in ordered]
        self._earlier = {root.path: tuple(ordered[:at]) for at, root in enumerate(ordered)}
        self._labels = {root.label: root for root in reversed(ordered)}  # of equal labels, the first counts

    def __iter__(self) -> Iterator[Root]:
        return (root for _, root in self._prefixes)

    def locate(self, path: str) -> tuple[Root, str] | None:
        """Return the root of a real path, and the path below it with ``/`` between segments."""
        for prefix, root in self._prefixes:
            if path.startswith(prefix):
                return root, path[len(prefix) :].replace(os.sep, "/")
            if path == root.path:
                return root, ""
        return None

    def spelled(self, path: str) -> Iterator[tuple[Root, str]]:
        """Yield the possible roots and paths of a relative path.

        A path may lie below any root; after a root's label, as in ``docs:guide/build.md``, below that root.
        The label alone is the root itself, unless a root contains an entry with this name. A path with ``..``
        has none.
        """
        if os.pardir in path and os.pardir in re.split(r"[:/\\]", path):
            return
        for _, root in self._prefixes:
            yield root, path
        label, _, below = path.partition(":")
        if label in self._labels:
            yield self._labels[label], below

    def names(self, files: Sequence[DocumentFile]) -> Sequence[str]:
        """Return an unambiguous path of each file: the path below its root.

        If an earlier root has the same path, the root's label precedes it; see :meth:`spelled`.
        """
        holds: dict[tuple[str, str], bool] = {}

        def is_there(root: Root, path: str) -> bool:
            place = (root.path, path.partition("/")[0])  # most earlier roots lack even the first segment
            if place not in holds:
                holds[place] = os.path.lexists(os.path.join(*place))
            return holds[place] and os.path.lexists(os.path.join(root.path, path))

        def name(number: int) -> str:
            file = files[number]
            is_hidden = any(is_there(root, file.path) for root in self._earlier.get(file.root.path, ()))
            return f"{file.root.label}:{file.path}" if is_hidden else file.path

        return LazySequence(len(files), name)

    @property
    def npl_prefixes(self) -> tuple[str, ...]:
        """Prefixes of the real paths under roots declared as NPL."""
        return tuple(prefix for prefix, root in self._prefixes if root.npl)

    def is_there(self, path: str, text: str) -> bool:
        """Return whether a real path exists.

        :param text: the path as the caller gave it.
        :raises OutsideRootError: it lies under no root; whether it exists is not revealed.
        """
        if self.locate(path) is None:
            raise outside(text)
        return os.path.lexists(path)

    def below(self, place: ItemFolder, path: str) -> str | None:
        """Return the real path of an existing path below a place; a link may lead anywhere."""
        return resolve(self._real[place.root.path], os.path.join(place.folder, path))

    def regular(self, path: str, text: str, suffixes: tuple[str, ...]) -> DocumentFile:
        """Return the regular file at a real path.

        :param text: the path as the caller gave it.
        :param suffixes: allowed suffixes of its name.
        :raises OutsideRootError: it lies under no root.
        :raises UnreadableDocumentError: it has a different suffix, or is not a regular file.
        """
        located = self.locate(path)
        if located is None:
            raise outside(text)
        if located[1].startswith(references.ADDRESSES):
            problem = f"{text!r} is a file whose path looks like an address"
            hint = f"rename it: {', '.join(references.ADDRESSES)} begin addresses"
            raise errors.UnreadableDocumentError(problem, hint=hint)
        if suffixes != references.QUESTION_SUFFIXES:
            refuse_questions(path, text)
        if not references.has_suffix(path, suffixes):
            hint = f"names end in {', '.join(suffixes)}"
            raise errors.UnreadableDocumentError(f"{text!r} is not of a served file type", hint=hint)
        file = DocumentFile(*located, located[0].label)
        file.stat()
        return file

    def sample(self, suffixes: tuple[str, ...]) -> Iterator[str]:
        """Yield the paths of a sample of files below each root, and of their folders, from a short walk."""
        for root in self:
            with suppress(errors.DocumentTooLargeError):
                for _, file in self.walk(root.path, None, suffixes, _SAMPLE):
                    yield from (file.path, file.path.rpartition("/")[0])

    def walk(self, *arguments: Any, **named: Any) -> Iterator[tuple[str, DocumentFile]]:
        """Yield each file of :meth:`walk_folders`."""
        return chain.from_iterable(self.walk_folders(*arguments, **named))

    def walk_folders(
        self,
        start: str,
        pattern: PathPattern | None,
        suffixes: tuple[str, ...],
        max_entries: int | None = None,
        known: Known | None = None,
        skipped: Counter[str] | None = None,
        entered: set[str] | None = None,
    ) -> Iterator[Walked]:
        """Yield the files of each folder below a real folder, with their paths below that, in no order.

        Linked folders are entered once, and only if they lie under a root. Hidden folders other than ``.npl``
        and ``.claude`` are skipped, as are those of installed packages, those deeper than the limit, and
        ignored ones, except in roots declared as NPL.

        :param pattern: pattern of the path below the folder; ``None`` matches all.
        :param max_entries: maximum directory entries to visit, by default from the limits.
        :param known: folders of an earlier equal walk; the files of unchanged ones are the same objects.
        :param skipped: receives the numbers of skipped files and folders; ignored folders are walked for it.
        :param entered: folders that are not entered; the entered ones are added.
        :raises DocumentTooLargeError: more entries than the limits allow.
        """
        most = self._limits.max_entries if max_entries is None else max_entries
        known, entered = {} if known is None else known, set() if entered is None else entered
        counted, skipped = skipped is not None, Counter() if skipped is None else skipped
        walk = _Walk(pattern, suffixes, most, counted, skipped, [(start, "", self._rules(start))])
        while walk.waiting:
            folder, below, above = walk.waiting.pop()
            if folder in entered or (located := self.locate(folder)) is None:
                continue
            entered.add(folder)
            direct = folder == f"{start}/{below}"[:-1]  # a link may lead to a different folder the next time
            with suppress(OSError):  # unreadable or deleted
                walked = known.pop(folder, None) if direct else None
                if walked and walked.is_current(folder, above, most - walk.visited):
                    walk.visited += walked.visited
                    walk.waiting += walked.folders
                    yield walked.files
                else:
                    walked = yield from self._read(walk, *located, folder, below, above)
                if walked and direct:
                    known[folder] = walked

    def _read(
        self, walk: _Walk, root: Root, prefix: str, folder: str, below: str, above: Rules | None
    ) -> Generator[Walked, None, WalkedFolder | None]:
        """Yield the files of a folder, and return what it holds; ``None`` if that may change unnoticed."""
        states, before, most = settled_states(folder, f"{folder}/{RULES_FILE}"), walk.visited, walk.most
        entries, rules = self._listed(folder, root, above, most)
        files: Walked = []
        folders: list[tuple[str, str, Rules | None]] = []
        for number, entry in enumerate(entries):
            if not references.is_walked(entry.name) and number < most:
                walk.skipped.update(references.kinds_of_unusable(entry.name))
                continue
            walk.visited += 1
            if walk.visited > most or number >= most:
                walk.waiting.clear()
                yield files
                if rules is None or rules.folder:
                    raise too_many(f"{most:,} entries")
                # Of ignored files, there are more than were counted.
                walk.skipped[f"or more {rules.label}"] = walk.skipped.pop(rules.label, 0)
                return None
            path = below + entry.name
            if label := self._label(entry, rules):
                if references.has_suffix(entry.name, walk.suffixes):
                    walk.skipped[label] += 1
                elif walk.counted and entry.is_dir(follow_symlinks=False):
                    walk.waiting.insert(0, (entry.path, f"{path}/", everything(label)))
            elif entry.is_symlink():
                states = None  # its target may change
                linked = self._linked(entry, walk.suffixes)
                if isinstance(linked, DocumentFile) and fits(walk.pattern, path):
                    files.append((path, linked))
                elif isinstance(linked, str) and self._may_enter(walk, path):
                    walk.waiting.append((linked, f"{path}/", self._rules(linked)))
            elif references.has_suffix(entry.name, walk.suffixes):
                if fits(walk.pattern, path) and entry.is_file(follow_symlinks=False):
                    file = DocumentFile(root, f"{prefix}/{entry.name}" if prefix else entry.name, root.label)
                    files.append((path, file))
            elif entry.name.lower().endswith(references.OTHER_TEXTS):
                walk.skipped[entry.name.lower()[entry.name.rindex(".") :]] += 1
            elif entry.is_dir(follow_symlinks=False) and self._may_enter(walk, path):
                folders.append((entry.path, f"{path}/", rules))
        walk.waiting += folders
        yield files
        return WalkedFolder(states, above, walk.visited - before, files, folders) if states else None

    def _rules(self, folder: str) -> Rules | None:
        """Return the rules above a real folder."""
        root, _ = self.locate(folder) or (None, "")
        return None if root is None or root.npl else self._ignoring.above(root.path, folder)

    def _listed(
        self, folder: str, root: Root, rules: Rules | None, most: int
    ) -> tuple[list[os.DirEntry[str]], Rules | None]:
        """Return the entries of a folder, and the rules for them; ``rules`` are those above it."""
        with os.scandir(folder) as scanned:
            entries = list(islice(scanned, most + 1))
        unread = len(entries) > most  # its rules may be among the other entries
        if self._ignoring.gitignore and (unread or RULES_FILE in [entry.name for entry in entries]):
            rules = self._ignoring.within(root.path, folder, rules)
        return entries, rules

    def _label(self, entry: os.DirEntry[str], rules: Rules | None) -> str:
        """Return the description of an ignored entry; ``""`` for other entries, and in roots of NPL."""
        if rules is None or f"{entry.path}/".startswith(self.npl_prefixes):
            return ""
        return rules.label_of(entry.path, entry.is_dir(follow_symlinks=False))

    def _linked(self, entry: os.DirEntry[str], suffixes: tuple[str, ...]) -> DocumentFile | str | None:
        """Return the file or the real folder at the target of a link; ``None`` for an unusable target."""
        real = real_path(entry.path)
        located = None if real is None else self.locate(real)
        if real is None or located is None or located[1].startswith(references.ADDRESSES):
            return None
        if os.path.isdir(real):
            return real
        try:
            return self.regular(real, entry.name, suffixes)
        except (errors.DocumentError, errors.DocumentNotFoundError):
            return None

    def _may_enter(self, walk: _Walk, path: str) -> bool:
        """Return whether a walk enters a folder; count it if it lies deeper than the limit."""
        if path.count("/") >= self._limits.max_depth:
            walk.skipped[f"folders below {self._limits.max_depth} levels"] += 1
            return False
        return walk.pattern is None or walk.pattern.may_hold(path.split("/"))


def resolve(root: str, path: str) -> str | None:
    """Return the real path of a path below a real root, or ``None`` if it does not exist.

    Only the segments below the root are checked, which is several times cheaper than resolving the whole
    path. If a segment is a link, the whole path is resolved; the result may lie anywhere and need not exist.
    """
    whole, path = root, as_named(root, path)
    for segment in path.replace(os.sep, "/").split("/"):
        if segment in ("", os.curdir):
            continue
        whole = os.path.join(whole, segment)
        try:
            mode = os.lstat(whole).st_mode
        except OSError:
            return None
        if stat.S_ISLNK(mode):
            return real_path(os.path.join(root, path))
    return whole


def as_named(root: str, path: str) -> str:
    """Return a path with its segments as the file system has them: accents may be composed or not."""
    if path.isascii():
        return path
    segments: list[str] = []
    for segment in path.replace(os.sep, "/").split("/"):
        folder, names = os.path.join(root, *segments), [segment]
        if not segment.isascii() and not os.path.lexists(os.path.join(folder, segment)):
            wanted = normalize("NFC", segment)
            with suppress(OSError):
                names = [name for name in sorted(os.listdir(folder)) if normalize("NFC", name) == wanted]  # noqa: PTH208
        segments.append((names or [segment])[0])
    return "/".join(segments)


def real_path(path: str) -> str | None:
    """Return a path with all links resolved; ``None`` for looping or changing links, or an invalid path."""
    try:
        return os.path.realpath(path)
    except (OSError, RecursionError, ValueError):
        return None


def skipped_text(skipped: Mapping[str, int]) -> str:
    """Return the numbers of skipped texts and folders for people, largest first; those with advice last."""
    ordered = sorted(skipped.items(), key=lambda kind: (";" in kind[0], -kind[1], kind[0]))
    return ", ".join(f"{number:,} {what}" for what, number in ordered)


def refuse_questions(path: str, text: str) -> None:
    """Refuse a question file.

    :param text: the path as the caller gave it.
    :raises UnreadableDocumentError: it is a question file.
    """
    if references.has_suffix(path, references.QUESTION_SUFFIXES):
        problem = f"{text!r} holds questions and the sections that answer them; it is not served"
        raise errors.UnreadableDocumentError(problem, hint="npl-load test asks its questions")


def outside(text: str) -> errors.OutsideRootError:
    """Return the error for a path that lies outside all roots."""
    hint = "give a path below a root, or an item name"
    return errors.OutsideRootError(f"{text!r} lies outside the search roots", hint=hint)


def too_many(what: str) -> errors.DocumentTooLargeError:
    """Return the error for a walk that exceeds a limit."""
    problem = f"there are more than {what} below the folder"
    return errors.DocumentTooLargeError(problem, hint="name a smaller folder")


def unusable(text: str, error: OSError) -> errors.NPLError:
    """Return the error for an unusable file, without the absolute path in the system's message."""
    if isinstance(error, NotRegularError):
        return errors.UnreadableDocumentError(f"{text!r} is not a regular file")
    if isinstance(error, FileTooLargeError):
        problem = f"{text!r} is {error.strerror}"
        return errors.DocumentTooLargeError(problem, hint="split it into smaller files")
    if isinstance(error, FileChangedError):
        return errors.UnreadableDocumentError(f"{text!r} changed while it was read", hint="try again")
    if error.errno == errno.ENOENT:
        return errors.DocumentNotFoundError(f"{text!r} no longer exists")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return errors.UnreadableDocumentError(f"{text!r} now leads through a link")
    reason = os.strerror(error.errno).lower() if error.errno is not None else "unknown system error"
    return errors.UnreadableDocumentError(f"{text!r} cannot be read: {reason}")
