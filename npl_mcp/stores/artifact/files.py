"""Files that belong to rows of the database: after any crash there is neither without the other.

A file cannot take part in a transaction. So each write leaves a note of the files it is about to make, makes
them, commits the rows, and takes the note away. A note without rows that somebody finds who holds the
database's write lock is of a write that ended half-way. Its files may be half written, or not yet under their
names; :meth:`npl_mcp.stores.artifact.store.ArtifactStore.recover` says when they may be removed.

Layout: ``<folder>/<owner>/revision-<n>-<name>`` and ``revision-<n>.meta.md``; notes are empty files
``<folder>/.writing/<owner>-<n>``, so that nothing in them can be torn or lead elsewhere. Folders and files
are opened one inside the other without following links, where the system can do that.
"""

# Names relative to an open folder are what keeps links out; path objects cannot carry one.
# ruff: noqa: PTH118, PTH208

from __future__ import annotations

import binascii
import errno
import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import StorageError, TooLargeError

NOTES = ".writing"

_META_BYTES = 1024 * 1024
_LONGEST_LINE = 1024 * 1024

_FILENAME_CHARACTERS = 120
_FILENAME_BYTES = 200
_FILENAME_SIGNS = " ._-()+@"
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)

_NOTE = re.compile(r"([1-9][0-9]{0,15})-(0|[1-9][0-9]{0,15})")
# The folder was never made, or is none: nothing was written there.
_NOT_OURS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_WALKS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | _PLAIN | getattr(os, "O_NONBLOCK", 0)
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _PLAIN


@dataclass(frozen=True, slots=True)
class Draft:
    """A revision to be stored, checked.

    :param content: its bytes.
    :param filename: see :func:`check_filename`.
    :param created_by: who made it.
    :param purpose: what it is for, one line; may be empty.
    :param notes: text about it.
    """

    content: bytes
    filename: str
    created_by: str | None
    purpose: str
    notes: str | None


def check_size(size: int, most: int) -> None:
    """Check how many bytes a content has.

    :raises TooLargeError: more than the setting allows.
    """
    if size > most:
        raise TooLargeError(
            f"the file has {size:,} bytes", hint=f"at most {most:,} are taken (NPL_MAX_ARTIFACT_BYTES)"
        )


