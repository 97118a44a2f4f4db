"""The change requests of a folder; a file is read again only after it changed."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from cachetools import LRUCache

from npl_index.errors import DocumentError, UnreadableDocumentError
from npl_index.library.cache import MemoryIndexCache, is_settled
from npl_index.library.documents import Document, Fingerprint
from npl_index.markdown.front_matter import values
from npl_index.markdown.sections import parse_sections
from npl_mcp.changes.files import SUFFIX, OpenFolder, Stamp
from npl_mcp.changes.format import DEFAULTS, divide, number_in, title_of

_FOLDERS_KEPT = 64
_LOADED_BYTES = 16 * 1024 * 1024
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
    """

    stamp: Stamp
    settled: bool
    ticket: Ticket | None


Loaded = tuple[Ticket, bytes]
"""A change request, and the bytes of its file."""


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
        self._names: dict[str, str] = {}

    def tickets(self, folder: OpenFolder) -> tuple[Ticket, ...]:
        """Return all change requests, highest number first.

        Files that are none, or cannot be read, are left out.
        """
        with self._lock:
            states = folder.entries()
            changed = [name for name, stamp in states.items() if not self._is_known(name, stamp)]
            if not changed and len(states) == len(self._entries):
                return self._tickets
            self._entries = {name: entry for name, entry in self._entries.items() if name in states}
            for name in changed:
                self._entries[name] = _read(folder, name, states[name])
            found = [entry.ticket for entry in self._entries.values() if entry.ticket is not None]
            self._tickets = tuple(sorted(found, key=lambda ticket: (-ticket.number, ticket.name)))
            self._names = {ticket.key: ticket.name for ticket in self._tickets}
            return self._tickets

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
                raise UnreadableDocumentError(f"{name!r} is {error.message}", hint=error.hint) from None
            if ticket is None:
                return None
            loaded = ticket, document.data
            self._loaded.put(document, loaded)
        return loaded

    def named(self, key: str) -> str | None:
        """Return the name of a change request's file when the folder was last read."""
        return self._names.get(key)

    def _is_known(self, name: str, stamp: Stamp) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.settled and entry.stamp == stamp


class TicketIndices:
    """The indices of all folders, those used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indices: LRUCache[str, TicketIndex] = LRUCache(_FOLDERS_KEPT)
        self._loaded: MemoryIndexCache[Loaded] = MemoryIndexCache(_LOADED_BYTES, lambda kept: len(kept[1]))

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
        title = name[: -len(SUFFIX)].removeprefix(code).replace("-", " ").strip() or code
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
    try:
        found = folder.read(name)
        ticket = None if found is None else read_ticket(name, found[0])
    except DocumentError:
        found, ticket = None, None
    stamp = listed if found is None else found[1]
    return _Entry(stamp, is_settled(stamp.mtime_ns, time.time_ns()), ticket)
