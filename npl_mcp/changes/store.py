"""Change requests: Markdown files in the folders of projects, read and changed by section and by field.

The files are the only truth; what is remembered of them is checked against their state. A change is made in
memory, under the folder's lock, and replaces the file in one step. If another program wrote in between, the
change is made again on the new text, unless just that part was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, get_args

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.markdown.front_matter import values, with_values
from npl_index.markdown.newlines import with_line_feeds
from npl_mcp.changes.answers import (
    ChangedAttributes,
    ChangedStatus,
    ChangeRequest,
    Created,
    Deleted,
    ProjectInfo,
    Row,
    SectionRow,
    Sections,
    Suggestions,
)
from npl_mcp.changes.comparing import Expected
from npl_mcp.changes.configs import Project
from npl_mcp.changes.creating import Draft
from npl_mcp.changes.editing import Outlines, SectionEdit, bytes_of, parts
from npl_mcp.changes.files import MOST_BYTES, SUFFIX, OpenFolder, shown
from npl_mcp.changes.filters import Filters
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
from npl_mcp.changes.index import Ticket, TicketIndex, TicketIndices, Unreadable, digest_of, read_ticket
from npl_mcp.changes.lookup import Found, lookup
from npl_mcp.changes.numbers import keep_number, next_number
from npl_mcp.changes.projects import Projects
from npl_mcp.changes.sections import Outline
from npl_mcp.changes.suggestions import suggestions
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import AlreadyExistsError, ChangeNotFoundError, ConflictError, TooLargeError
from npl_mcp.stores.base.paging import Page, Slice

Operation = Literal["list", "get", "update", "replace", "append", "prepend"]
Mode = Literal["full", "attributes", "metadata"]
UpdateMode = Literal["replace", "append", "prepend"]
MODES: tuple[str, ...] = get_args(Mode)
UPDATE_MODES: tuple[str, ...] = get_args(UpdateMode)
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

LONGEST_SECTION = 500_000
"""Characters of a text for a section."""

_ATTEMPTS = 100
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
            self._indices.remember(found.digest, found.data)
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
        :param update_mode: one of :data:`UPDATE_MODES`, of the operation ``update``; by default ``replace``.
        :param expect: digest of the section or of the file that was read; another state is not changed.
        """
        checks.choice(operation, "operation", OPERATIONS, risky=_REPLACING)
        how = checks.choice(update_mode or "replace", "updateMode", UPDATE_MODES)
        if operation == "list":
            return self._list(project, key)
        wanted = _given(section, "section")
        if operation == "get":
            return self._read(project, key, wanted)
        text = checks.text(_given(content, "content"), "content", LONGEST_SECTION)
        return self._write(project, key, wanted, how if operation == "update" else operation, text, expect)

    def create(self, project: str | None, kind: str, data: Mapping[str, object]) -> Created:
        """Make a change request.

        :param kind: one of :data:`~npl_mcp.changes.format.TYPES`.
        :param data: see :meth:`Draft.parse`.
        """
        draft = Draft.parse(kind, data)
        place = self.projects.find(project)
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
        expected = Expected(expect, self._indices, self._outlines)
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
        chosen = Filters.parse(filters or {}, "filters")
        place = self.projects.find(project)
        tickets = self.tickets(place)
        chosen.check(tickets, "filters")
        found: list[Ticket | Unreadable] = [ticket for ticket in tickets if chosen.fit(ticket)]
        index = self._indices.of(place.folder.path)
        # What cannot be read passes no filter.
        found += () if filters else index.unreadable
        page = found[wanted.offset : wanted.offset + wanted.limit]
        rows = [_row(place, one, index) for one in page]
        return Page(rows, len(found), wanted.limit, wanted.offset)

    def suggest(self, project: str | None, key: str) -> Suggestions:
        """Return what a change request lacks."""
        with self._found(project, key) as (place, found):
            body = divide(found.data)[1].decode("utf-8")
            return Suggestions(
                found.ticket.key, found.ticket.title, suggestions(found.ticket, body, place.code)
            )

    def list_projects(self) -> tuple[ProjectInfo, ...]:
        """List the projects, that of the working directory first."""
        return tuple(
            ProjectInfo(
                project.code,
                project.name,
                project.path,
                len(self.tickets(project)),
                project.id,
                project.description,
            )
            for project in self.projects.all()
        )

    def project_info(self, code: str) -> ProjectInfo:
        """Describe a project."""
        project = self.projects.find(code)
        return ProjectInfo(
            project.code,
            project.name,
            project.path,
            len(self.tickets(project)),
            project.id,
            project.description,
            project.tickets or ".",
            project.start,
            project.repository,
        )

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
            self._indices.remember(found.digest, found.data)
            outline = self._outline(found.data)
            rows = tuple(
                SectionRow(place.shown, len(outline.content(place.index))) for place in outline.places
            )
            return Sections(found.ticket.key, found.ticket.title, sections=rows, digest=found.digest)

    def _read(self, project: str | None, key: str, wanted: str) -> Sections:
        with self._found(project, key) as (_, found):
            outline = self._outline(found.data)
            place = outline.find(wanted, found.ticket.key)
            digest = digest_of(bytes_of(outline, place, parts(found.data)[1]))
            self._indices.remember(digest, found.data)
            content = outline.content(place.index)
            return Sections(found.ticket.key, section=place.address, content=content, digest=digest)

    def _write(
        self, project: str | None, key: str, wanted: str, how: str, text: str, expect: str | None
    ) -> Sections:
        expected = Expected(expect, self._indices, self._outlines)
        with self._found(project, key, lock=True) as (_, found):
            edit = SectionEdit(
                self._outlines,
                found.ticket.key,
                wanted,
                how,
                text,
                lambda data, section: expected.check(found.ticket.key, data, section),
            )
            new = self._change(found, edit)
            digest = digest_of(edit.written)
            self._indices.remember(digest, new)
            return Sections(
                found.ticket.key, section=edit.address, operation=how, chars=len(text.strip()), digest=digest
            )

    def _set(
        self, project: str | None, key: str, changes: Mapping[str, str], expect: str | None
    ) -> tuple[Ticket, str]:
        """Set fields of the front matter; return what the change request was before, and its new digest."""
        expected = Expected(expect, self._indices, self._outlines)

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
            digest = digest_of(new)
            self._indices.remember(digest, new)
            return before, digest

    def _change(self, found: Found, change: Callable[[bytes], bytes]) -> bytes:
        """Apply a change to a file, again if another program wrote to it in between; return its new bytes.

        :raises ConflictError: the change cannot be made on what is there now.
        """
        data = found.data
        for _ in range(_ATTEMPTS):
            new = change(data)
            if new == data:
                return new
            _check_readable(found.ticket, new)
            with found.index.writing(found.folder):
                other = found.folder.replace(found.name, data, new)
            if other is None:
                return new
            if found.folder.wait_for_rest(found.name):
                read = found.folder.read(found.name)
                other = b"" if read is None else read[0]
            ticket = read_ticket(found.name, other)
            if ticket is None or ticket.key != found.ticket.key:
                break
            data = other
        raise ConflictError(
            f"{found.ticket.key} is being changed by another program", hint="read it again, then try again"
        )

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


def _check_readable(ticket: Ticket, data: bytes) -> None:
    """Refuse a change after which the file could not be read any more."""
    if len(data) > MOST_BYTES:
        raise TooLargeError(
            f"the file of {ticket.key} would have {len(data):,} bytes", hint=f"at most {MOST_BYTES:,}"
        )
    new = read_ticket(ticket.name, data)
    if new is None or new.key != ticket.key:
        raise TooLargeError(f"the front matter of {ticket.key} would be too long to be read")


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
