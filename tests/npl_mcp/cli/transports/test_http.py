"""Calls over HTTP on this machine: what a server may send, and how calls end."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from npl_mcp import __version__
from npl_mcp.cli.transports import http
from npl_mcp.cli.transports.base import Address, TransportError, parse_address
from npl_mcp.cli.transports.http import HttpTransport, connect, request
from tests.conftest import cases
from tests.npl_mcp.cli.stage import DONE, HEALTHY, Play, Stage, heard, message, playing


def asked(where: Address) -> object:
    with closing(connect(where)) as line:
        return request(line, "GET", "/x", {}, None, 20)


def call(where: Address, tool: str = "x", token: str = "", **arguments: object) -> dict[str, Any]:
    return HttpTransport(where, token).call(tool, arguments)


@pytest.mark.parametrize(
    ("text", "parts"),
    cases("npl_mcp/cli/transports/http_tables")["addresses"],
)
def test_addresses(text: str, parts: tuple[object, ...]) -> None:
    assert parse_address(text) == Address(text, *parts)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", cases("npl_mcp/cli/transports/http"))
def test_what_is_no_address(text: str) -> None:
    """Other texts are refused, and no line break reaches a header."""
    assert parse_address(text) is None


TABLES = cases("npl_mcp/cli/transports/http_tables")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(("data", "problem"), TABLES["garbage"])
def test_garbage(data: str, problem: str, stage: Callable[[Play], Stage]) -> None:
    with pytest.raises(TransportError, match=problem):
        asked(stage(playing(data.replace("LONG", "\x00\xff" * 40_000).encode("latin-1"))).where)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n\r\n", CHUNKED + b"-1\r\n"], ids=["no length", "negative chunk"]
)
def test_an_endless_answer_is_cut_off(
    head: bytes, stage: Callable[[Play], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 1 << 20)

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(head)
        while True:
            line.sendall(b"x" * 65536)

    with pytest.raises(TransportError, match="more than 1 MiB"):
        asked(stage(play).where)


def test_without_a_server() -> None:
    """A port without a listener, a removed socket and an impossible name are failures."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for where in (
        Address("x", "127.0.0.1", port),
        Address("x", "", 0, path="/nowhere/npl.sock"),
        Address("x", "", 0, path="/" + "long" * 100),
        Address("x", "", 0, path="a\0b"),
    ):
        with pytest.raises(TransportError, match="cannot be reached") as raised:
            connect(where)
        assert raised.value.absent
        assert not raised.value.sent


def test_a_server_without_the_tls_it_is_asked_for(stage: Callable[[Play], Stage]) -> None:
    """Nothing is sent in plain text to a server that should speak TLS."""
    requests: list[bytes] = []

    def play(line: socket.socket) -> None:
        requests.append(line.recv(65536))
        line.sendall(message(HEALTHY))

    theatre = stage(play)
    with pytest.raises(TransportError, match="cannot be reached"):
        call(theatre.where._replace(secure=True))
    assert not any(b"HTTP" in request for request in requests)


