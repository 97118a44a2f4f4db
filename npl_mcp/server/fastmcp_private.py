"""Private parts of FastMCP and the SDK that this server needs; no other module uses them.

``tests/npl_mcp/server/test_fastmcp_private.py`` fails when one of these parts changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.apps.config import UI_EXTENSION_ID
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import ServerCapabilities
from starlette.types import Receive, Scope, Send

from npl_mcp.tools.contract.error_codes import shortened

MAX_REFUSAL = 200
"""Maximum bytes of a protocol error; the caller knows its own input."""

LIST_KEPT = 3_600_000
"""Milliseconds for which a client may cache a list that only a restart of the server changes. Lists may
differ between callers, so the cache is private, the default of the SDK.
"""

INTRODUCTION_KEPT = 300_000
"""Milliseconds for which a client may cache the server's instructions."""


def sdk_server(server: FastMCP[Any]) -> Server[Any]:
    """Return the SDK's server inside FastMCP's.

    The SDK's session manager needs it. FastMCP's own HTTP application creates that manager with fixed limits
    on bodies (4 MiB, less than an artifact) and sessions.
    """
    inside: Server[Any] = server._mcp_server
    return inside


def adapt(server: FastMCP[Any]) -> None:
    """Change defaults of the SDK."""
    inside: Any = server._mcp_server
    if inside.get_tool_input_schema is None:
        # FastMCP 4.1, the last for Python 3.10, sets no such function: the SDK would list all tools before
        # each call over HTTP to look for parameters in HTTP headers. No tool has any.
        inside.get_tool_input_schema = lambda _: None
    # The server sends no log messages to clients, so a level would have no effect.
    inside._request_handlers.pop("logging/setLevel")
    inside.middleware.insert(0, _shorten)
    inside.get_capabilities = partial(_without_interfaces, inside.get_capabilities)
    # FastMCP has only one cache time for all results, and documents change at any time.
    fixed = dict.fromkeys(("tools/list", "resources/templates/list"), CacheHint(LIST_KEPT))
    inside.cache_hints = {**fixed, "server/discover": CacheHint(INTRODUCTION_KEPT)}


def _without_interfaces(found: Callable[..., ServerCapabilities], *how: Any, **more: Any) -> Any:
    """Leave out the extension for interfaces in hosts, which FastMCP announces for every server."""
    capabilities = found(*how, **more)
    extensions = {**(capabilities.extensions or {})}
    extensions.pop(UI_EXTENSION_ID, None)
    return capabilities.model_copy(update={"extensions": extensions or None})


async def _shorten(ctx: Any, call_next: Any) -> Any:
    """Limit the input that protocol errors repeat: the SDK repeats a name of any length."""
    try:
        return await call_next(ctx)
    except MCPError as raised:
        text, data = raised.error.message, raised.error.data
        short_data = data if len(text) + len(str(data)) <= MAX_REFUSAL else None
        raise MCPError(raised.error.code, shortened(text, MAX_REFUSAL), short_data) from None


class Sessions(StreamableHTTPSessionManager):
    """Ends the session with the longest idle time instead of refusing a new one.

    Otherwise a thousand handshakes would lock out every new client for half an hour. The client of an ended
    session gets a 404, and opens another session.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a stream that is opened again begins with later events, because none are stored.

        The SDK would answer such a request with nothing.
        """
        headers = [header for header in scope["headers"] if header[0] != b"last-event-id"]
        await self.handle_request({**scope, "headers": headers}, receive, send)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        if self.max_sessions is not None and len(self._server_instances) >= self.max_sessions:
            self._end_idle()
        transport = super()._admit_session(requestor)
        own: Any = transport
        refuse = getattr(own, "_create_error_response", None)
        if refuse is not None:  # no new session is allowed here
            own._create_error_response = lambda text, *how, **to: refuse(shortened(text, 200), *how, **to)
        return transport

    def _end_idle(self) -> None:
        # The deadline is infinite while a request or a stream is open.
        idle = [
            (transport.idle_scope.deadline, session)
            for session, transport in self._server_instances.items()
            if transport.idle_scope is not None and not transport._requests_in_flight
        ]
        if idle:
            _, session = min(idle)
            transport = self._server_instances.pop(session)
            group: Any = self._task_group
            group.start_soon(self._discard_session, session, transport)
