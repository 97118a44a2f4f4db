"""Change requests: Markdown files in the folders of projects, read and changed by section and by field.

The files are the only truth; what is remembered of them is checked against their state. A change is made in
memory, under the folder's lock, and replaces the file in one step. If another program wrote in between, the
change is made again on the new text, unless just that part was changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
from npl_mcp.changes.creating import Draft, next_number
from npl_mcp.changes.editing import Outlines, SectionEdit, parts
from npl_mcp.changes.files import SUFFIX, OpenFolder
from npl_mcp.changes.filters import Filters
from npl_mcp.changes.format import (
    DATES,
    DEFAULTS,
    STATUSES,
    Key,
    check_field,
    divide,
    number_in,
)
from npl_mcp.changes.index import Ticket, TicketIndices, read_ticket
from npl_mcp.changes.projects import Project, Projects
from npl_mcp.changes.sections import Outline
from npl_mcp.changes.suggestions import suggestions
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.errors import AlreadyExistsError, ChangeNotFoundError, ConflictError
from npl_mcp.stores.base.paging import Page, Slice

Mode = Literal["full", "attributes", "metadata"]
UpdateMode = Literal["replace", "append", "prepend"]
MODES: tuple[str, ...] = get_args(Mode)
UPDATE_MODES: tuple[str, ...] = get_args(UpdateMode)
OPERATIONS = ("list", "get", "update", *UPDATE_MODES)
ATTRIBUTES = (
    "priority",
    "phaseEpic",
    "relatedTickets",
    "dependsOn",
    "blocks",
    "assignee",
    "implementationDate",
    "implementationNotes",
)
"""What :meth:`ChangeRequests.update_attributes` may set."""

LONGEST_SECTION = 500_000
"""Characters of a text for a section."""

_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class _Open:
    """A change request while its folder is open.

    :param data: bytes of its file.
    """

    folder: OpenFolder
    ticket: Ticket
    data: bytes

    @property
    def name(self) -> str:
        return self.ticket.name


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
            path = _path(place, found.name)
            body = with_line_feeds(divide(found.data)[1].decode("utf-8"))
            if mode == "full":
                return ChangeRequest.of(found.ticket, path=path, content=body.strip("\n"))
            if mode == "metadata":
                return ChangeRequest.of(found.ticket, ("phaseEpic", "dateCreated", "lastModified"), path=path)
            return ChangeRequest.of(found.ticket, None)

    def sections(
        self,
        project: str | None,
        key: str,
        operation: str,
        section: str | None = None,
        content: str | None = None,
        update_mode: str | None = None,
    ) -> Sections:
        """List, read or change sections.

        :param operation: one of :data:`OPERATIONS`.
        :param update_mode: one of :data:`UPDATE_MODES`, of the operation ``update``; by default ``replace``.
        """
        checks.choice(operation, "operation", OPERATIONS)
        how = checks.choice(update_mode or "replace", "updateMode", UPDATE_MODES)
        if operation == "list":
            return self._list(project, key)
        wanted = _given(section, "section")
        if operation == "get":
            return self._read(project, key, wanted)
        text = checks.text(_given(content, "content"), "content", LONGEST_SECTION)
        return self._write(project, key, wanted, how if operation == "update" else operation, text)

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
                tickets = self._indices.of(place.folder.path).tickets(folder)
                key = Key(place.code, next_number(place, folder, tickets)).of(place.code)
                name = f"{key}-{draft.slug}{SUFFIX}"
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

    def update_status(self, project: str | None, key: str, status: str) -> ChangedStatus:
        """Set the status; any may follow any."""
        checks.choice(status, "status", STATUSES)
        before = self._set(project, key, {"status": status})
        return ChangedStatus(before.key, before.title, status, f"{before.status} → {status}")

    def update_attributes(
        self, project: str | None, key: str, attributes: Mapping[str, object]
    ) -> ChangedAttributes:
        """Set attributes; an empty text clears one, ``None`` leaves it."""
        changes = {
            name: check_field(_attribute(name), value, f"attributes.{name}")
            for name, value in attributes.items()
            if value is not None
        }
        before = self._set(project, key, changes)
        updated = {name: value for name, value in changes.items() if before.text(name) != value}
        return ChangedAttributes(before.key, before.title, before.status, updated)

    def delete(self, project: str | None, key: str) -> Deleted:
        """Remove a change request's file."""
        with self._found(project, key, lock=True) as (place, found):
            found.folder.remove(found.name)
            ticket = found.ticket
            return Deleted(ticket.key, ticket.title, ticket.type, ticket.status, _path(place, found.name))

    def list(
        self, project: str | None, filters: Mapping[str, object] | None, limit: int | None, offset: int | None
    ) -> Page[Row]:
        """List a project's change requests, highest number first."""
        wanted = Slice.parse(limit, offset)
        chosen = Filters.parse(filters or {}, "filters")
        found = [ticket for ticket in self.tickets(self.projects.find(project)) if chosen.fit(ticket)]
        rows = [Row.of(ticket) for ticket in found[wanted.offset : wanted.offset + wanted.limit]]
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
            found = self._lookup(project, folder, key)
            return found.ticket, found.data

    def last_name(self, project: Project, key: str) -> str | None:
        """Return the name of a change request's file when its folder was last read."""
        return self._indices.of(project.folder.path).named(key)

    def _list(self, project: str | None, key: str) -> Sections:
        with self._found(project, key) as (_, found):
            shown = self._outline(found.data)
            rows = tuple(SectionRow(place.shown, len(shown.content(place.index))) for place in shown.places)
            return Sections(found.ticket.key, found.ticket.title, sections=rows)

    def _read(self, project: str | None, key: str, wanted: str) -> Sections:
        with self._found(project, key) as (_, found):
            shown = self._outline(found.data)
            place = shown.find(wanted, found.ticket.key)
            return Sections(found.ticket.key, section=place.address, content=shown.content(place.index))

    def _write(self, project: str | None, key: str, wanted: str, how: str, text: str) -> Sections:
        with self._found(project, key, lock=True) as (_, found):
            edit = SectionEdit(self._outlines, found.ticket.key, wanted, how, text)
            self._change(found, edit)
            return Sections(found.ticket.key, section=edit.address, operation=how, chars=len(text.strip()))

    def _set(self, project: str | None, key: str, changes: Mapping[str, str]) -> Ticket:
        """Set fields of the front matter; return what the change request was before."""

        def change(data: bytes) -> bytes:
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
            self._change(found, change)
            return before

    def _change(self, found: _Open, change: Callable[[bytes], bytes]) -> None:
        """Apply a change to a file, again if another program wrote to it in between.

        :raises ConflictError: the change cannot be made on what is there now.
        """
        data = found.data
        for _ in range(_ATTEMPTS):
            new = change(data)
            other = None if new == data else found.folder.replace(found.name, data, new)
            if other is None:
                return  # written, or nothing to write
            if read_ticket(found.name, other) is None:
                break
            data = other
        raise ConflictError(
            f"{found.ticket.key} is being changed by another program", hint="read it again, then try again"
        )

    def _outline(self, data: bytes) -> Outline:
        """Read a file's sections."""
        return self._outlines.of(parts(data)[1])

    @contextmanager
    def _found(self, project: str | None, key: str, *, lock: bool = False) -> Iterator[tuple[Project, _Open]]:
        """Open a change request's folder and read the file, under the folder's lock if it will be changed."""
        wanted = Key.parse(key)
        place = self.projects.find(project, wanted)
        with place.folder.opened() as folder:
            if lock and folder is not None:
                with folder.locked():
                    yield place, self._lookup(place, folder, wanted)
            else:
                yield place, self._lookup(place, folder, wanted)

    def _lookup(self, project: Project, folder: OpenFolder | None, wanted: Key) -> _Open:
        """Find a change request by its code: first in the file it was in last time, then among all files.

        :raises ChangeNotFoundError: there is none.
        :raises ConflictError: several files have the code.
        """
        key = wanted.of(wanted.code or project.code)
        if folder is not None and (wanted.code or project.code) == project.code:
            index = self._indices.of(project.folder.path)
            name = index.named(key)
            found = name and (index.loaded(folder, name) or index.load(folder, name))
            if found and found[0].key == key:
                return _Open(folder, *found)
            same = [ticket for ticket in index.tickets(folder) if _same(ticket.key, key)]
            if len(same) > 1:
                names = ", ".join(ticket.name for ticket in same)
                raise ConflictError(f"several files are {key}: {names}", hint="give all but one another code")
            found = index.load(folder, same[0].name) if same else None
            if found:
                return _Open(folder, *found)
        raise ChangeNotFoundError(
            f"CR '{key}' not found in project '{project.code}'", hint="list_crs gives the keys there are"
        )


def _same(one: str, other: str) -> bool:
    """Return whether two keys name one change request; leading zeros do not count."""
    return one.partition("-")[0] == other.partition("-")[0] and number_in(one) == number_in(other)


def _path(project: Project, name: str) -> str:
    return f"{project.tickets}/{name}" if project.tickets else name


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
    return checks.choice(name, "attributes", ATTRIBUTES)
