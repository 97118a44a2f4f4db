"""Results of the tools for change requests. Fields that clients know keep their names."""

# ruff: noqa: N815 - front matter and clients know the fields by these names

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from npl_mcp.documents.tickets import Ticket


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change request, or the part that was asked for.

    :param code: its key.
    :param title: its first heading.
    :param status: its status, e.g. ``Approved``.
    :param type: its type, e.g. ``Bug Fix``.
    :param priority: its priority, e.g. ``High``.
    :param dateCreated: when it was created.
    :param lastModified: when a section was last changed, if the file keeps that.
    :param phaseEpic: phase or epic it belongs to.
    :param assignee: who works on it.
    :param relatedTickets: keys, separated by commas; so the next two.
    :param dependsOn: what must be done before.
    :param blocks: what waits for it.
    :param impactAreas: what it touches.
    :param implementationDate: when it was done.
    :param implementationNotes: notes on that.
    :param other: further fields of its front matter.
    :param digest: of its file; give it as ``expect`` to change only what was read.
    :param path: of its file, below the project.
    :param content: its Markdown without front matter.
    """

    code: str
    title: str
    status: str
    type: str
    priority: str
    dateCreated: str | None = None
    lastModified: str | None = None
    phaseEpic: str | None = None
    assignee: str | None = None
    relatedTickets: str | None = None
    dependsOn: str | None = None
    blocks: str | None = None
    impactAreas: str | None = None
    implementationDate: str | None = None
    implementationNotes: str | None = None
    other: Mapping[str, Any] | None = None
    digest: str | None = None
    path: str | None = None
    content: str | None = None

    @classmethod
    def of(cls, ticket: Ticket, names: Sequence[str] | None = None, **more: str) -> ChangeRequest:
        """Copy the fields that every change request has, and some more.

        :param names: of further fields; ``None`` means all, unknown ones too.
        :param more: values of ``digest``, ``path`` and ``content``.
        """
        known = [field.name for field in fields(cls)[:-4]]
        chosen = {name: ticket.text(name) or None for name in (known[5:] if names is None else names)}
        other = {name: value for name, value in ticket.fields.items() if name not in known}
        return cls(
            ticket.key,
            ticket.title,
            ticket.status,
            ticket.type,
            ticket.priority,
            **chosen,
            other=other if other and names is None else None,
            **more,
        )


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A line of a list of change requests.

    :param key: of the change request.
    :param title: its first heading.
    :param status: its status, e.g. ``Approved``.
    :param type: its type, e.g. ``Bug Fix``.
    :param priority: its priority, e.g. ``High``.
    :param phaseEpic: phase or epic it belongs to.
    :param path: of its file, if there is a problem.
    :param problem: why it cannot be read or changed.
    """

    key: str
    title: str
    status: str
    type: str
    priority: str
    phaseEpic: str | None = None
    path: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """The change requests of one status.

    :param status: which; what somebody else wrote as well.
    :param total: how many there are.
    :param items: the first of them, highest number first.
    """

    status: str
    total: int
    items: tuple[ChangeRow, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A project's change requests by their status.

    :param project: its code.
    :param columns: the defined statuses in their order, then others.
    :param total: change requests that pass the filters.
    :param values: of each field that people filter by, the values there are.
    """

    project: str
    columns: tuple[Column, ...]
    total: int
    values: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section in a list.

    :param section: its path below the title, which addresses it.
    :param chars: characters of its content, subsections included.
    """

    section: str
    chars: int


@dataclass(frozen=True, slots=True)
class ChangeSections:
    """Sections of a change request: a list, the content of one, or what was changed.

    :param key: of the change request.
    :param title: its first heading, with a list.
    :param sections: of a list, in document order.
    :param section: full path of the one section, after a change the new one.
    :param content: what stands below its heading, subsections included.
    :param operation: what was done: ``replace``, ``append`` or ``prepend``.
    :param chars: characters of the text that was written.
    :param removed: headings of subsections that are gone.
    :param digest: of the section, of the file with a list; as ``expect`` it lets only that be changed.
    """

    key: str
    title: str | None = None
    sections: tuple[SectionRow, ...] | None = None
    section: str | None = None
    content: str | None = None
    operation: str | None = None
    chars: int | None = None
    removed: tuple[str, ...] | None = None
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A change request that was written.

    :param key: of the change request.
    :param title: its first heading.
    :param status: its status.
    """

    key: str
    title: str
    status: str


@dataclass(frozen=True, slots=True)
class Created(WrittenRequest):
    """A new change request.

    :param type: its type.
    :param priority: its priority.
    :param path: of its file, below the project.
    :param dateCreated: now.
    :param sections: headings of the template that are to be filled in; absent if content was given.
    """

    type: str
    priority: str
    path: str
    dateCreated: str
    sections: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ChangedStatus(WrittenRequest):
    """A change of status.

    :param change: old status, arrow, new status.
    :param digest: of the file as it is now.
    """

    change: str
    digest: str


@dataclass(frozen=True, slots=True)
class ChangedAttributes(WrittenRequest):
    """A change of attributes.

    :param updated: the attributes that changed, and their new values.
    :param digest: of the file as it is now.
    """

    updated: Mapping[str, str]
    digest: str


@dataclass(frozen=True, slots=True)
class Deleted(WrittenRequest):
    """A deleted change request.

    :param type: its type.
    :param path: of the file that was removed, below the project.
    """

    type: str
    path: str


@dataclass(frozen=True, slots=True)
class Improvement:
    """Something to do about a change request.

    :param priority: ``High``, ``Medium`` or ``Low``.
    :param text: what to do, and why.
    """

    priority: str
    text: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What a change request lacks.

    :param key: of the change request.
    :param title: its first heading.
    :param suggestions: the most urgent first.
    """

    key: str
    title: str
    suggestions: tuple[Improvement, ...]


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """A project with change requests.

    :param code: what its keys begin with.
    :param name: for people.
    :param path: its folder.
    :param crs: number of its change requests.
    :param id: short name in its configuration.
    :param description: of the project.
    :param ticketsPath: folder of its change requests, below ``path``.
    :param startNumber: number of its first change request.
    :param repository: address of its source.
    """

    code: str
    name: str
    path: str
    crs: int = 0
    id: str | None = None
    description: str | None = None
    ticketsPath: str | None = None
    startNumber: int | None = 1
    repository: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectList:
    """Projects with change requests, a page of them.

    :param items: that of the working directory first.
    :param total: projects in the whole list.
    :param limit: most entries of a page.
    :param offset: entries left out before the first.
    :param problems: configurations that cannot be used, and why.
    """

    items: tuple[ProjectInfo, ...]
    total: int
    limit: int
    offset: int
    problems: tuple[str, ...] | None = None
