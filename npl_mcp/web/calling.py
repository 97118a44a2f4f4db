"""Calls of tools over HTTP, by the plain route or from a page, and the status of their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from fastmcp import FastMCP
from fastmcp.tools.base import ToolResult
from mcp_types import TextContent
from starlette.types import Receive

from npl_mcp.app.app import FOR_PROGRAM
from npl_mcp.app.call_reports import CALLER, Caller
from npl_mcp.tools.contract.error_codes import ErrorCode

STATUS: Mapping[ErrorCode, int] = {
    ErrorCode.INVALID_PARAMETER: 400,
    ErrorCode.MISSING_REQUIRED: 400,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.ARTIFACT_NOT_FOUND: 404,
    ErrorCode.SESSION_NOT_FOUND: 404,
    ErrorCode.ROOM_NOT_FOUND: 404,
    ErrorCode.REVIEW_NOT_FOUND: 404,
    ErrorCode.ALREADY_EXISTS: 409,
    ErrorCode.OPERATION_FAILED: 422,
    ErrorCode.FILE_SYSTEM_ERROR: 422,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.DATABASE_ERROR: 500,
}
"""HTTP status of a failed call by the code of its error; MCP itself answers 200."""

CLOSED = 499
"""Status for a caller that closed the connection; the answer has no reader."""


async def call(
    server: FastMCP[Any], name: str, arguments: dict[str, Any], caller: Caller, receive: Receive | None = None
) -> ToolResult | None:
    """Return the result of a tool; ``None`` if the caller disconnects first, which cancels the call.

    The answer is JSON unless the call asks for another format; the server's default does not apply.

    :param caller: the caller in whose name the tool runs.
    :param receive: the channel that reports a disconnected caller; without it, another task watches for that.
    """
    token, form = CALLER.set(caller), FOR_PROGRAM.set(True)
    try:
        if receive is None:
            return await server.call_tool(name, arguments)
        return await _unless_gone(server, name, arguments, receive)
    finally:
        FOR_PROGRAM.reset(form)
        CALLER.reset(token)


async def _unless_gone(
    server: FastMCP[Any], name: str, arguments: dict[str, Any], receive: Receive
) -> ToolResult | None:
    result: ToolResult | None = None

    async def end_if_gone(calling: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        calling.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(end_if_gone, group.cancel_scope)
        result = await server.call_tool(name, arguments)
        group.cancel_scope.cancel()
    return result


def text_of(result: ToolResult) -> str:
    """Return the text of a result: an envelope, or the text of Markdown files."""
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text
