"""Change requests (CRs): Markdown files of a project, read and changed by section and by attribute.

:raises InvalidRequestError: an argument is invalid.
"""

from __future__ import annotations

from typing import Annotated, Any

from npl_mcp.app.context import Context
from npl_mcp.documents import answers
from npl_mcp.documents.change_requests import Mode, Operation, UpdateMode
from npl_mcp.documents.format import KEY_LISTS, PRIORITIES, Status, Type
from npl_mcp.stores.base import checks
from npl_mcp.stores.base.paging import MAX_PAGE, Page, Slice
from npl_mcp.stores.base.values import fill
from npl_mcp.tools.contract.spec import ToolSpec

_TEXT = {"type": "string"}
_SETTABLE = {
    **dict.fromkeys(("phaseEpic", "assignee", *KEY_LISTS), _TEXT),
    "priority": {"enum": list(PRIORITIES)},
    "impactAreas": {"type": "array", "items": _TEXT},
}
_NEW = {"properties": {"title": _TEXT, "content": _TEXT, **_SETTABLE}, "required": ["title"]}
_DONE = {"implementationDate": {**_TEXT, "format": "date"}, "implementationNotes": _TEXT}

Project = Annotated[str | None, "Code"]
Expect = Annotated[str | None, "Digest you read"]


def get_cr(
    app: Context, key: Annotated[str, "MDT-004, or 4"], project: Project = None, mode: Mode = "full"
) -> answers.ChangeRequest:
    """Read a change request (CR), its attributes or key metadata.

    :param project: code of the project; by default the key's project, or the current one.
    :param mode: text and attributes (``full``), the attributes alone, or key metadata.
    :returns: a change request, or the requested part of it.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises ConflictError: several files have its code, or another program is writing it.
    """
    return app.change_requests.get(project, key, mode)


def manage_cr_sections(
    app: Context,
    key: str,
    operation: Operation,
    project: Project = None,
    section: Annotated[str | None, "Heading or path: ## A / ### B"] = None,
    updateMode: UpdateMode = "replace",  # noqa: N803 - the contract's name
    content: str | None = None,
    expect: Expect = None,
) -> answers.ChangeSections:
    """List a CR's sections, get or update one; content may begin with a new heading. To add one, append to
    the one above.

    :param operation: ``list``, ``get``, ``update``, or a kind of update: ``replace``, ``append``,
        ``prepend``.
    :param updateMode: kind of ``update``.
    :param content: new text of the section, for all operations except ``list`` and ``get``.
    :param expect: digest from an answer; the call fails if the section has changed since.
    :returns: sections of a change request: a list, the content of one, or the result of an edit.
    :raises MissingRequestError: the operation needs a section or a content.
    :raises InvalidRequestError: the content is invalid at this place.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises SectionNotFoundError: no section or several sections match; the message has valid paths.
    :raises ConflictError: the section has changed, several files have the code, or another program is writing
        the file.
    :raises TooLargeError: the file would be too large.
    :raises StorageError: the file cannot be written.
    """
    requests = app.change_requests
    if operation == "list":
        return requests.sections(project, key)
    path = _required(section, "section", operation)
    if operation == "get":
        return requests.section(project, key, path)
    how = updateMode if operation == "update" else operation
    return requests.edit_section(project, key, path, how, _required(content, "content", operation), expect)


def _required(value: str | None, parameter: str, operation: str) -> str:
    if value is None:
        hint = "the operation list names all sections" if parameter == "section" else None
        raise checks.missing(parameter, f"is required for the operation {operation}", hint)
    return value


def create_cr(
    app: Context, type: Type, data: Annotated[dict[str, Any], _NEW], project: Project = None
) -> answers.RequestRow:
    """Create a CR; without content from its type's template: Architecture (system design), Feature
    Enhancement (new function), Bug Fix (defect), Technical Debt (code quality), Documentation, Research (open
    questions).

    :param type: type of the change request; it chooses the template.
    :param data: ``title``, optionally ``content``, ``priority`` and other attributes.
    :returns: a new change request.
    :raises MissingRequestError: there is no title.
    :raises ProjectNotFoundError: there is no such project.
    :raises ClosedError: the project has no number left.
    :raises StorageError: the file cannot be written.
    """
    return app.change_requests.create(project, type, data)


