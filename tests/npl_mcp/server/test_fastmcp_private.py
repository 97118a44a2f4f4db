"""The private parts of FastMCP and the SDK that this server uses: each is there, works, and is needed."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

import npl_mcp
from npl_mcp.config.settings import Settings
from npl_mcp.server.fastmcp_private import sdk_server
from npl_mcp.server.server import create_server
from tests.npl_mcp.http.http_server import META, MODERN


def test_the_sdks_server_is_inside() -> None:
    """FastMCP's own HTTP application, which could be used instead, still takes no limits."""
    assert isinstance(sdk_server(FastMCP("test")), Server)
    parameters = inspect.signature(FastMCP.http_app).parameters
    assert not {"max_request_body_size", "max_sessions"} & parameters.keys()


def test_no_other_module_uses_what_is_private() -> None:
    """One module, with a reason for each."""
    folder = Path(npl_mcp.__file__).parent
    users = {path.name for path in folder.rglob("*.py") if "_mcp_server" in path.read_text(encoding="utf-8")}
    assert users == {"fastmcp_private.py"}


class Counting(Middleware):
    """Counts how often all tools are listed."""

    def __init__(self) -> None:
        self.lists = 0

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        self.lists += 1
        return await call_next(context)


@pytest.mark.parametrize("hooked", [True, False])
def test_a_call_does_not_list_all_tools(settings: Settings, hooked: bool) -> None:
    """The SDK's hook that spares each call a walk through all tools is there, set, and needed."""
    built = create_server(settings)
    counting = Counting()
    built.add_middleware(counting)
    assert sdk_server(FastMCP("test")).get_tool_input_schema is None
    assert sdk_server(built).get_tool_input_schema is not None
    if not hooked:
        sdk_server(built).get_tool_input_schema = None
    params = {"name": "npl_section_index", "arguments": {"file": "guide.md"}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert json.loads(anyio.run(answered, built, body))["result"]["content"]
    assert counting.lists == (0 if hooked else 1)


async def answered(built: Any, body: dict[str, Any]) -> bytes:
    """Return the body of the answer to one request, without a network."""
    sent = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": body["method"],
        "mcp-name": body["params"]["name"],
    }
    headers = [(name.encode(), value.encode()) for name, value in sent.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": headers}
    messages = [{"type": "http.request", "body": json.dumps(body).encode()}]
    parts: list[bytes] = []

    async def receive() -> Any:
        if not messages:
            await anyio.sleep_forever()
        return messages.pop()

    async def send(message: Any) -> None:
        parts.append(message.get("body", b""))

    manager = StreamableHTTPSessionManager(sdk_server(built))
    async with manager.run():
        await manager.handle_request(scope, receive, send)
    return b"".join(parts)
