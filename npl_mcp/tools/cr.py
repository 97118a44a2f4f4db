"""Change requests (CRs): Markdown files of a project, read and changed by section and by attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from npl_mcp.changes.answers import (
    ChangedAttributes,
    ChangedStatus,
    ChangeRequest,
    Created,
    Deleted,
    ProjectInfo,
    ProjectList,
    Row,
    Sections,
    Suggestions,
)
from npl_mcp.changes.format import KEY_LISTS, PRIORITIES, Status, Type
from npl_mcp.changes.store import Mode, UpdateMode
from npl_mcp.core.app import App
from npl_mcp.stores.base.paging import Page
from npl_mcp.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class Properties:
    """The schema of an object whose properties are looked at by the store.

    :param texts: names of properties that are texts.
    :param required: names of those that must be there.
    :param more: schemas of other properties.
    """

    texts: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    more: Mapping[str, Mapping[str, Any]] | None = None

    def __get_pydantic_json_schema__(self, inner: Any, handler: Any) -> dict[str, Any]:
        """Describe the object."""
        schema: dict[str, Any] = handler(inner)
        schema.pop("additionalProperties", None)
        properties = {name: {"type": "string"} for name in self.texts} | dict(self.more or {})
        more = {"properties": properties, "required": list(self.required)}
        return schema | {name: value for name, value in more.items() if value}


_PRIORITY = {"priority": {"enum": list(PRIORITIES)}}


def get_cr(
    app: App, key: Annotated[str, "e.g. MDT-004"], project: str | None = None, mode: Mode = "full"
) -> ChangeRequest:
    """Read a change request (CR): full text, attributes or key metadata.

    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    """
    return app.changes.get(project, key, mode)


def manage_cr_sections(
    app: App,
    key: str,
    operation: Annotated[str, "list, get or update"],
    project: str | None = None,
    section: Annotated[str | None, "Heading or path: ## A / ### B"] = None,
    updateMode: UpdateMode = "replace",  # noqa: N803 - the contract's name
    content: Annotated[str | None, "Markdown"] = None,
) -> Sections:
    """List a CR's sections, get one, or update one; content may begin with a new heading.

    :raises MissingRequestError: the operation needs a section or a content.
    :raises InvalidRequestError: an argument cannot be used, or the content cannot stand there.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises SectionNotFoundError: no section is called so, or several are; the message has paths that work.
    :raises ConflictError: another program changed just this section meanwhile.
    :raises StorageError: the file cannot be written.
    """
    return app.changes.sections(project, key, operation, section, content, updateMode)


def create_cr(
    app: App,
    type: Type,
    data: Annotated[
        dict[str, Any],
        "Without content: the type's template of numbered sections",
        Properties(
            ("title", "content", "phaseEpic", "assignee", *KEY_LISTS),
            ("title",),
            {**_PRIORITY, "impactAreas": {"type": "array", "items": {"type": "string"}}},
        ),
    ],
    project: str | None = None,
) -> Created:
    """Create a CR: system design, new function, defect, code quality, docs or open questions.

    :raises MissingRequestError: there is no title.
    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    :raises StorageError: the file cannot be written.
    """
    return app.changes.create(project, type, data)


def update_cr_status(app: App, key: str, status: Status, project: str | None = None) -> ChangedStatus:
    """Set a CR's status.

    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises StorageError: the file cannot be written.
    """
    return app.changes.update_status(project, key, status)


def update_cr_attrs(
    app: App,
    key: str,
    attributes: Annotated[
        dict[str, Any],
        "Keys comma-separated; empty text clears",
        Properties(
            ("phaseEpic", "assignee", *KEY_LISTS, "implementationDate", "implementationNotes"), (), _PRIORITY
        ),
    ],
    project: str | None = None,
) -> ChangedAttributes:
    """Set attributes of a CR.

    :raises InvalidRequestError: an attribute is unknown or its value does not fit.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises StorageError: the file cannot be written.
    """
    return app.changes.update_attributes(project, key, attributes)


def delete_cr(app: App, key: str, project: str | None = None) -> Deleted:
    """Delete a CR's file.

    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises StorageError: the file cannot be removed.
    """
    return app.changes.delete(project, key)


def list_crs(
    app: App,
    project: str | None = None,
    filters: Annotated[
        Annotated[dict[str, Any], Properties()] | None,
        "status, type, priority, assignee, phaseEpic: a value or several",
    ] = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Page[Row]:
    """List CRs, newest first.

    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    """
    return app.changes.list(project, filters, limit, offset)


def suggest_cr_improvements(app: App, key: str, project: str | None = None) -> Suggestions:
    """Suggest what a CR lacks.

    :raises InvalidRequestError: an argument cannot be used.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    """
    return app.changes.suggest(project, key)


def list_projects(app: App) -> ProjectList:
    """List projects with CRs.

    :raises StorageError: a folder cannot be listed.
    """
    return ProjectList(app.changes.list_projects())


def get_project_info(app: App, key: Annotated[str, "Project code"]) -> ProjectInfo:
    """Describe a project with CRs.

    :raises InvalidRequestError: the code cannot be one.
    :raises ProjectNotFoundError: there is no such project.
    """
    return app.changes.project_info(key)


TOOLS = (
    ToolSpec(list_projects),
    ToolSpec(get_project_info),
    ToolSpec(list_crs),
    ToolSpec(create_cr, read_only=False, idempotent=False),
    ToolSpec(get_cr),
    ToolSpec(update_cr_status, read_only=False),
    ToolSpec(update_cr_attrs, read_only=False),
    ToolSpec(manage_cr_sections, read_only=False, idempotent=False, destructive=True),
    ToolSpec(suggest_cr_improvements),
    ToolSpec(delete_cr, read_only=False, destructive=True),
)
