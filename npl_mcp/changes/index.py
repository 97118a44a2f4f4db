"""The change requests of a folder; a file is read again only after it changed."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b

from cachetools import LRUCache

from npl_index.errors import DocumentError, UnreadableDocumentError
from npl_index.library.cache import MemoryIndexCache
from npl_index.library.documents import Document, Fingerprint
from npl_index.library.fingerprints import is_settled
from npl_index.markdown.digests import digest_of
from npl_index.markdown.front_matter import values
from npl_index.markdown.sections import parse_sections
from npl_mcp.changes.files import SUFFIX
from npl_mcp.changes.format import DEFAULTS, Key, divide, has_long_number, number_in, title_of
from npl_mcp.editing.expecting import Seen
from npl_mcp.editing.folders import FolderState, OpenFolder, Stamp, shown

_FOLDERS_KEPT = 64
_LOADED_BYTES = 16 * 1024 * 1024
_TRUSTED_SECONDS = 1.0
"""How long a listing counts while the folder stays as it is; a code changed inside a file shows then."""

_PLAIN_TITLE = re.compile(rb"#[ \t]+([^ \t\r\n\0#\\][^\r\n\0#\\]*)(?:[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Ticket:
    """A change request without its sections.

    :param key: the ``code`` in its front matter.
    :param number: the number in its key.
    :param title: its first heading of level 1, else the title in its front matter or its file's name.
    :param name: name of its file.
    :param fields: values of its front matter.
    """

    key: str
    number: int
    title: str
    name: str
    fields: Mapping[str, object] = field(repr=False)

    def text(self, name: str) -> str:
        """Return a field as text; if it is absent its default, else ``""``."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return value if isinstance(value, str) and value else DEFAULTS.get(name, "")

    @property
    def plain_key(self) -> str:
        """The key as it is written today, whatever zeros the file has."""
        code = self.key.partition("-")[0]
        return Key(code, self.number).of(code)

    @property
    def status(self) -> str:
        """One of :data:`~npl_mcp.changes.format.STATUSES`, or what somebody else wrote."""
        return self.text("status")

    @property
    def type(self) -> str:
        """One of :data:`~npl_mcp.changes.format.TYPES`, or what somebody else wrote."""
        return self.text("type")

    @property
    def priority(self) -> str:
        """One of :data:`~npl_mcp.changes.format.PRIORITIES`, or what somebody else wrote."""
        return self.text("priority")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a file was read as.

    :param settled: its time stamp is old enough to tell any later change.
    :param ticket: ``None`` if it is no change request or cannot be read.
    :param problem: why it cannot be read.
    """

    stamp: Stamp
    settled: bool
    ticket: Ticket | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that may be a change request and cannot be read.

    :param name: of the file.
    :param problem: why.
    """

    name: str
    problem: str


Loaded = tuple[Ticket, bytes, str]
"""A change request, the bytes of its file, and their digest."""


class TicketIndex:
    """The change requests of one folder.

    :param path: real path of the folder.
    :param loaded: change requests that were loaded last, of all folders.
    """

    def __init__(self, path: str, loaded: MemoryIndexCache[Loaded]) -> None:
        self._lock = threading.Lock()
        self._path = path
        self._loaded = loaded
        self._entries: dict[str, _Entry] = {}
        self._tickets: tuple[Ticket, ...] = ()
        self._names: dict[str, tuple[str, ...]] = {}
        self._highest: dict[str, int] = {}
        self._state: FolderState | None = None
        self._listed = 0.0
        self.unreadable: tuple[Unreadable, ...] = ()  # when the folder was last listed

    def tickets(self, folder: OpenFolder) -> tuple[Ticket, ...]:
        """Return all change requests, highest number first.

        Files that are none, or cannot be read, are left out.
        """
        with self._lock:
            # The state from before: what comes during the listing is then seen the next time.
            self._state, self._listed = folder.state(), time.monotonic()
            states = folder.entries(SUFFIX)
            changed = [name for name, stamp in states.items() if not self._is_known(name, stamp)]
            if not changed and len(states) == len(self._entries):
                return self._tickets
            self._entries = {name: entry for name, entry in self._entries.items() if name in states}
            for name in changed:
                self._entries[name] = _read(folder, name, states[name])
            found = [entry.ticket for entry in self._entries.values() if entry.ticket is not None]
            self._tickets = tuple(sorted(found, key=lambda ticket: (-ticket.number, ticket.name)))
            self._note()
            return self._tickets

    def _note(self) -> None:
        """Remember which files have a key, which cannot be read, and the highest number of each project."""
        names: dict[str, tuple[str, ...]] = {}
        for ticket in self._tickets:
            names[ticket.plain_key] = (*names.get(ticket.plain_key, ()), ticket.name)
            code = ticket.key.partition("-")[0]
            self._highest[code] = max(self._highest.get(code, 0), ticket.number)
        self._names = names
        self.unreadable = tuple(
            Unreadable(name, entry.problem) for name, entry in sorted(self._entries.items()) if entry.problem
        )

    def named(self, folder: OpenFolder, key: str, *, certain: bool = False) -> tuple[str, ...]:
        """Return the names of the files that have a key; more than one is a mistake.

        The folder is listed again if a name in it came or went, or the last time is a while ago.

        :param certain: list it in any case.
        """
        due = certain or time.monotonic() - self._listed > _TRUSTED_SECONDS
        if due or self._state != folder.state():
            self.tickets(folder)
        return self.known(key)

    def known(self, key: str) -> tuple[str, ...]:
        """Return the names of the files that had a key when the folder was last listed."""
        return self._names.get(key, ())

    def highest(self, code: str) -> int:
        """Return the highest number of a project that was ever seen here."""
        return self._highest.get(code, 0)

    @contextmanager
    def writing(self, folder: OpenFolder) -> Iterator[None]:
        """Replace a file: the folder need not be listed again for what this program does itself."""
        current = self._state == folder.state()
        yield
        if current:
            self._state = folder.state()

    def loaded(self, folder: OpenFolder, name: str) -> Loaded | None:
        """Return a change request that is remembered, if its file is certainly unchanged; reads no file."""
        stamp = folder.stat(name)
        return None if stamp is None else self._loaded.peek(fingerprint(self._path, name, stamp))

    def load(self, folder: OpenFolder, name: str) -> Loaded | None:
        """Read a file; ``None`` if it is gone or no change request."""
        read = folder.read(name)
        if read is None:
            return None
        document = as_document(name, name, self._path, fingerprint(self._path, name, read[1]), read[0])
        loaded = self._loaded.get(document)
        if loaded is None:
            try:
                ticket = read_ticket(name, document.data)
            except UnreadableDocumentError as error:
                raise UnreadableDocumentError(f"{shown(name)} is {error.message}", hint=error.hint) from None
            if ticket is None:
                return None
            loaded = ticket, document.data, digest_of(document.data)
            self._loaded.put(document, loaded)
        return loaded

    def _is_known(self, name: str, stamp: Stamp) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.settled and entry.stamp == stamp


