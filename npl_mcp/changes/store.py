"""Change requests: Markdown files in the folders of projects, read and changed by section and by field.

The files are the only truth; what is remembered of them is checked against their state. A change is made in
memory, under the folder's lock, and replaces the file in one step. If another program wrote in between, the
change is made again on the new text, unless just that part was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, get_args

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.markdown.front_matter import values, with_values
from npl_index.markdown.newlines import with_line_feeds
from npl_mcp.changes.answers import (
    Board,
    ChangedAttributes,
    ChangedStatus,
    ChangeRequest,
    Column,
    Created,
    Deleted,
    ProjectInfo,
    Row,
    SectionRow,
    Sections,
    Suggestions,
)
from npl_mcp.changes.configs import Project
from npl_mcp.changes.creating import Draft
from npl_mcp.changes.editing import Outlines, RequestEdit, parts
from npl_mcp.changes.files import SUFFIX, check_visible
from npl_mcp.changes.filters import Filters, values_of
from npl_mcp.changes.format import (
    DATES,
    DEFAULTS,
    STATUSES,
    Key,
    check_field,
    choose,
    divide,
    key_in,
)
from npl_mcp.changes.index import Ticket, TicketIndex, TicketIndices, Unreadable, read_ticket
from npl_mcp.changes.lookup import Found, lookup
from npl_mcp.changes.numbers import keep_number, next_number
from npl_mcp.changes.projects import Projects
from npl_mcp.changes.sections import Outline
from npl_mcp.changes.suggestions import suggestions
from npl_mcp.editing.expecting import Expected
from npl_mcp.editing.folders import OpenFolder, being_changed, shown
from npl_mcp.editing.sections import EDITS, LONGEST_TEXT, Edit, bytes_of
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import AlreadyExistsError, ChangeNotFoundError, ConflictError, TooLargeError
from npl_mcp.stores.base.paging import Page, Slice

Operation = Literal["list", "get", "update", "replace", "append", "prepend"]
UpdateMode = Edit
Mode = Literal["full", "attributes", "metadata"]
MODES: tuple[str, ...] = get_args(Mode)
OPERATIONS: tuple[str, ...] = get_args(Operation)
_REPLACING = ("update", "replace")
ATTRIBUTES = (
    "priority",
    "phaseEpic",
    "relatedTickets",
    "dependsOn",
    "blocks",
    "assignee",
    "impactAreas",
    "implementationDate",
    "implementationNotes",
)
"""What :meth:`ChangeRequests.update_attributes` may set."""

_UNREADABLE = "Unreadable"


class ChangeRequests:
    """The change requests of all projects a caller may see.

    :param indices: what is remembered of folders; may be shared between callers.
    :param outlines: what is remembered of texts; may be shared between callers.
    """

    def __init__(self, projects: Projects, indices: TicketIndices, outlines: Outlines) -> None:
        self.projects = projects
        self._indices = indices
        self._outlines = outlines

    def get(self, project: str | None, key: str, mode: str) -> ChangeRequest:
        """Return a change request.

        :param mode: one of :data:`MODES`.
        """
        checks.choice(mode, "mode", MODES)
        with self._found(project, key) as (place, found):
            self._indices.seen.remember(found.digest, found.data)
            path = _path(place, found.name)
            if mode == "metadata":
                names = ("phaseEpic", "dateCreated", "lastModified")
                return ChangeRequest.of(found.ticket, names, digest=found.digest, path=path)
            if mode == "attributes":
                return ChangeRequest.of(found.ticket, None, digest=found.digest)
            body = with_line_feeds(divide(found.data)[1].decode("utf-8"))
            return ChangeRequest.of(
                found.ticket, None, digest=found.digest, path=path, content=body.strip("\n")
            )

    def sections(
        self,
        project: str | None,
        key: str,
        operation: str,
        section: str | None = None,
        content: str | None = None,
        update_mode: str | None = None,
        expect: str | None = None,
    ) -> Sections:
        """List, read or change sections.

        :param operation: one of :data:`OPERATIONS`.
        :param update_mode: one of :data:`EDITS`, of the operation ``update``; by default ``replace``.
        :param expect: digest of the section or of the file that was read; another state is not changed.
        """
        checks.choice(operation, "operation", OPERATIONS, risky=_REPLACING)
        how = checks.choice(update_mode or "replace", "updateMode", EDITS)
        if operation == "list":
            return self._list(project, key)
        wanted = _given(section, "section")
        if operation == "get":
            return self._read(project, key, wanted)
        text = checks.text(_given(content, "content"), "content", LONGEST_TEXT)
        return self._write(project, key, wanted, how if operation == "update" else operation, text, expect)

    def create(self, project: str | None, kind: str, data: Mapping[str, object]) -> Created:
        """Make a change request.

        :param kind: one of :data:`~npl_mcp.changes.format.TYPES`.
        :param data: see :meth:`Draft.parse`.
        """
        draft = Draft.parse(kind, data)
        place = self.projects.find(project)
        check_visible(place.folder)
        with place.folder.opened(make=True) as folder:
            if folder is None:
                raise ChangeNotFoundError("the folder of change requests is gone", hint="try again")
            with folder.locked():
                index = self._indices.of(place.folder.path)
                tickets = index.tickets(folder)
                number = next_number(place, folder, tickets, index.highest(place.code))
                key = Key(place.code, number).of(place.code)
                name = f"{key}-{draft.slug}{SUFFIX}"
                # Kept first: a program that is killed now leaves out a number and gives none twice.
                keep_number(place, number)
                if not folder.create(name, draft.text(key).encode()):
                    raise AlreadyExistsError(f"{name!r} is there already", hint="try again")
        return Created(
            key,
            draft.title,
            DEFAULTS["status"],
            kind,
            draft.values["priority"],
            _path(place, name),
            draft.made,
            draft.headings(),
        )

    def update_status(
        self, project: str | None, key: str, status: str, expect: str | None = None
    ) -> ChangedStatus:
        """Set the status; any may follow any.

        :param expect: digest of the file that was read; another state is not changed.
        """
        checks.choice(status, "status", STATUSES)
        before, digest = self._set(project, key, {"status": status}, expect)
        return ChangedStatus(before.key, before.title, status, f"{before.status} → {status}", digest)

    def update_attributes(
        self, project: str | None, key: str, attributes: Mapping[str, object], expect: str | None = None
    ) -> ChangedAttributes:
        """Set attributes; an empty text clears one, ``None`` leaves it.

        :param expect: digest of the file that was read; another state is not changed.
        """
        changes = {
            name: check_field(_attribute(name), value, f"attributes.{name}")
            for name, value in attributes.items()
            if value is not None
        }
        before, digest = self._set(project, key, changes, expect)
        updated = {name: value for name, value in changes.items() if before.text(name) != value}
        return ChangedAttributes(before.key, before.title, before.status, updated, digest)

    def delete(self, project: str | None, key: str, expect: str | None = None) -> Deleted:
        """Remove a change request's file.

        :param expect: digest of the file that was read; another state is not removed.
        """
        expected = self._expected(expect)
        with self._found(project, key, lock=True, certain=True) as (place, found):
            ticket = found.ticket
            read = found.folder.read(found.name)
            expected.check(ticket.key, found.data if read is None else read[0])
            keep_number(place, max(ticket.number, found.index.highest(place.code)))
            found.folder.remove(found.name)
            return Deleted(ticket.key, ticket.title, ticket.type, ticket.status, _path(place, found.name))

    def list(
        self, project: str | None, filters: Mapping[str, object] | None, limit: int | None, offset: int | None
    ) -> Page[Row]:
        """List a project's change requests, highest number first."""
        wanted = Slice.parse(limit, offset)
        place = self.projects.find(project)
        found = self._fitting(place, filters)
        page = found[wanted.offset : wanted.offset + wanted.limit]
        return Page(self._rows(place, page), len(found), wanted.limit, wanted.offset)

    def board(self, project: str | None, filters: Mapping[str, object] | None, limit: int | None) -> Board:
        """Return a project's change requests by status.

        :param limit: most of each status that are shown.
        """
        most = Slice.parse(limit, None).limit
        place = self.projects.find(project)
        columns: dict[str, list[Ticket | Unreadable]] = {status: [] for status in STATUSES}
        found = self._fitting(place, filters)
        for one in found:
            status = _UNREADABLE if isinstance(one, Unreadable) else one.status
            columns.setdefault(status, []).append(one)
        return Board(
            place.code,
            tuple(
                Column(status, len(those), self._rows(place, those[:most]))
                for status, those in columns.items()
            ),
            len(found),
            values_of(self.tickets(place)),
        )

    def _fitting(self, place: Project, filters: Mapping[str, object] | None) -> Sequence[Ticket | Unreadable]:
        """Return what passes filters; what cannot be read passes none."""
        chosen = Filters.parse(filters or {}, "filters")
        tickets = self.tickets(place)
        chosen.check(tickets, "filters")
        found: list[Ticket | Unreadable] = [ticket for ticket in tickets if chosen.fit(ticket)]
        return found if filters else [*found, *self._indices.of(place.folder.path).unreadable]

    def _rows(self, place: Project, found: Sequence[Ticket | Unreadable]) -> tuple[Row, ...]:
        index = self._indices.of(place.folder.path)
        return tuple(_row(place, one, index) for one in found)

    def suggest(self, project: str | None, key: str) -> Suggestions:
        """Return what a change request lacks."""
        with self._found(project, key) as (place, found):
            body = divide(found.data)[1].decode("utf-8")
            return Suggestions(
                found.ticket.key, found.ticket.title, suggestions(found.ticket, body, place.code)
            )

    def list_projects(self) -> tuple[ProjectInfo, ...]:
        """List the projects, that of the working directory first."""
        return tuple(map(self._info, self.projects.all()))

    def project_info(self, code: str) -> ProjectInfo:
        """Describe a project."""
        project = self.projects.find(code)
        return replace(
            self._info(project),
            ticketsPath=project.tickets or ".",
            startNumber=project.start,
            repository=project.repository,
        )

    def _info(self, project: Project) -> ProjectInfo:
        crs = len(self.tickets(project))
        return ProjectInfo(project.code, project.name, project.path, crs, project.id, project.description)

    def tickets(self, project: Project) -> tuple[Ticket, ...]:
        """Return a project's change requests, highest number first."""
        with project.folder.opened() as folder:
            if folder is None:
                return ()
            found = self._indices.of(project.folder.path).tickets(folder)
        return tuple(ticket for ticket in found if ticket.key.startswith(f"{project.code}-"))

    def ticket(self, project: Project, key: Key) -> tuple[Ticket, bytes]:
        """Return one change request and its file's bytes."""
        with project.folder.opened() as folder:
            found = self._open(project, folder, key)
            return found.ticket, found.data

    def _list(self, project: str | None, key: str) -> Sections:
        with self._found(project, key) as (_, found):
            self._indices.seen.remember(found.digest, found.data)
            outline = self._outline(found.data)
            rows = tuple(
                SectionRow(place.shown, len(outline.content(place.index))) for place in outline.places
            )
            return Sections(found.ticket.key, found.ticket.title, sections=rows, digest=found.digest)

    def _read(self, project: str | None, key: str, wanted: str) -> Sections:
        with self._found(project, key) as (_, found):
            outline = self._outline(found.data)
            place = outline.find(wanted, found.ticket.key)
            section = bytes_of(outline.tree, place.index, parts(found.data)[1])
            digest = self._indices.seen.noted(found.data, section)
            content = outline.content(place.index)
            return Sections(found.ticket.key, section=place.address, content=content, digest=digest)

    def _write(
        self, project: str | None, key: str, wanted: str, how: str, text: str, expect: str | None
    ) -> Sections:
        expected = self._expected(expect)
        with self._found(project, key, lock=True) as (_, found):
            edit = RequestEdit(self._outlines, found.ticket.key, wanted, how, text, expected)
            new = self._change(found, edit)
            return Sections(
                found.ticket.key,
                section=edit.address,
                operation=how,
                chars=len(text.strip()),
                removed=edit.removed,
                digest=self._indices.seen.noted(new, edit.written),
            )

    def _set(
        self, project: str | None, key: str, changes: Mapping[str, str], expect: str | None
    ) -> tuple[Ticket, str]:
        """Set fields of the front matter; return what the change request was before, and its new digest."""
        expected = self._expected(expect)

        def change(data: bytes) -> bytes:
            expected.check(before.key, data)
            front, body = divide(data)
            present = values(front)
            for name in changes:
                if present.get(name) != before.fields.get(name):
                    raise ConflictError(
                        f"{name} of {before.key} was changed by another program just now",
                        hint="read it again, then try again",
                    )
            wanted = {
                name: value
                for name, value in changes.items()
                if before.text(name) != value or name not in present
            }
            return with_values(front, wanted, bare=DATES).encode() + body

        with self._found(project, key, lock=True) as (_, found):
            before = found.ticket
            new = self._change(found, change)
            return before, self._indices.seen.noted(new)

    def _change(self, found: Found, change: Callable[[bytes], bytes]) -> bytes:
        """Apply a change to a file, again if another program wrote to it in between; return its new bytes.

        :raises ConflictError: the change cannot be made on what is there now.
        """

        def checked(data: bytes) -> bytes:
            if data != found.data and not _is_same(found.ticket, data):
                raise being_changed(found.ticket.key)
            new = change(data)
            if not _is_same(found.ticket, new):
                raise TooLargeError(f"the front matter of {found.ticket.key} would be too long to be read")
            return new

        return found.folder.change(
            found.name, found.data, checked, found.ticket.key, lambda: found.index.writing(found.folder)
        )

    def _expected(self, expect: str | None) -> Expected:
        return Expected(expect, self._indices.seen, self._outlines.pieces)

    def _outline(self, data: bytes) -> Outline:
        """Read a file's sections."""
        return self._outlines.of(parts(data)[1])

    @contextmanager
    def _found(
        self, project: str | None, key: str, *, lock: bool = False, certain: bool = False
    ) -> Iterator[tuple[Project, Found]]:
        """Open a change request's folder and read the file, under the folder's lock if it will be changed."""
        wanted = Key.parse(key)
        place = self.projects.find(project, wanted)
        with place.folder.opened() as folder:
            if lock and folder is not None:
                check_visible(place.folder)
                with folder.locked():
                    yield place, self._open(place, folder, wanted, certain=certain)
            else:
                yield place, self._open(place, folder, wanted)

    def _open(
        self, project: Project, folder: OpenFolder | None, wanted: Key, *, certain: bool = False
    ) -> Found:
        return lookup(self._indices.of(project.folder.path), project, folder, wanted, certain=certain)


