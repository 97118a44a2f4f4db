"""What is offered beside tools: the files of ``directive/`` as resources, its templates as prompts too.

Clients show both to people, and no list of tools gets longer for them. Methods of the protocol's own kind are
accepted from clients of a time before there were tools.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.exceptions import FastMCPError, PromptError, ResourceError, ValidationError
from fastmcp.prompts import Prompt, PromptArgument
from fastmcp.resources import Resource, ResourceContent, ResourceResult, ResourceTemplate
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp import MCPError
from mcp_types import INVALID_PARAMS, RequestParams, TextContent
from pydantic import ConfigDict

from npl_index.errors import InvalidRequestError, NotFoundError, NPLError, OutsideRootError
from npl_mcp.core.app import App
from npl_mcp.projects.directive import CONTEXT, NAME, PROCEDURE, Bundle, Directive, template_of
from npl_mcp.tools.aliases import DIRECTIVE
from npl_mcp.tools.errors import ErrorCode

MARKDOWN = "text/markdown"

MISSING = 1001
"""Error code of a method where a file or a template is not there."""

RESOURCES = {
    "spec_template": (template_of("spec"), "What is wanted, and how anyone can tell that it is there"),
    "impact_template": (template_of("impact"), "What a change touches, and what that may break"),
    "tdr_template": (template_of("tdr"), "How it will be built, and why so"),
    "agent_operating_procedure": (PROCEDURE, "How agents work on a feature, step by step"),
    "agent_context": (CONTEXT, "What the code of this project does not say"),
}
"""File below ``reference/`` and description of each resource, by name."""

PROMPTS = {
    "spec": "Write the spec",
    "impact": "Write the impact analysis",
    "tdr": "Write the technical design review",
}
"""What each prompt asks for, by the kind of its template."""


def offer_directive(server: FastMCP[Any], app: App) -> None:
    """Offer the files of ``directive/`` below the server's search roots.

    :param server: offers them.
    :param app: finds and reads them, when they are asked for.
    """
    for name, (path, description) in RESOURCES.items():
        server.add_resource(
            Resource.from_function(
                _part(app, path), f"{NAME}://{name}", name=name, description=description, mime_type=MARKDOWN
            )
        )
    server.add_template(
        ResourceTemplate.from_function(
            _file(app), f"{NAME}://{{path*}}", name="file", description="A file under directive/"
        )
    )
    feature = PromptArgument(name="feature", description="What is to be built")
    for kind, order in PROMPTS.items():
        prompt = Prompt.from_function(
            _order(app, kind), name=f"{NAME}_{kind}", description=f"{order} of a feature"
        )
        server.add_prompt(prompt.model_copy(update={"arguments": [feature]}))
    server.add_middleware(OnlyWhatIsThere(app))
    accept_methods(server)


class OnlyWhatIsThere(Middleware):
    """Lists resources and prompts of ``directive/`` only where there is such a folder.

    :param app: looks for it.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def on_list_resources(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Sequence[Resource]]
    ) -> Sequence[Resource]:
        """List the resources that can be read."""
        found = await call_next(context)
        there = await anyio.to_thread.run_sync(self._there)
        unread = {f"{NAME}://{name}" for name, (path, _) in RESOURCES.items() if path not in there}
        return [resource for resource in found if str(resource.uri) not in unread]

    async def on_list_prompts(
        self, context: MiddlewareContext[Any], call_next: CallNext[Any, Sequence[Prompt]]
    ) -> Sequence[Prompt]:
        """List the prompts whose templates are there."""
        found = await call_next(context)
        there = await anyio.to_thread.run_sync(self._there)
        empty = {f"{NAME}_{kind}" for kind in PROMPTS if template_of(kind) not in there}
        return [prompt for prompt in found if prompt.name not in empty]

    def _there(self) -> frozenset[str]:
        try:
            return Directive(self._app.library).parts(path for path, _ in RESOURCES.values())
        except NPLError:
            return frozenset()


def accept_methods(server: FastMCP[Any]) -> None:
    """Accept the tools of Directive as methods of their own, which answer without an envelope.

    :param server: calls the tools.
    """
    for tool, olds in DIRECTIVE.items():
        server._mcp_server.add_request_handler(olds[-1], _Given, _method(server, tool))


class _Given(RequestParams):
    """Parameters as they are; the tool checks them."""

    model_config = ConfigDict(extra="allow")


def _method(server: FastMCP[Any], tool: str) -> Callable[[Any, _Given], Awaitable[dict[str, Any]]]:
    async def answer(_: Any, given: _Given) -> dict[str, Any]:
        result = await server.call_tool(tool, given.model_extra or {})
        (block,) = result.content
        body = json.loads(cast("TextContent", block).text)
        if not body["success"]:
            code = MISSING if body["error_code"] == ErrorCode.NOT_FOUND else INVALID_PARAMS
            raise MCPError(code=code, message=body["error"])
        data: dict[str, Any] = body["data"]
        return data

    return answer


def _part(app: App, path: str) -> Callable[[], str]:
    def read() -> str:
        with _told(ResourceError):
            return Directive(app.library).part(path).content

    return read


def _file(app: App) -> Callable[[str], ResourceResult]:
    def read(path: str) -> ResourceResult:
        with _told(ResourceError):
            text = Directive(app.library).read(path)
        kind = MARKDOWN if path.lower().endswith(".md") else "text/plain"
        return ResourceResult([ResourceContent(text, mime_type=kind)])

    return read


def _order(app: App, kind: str) -> Callable[[str], str]:
    def ask(feature: str = "the feature") -> str:
        with _told(PromptError):
            return _prompt(PROMPTS[kind], feature, Directive(app.library).bundle(kind))

    return ask


def _prompt(order: str, feature: str, bundle: Bundle) -> str:
    parts = (bundle.procedure, bundle.context, bundle.template)
    files = "".join(f"\n\n----- {part.path} -----\n\n{part.content.strip()}" for part in parts)
    return f"{order} of {feature}: fill in the last of these files. {bundle.primer}{files}\n"


@contextmanager
def _told(kind: type[FastMCPError]) -> Iterator[None]:
    """Return an expected failure to the caller in its own words, and no traceback to the log.

    :param kind: what to raise where the caller's words are not to blame; the protocol has a code for each.
    """
    try:
        yield
    except (InvalidRequestError, NotFoundError, OutsideRootError) as error:
        raise ValidationError(str(error), log_level=logging.DEBUG) from error
    except NPLError as error:
        raise kind(str(error), log_level=logging.DEBUG) from error
