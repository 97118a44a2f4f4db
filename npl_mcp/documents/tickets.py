"""The change requests of a folder, and filters; a file is read again only after it changed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from npl_index.errors import DocumentError, DocumentNotFoundError, UnreadableDocumentError
from npl_index.library.cache import BuildingCache
from npl_index.library.documents import Document, read_document
from npl_index.library.fingerprints import Fingerprint
from npl_index.markdown.front_matter import folded_value, values
from npl_index.markdown.sections import parse_sections
from npl_mcp.documents import format as form
from npl_mcp.documents.answers import RequestRow
from npl_mcp.documents.folders import SharedFolder, printable
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.values import fill

DEFINED = {"status": form.STATUSES, "type": form.TYPES, "priority": form.PRIORITIES}
FACETS = (*DEFINED, "assignee", "phaseEpic")
"""Fields that a filter may name."""

_EXAMPLE = 'e.g. {"priority": ["Low", "Medium"]}'
_MAX_BYTES = 32 * 1024 * 1024
_TICKET_BYTES = 2_000
"""Maximum bytes of all cached change requests, and assumed bytes of one."""


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
        return value if isinstance(value, str) and value else form.DEFAULTS.get(name, "")

    @property
    def code(self) -> str:
        """The code of its project."""
        return self.key.partition("-")[0]

    def values(self, *names: str) -> dict[str, Any]:
        """Return its key, its title and some fields; an empty field is ``None``."""
        return {"key": self.key, "title": self.title} | {name: self.text(name) or None for name in names}

    def row(self, *names: str, **more: Any) -> RequestRow:
        """Return a row with its key, its title, some fields and further values."""
        return fill(RequestRow, self.values(*names), **more)


class FolderListing(NamedTuple):
    """The change requests of a folder.

    :param tickets: change requests, highest number first.
    :param unreadable: the reason why a file cannot be read, by name.
    """

    tickets: tuple[Ticket, ...]
    unreadable: Mapping[str, str]


def listing(folder: SharedFolder, code: str) -> FolderListing:
    """Return the present change requests of a project; a file is read again only after it changed.

    :raises StorageError: the folder cannot be listed.
    """
    tickets, unreadable = list[Ticket](), {}
    for name, status in sorted(folder.states(form.SUFFIX).items()):
        file = folder.file(name)
        try:
            state = Fingerprint.of(file.absolute, status)
            ticket = _FILES.get(state, partial(read_document, file, folder.max_bytes))
        except (DocumentError, DocumentNotFoundError) as error:
            unreadable[name] = error.message
        else:
            tickets += [] if ticket is None or ticket.code != code else [ticket]
    tickets.sort(key=lambda ticket: -ticket.number)
    return FolderListing(tuple(tickets), unreadable)


def _read(document: Document) -> Ticket | None:
    return read_ticket(document.path.rpartition("/")[2], document.data, document.fingerprint)


_FILES: BuildingCache[Ticket | None] = BuildingCache(_read, _MAX_BYTES, lambda _: _TICKET_BYTES)


def read_ticket(name: str, data: bytes, state: Fingerprint) -> Ticket | None:
    """Read a change request; return ``None`` if the file is not one.

    :param name: name of the file.
    :param data: content of the file.
    :param state: fingerprint of the file.
    :raises UnreadableDocumentError: the content is not UTF-8, or the number of its code is too long.
    """
    front, body = form.divide(data)
    fields = values(front)
    code = fields.get("code")
    number = form.number_in(code) if isinstance(code, str) else None
    if not isinstance(code, str) or number is None:
        return None
    if number > form.MAX_NUMBER:
        raise UnreadableDocumentError(f"the number of its code {code!r} is too long")
    title = title_in(body) or fields.get("title")
    if not isinstance(title, str) or not title:
        title = printable(name[: -len(form.SUFFIX)]).removeprefix(code).replace("-", " ").strip() or code
    return Ticket(code, number, title, name, fields, state)


def title_in(body: bytes) -> str:
    """Return the title: the first heading of level 1; ``""`` without one."""
    begin = body.lstrip(b" \t\r\n")
    first = begin[: begin.find(b"\n") + 1] or begin
    # If the first line is a heading, which is the usual case, only this line is parsed.
    text = first if first.startswith(b"#") else body
    titles = (section.heading for section in parse_sections(text, "").sections if section.level == 1)
    return form.title_in_heading(next(titles, ""))


def matching(tickets: Iterable[Ticket], filters: Mapping[str, object]) -> list[Ticket]:
    """Return the change requests that have, in each field, one of its values; case does not count.

    :param filters: one value or a list of values by field.
    :raises InvalidRequestError: a field is unknown; a value is neither a string nor a list of strings; or a
        status, type or priority is neither defined nor in use.
    """
    matches = every = list(tickets)
    for name, value in filters.items():
        values = [value] if isinstance(value, str) else value
        form.choose(name, "filters", FACETS)
        if not (isinstance(values, Sequence) and values and all(isinstance(part, str) for part in values)):
            problem = f"has neither a string nor a list of strings as {name}"
            raise checks.invalid("filters", problem, _EXAMPLE)
        wanted = set(map(_folded, values))
        known = dict.fromkeys((*DEFINED.get(name, ()), *sorted({ticket.text(name) for ticket in every})))
        if name in DEFINED and (unknown := wanted.difference(map(_folded, known))):
            hint = f"use one or several of {checks.name_list(list(known))}; {_EXAMPLE}"
            raise checks.invalid("filters", f"has {min(unknown)!r}, which is not a known {name}", hint)
        matches = [ticket for ticket in matches if _folded(ticket.text(name)) in wanted]
    return matches


def _folded(text: str) -> str:
    return folded_value(unicodedata.normalize("NFC", text))
