"""Prompts, resources and templates of addresses, each with a function of the client's arguments.

FastMCP's own classes examine the function's signature and compile a validator for it. That takes half of
the time of building a server.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fastmcp.exceptions import FastMCPError, PromptError, ResourceError, ValidationError
from fastmcp.prompts import Prompt
from fastmcp.resources import Resource, ResourceContent, ResourceResult, ResourceTemplate
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from npl_index.errors import InvalidRequestError, NotFoundError, NPLError, OutsideRootError
from npl_mcp.app.call_reports import CALLER
from npl_mcp.app.lanes import lane

MARKDOWN = "text/markdown"

Given = Mapping[str, Any]
"""Arguments of a prompt, or the parts of an address, by name."""

Content = tuple[str | bytes, str]
"""The content of a resource, and its media type."""


@contextmanager
def _protocol_errors(kind: type[FastMCPError]) -> Iterator[None]:
    """Turn expected failures into errors of the protocol with the same text; the log gets no traceback.

    :param kind: the error for failures other than wrong arguments; the protocol has a code for each kind.
    """
    try:
        yield
    except (InvalidRequestError, NotFoundError, OutsideRootError) as error:
        raise ValidationError(str(CALLER.get().visible_error(error)), log_level=logging.DEBUG) from error
    except NPLError as error:
        raise kind(str(error), log_level=logging.DEBUG) from error


class CallingPrompt(Prompt):
    """A prompt with a function's result as its text; the function runs in a worker thread."""

    function: SkipJsonSchema[Callable[[Given], str]] = Field(exclude=True)

    async def render(self, arguments: dict[str, Any] | None = None) -> str:
        """Return the prompt's text."""
        with _protocol_errors(PromptError):
            return await lane("light").run(self.function, arguments or {})


async def _result(function: Callable[[Given], Content], given: Given) -> ResourceResult:
    """Return the content of a resource; a worker thread reads it."""
    with _protocol_errors(ResourceError):
        content, kind = await lane("heavy").run(function, given)
    return ResourceResult([ResourceContent(content, mime_type=kind)])


class CallingResource(Resource):
    """A resource with a function's result as its content."""

    function: SkipJsonSchema[Callable[[Given], Content]] = Field(exclude=True)

    async def read(self) -> ResourceResult:
        """Return the content."""
        return await _result(self.function, {})


class CallingTemplate(ResourceTemplate):
    """A template of addresses with a function's result as their content."""

    function: SkipJsonSchema[Callable[[Given], Content]] = Field(exclude=True)
    parameters: dict[str, Any] = Field(default={})

    async def _read(self, uri: str, params: dict[str, Any]) -> ResourceResult:  # noqa: ARG002
        return await _result(self.function, params)