class TicketIndices:
    """The indices of all folders, those used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indices: LRUCache[str, TicketIndex] = LRUCache(_FOLDERS_KEPT)
        self._loaded: MemoryIndexCache[Loaded] = MemoryIndexCache(_LOADED_BYTES, lambda kept: len(kept[1]))
        self.seen = Seen()

    def of(self, path: str) -> TicketIndex:
        """Return the index of the folder with this real path."""
        with self._lock:
            index = self._indices.get(path)
            if index is None:
                index = self._indices[path] = TicketIndex(path, self._loaded)
        return index


def fingerprint(folder: str, name: str, stamp: Stamp) -> Fingerprint:
    """Return the state of a change request's file.

    :param folder: real path of its folder.
    """
    # The same file can be read as a document of a search root as well, where it has another name.
    path = f"cr:{os.path.join(folder, name)}"  # noqa: PTH118 - a key, no path
    return Fingerprint(path, stamp.mtime_ns, stamp.size, stamp.ctime_ns)


def as_document(name: str, path: str, root: str, state: Fingerprint, data: bytes) -> Document:
    """Return a change request's file as a document."""
    return Document(name, path, root, state, data, blake2b(data, digest_size=16).hexdigest(), npl=False)


def read_ticket(name: str, data: bytes) -> Ticket | None:
    """Read a change request; ``None`` if the file is none.

    :param name: of the file.
    :raises UnreadableDocumentError: it is not UTF-8.
    """
    front, body = divide(data)
    found = values(front)
    code = found.get("code")
    if not isinstance(code, str):
        return None
    number = number_in(code)
    if number is None:
        return None
    title = title_in(body) or found.get("title")
    if not isinstance(title, str) or not title:
        title = shown(name[: -len(SUFFIX)]).removeprefix(code).replace("-", " ").strip() or code
    return Ticket(code, number, title, name, found)


def title_in(body: bytes) -> str:
    """Return a text's first heading of level 1, which is the title."""
    begin = body.lstrip(b" \t\r\n")
    first = begin[: begin.find(b"\n") + 1] or begin
    plain = _PLAIN_TITLE.match(begin)
    if plain is not None:
        return plain[1].rstrip(b" \t").decode("utf-8")
    # Nearly always the first line is the title; then the rest need not be parsed.
    text = first if first.startswith(b"#") else body
    tree = parse_sections(text, "")
    return next((title_of(section.heading) for section in tree.sections if section.level == 1), "")


def _read(folder: OpenFolder, name: str, listed: Stamp) -> _Entry:
    found, ticket, problem = None, None, None
    try:
        found = folder.read(name)
        if found is not None:
            ticket = read_ticket(name, found[0])
            problem = None if ticket is not None else _problem(found[0])
    except DocumentError as error:
        problem = error.message
    stamp = listed if found is None else found[1]
    return _Entry(stamp, is_settled(stamp.mtime_ns, time.time_ns()), ticket, problem)


def _problem(data: bytes) -> str | None:
    """Return why a file that was meant as a change request is none."""
    code = values(divide(data)[0]).get("code")
    if isinstance(code, str) and has_long_number(code):
        return f"the number of its code {code[:64]!r} is too long"
    return None
