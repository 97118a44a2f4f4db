"""Templates of change requests, by tools that existed before ``create_cr`` used them; they are not listed."""

from __future__ import annotations

from dataclasses import dataclass

from npl_mcp.changes.creating import template
from npl_mcp.changes.format import TYPES
from npl_mcp.core.app import App
from npl_mcp.stores.base import checks
from npl_mcp.tools.spec import ToolSpec


@dataclass(frozen=True, slots=True)
class TemplateList:
    """The types of change requests, each of which has a template.

    :param types: their names.
    """

    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """The template of a type.

    :param type: its name.
    :param template: Markdown below the title.
    """

    type: str
    template: str


def list_cr_templates(app: App) -> TemplateList:  # noqa: ARG001 - the interface of all tools
    """List the types of change requests.

    :returns: the types of change requests, each of which has a template.
    """
    return TemplateList(TYPES)


def get_cr_template(app: App, type: str) -> Template:  # noqa: ARG001 - the interface of all tools
    """Read the template of a type of change requests.

    :returns: the template of a type.
    :raises InvalidRequestError: there is no such type.
    """
    return Template(type, template(checks.choice(type, "type", TYPES)))


TOOLS = (
    ToolSpec(list_cr_templates, listed=False),
    ToolSpec(get_cr_template, listed=False),
)