def update_cr_status(
    app: Context, key: str, status: Status, project: Project = None, expect: Expect = None
) -> answers.RequestRow:
    """Set a CR's status.

    :param status: new status.
    :param expect: digest from an answer; the call fails if the file has changed since.
    :returns: a change of status.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises ConflictError: the file has changed, several files have its code, or another program is writing
        it.
    :raises StorageError: the file cannot be written.
    """
    return app.change_requests.update_status(project, key, status, expect)


def update_cr_attrs(
    app: Context,
    key: str,
    attributes: Annotated[
        dict[str, Any], "Keys comma-separated; empty text clears", {"properties": {**_SETTABLE, **_DONE}}
    ],
    project: Project = None,
    expect: Expect = None,
) -> answers.RequestRow:
    """Set attributes of a CR.

    :param expect: digest from an answer; the call fails if the file has changed since.
    :returns: a change of attributes.
    :raises InvalidRequestError: an attribute is unknown or its value is invalid.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises ConflictError: the file has changed, several files have its code, or another program is writing
        it.
    :raises TooLargeError: the front matter would be too long.
    :raises StorageError: the file cannot be written.
    """
    return app.change_requests.update_attributes(project, key, attributes, expect)


def delete_cr(app: Context, key: str, project: Project = None, expect: Expect = None) -> answers.RequestRow:
    """Delete a CR's file.

    :param expect: digest from an answer; the call fails if the file has changed since.
    :returns: a deleted change request.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    :raises ConflictError: the file has changed, several files have its code, or another program is writing
        it.
    :raises StorageError: the file cannot be removed.
    """
    return app.change_requests.delete(project, key, expect)


def list_crs(
    app: Context,
    project: Project = None,
    filters: Annotated[
        dict[str, Any] | None, "status, type, priority, assignee, phaseEpic; a list allows several"
    ] = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Page[answers.RequestRow]:
    """List CRs, newest first.

    :param filters: values of ``status``, ``type``, ``priority``, ``assignee`` or ``phaseEpic``; a list
        accepts each of its values.
    :returns: a page; each item is a row of a list of change requests.
    :raises ProjectNotFoundError: there is no such project.
    """
    return app.change_requests.list(project, filters, Slice.parse(limit, offset))


def suggest_cr_improvements(app: Context, key: str, project: Project = None) -> answers.Suggestions:
    """Suggest what a CR lacks.

    :returns: suggested improvements of a change request.
    :raises ProjectNotFoundError: there is no such project.
    :raises ChangeNotFoundError: there is no such change request.
    """
    return app.change_requests.suggest(project, key)


def list_projects(app: Context, limit: int | None = None, offset: int | None = None) -> answers.ProjectList:
    """List projects with CRs.

    :returns: a page of projects with change requests.
    :raises StorageError: a folder cannot be listed.
    """
    part = Slice.parse(limit, offset, MAX_PAGE)
    page = part.cut(app.change_requests.list_projects())
    return fill(answers.ProjectList, page, problems=app.change_requests.projects.problems() or None)


def get_project_info(app: Context, key: Annotated[str, "Project code"]) -> answers.ProjectInfo:
    """Describe a project with CRs.

    :returns: a project with change requests.
    :raises InvalidRequestError: the text is not a code.
    :raises ProjectNotFoundError: there is no such project.
    """
    return app.change_requests.project_info(key)


TOOLS = (
    ToolSpec(list_projects, title="List Projects"),
    ToolSpec(get_project_info, title="Get Project"),
    ToolSpec(list_crs, title="List CRs"),
    ToolSpec(create_cr, title="Create CR", read_only=False, idempotent=False, files=True),
    ToolSpec(get_cr, title="Read CR"),
    ToolSpec(update_cr_status, title="Set CR Status", read_only=False, destructive=True, files=True),
    ToolSpec(update_cr_attrs, title="Set CR Attributes", read_only=False, destructive=True, files=True),
    ToolSpec(
        manage_cr_sections,
        title="Manage CR Sections",
        read_only=False,
        idempotent=False,
        destructive=True,
        reads=lambda given: given.get("operation") in ("list", "get"),
        files=True,
    ),
    ToolSpec(suggest_cr_improvements, title="Check CR"),
    ToolSpec(delete_cr, title="Delete CR", read_only=False, destructive=True, files=True),
)
