"""Prompts and resource templates that call a function with the client's arguments.

FastMCP's own classes examine the function's signature and compile a validator for it. That takes half of
the time of building a server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastmcp.prompts import Prompt
from fastmcp.resources import ResourceResult, ResourceTemplate
from pydantic import PrivateAttr

Given = Mapping[str, Any]
"""Arguments of a prompt, or the parts of an address, by name."""


class CallingPrompt(Prompt):
    """A prompt with a function's result as its text."""

    _function: Callable[[Given], Awaitable[str]] = PrivateAttr()

    @classmethod
    def of(cls, function: Callable[[Given], Awaitable[str]], **fields: Any) -> CallingPrompt:
        """Return the prompt of a function.

        :param fields: FastMCP's fields of the prompt.
        """
        prompt = cls(**fields)
        prompt._function = function
        return prompt

    async def render(self, arguments: dict[str, Any] | None = None) -> str:
        """Return the prompt's text."""
        return await self._function(arguments or {})


class CallingTemplate(ResourceTemplate):
    """A template of addresses with a function's result as their content."""

    _function: Callable[[Given], Awaitable[ResourceResult]] = PrivateAttr()

    @classmethod
    def of(cls, function: Callable[[Given], Awaitable[ResourceResult]], **fields: Any) -> CallingTemplate:
        """Return the template of a function.

        :param fields: FastMCP's fields of the template.
        """
        template = cls(parameters={}, **fields)
        template._function = function
        return template

    async def _read(self, uri: str, params: dict[str, Any]) -> ResourceResult:  # noqa: ARG002
        return await self._function(params)
