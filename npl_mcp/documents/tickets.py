"""The change requests of a folder; a file is read again only after it changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cachetools import LRUCache

from npl_index.errors import DocumentError, DocumentNotFoundError
from npl_index.library.documents import FileReader
from npl_index.library.fingerprints import Fingerprint, is_settled
from npl_index.markdown.front_matter import values
from npl_index.markdown.sections import parse_sections
from npl_mcp.documents.folders import SharedFolder, printable
from npl_mcp.documents.format import DEFAULTS, SUFFIX, divide, has_long_number, number_in, title_of

_MAX_FOLDERS = 64


@dataclass(frozen=True, slots=True)
class Ticket:
    """A change request without its sections.

    :param key: ``code`` in its front matter.
    :param number: number in its key.
    :param title: first heading of level 1, else the title in its front matter, else its file's name.
    :param name: name of its file.
    :param fields: values of its front matter.
    :param state: fingerprint of its file.
    """

    key: str
    number: int
    title: str
    name: str
    fields: Mapping[str, object] = field(repr=False)
    state: Fingerprint = field(repr=False)

    def text(self, name: str) -> str:
        """Return a field as text; if it is absent, its default or ``""``."""
        value = self.fields.get(name)
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return value if isinstance(value, str) and value else DEFAULTS.get(name, "")

    @property
    def code(self) -> str:
        """The code of its project."""
        return self.key.partition("-")[0]

    @property
    def status(self) -> str:
        """One of :data:`~npl_mcp.documents.format.STATUSES`, or another program's value."""
        return self.text("status")

    @property
    def type(self) -> str:
        """One of :data:`~npl_mcp.documents.format.TYPES`, or another program's value."""
        return self.text("type")

    @property
    def priority(self) -> str:
        """One of :data:`~npl_mcp.documents.format.PRIORITIES`, or another program's value."""
        return self.text("priority")


class FolderListing(NamedTuple):
    """The Markdown files of a folder.

    :param tickets: change requests, highest number first.
    :param others: other files: the reason why a file cannot be read, by name; ``""`` for readable files.
    :param highest: highest number since the program started, by code of the project.
    """

    tickets: tuple[Ticket, ...]
    others: Mapping[str, str]
    highest: Mapping[str, int]


class _FileState(NamedTuple):
    """A file that was read.

    :param state: its fingerprint.
    :param settled: whether the fingerprint is old enough to reveal any later change.
    :param content: the change request, or the reason why the file is not one.
    """

    state: Fingerprint
    settled: bool
    content: Ticket | str


class _CachedFolder:
    """The cached files of a folder; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _FileState] = {}
        self._listing = FolderListing((), {}, {})

    def listing(self, folder: SharedFolder) -> FolderListing:
        """Return the files; only changed files are read."""
        with self._lock:
            prefix = f"cr:{folder.found('').absolute}"
            states = {
                name: Fingerprint.of(f"{prefix}{name}", status)
                for name, status in folder.states(SUFFIX).items()
            }
            known = {
                name: entry
                for name, entry in self._entries.items()
                if entry.settled and entry.state == states.get(name)
            }
            if len(known) < max(len(states), len(self._entries)):
                self._entries = {
                    name: known.get(name) or _read_file(folder, name, state) for name, state in states.items()
                }
                self._listing = self._new_listing()
            return self._listing

    def _new_listing(self) -> FolderListing:
        highest = dict(self._listing.highest)
        tickets, others = [], {}
        for name, entry in sorted(self._entries.items()):
            ticket = entry.content
            if isinstance(ticket, str):
                others[name] = ticket
            else:
                tickets.append(ticket)
                highest[ticket.code] = max(highest.get(ticket.code, 0), ticket.number)
        return FolderListing(tuple(sorted(tickets, key=lambda ticket: -ticket.number)), others, highest)


class Tickets:
    """The change requests of the folders in use; an LRU of :data:`_MAX_FOLDERS`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: LRUCache[str, _CachedFolder] = LRUCache(_MAX_FOLDERS)

    def listing(self, folder: SharedFolder) -> FolderListing:
        """Return the present change requests of a folder.

        :raises StorageError: the folder cannot be listed.
        """
        with self._lock:
            kept = self._folders.setdefault(folder.path, _CachedFolder())
        return kept.listing(folder)


def read_ticket(name: str, data: bytes, state: Fingerprint) -> Ticket | str:
    """Read a change request; return the reason, possibly empty, if the file is not one.

    :param name: name of the file.
    :param data: content of the file.
    :param state: fingerprint of the file.
    :raises UnreadableDocumentError: the content is not UTF-8.
    """
    front, body = divide(data)
    fields = values(front)
    code = fields.get("code")
    number = number_in(code) if isinstance(code, str) else None
    if not isinstance(code, str) or number is None:
        is_long = isinstance(code, str) and has_long_number(code)
        return f"the number of its code {str(code)[:64]!r} is too long" if is_long else ""
    title = title_in(body) or fields.get("title")
    if not isinstance(title, str) or not title:
        title = printable(name[: -len(SUFFIX)]).removeprefix(code).replace("-", " ").strip() or code
    return Ticket(code, number, title, name, fields, state)


def title_in(body: bytes) -> str:
    """Return the title: the first heading of level 1; ``""`` without one."""
    begin = body.lstrip(b" \t\r\n")
    first = begin[: begin.find(b"\n") + 1] or begin
    # If the first line is a heading, which is the usual case, only this line is parsed.
    text = first if first.startswith(b"#") else body
    tree = parse_sections(text, "")
    return next((title_of(section.heading) for section in tree.sections if section.level == 1), "")


def _read_file(folder: SharedFolder, name: str, state: Fingerprint) -> _FileState:
    now = time.time_ns()
    try:
        document = FileReader(folder.max_bytes, ()).read(folder.found(name))
        state = replace(document.fingerprint, path=state.path)
        content = read_ticket(name, document.data, state)
    except (DocumentError, DocumentNotFoundError) as error:
        content = error.message
    return _FileState(state, is_settled(state.mtime_ns, now), content)
