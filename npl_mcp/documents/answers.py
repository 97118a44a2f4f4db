"""Results of the tools for change requests. Their fields have the names of the front matter."""

# ruff: noqa: N815 - names of the front matter and of released clients

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from npl_index.library.roots import LocalPath
from npl_mcp.stores.base.paging import Page


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A change request, or the requested part of it.

    :param code: key of the change request.
    :param title: its first heading.
    :param status: its status, e.g. ``Approved``.
    :param type: its type, e.g. ``Bug Fix``.
    :param priority: its priority, e.g. ``High``.
    :param dateCreated: time of its creation.
    :param lastModified: time of the last change to a section, if the file has the field.
    :param phaseEpic: its phase or epic.
    :param assignee: person or agent responsible for it.
    :param relatedTickets: keys of related change requests, separated by commas.
    :param dependsOn: keys of change requests to finish first, separated by commas.
    :param blocks: keys of change requests that depend on it, separated by commas.
    :param impactAreas: affected areas.
    :param implementationDate: date of its implementation.
    :param implementationNotes: notes on its implementation.
    :param other: further fields of its front matter.
    :param digest: digest of its file; send it as ``expect`` to change only this state.
    :param path: path of its file below the project.
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
    path: Annotated[str | None, LocalPath] = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A row of a list of change requests, or one after a call that wrote it.

    :param key: key of the change request.
    :param title: its first heading.
    :param status: its status, e.g. ``Approved``.
    :param type: its type, e.g. ``Bug Fix``; in a list, and if it is new or deleted.
    :param priority: its priority, e.g. ``High``; in a list, and if it is new.
    :param phaseEpic: its phase or epic, in a list.
    :param assignee: its assignee, in a list.
    :param path: path of its file below the project, if it is new or deleted, or if there is a problem.
    :param problem: reason why it cannot be read or changed.
    :param change: old status, arrow, new status, after a change of the status.
    :param updated: changed attributes with their new values.
    :param digest: new digest of the file, after a change.
    :param dateCreated: time of its creation, if it is new.
    :param sections: headings of the template to fill in, if it is new and the caller gave no content.
    """

    key: str
    title: str
    status: str
    type: str | None = None
    priority: str | None = None
    phaseEpic: str | None = None
    assignee: str | None = None
    path: Annotated[str | None, LocalPath] = None
    problem: str | None = None
    change: str | None = None
    updated: Mapping[str, str] | None = None
    digest: str | None = None
    dateCreated: str | None = None
    sections: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section in a list.

    :param section: its path below the title, the value to send as ``section``.
    :param chars: characters of its content, subsections included.
    """

    section: str
    chars: int


@dataclass(frozen=True, slots=True)
class ChangeSections:
    """Sections of a change request: a list, the content of one, or the result of an edit.

    :param key: key of the change request.
    :param title: its first heading; only in a list.
    :param sections: sections in document order; only in a list.
    :param section: full path of the section; after an edit, its new path.
    :param content: text below its heading, subsections included.
    :param operation: the edit: ``replace``, ``append`` or ``prepend``.
    :param chars: characters of the written text.
    :param removed: headings of removed subsections.
    :param digest: digest of the section, in a list of the file; send it as ``expect`` to change only this
        state.
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
class Improvement:
    """A suggested improvement of a change request.

    :param priority: ``High``, ``Medium`` or ``Low``.
    :param text: the suggestion with its reason.
    """

    priority: str
    text: str


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Suggested improvements of a change request.

    :param key: key of the change request.
    :param title: its first heading.
    :param suggestions: improvements, the most urgent first.
    """

    key: str
    title: str
    suggestions: tuple[Improvement, ...]


@dataclass(frozen=True, slots=True)
class ProjectInfo:
    """A project with change requests.

    :param code: code at the beginning of its keys.
    :param name: name for people.
    :param path: folder of the project.
    :param crs: number of its change requests.
    :param id: short name in its configuration.
    :param description: description in its configuration.
    :param ticketsPath: folder of its change requests, below ``path``.
    :param startNumber: number of its first change request.
    :param repository: address of its source.
    """

    code: str
    name: str
    path: Annotated[str, LocalPath]
    crs: int = 0
    id: str | None = None
    description: str | None = None
    ticketsPath: str | None = None
    startNumber: int | None = 1
    repository: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectList(Page[ProjectInfo]):
    """A page of projects with change requests.

    :param items: projects, that of the working directory first.
    :param problems: configurations that cannot be used, with the reasons.
    """

    problems: tuple[str, ...] | None = None
