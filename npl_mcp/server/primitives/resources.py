"""Resources and prompts of Directive: the files of ``directive/``, and its templates also as prompts.

Clients show both to people, outside the list of tools. Clients older than tools call those of Directive as
methods of the protocol; the server has these methods too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.prompts import PromptArgument
from fastmcp.server.extensions import MethodBinding, ServerExtension
from fastmcp.server.transforms import Transform
from mcp import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, RequestParams
from pydantic import AnyUrl, ConfigDict

from npl_index.errors import NPLError
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import CALLER, Caller, seen, sight
from npl_mcp.app.lanes import lane
from npl_mcp.projects.directive import CONTEXT, NAME, PROCEDURE, Directive, template_of
from npl_mcp.server.primitives.components import (
    MARKDOWN,
    CallingPrompt,
    CallingResource,
    CallingTemplate,
    Content,
    Given,
)
from npl_mcp.tools.contract.aliases import DIRECTIVE
from npl_mcp.tools.contract.error_codes import ErrorCode
from npl_mcp.web.calling import call, text_of

MISSING = 1001
"""Error code of a method for a missing file or template."""

RESOURCES = {
    "spec_template": (template_of("spec"), "The requirements, and how to verify that they are met"),
    "impact_template": (template_of("impact"), "What a change touches, and what that may break"),
    "tdr_template": (template_of("tdr"), "The design of the change, with its reasons"),
    "agent_operating_procedure": (PROCEDURE, "How agents work on a feature, step by step"),
    "agent_context": (CONTEXT, "What the code of this project does not show"),
}
"""File below ``reference/`` and description of each resource, by name."""

PROMPTS = {
    "spec": "Write the spec",
    "impact": "Write the impact analysis",
    "tdr": "Write the technical design review",
}
"""The order of each prompt, by the kind of its template."""

_FILES = {
    **{name: path for name, (path, _) in RESOURCES.items()},
    **{f"{NAME}_{kind}": template_of(kind) for kind in PROMPTS},
}
"""The file of each resource and prompt, by its name."""


def add_directive(server: FastMCP[Any], app: App) -> None:
    """Add the files of ``directive/`` below the search roots to a server, as resources, prompts and methods.

    :param app: the server's view, which finds and reads them on request.
    """
    for name, (path, description) in RESOURCES.items():
        server.add_resource(
            CallingResource(
                function=partial(_part, app, path),
                uri=AnyUrl(f"{NAME}://{name}"),
                name=name,
                description=description,
                mime_type=MARKDOWN,
                tags={NAME},
            )
        )
    server.add_template(
        CallingTemplate(
            function=partial(_file, app),
            uri_template=f"{NAME}://{{path*}}",
            name="file",
            description="A file under directive/",
            tags={NAME},
        )
    )
    feature = PromptArgument(name="feature", description="Feature to build")
    for kind, order in PROMPTS.items():
        prompt = CallingPrompt(
            function=partial(_instruction, app, kind),
            name=f"{NAME}_{kind}",
            description=f"{order} of a feature",
            arguments=[feature],
            tags={NAME},
        )
        server.add_prompt(prompt)
    server.add_transform(HideMissing(app))
    server.add_extension(DirectiveMethods())


class HideMissing(Transform):
    """Lists only resources and prompts with existing files.

    :param app: the server's view, which looks for the files.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def _listed(self, components: Sequence[Any]) -> Sequence[Any]:
        """Return the components with existing files, and those of other domains."""
        present = await lane("light").run(self._present)
        return [one for one in components if NAME not in one.tags or _FILES[one.name] in present]

    # FastMCP passes the argument by position.
    list_resources = list_prompts = _listed  # type: ignore[assignment]

    def _present(self) -> frozenset[str]:
        try:
            return Directive(seen(self._app).library).parts(path for path, _ in RESOURCES.values())
        except NPLError:
            return frozenset()


class DirectiveMethods(ServerExtension):
    """The tools of Directive as methods of the protocol, with answers outside the envelope."""

    identifier = "npl/directive"

    def methods(self) -> Sequence[MethodBinding]:
        """Return a method for each tool."""
        return [
            MethodBinding(olds[-1], _Arguments, partial(self._answer, tool, olds[-1]))
            for tool, olds in DIRECTIVE.items()
        ]

    async def _answer(self, tool: str, name: str, _: Any, given: _Arguments) -> dict[str, Any]:
        if not sight().has_domain(NAME):
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=name)
        result = await call(self.server, tool, given.model_extra or {}, CALLER.get() or Caller())
        assert result is not None
        body = json.loads(text_of(result))
        if not body["success"]:
            code = MISSING if body["error_code"] == ErrorCode.NOT_FOUND else INVALID_PARAMS
            raise MCPError(code=code, message=body["error"])
        data: dict[str, Any] = body["data"]
        # The clients of these methods know a list by this name.
        return {**data, "files": data["items"]} if "items" in data else data


class _Arguments(RequestParams):
    """Unchecked arguments; the tool checks them."""

    model_config = ConfigDict(extra="allow")


def _part(app: App, path: str, _: Given) -> Content:
    return Directive(seen(app).library).part(path).content, MARKDOWN


def _file(app: App, given: Given) -> Content:
    path = given["path"]
    kind = MARKDOWN if path.lower().endswith(".md") else "text/plain"
    return Directive(seen(app).library).read(path), kind


def _instruction(app: App, kind: str, given: Given) -> str:
    bundle = Directive(seen(app).library).bundle(kind)
    parts = (bundle.agentOperatingProcedure, bundle.agentContext, bundle.template)
    files = "".join(f"\n\n----- {part.path} -----\n\n{part.content.strip()}" for part in parts)
    order, feature = PROMPTS[kind], given.get("feature", "the feature")
    return f"{order} of {feature}: fill in the last of these files. {bundle.primer}{files}\n"