def _row(project: Project, found: Ticket | Unreadable, index: TicketIndex) -> Row:
    """Return the line of a list for a file."""
    path = _path(project, found.name)
    if isinstance(found, Unreadable):
        title = shown(found.name[: -len(SUFFIX)])
        return Row(key_in(title), title, _UNREADABLE, "", "", None, path, found.problem)
    same = index.known(found.plain_key)
    if len(same) < 2:
        return Row.of(found)
    return Row.of(found, path, f"{len(same)} files have this code")


def _is_same(ticket: Ticket, data: bytes) -> bool:
    """Return whether a file's bytes are still those of a change request."""
    found = read_ticket(ticket.name, data)
    return found is not None and found.key == ticket.key


def _path(project: Project, name: str) -> str:
    return f"{project.tickets}/{shown(name)}" if project.tickets else shown(name)


def _given(value: str | None, parameter: str) -> str:
    if value is None:
        raise MissingRequestError(f"{parameter} is required", parameter=parameter)
    return value


def _attribute(name: str) -> str:
    """Check the name of an attribute to set."""
    hints = {
        "title": "the title is the first heading: replace that section with '# New title'",
        "status": "use update_cr_status",
    }
    if name in hints:
        raise InvalidRequestError(f"{name} cannot be set here", parameter="attributes", hint=hints[name])
    return choose(name, "attributes", ATTRIBUTES)
