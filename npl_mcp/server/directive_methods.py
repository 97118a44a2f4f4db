"""The tools of Directive as methods of the protocol, which clients older than tools call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastmcp.server.extensions import MethodBinding, ServerExtension
from mcp import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, RequestParams
from pydantic import ConfigDict

from npl_mcp.app.call_reports import CALLER
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.projects.directive import NAME
from npl_mcp.tools.contract.aliases import ALIASES
from npl_mcp.tools.contract.error_codes import ErrorCode

MISSING = 1001
"""Error code of a method for a missing file or template."""


class DirectiveMethods(ServerExtension):
    """The tools of Directive as methods of the protocol, with answers outside the envelope.

    :param calls: the tools.
    """

    identifier = "npl/directive"

    def __init__(self, calls: ToolCalls) -> None:
        super().__init__()
        self._calls = calls

    def methods(self) -> Sequence[MethodBinding]:
        """Return a method for each tool."""
        return [
            MethodBinding(old, _Arguments, partial(self._answer, alias.new, old))
            for old, alias in ALIASES.items()
            if alias.new.startswith(NAME) and "/" not in old
        ]

    async def _answer(self, tool: str, name: str, _: Any, given: _Arguments) -> dict[str, Any]:
        if not CALLER.get().permissions.has_domain(NAME):
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=name)
        caller = replace(CALLER.get(), reads="values")
        body = (await self._calls.invoke(tool, caller, given.model_extra or {})).body
        if not body["success"]:
            code = MISSING if body["error_code"] == ErrorCode.NOT_FOUND else INVALID_PARAMS
            raise MCPError(code=code, message=body["error"])
        data: dict[str, Any] = body["data"]
        # The clients of these methods know a list by this name.
        return {**data, "files": data["items"]} if "items" in data else data


class _Arguments(RequestParams):
    """Unchecked arguments; the tool checks them."""

    model_config = ConfigDict(extra="allow")
