"""What FastMCP and the SDK keep to themselves and this server needs; no other module reaches for it.

``tests/npl_mcp/server/test_fastmcp_private.py`` fails when one of these changes.
"""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from npl_mcp.tools.errors import shortened

LONGEST_REFUSAL = 200
"""Bytes of an error of the protocol: it says what is wrong, and the caller knows what it sent."""

LIST_KEPT = 3_600_000
"""Milliseconds for which a client may keep a list that only another start of the server changes. Each caller
may be shown another one, so that it is private, as the SDK has it by default."""

INTRODUCTION_KEPT = 300_000
"""Milliseconds for what the server says of itself and of the documents it serves."""


def sdk_server(server: FastMCP[Any]) -> Server[Any]:
    """Return the SDK's server inside of FastMCP's.

    The SDK's session manager needs it. FastMCP's own HTTP application makes that manager without a way to set
    the longest body (the SDK's 4 MiB are less than an artifact) or the number of sessions.
    """
    inside: Server[Any] = server._mcp_server
    return inside


def skip_header_parameters(server: FastMCP[Any]) -> None:
    """Tell the SDK that no tool has parameters that are sent as HTTP headers too.

    Otherwise it lists all tools before each call over HTTP to look for such parameters.
    """
    server._mcp_server.get_tool_input_schema = lambda _: None


def skip_logging(server: FastMCP[Any]) -> None:
    """Do not say that clients are sent the log: no message is, so that a level would mean nothing."""
    server._mcp_server._request_handlers.pop("logging/setLevel")


def shorten_errors(server: FastMCP[Any]) -> None:
    """Let errors of the protocol repeat little of their input: the SDK repeats a name of any length."""

    async def shorten(ctx: Any, call_next: Any) -> Any:
        try:
            return await call_next(ctx)
        except MCPError as raised:
            text, data = raised.error.message, raised.error.data
            kept = data if len(text) + len(str(data)) <= LONGEST_REFUSAL else None
            raise MCPError(raised.error.code, shortened(text, LONGEST_REFUSAL), kept) from None

    server._mcp_server.middleware.insert(0, shorten)


def keep_lists(server: FastMCP[Any]) -> None:
    """Say how long clients may keep what does not change while the server runs; FastMCP can only say one time
    for all results, and documents change at any time.
    """
    fixed = dict.fromkeys(("tools/list", "resources/templates/list"), CacheHint(LIST_KEPT))
    server._mcp_server.cache_hints = {**fixed, "server/discover": CacheHint(INTRODUCTION_KEPT)}


class Sessions(StreamableHTTPSessionManager):
    """Ends the session that was idle for the longest time where the SDK would refuse a new one.

    A thousand handshakes would else lock out every client that makes one, for half an hour. A client whose
    session has ended is told so (404), and makes another.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self.handle_request(scope, receive, send)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        if self.max_sessions is not None and len(self._server_instances) >= self.max_sessions:
            self._end_idle()
        transport = super()._admit_session(requestor)
        own: Any = transport
        refuse = getattr(own, "_create_error_response", None)
        if refuse is not None:  # there is no session where none may begin
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
