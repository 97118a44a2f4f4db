"""Search roots: the root of a real path, and the regular file at one.

This module opens no files. It resolves all links of a path, and compares the result with the real paths of
the roots by whole segments.
"""

# A path object for each file costs more than the system call.
# ruff: noqa: PTH116, PTH117, PTH118

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, zip_longest
from unicodedata import normalize

from npl_index import errors
from npl_index.library import references
from npl_index.library.catalog import ItemFolder, Root
from npl_index.library.files import FileChangedError, FileTooLargeError, NotRegularError
from npl_index.library.fingerprints import Fingerprint
from npl_index.library.ignoring import NOTHING, Ignoring, Rules
from npl_index.library.lazy import LazySequence

_MAX_REASONS = 5


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


class Roots:
    """The folders with the files, in order.

    :param roots: a file belongs to the first root that contains it.
    :param limits: bounds on one walk.
    :param ignoring: entries that walks leave out.
    """

    def __init__(self, roots: Iterable[Root], limits: Limits, ignoring: Ignoring = NOTHING) -> None:
        self.limits, self.ignoring = limits, ignoring
        self._real: dict[str, str] = {}
        merged: dict[str, Root] = {}
        for root in dict.fromkeys(roots):  # kinds of items share roots
            real = self._real[root.path] = os.path.realpath(root.path)
            former = merged.get(real, Root(real, root.label))
            merged[real] = Root(real, former.label, former.npl or root.npl)
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

    def existing(self, spellings: Sequence[str], text: str) -> Iterator[str]:
        """Yield the existing real paths among all readings of a path's spellings.

        :raises OutsideRootError: a reading lies under no root.
        """
        if os.path.isabs(spellings[0]):
            readings: Iterator[str | None] = map(real_path, spellings)
        else:
            by_root = zip_longest(*map(self.spelled, spellings))  # paths with ".." have no place
            places = filter(None, chain.from_iterable(by_root))
            readings = (resolve(root.path, path) for root, path in places)
        return (path for path in readings if path is not None and self.is_there(path, text))

    def spellings(self, clean: str) -> tuple[str, ...]:
        """Return a path's spellings: unchanged and, unless it has a suffix or is a root, with ``.md``."""
        if clean.lower().endswith(references.MARKDOWN_SUFFIXES):
            return (clean,)
        if os.path.isabs(clean) and real_path(clean) in {root.path for root in self}:
            return (clean,)
        return (clean, f"{clean}.md")

    def names(self, files: Sequence[DocumentFile]) -> Sequence[str]:
        """Return an unambiguous path of each file: the path below its root.

        If an earlier root has the same path, the root's label precedes it; see :meth:`spelled`.
        """

        def name(number: int) -> str:
            file = files[number]
            earlier = self._earlier.get(file.root.path, ())
            is_hidden = any(os.path.lexists(os.path.join(root.path, file.path)) for root in earlier)
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

    def rules_above(self, folder: str) -> Rules | None:
        """Return the rules above a real folder."""
        root, _ = self.locate(folder) or (None, "")
        return None if root is None or root.npl else self.ignoring.above(root.path, folder)


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


def below_root(root: str | os.PathLike[str], path: str) -> tuple[str, str]:
    """Resolve a path below a root; it may pass through links that stay below the root.

    :param path: path below the root, which need not exist.
    :returns: the real path of the root, and the real path below it, ``/`` between segments, for
        :meth:`Folder.opened`.
    :raises OSError: a link leads out of the root (``ELOOP``), or in circles.
    """
    real = os.path.realpath(root)
    inner = os.path.realpath(os.path.join(real, path))
    prefix = os.path.join(real, "")
    if inner != real and not inner.startswith(prefix):
        raise OSError(errno.ELOOP, "a link leads outside")
    return real, inner[len(prefix) :].replace(os.sep, "/")


def as_named(root: str, path: str) -> str:
    """Return a path with its segments as the file system has them: accents may be composed or not."""
    if path.isascii():
        return path
    folder, segments = root, path.replace(os.sep, "/").split("/")
    for at, segment in enumerate(segments):
        if not segment.isascii() and not os.path.lexists(os.path.join(folder, segment)):
            wanted, names = normalize("NFC", segment), list[str]()
            with suppress(OSError):
                names = [name for name in sorted(os.listdir(folder)) if normalize("NFC", name) == wanted]  # noqa: PTH208
            if not names:
                break  # nothing below exists
            segments[at] = names[0]
        folder = os.path.join(folder, segments[at])
    return "/".join(segments)


class LocalPath:
    """Marker of a field that may have an absolute path of this machine, which not every reader may know."""


def real_path(path: str) -> str | None:
    """Return a path with all links resolved; ``None`` for looping or changing links, or an invalid path."""
    try:
        return os.path.realpath(path)
    except (OSError, RecursionError, ValueError):
        return None


def skipped_text(skipped: Mapping[str, int]) -> str:
    """Return the numbers of skipped texts and folders with the reasons, largest first."""
    ordered = sorted(skipped.items(), key=lambda kind: (-kind[1], kind[0]))
    texts = [f"{number:,} {kind}" for kind, number in ordered]
    return "; ".join(texts[:_MAX_REASONS] + [f"{len(texts):,} reasons in all"] * (len(texts) > _MAX_REASONS))


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


def too_many(limit: str) -> errors.DocumentTooLargeError:
    """Return the error for a walk that exceeds a limit."""
    problem = f"there are more than {limit} below the folder"
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