def test_a_full_queue_is_a_server_that_hangs(tmp_path: Path) -> None:
    """Without an accepted connection the call ends after a quarter of a second, unsent."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(path)
        listening.listen(0)
        first.connect(path)
        with pytest.raises(TransportError) as raised:
            connect(Address("x", "", 0, path=path))
        assert not raised.value.sent


def test_a_call_over_a_socket(
    tmp_path: Path, stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Greeting and call share one connection; the greeting does not show the token."""
    requests: list[bytes] = []
    play = playing(message(HEALTHY), message(DONE), requests=requests)
    folder = tmp_path / "ü"
    folder.mkdir()
    monkeypatch.chdir(folder)
    reply = call(stage(play, str(tmp_path / "npl.sock")).where, "tool_x", "secret", a=1)
    assert reply == {"success": True, "data": {"n": 1}}
    greeting, request = requests
    assert greeting.startswith(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    assert b"secret" not in greeting
    assert request.startswith(b"POST /mcp/tools/tool_x HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer secret\r\n" in request
    assert b"\r\nNPL-Cwd: " + os.fsencode(folder) + b"\r\n" in request
    sent = request.partition(b"\r\n\r\n")[2]
    assert b"\r\nContent-Length: %d\r\n" % len(sent) in request
    assert json.loads(sent)["a"] == 1


@pytest.mark.parametrize(("status", "body", "problem"), TABLES["strangers"])
def test_a_stranger_gets_no_call(
    status: str, body: str, problem: str, stage: Callable[[Play], Stage]
) -> None:
    """A server that is not ours or has another version gets no call."""
    requests: list[bytes] = []
    major, minor, _ = __version__.split(".")
    body = body.replace("LONG", "[" * 100_000).replace("OWN", __version__)
    body = body.replace("NEXT", f"{major}.{int(minor) + 1}.0")

    def play(line: socket.socket) -> None:
        requests.append(heard(line))
        line.sendall(message(body.encode(), status.encode()))
        requests.append(line.recv(65536))

    theatre = stage(play)
    with pytest.raises(TransportError, match=problem):
        call(theatre.where)
    theatre.close()
    assert [request[:4] for request in requests if request] == [b"GET "]


def test_a_later_version_with_the_same_tools_is_asked(stage: Callable[[Play], Stage]) -> None:
    """Only the first two numbers of the version count."""
    major, minor, _ = __version__.split(".")
    greeting = json.dumps({"name": "npl", "version": f"{major}.{minor}.999"}).encode()
    assert call(stage(playing(message(greeting), message(DONE))).where)["success"]


FAILED = b'{"success":false,"error":"no","error_code":"NOT_FOUND"}'


@pytest.mark.parametrize("status", [b"400 Bad", b"403 No", b"404 No", b"422 No", b"500 No", b"200 OK"])
def test_a_failure_of_a_tool_is_its_answer(status: bytes, stage: Callable[[Play], Stage]) -> None:
    """The envelope is passed on, at any status."""
    theatre = stage(playing(message(HEALTHY), message(FAILED, status)))
    assert call(theatre.where)["error_code"] == "NOT_FOUND"


@pytest.mark.parametrize(("status", "body", "header", "problem", "sent"), TABLES["fates"])
def test_what_became_of_a_call(
    status: str, body: str, header: str, problem: str, sent: bool, stage: Callable[[Play], Stage]
) -> None:
    """A refused call can be made elsewhere; one whose answer is lost may have been carried out."""
    headers = [header.encode()] if header else []
    theatre = stage(playing(message(HEALTHY), message(body.encode(), status.encode(), *headers)))
    with pytest.raises(TransportError, match=problem) as raised:
        call(theatre.where)
    assert raised.value.sent is sent


@pytest.mark.parametrize(
    "lost",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
        message(b"", b"502 Bad"),
        message(FAILED, b"503 Ends", b"NPL-Unfinished: 1"),
    ],
)
def test_a_lost_answer_is_asked_for_once_more(lost: bytes, stage: Callable[[Play], Stage]) -> None:
    """The second request has the same id, so the server does not repeat the call."""
    answers, bodies = iter([lost, message(DONE)]), []

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(message(HEALTHY))
        bodies.append(json.loads(heard(line).partition(b"\r\n\r\n")[2]))
        line.sendall(next(answers))

    theatre = stage(play)
    assert call(theatre.where, a=1) == {"success": True, "data": {"n": 1}}
    assert bodies[0] == bodies[1]
    assert len(bodies[0]["request_id"]) == 32


def test_a_call_that_was_not_sent_whole_was_not_made(stage: Callable[[Play], Stage]) -> None:
    """A server that closes during the request cannot have understood it."""

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(message(HEALTHY))
        line.recv(10)
        # With unread data in its buffer a close resets the connection.

    theatre = stage(play)
    with pytest.raises(TransportError) as raised:
        call(theatre.where, a="x" * (32 << 20))
    assert not raised.value.sent


def test_a_server_that_hangs_is_left_in_a_second(stage: Callable[[Play], Stage]) -> None:
    """It accepts the connection and sends nothing; the call is not sent."""
    ended = threading.Event()

    def play(_: socket.socket) -> None:
        ended.wait(20)

    theatre = stage(play)
    try:
        with pytest.raises(TransportError, match="does not answer within 1 s") as raised:
            call(theatre.where)
    finally:
        ended.set()
    assert not raised.value.sent


def test_a_tool_may_take_longer_than_a_greeting(stage: Callable[[Play], Stage]) -> None:
    """A server that has greeted is waited for."""

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(message(HEALTHY))
        heard(line)
        time.sleep(http.GREETING_SECONDS + 0.3)
        line.sendall(message(DONE))

    assert call(stage(play).where)["success"]


def test_a_closed_connection_is_not_opened_again(tmp_path: Path, stage: Callable[..., Stage]) -> None:
    """A server that closes after the greeting gets no call: another process could take the port."""
    greetings: list[bytes] = []
    play = playing(message(HEALTHY, b"200 OK", b"Connection: close"), requests=greetings)
    with pytest.raises(TransportError, match="closed the connection") as raised:
        call(stage(play, str(tmp_path / "npl.sock")).where)
    assert not raised.value.sent
    assert len(greetings) == 1