def decode(file_content_base64: str, most: int) -> bytes:
    """Decode a file's content: standard base64 with padding and nothing else, so each text is one content.

    :param most: bytes the content may have.
    :raises MissingRequestError: it is empty.
    :raises TooLargeError: it stands for more bytes; it was not decoded then.
    :raises InvalidRequestError: it is not base64.
    """
    if not file_content_base64:
        raise MissingRequestError(
            "file_content_base64 is empty", parameter="file_content_base64", hint="give the file's content"
        )
    check_size(len(file_content_base64) // 4 * 3 - file_content_base64[-2:].count("="), most)
    content = _strictly_decoded(file_content_base64)
    if content is None:
        raise InvalidRequestError(
            "file_content_base64 is not base64",
            parameter="file_content_base64",
            hint="use A-Z a-z 0-9 + / with = padding and no line breaks, e.g. SGVsbG8=",
        )
    return content


def _strictly_decoded(text: str) -> bytes | None:
    try:
        written = text.encode("ascii")
        content = binascii.a2b_base64(written)
    except (UnicodeEncodeError, binascii.Error):
        return None
    # Decoding skips what is no base64; only what is written the same again was base64 throughout.
    return content if binascii.b2a_base64(content, newline=False) == written else None


def check_filename(filename: str) -> str:
    """Check the name of a file: one that every system can hold and that leads nowhere else.

    :raises MissingRequestError: it is empty.
    :raises InvalidRequestError: it cannot be used.
    """
    name = checks.line(filename, "filename", _FILENAME_CHARACTERS)
    wrong = sorted({sign for sign in name if not _fit_for_filename(sign)})
    size = len(name.encode())
    if wrong:
        problem = f"filename has {' '.join(map(repr, wrong[:5]))}"
        hint = f"give a name without folders, of letters, digits, blanks and {_FILENAME_SIGNS.strip()}"
    elif size > _FILENAME_BYTES:
        problem, hint = f"filename has {size} bytes in UTF-8", f"at most {_FILENAME_BYTES}"
    elif name.endswith(".") or _DEVICE.fullmatch(name):
        problem, hint = f"filename is {name!r}, which not every system can hold", "e.g. notes.md"
    else:
        return name
    raise InvalidRequestError(problem, parameter="filename", hint=hint)


def _fit_for_filename(sign: str) -> bool:
    # Letters, marks that belong to letters, numbers.
    return sign in _FILENAME_SIGNS or unicodedata.category(sign)[0] in "LMN"


def description(artifact_name: str, number: int, moment: str, draft: Draft) -> bytes:
    """Write a revision's ``.meta.md``: front matter with its keys in order, then the notes.

    :param number: of the revision.
    :param moment: when it was made.
    """
    import yaml  # only writing needs it

    fields = {
        "artifact_name": artifact_name,
        "created_at": moment,
        "created_by": draft.created_by or "unknown",
        "filename": draft.filename,
        "purpose": draft.purpose,
        "revision": number,
    }
    # The C library writes in a tenth of the time, where it is there. Every value is kept on one line, so that
    # none can look like the end of the front matter.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    front = yaml.dump(fields, Dumper=dumper, allow_unicode=True, width=_LONGEST_LINE)
    notes = f"# Notes\n\n{draft.notes}\n" if draft.notes else ""
    return f"---\n{front}---\n\n{notes}".encode()


class RevisionFiles:
    """The files of all revisions of all artifacts.

    :param folder: made when the first file is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def paths(self, owner: int, number: int, filename: str) -> tuple[Path, Path]:
        """Return the absolute paths of a revision's file and of its description."""
        folder = self.folder.absolute() / str(owner)
        name, meta = _names(number, filename)
        return folder / name, folder / meta

    def begin(self, owner: int, number: int) -> None:
        """Leave the note that the files of a revision are about to be made.

        It need not reach the disk before them: file systems keep the order in which names were made, and
        a file left over after a loss of power takes room and does no other harm.

        :raises StorageError: it cannot be written.
        """
        with _writing(), _Folder.made(self.folder, NOTES) as notes:
            notes.write(f"{owner}-{number}", b"")

    def put(self, owner: int, number: int, filename: str, content: bytes, meta: bytes) -> None:
        """Make the files of a revision; they are on the disk when this returns.

        :raises StorageError: they cannot be written; what was made is left to :meth:`remove`.
        """
        with _writing(), _Folder.made(self.folder, str(owner)) as inside:
            for name, data in zip(_names(number, filename), (content, meta), strict=True):
                hidden = f".{name}.tmp"
                inside.write(hidden, data)
                inside.rename(hidden, name)
            inside.sync()

    def end(self, owner: int, number: int) -> None:
        """Take the note away after the rows were committed; the next write does it if this cannot."""
        with suppress(OSError), _Folder.found(self.folder, NOTES) as notes:
            notes.remove(f"{owner}-{number}")

    def unfinished(self) -> list[tuple[int, int]]:
        """List owner and number of the writes whose notes lie there, be it of one another process does now.

        :raises StorageError: they cannot be listed.
        """
        try:
            with _Folder.found(self.folder, NOTES) as notes:
                names = notes.names()
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _cannot("listed", error) from None
        matches = map(_NOTE.fullmatch, names)
        return sorted((int(match[1]), int(match[2])) for match in matches if match is not None)

    def remove(self, owner: int, number: int) -> None:
        """Remove the files of a write that will never be committed, and its note.

        :raises StorageError: something cannot be removed; the note stays.
        """
        with _writing():
            self._remove(owner, number)
            with suppress(FileNotFoundError), _Folder.found(self.folder, NOTES) as notes:
                notes.remove(f"{owner}-{number}")

    def read(self, owner: int, number: int, filename: str, size: int) -> tuple[bytes, bytes]:
        """Return a revision's content and its description.

        :param size: bytes of the content; of a longer file only one byte more is read.
        :raises OSError: one of the files is absent, a link, or cannot be read.
        """
        name, meta = _names(number, filename)
        with _Folder.found(self.folder, str(owner)) as inside:
            return inside.read(name, size + 1), inside.read(meta, _META_BYTES)

    def _remove(self, owner: int, number: int) -> None:
        try:
            with _Folder.found(self.folder, str(owner)) as inside:
                left = inside.names()
                ours = [name for name in left if re.match(rf"\.?revision-{number}[-.]", name)]
                for name in ours:
                    inside.remove(name)
        except OSError as error:
            if error.errno in _NOT_OURS:
                return
            raise
        if len(ours) == len(left):
            (self.folder / str(owner)).rmdir()


def _names(number: int, filename: str) -> tuple[str, str]:
    return f"revision-{number}-{filename}", f"revision-{number}.meta.md"


class _Folder:
    """An open folder; whatever is named in it is not reached through a link.

    Without the calls for that (Windows) names are joined to the path.
    """

    def __init__(self, path: str, handle: int | None) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    @contextmanager
    def found(cls, above: Path, name: str) -> Iterator[_Folder]:
        """Open a folder inside another.

        :raises OSError: one of them is absent, or the inner one is a link.
        """
        path = os.path.join(above, name)
        if not _WALKS:
            yield cls(path, None)
            return
        outer = os.open(above, os.O_RDONLY | os.O_DIRECTORY)
        try:
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
        finally:
            os.close(outer)
        try:
            yield cls(path, handle)
        finally:
            os.close(handle)

    @classmethod
    @contextmanager
    def made(cls, above: Path, name: str) -> Iterator[_Folder]:
        """Open a folder inside another; make both if they are absent.

        :raises OSError: they cannot be made, or the inner one is a link.
        """
        for folder in (above, above / name):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                _sync(folder.parent)
        with cls.found(above, name) as opened:
            yield opened

    def names(self) -> list[str]:
        return os.listdir(self._path if self._handle is None else self._handle)

    def write(self, name: str, data: bytes) -> None:
        with os.fdopen(os.open(self._at(name), _MAKE, 0o666, dir_fd=self._handle), "wb") as file:
            file.write(data)
            if data:
                file.flush()
                os.fsync(file.fileno())

    def read(self, name: str, most: int) -> bytes:
        with os.fdopen(os.open(self._at(name), _READ, dir_fd=self._handle), "rb") as file:
            return file.read(most)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._at(old), self._at(new), src_dir_fd=self._handle, dst_dir_fd=self._handle)

    def remove(self, name: str) -> None:
        os.unlink(self._at(name), dir_fd=self._handle)

    def sync(self) -> None:
        if self._handle is not None:
            os.fsync(self._handle)

    def _at(self, name: str) -> str:
        return os.path.join(self._path, name) if self._handle is None else name


def _sync(folder: Path) -> None:
    """Make sure that names made in a folder are on the disk."""
    if _WALKS:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _cannot("written", error) from None


def _cannot(what: str, error: OSError) -> StorageError:
    return StorageError(
        f"artifact files cannot be {what}: {error.strerror or type(error).__name__}",
        hint="see that the data folder is there, writable and has room, and try again",
    )
