"""What the change requests of a folder are, read again only where a file changed."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from cachetools import LRUCache

from npl_index.errors import DocumentError, UnreadableDocumentError
from npl_index.items.front_matter import values
from npl_index.library.cache import COARSEST_TIMESTAMP_NS
from npl_index.markdown.sections import parse_sections
from npl_mcp.changes.files import SUFFIX, OpenFolder, Stamp
from npl_mcp.changes.format import DEFAULTS, divide, number_in, title_of

_FOLDERS_KEPT = 64
_LOADED_BYTES = 4 * 1024 * 1024
_PLAIN_TITLE = re.compile(rb"#[ \t]+([^ \t\r\n\0#\\][^\r\n\0#\\]*?)[ \t]*(?:[\r\n]|\Z)")


@dataclass(frozen=True, slots=True)
class Ticket:
    """What is known of a change request without its sections.

    :param key: as its front matter says.
    :param number: that of the key.
    :param title: its first heading of level 1, else what its front matter or its name says.
    :param name: of its file.
    :param fields: its front matter as data.
    """

    key: str
    number: int
    title: str
    name: str
    fields: Mapping[str, object] = field(repr=False)

    def text(self, name: str) -> str:
        """Return a field as text, the default of one that every change request has, else ``""``."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return value if isinstance(value, str) and value else DEFAULTS.get(name, "")

    @property
    def status(self) -> str:
        """How far it is."""
        return self.text("status")

    @property
    def type(self) -> str:
        """What kind of change it is."""
        return self.text("type")

    @property
    def priority(self) -> str:
        """How much it matters."""
        return self.text("priority")


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a file was read as; ``settled`` if its state would tell any later change."""

    stamp: Stamp
    settled: bool
    ticket: Ticket | None


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A file that was read when its state told any later change."""

    stamp: Stamp
    ticket: Ticket
    data: bytes


class TicketIndex:
    """The change requests of one folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._tickets: tuple[Ticket, ...] = ()
        self._names: dict[str, str] = {}
        self._loaded: LRUCache[str, _Loaded] = LRUCache(_LOADED_BYTES, lambda kept: len(kept.data))

    def tickets(self, folder: OpenFolder) -> tuple[Ticket, ...]:
        """Return all change requests, highest number first.

        Files that are none, or cannot be read, are left out.

        :raises StorageError: the folder cannot be listed.
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

    def loaded(self, folder: OpenFolder, name: str) -> tuple[Ticket, bytes] | None:
        """Return a change request and its file's bytes, if they are remembered and the file is unchanged."""
        with self._lock:
            kept = self._loaded.get(name)
        return None if kept is None or folder.stat(name) != kept.stamp else (kept.ticket, kept.data)

    def load(self, folder: OpenFolder, name: str) -> tuple[Ticket, bytes] | None:
        """Read a file; ``None`` if it is gone or no change request.

        :raises DocumentError: it cannot be read.
        """
        read = folder.read(name)
        if read is None:
            return None
        data, stamp = read
        try:
            ticket = read_ticket(name, data)
        except UnreadableDocumentError as error:
            raise UnreadableDocumentError(f"{name!r} is {error.message}", hint=error.hint) from None
        if ticket is None:
            return None
        with self._lock:
            self._loaded.pop(name, None)
            if _is_settled(stamp) and len(data) <= self._loaded.maxsize:
                self._loaded[name] = _Loaded(stamp, ticket, data)
        return ticket, data

    def named(self, key: str) -> str | None:
        """Return the name of the file that held a change request when it was last looked at."""
        return self._names.get(key)

    def _is_known(self, name: str, stamp: Stamp) -> bool:
        entry = self._entries.get(name)
        return entry is not None and entry.settled and entry.stamp == stamp


class TicketIndices:
    """The indices of all folders, those used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, TicketIndex] = {}

    def of(self, path: str) -> TicketIndex:
        """Return the index of the folder with this real path."""
        with self._lock:
            index = self._kept.pop(path, None) or TicketIndex()
            while len(self._kept) >= _FOLDERS_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[path] = index
        return index


def read_ticket(name: str, data: bytes) -> Ticket | None:
    """Read what a file is; ``None`` if it is no change request.

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
    """Return the title a text has: its first heading of level 1."""
    begin = body.lstrip(b" \t\r\n")
    first = begin[: begin.find(b"\n") + 1] or begin
    plain = _PLAIN_TITLE.match(begin)
    if plain is not None:
        return plain[1].decode("utf-8")
    # Nearly always it is the first line; then the rest need not be read.
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
    return _Entry(stamp, _is_settled(stamp), ticket)


def _is_settled(stamp: Stamp) -> bool:
    """Return whether a file's state would tell any later change: two within one tick of the clock look alike."""
    return time.time_ns() - stamp.mtime_ns > COARSEST_TIMESTAMP_NS
