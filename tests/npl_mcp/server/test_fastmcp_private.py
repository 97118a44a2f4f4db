"""The private parts of FastMCP and the SDK that this server uses exist, work, and are needed."""

import inspect
import json
from pathlib import Path
from typing import Any

import anyio
from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

import npl_mcp
from npl_mcp.config.settings import Settings
from npl_mcp.server.fastmcp_private import sdk_server
from npl_mcp.server.server import create_server
from tests.conftest import cases
from tests.npl_mcp.http.http_server import JSON, META, MODERN, request, serving
from tests.npl_mcp.server.speaking import spoken_to


def test_the_sdks_server_is_inside() -> None:
    """FastMCP's own HTTP application, which could be used instead, still takes no limits."""
    assert isinstance(sdk_server(FastMCP("test")), Server)
    parameters = inspect.signature(FastMCP.http_app).parameters
    assert not {"max_request_body_size", "max_sessions"} & parameters.keys()


def test_no_other_module_uses_what_is_private() -> None:
    folder = Path(npl_mcp.__file__).parent
    users = {path.name for path in folder.rglob("*.py") if "_mcp_server" in path.read_text(encoding="utf-8")}
    assert users == {"fastmcp_private.py"}


class Counting(Middleware):
    """A server that counts how often all tools are listed."""

    def __init__(self) -> None:
        self.lists = 0

    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        self.lists += 1
        return await call_next(context)


def test_a_call_does_not_list_all_tools(settings: Settings) -> None:
    """A hook of the SDK replaces a walk through all tools for each call over HTTP."""
    built = create_server(settings)
    counting = Counting()
    built.add_middleware(counting)
    params = {"name": "npl_section_index", "arguments": {"file": "guide.md"}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    for lists in (0, 1):
        result = json.loads(anyio.run(answered, built, body))["result"]
        assert result["content"]
        assert not any("icon" in str(part) for part in result["_meta"].values())
        assert counting.lists == lists
        sdk_server(built).get_tool_input_schema = None


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


LONG = json.dumps('\\"x' * 20_000)[1:-1]
REPEATING: dict[str, Any] = cases("npl_mcp/server/fastmcp_private")["repeating"]


def message_of(case: str) -> bytes:
    given = REPEATING[case]
    message = {"jsonrpc": "2.0", "id": 7, **given} if isinstance(given, dict) else given
    return json.dumps(message).replace("LONG", LONG).encode()


def repeated(answer: bytes) -> int:
    """Return how many characters of an answer come from the message."""
    return answer.count(b"x")


def test_errors_over_standard_streams_repeat_little(tmp_path: Path) -> None:
    """An error has at most 200 characters of the message that caused it."""
    with spoken_to(tmp_path) as server:
        for case in REPEATING:
            server.send(message_of(case))
            assert repeated(json.dumps(server.receive()).encode()) <= 200, case


def test_errors_over_http_repeat_little(tmp_path: Path) -> None:
    """The limit holds with and without a session, and for headers and paths."""
    accepted = {**JSON, "Accept": "application/json, text/event-stream"}
    with serving(tmp_path) as server:
        for case in REPEATING:
            for headers in (accepted, {**accepted, "MCP-Protocol-Version": MODERN, "Mcp-Method": "ping"}):
                answer = request(server, "POST", "/mcp", message_of(case), headers)
                assert repeated(answer.body) <= 200, case
        long = "x" * 9_000
        for path, more in (
            (f"/{long}", {}),
            (f"/mcp/tools/{long}", {}),
            ("/mcp", {"Mcp-Session-Id": long}),
            ("/mcp", {"MCP-Protocol-Version": long}),
            ("/mcp", {"Content-Type": long}),
            ("/mcp", {"Origin": f"http://{long}"}),
            ("/mcp", {"Authorization": long}),
        ):
            answer = request(server, "POST", path, message_of("prompt"), {**accepted, **more})
            assert repeated(answer.body) <= 200, (path[:20], [*more])
        assert repeated(request(server, "GET", "/healthz", host=long).body) <= 200
