"""Connections that send no request, or only a part of one, end."""

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.npl_mcp.http import http_server
from tests.npl_mcp.http.http_server import JSON, Running, read, serving
from tests.until import until

pytestmark = pytest.mark.thorough

IDLE = 20
TOKEN = "a-token-of-this-test-alone"
PROGRAM = f"""
import sys
from npl_mcp.cli.commands import serving
from npl_mcp.http import listening
listening.HEAD_SECONDS = float(sys.argv.pop(1))
listening.MAX_IDLE, listening.MAX_CONNECTIONS = {IDLE}, {2 * IDLE}
listening.MAX_STRANGERS, listening.STRANGER_SECONDS = {IDLE // 2}, 0.2
sys.exit(serving.main())
"""


@pytest.fixture(params=["1"])
def server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Running]:
    """A server with small limits; the parameter is the seconds for a request to arrive, and the token."""
    seconds, *token = request.param.split()
    program = [sys.executable, "-c", PROGRAM, seconds]
    monkeypatch.setattr(http_server, "command", lambda *flags: [*program, *flags])
    with serving(tmp_path, **({"NPL_MCP_TOKEN": token[0]} if token else {})) as running:
        yield running


def asked(line: socket.socket, server: Running) -> int:
    """Return the status of a request, or 0 if the server has ended the connection."""
    with suppress(ConnectionError):
        line.sendall(f"GET /healthz HTTP/1.1\r\nHost: localhost:{server.port}\r\n\r\n".encode())
        return read(line).status
    return 0


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("part", [b"", b"G", b"POST / HTTP/1.1\r\nHost: a\r\n"])
def test_a_request_that_is_sent_in_part_ends(server: Running, before: int, part: bytes) -> None:
    """It ends on a new connection and on a used one; a used one without a request stays open."""
    with server.connected() as line, server.connected() as silent:
        assert [asked(line, server) for _ in range(before)] == [200] * before
        assert asked(silent, server) == 200
        if part or not before:
            line.sendall(part)
            with suppress(ConnectionResetError):
                assert line.recv(1) == b""
        assert asked(silent, server) == 200


def answered(server: Running) -> bool:
    """Ask on a new connection."""
    with server.connected() as line:
        return asked(line, server) == 200


@pytest.mark.parametrize("server", ["1000"], indirect=True)
@pytest.mark.parametrize("used", [False, True])
def test_idle_connections_do_not_close_the_server_for_others(server: Running, used: bool) -> None:
    """The oldest of too many connections end before a partial request must."""
    with ExitStack() as lines:
        for _ in range(3 * IDLE):
            line = lines.enter_context(server.connected())
            while used and asked(line, server) != 200:
                line = lines.enter_context(server.connected())
            with suppress(ConnectionError):
                line.sendall(b"GET /healthz HTTP/1.1\r\n")
        assert any(answered(server) for _ in range(10_000))


@pytest.mark.parametrize("server", [f"1000 {TOKEN}"], indirect=True)
@pytest.mark.parametrize("path", ["POST /sign-in", "GET /healthz"])
def test_strangers_have_a_small_share_of_connections(server: Running, path: str) -> None:
    """They end, whether their bodies trickle in or they come again; a connection with a token stays."""
    head = f"{path} HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
    length = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5000\r\n"
    first, next_part = (f"{head}{length}\r\n", "x") if path.startswith("POST") else (f"{head}\r\n",) * 2
    admitted = {**JSON, "Authorization": f"Bearer {TOKEN}"}

    def own_call() -> int:
        own.sendall(server.message("POST", "/mcp/tools/session_list", {}, admitted))
        return read(own).status

    with ExitStack() as lines:
        own = lines.enter_context(server.connected())
        assert own_call() == 200
        strangers = [lines.enter_context(server.connected()) for _ in range(2 * IDLE - 2)]
        for line in strangers:
            line.sendall(first.encode())

        def others_end() -> bool:
            for line in strangers:
                with suppress(OSError):
                    line.sendall(next_part.encode())
            with suppress(ConnectionError):  # while strangers have all connections
                return server.call("session_list", {}, **admitted).status == 200 and answered(server)
            return False

        until(lambda: all(others_end() for _ in range(3)))
        assert own_call() == 200
