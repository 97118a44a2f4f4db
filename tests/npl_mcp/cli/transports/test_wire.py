"""One request over HTTP by hand: what a server may send, and what is made of it."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from npl_mcp import __version__
from npl_mcp.cli.transports import servers, wire
from npl_mcp.cli.transports.connecting import STATE_FILE
from npl_mcp.cli.transports.wire import Address, Answer, Line, WireError, address
from tests.npl_mcp.cli.stage import DONE, HEALTHY, Play, Stage, heard, message, playing


def asked(where: Address, seconds: float = 20) -> Answer:
    line = Line(where)
    try:
        return line.ask("GET", "/x", {}, b"", seconds)
    finally:
        line.close()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("http://127.0.0.1:8765", ("127.0.0.1", 8765, "", "", False)),
        ("http://127.0.0.1:8765/", ("127.0.0.1", 8765, "", "", False)),
        ("http://localhost:8765/mcp", ("localhost", 8765, "", "", False)),
        ("http://[::1]:80/mcp/", ("::1", 80, "", "", False)),
        ("http://Example.org", ("example.org", 80, "", "", False)),
        ("https://example.org/npl/mcp", ("example.org", 443, "", "/npl", True)),
        ("unix:/run/npl.sock", ("", 0, "/run/npl.sock", "", False)),
    ],
)
def test_addresses(text: str, parts: tuple[object, ...]) -> None:
    """A URL with or without the protocol's path, or a socket."""
    assert address(text) == Address(text, *parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:8765",
        "ftp://x",
        "http://",
        "http://a b",
        "http://u:p@host",
        "http://x:0",
        "http://x:65536",
        "http://x:99999999999",
        "http://x/?q",
        "http://x/#f",
        "http://x\r\nHost: y",
        "unix:",
    ],
)
def test_what_is_no_address(text: str) -> None:
    """Nothing is guessed, and no line break reaches a header."""
    assert address(text) is None


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (message(b"hello"), 200, b"hello"),
        (message(b"", b"404 Not Found"), 404, b""),
        (b"HTTP/1.1 200\r\ncontent-length:   2  \r\n\r\nab", 200, b"ab"),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", 200, b"to the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + message(b"a"),
            200,
            b"a",
        ),
        (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, b"abcde"),
        (CHUNKED + b"A;x=y\r\n0123456789\r\n0\r\nTrailer: z\r\n\r\n", 200, b"0123456789"),
    ],
    ids=["length", "empty", "terse", "to the end", "no content", "remarks", "chunks", "chunk extension"],
)
@pytest.mark.parametrize("step", [1, 65536], ids=["byte by byte", "at once"])
def test_answers(data: bytes, status: int, body: bytes, step: int, stage: Callable[[Play], Stage]) -> None:
    """Every form of a body, however the network cuts it."""

    def play(line: socket.socket) -> None:
        heard(line)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(data), step):
            line.sendall(data[at : at + step])

    answer = asked(stage(play).where)
    assert (answer.status, answer.body) == (status, body)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "ended the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "ended the connection"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "ended the connection"),
        (CHUNKED + b"5\r\nab", "ended the connection"),
        (CHUNKED + b"2\r\nabcd", "unknown length"),
        (CHUNKED + b"zz\r\n", "unknown length"),
        (CHUNKED + b"-1\r\n", "unknown length"),
        (CHUNKED + b"fffffffff\r\n", "unknown length"),
        (CHUNKED + b"7fffffff\r\n", "more than 64 MiB"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "does not speak HTTP"),
        (b"\x00\xff" * 20_000, "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 40_000, "does not speak HTTP"),
        (b"HTTP/2 200 OK\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 999 Odd\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "unknown length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "unknown length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", "unknown length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "more than 64 MiB"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "unknown length"),
        (CHUNKED[:-2] + b"Content-Length: 3\r\n\r\n", "unknown length"),
    ],
    ids=lambda part: part[:50].decode("latin-1") if isinstance(part, bytes) else None,
)
def test_garbage(data: bytes, problem: str, stage: Callable[[Play], Stage]) -> None:
    """What is no answer is told apart from one, at once."""
    with pytest.raises(WireError, match=problem):
        asked(stage(playing(data)).where)


def test_an_endless_answer_is_cut_off(
    stage: Callable[[Play], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit counts what came, not what was announced."""
    monkeypatch.setattr(wire, "LONGEST_BODY", 1 << 20)

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        while True:
            line.sendall(b"x" * 65536)

    with pytest.raises(WireError, match="more than 1 MiB"):
        asked(stage(play).where)


def test_an_answer_that_trickles_is_not_waited_for(stage: Callable[[Play], Stage]) -> None:
    """The time counts for the whole answer, not from byte to byte."""
    ended = threading.Event()

    def play(line: socket.socket) -> None:
        heard(line)
        while not ended.wait(0.02):
            line.sendall(b"H")

    theatre = stage(play)
    try:
        with pytest.raises(WireError, match=r"does not answer within 0\.2 s"):
            asked(theatre.where, 0.2)
    finally:
        ended.set()


def test_nobody_there() -> None:
    """A port where nobody listens, a socket that is gone, a name that can be none."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for where in (
        Address("x", "127.0.0.1", port),
        Address("x", "", 0, path="/nowhere/npl.sock"),
        Address("x", "", 0, path="/" + "long" * 100),
        Address("x", "", 0, path="a\0b"),
    ):
        with pytest.raises(WireError, match="cannot be reached") as raised:
            Line(where)
        assert raised.value.absent
        assert not raised.value.sent


def test_a_server_without_the_tls_it_is_asked_for(stage: Callable[[Play], Stage]) -> None:
    """Nothing is said in plain to a server that was to be spoken to in secret."""
    requests: list[bytes] = []

    def play(line: socket.socket) -> None:
        requests.append(line.recv(65536))
        line.sendall(message(HEALTHY))

    theatre = stage(play)
    with pytest.raises(WireError, match="cannot be reached"):
        servers.call(theatre.where._replace(secure=True), "x", b"{}", {})
    assert not any(b"HTTP" in request for request in requests)


def test_a_full_queue_is_a_server_that_hangs(tmp_path: Path) -> None:
    """Nobody takes the connection: a quarter of a second, and nothing was sent."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as first:
        listening.bind(path)
        listening.listen(0)
        first.connect(path)
        with pytest.raises(WireError) as raised:
            Line(Address("x", "", 0, path=path))
        assert not raised.value.sent


def test_a_call_over_a_socket(tmp_path: Path) -> None:
    """Greeting and call go over one connection; the greeting does not show the token."""
    path = str(tmp_path / "npl.sock")
    requests: list[bytes] = []

    def serve(listening: socket.socket) -> None:
        line, _ = listening.accept()
        with line:
            requests.append(heard(line))
            line.sendall(message(HEALTHY))
            requests.append(heard(line))
            line.sendall(message(DONE))

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        headers = {"Authorization": b"Bearer secret", "NPL-Cwd": "/tmp/ü".encode()}
        reply = servers.call(Address("x", "", 0, path=path), "tool_x", b'{"a":1}', headers)
        thread.join()
    assert reply == {"success": True, "data": {"n": 1}}
    greeting, call = requests
    assert greeting.startswith(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
    assert b"secret" not in greeting
    assert call.startswith(b"POST /mcp/tools/tool_x HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer secret\r\n" in call
    assert b"\r\nNPL-Cwd: /tmp/\xc3\xbc\r\n" in call
    assert b"\r\nContent-Length: 7\r\n" in call
    assert call.endswith(b'\r\n\r\n{"a":1}')


def version(change: int) -> str:
    major, minor, _ = __version__.split(".")
    return f"{major}.{int(minor) + change}.0"


@pytest.mark.parametrize(
    ("greeting", "problem"),
    [
        (message(b"<html>hello</html>"), "is no server of npl"),
        (message(b"[" * 100_000), "is no server of npl"),
        (message(b'{"name": "other", "version": "0.1.0"}'), "is no server of npl"),
        (message(b'{"name": "npl", "version": 1}'), "is no server of npl"),
        (message(b"", b"404 Not Found"), "is no server of npl"),
        (message(json.dumps({"name": "npl", "version": version(1)}).encode()), "has version"),
        (message(json.dumps({"name": "npl", "version": "99.0.0"}).encode()), "has version 99"),
        (message(HEALTHY, b"503 Busy"), "is not ready"),
        (b"", "ended the connection"),
    ],
)
def test_a_stranger_gets_no_call(greeting: bytes, problem: str, stage: Callable[[Play], Stage]) -> None:
    """Whoever does not prove to be ours and of our version is not sent anything that could be carried out."""
    requests: list[bytes] = []

    def play(line: socket.socket) -> None:
        requests.append(heard(line))
        line.sendall(greeting)
        if greeting:
            requests.append(line.recv(65536))

    theatre = stage(play)
    with pytest.raises(WireError, match=problem):
        servers.call(theatre.where, "x", b"{}", {})
    theatre.close()
    theatre.close = lambda: None  # type: ignore[method-assign]
    assert [request[:4] for request in requests if request] == [b"GET "]


def test_a_later_version_with_the_same_tools_is_asked(stage: Callable[[Play], Stage]) -> None:
    """What counts is the version up to its second number."""
    major, minor, _ = __version__.split(".")
    greeting = json.dumps({"name": "npl", "version": f"{major}.{minor}.999"}).encode()
    theatre = stage(playing(message(greeting), message(DONE)))
    assert servers.call(theatre.where, "x", b"{}", {})["success"]


FAILED = b'{"success":false,"error":"no","error_code":"NOT_FOUND"}'


@pytest.mark.parametrize("status", [b"400 Bad", b"403 No", b"404 No", b"422 No", b"500 No", b"200 OK"])
def test_a_failure_of_a_tool_is_its_answer(status: bytes, stage: Callable[[Play], Stage]) -> None:
    """The envelope is handed on, whatever the status."""
    theatre = stage(playing(message(HEALTHY), message(FAILED, status)))
    assert servers.call(theatre.where, "x", b"{}", {})["error_code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("answer", "problem", "sent"),
    [
        (message(FAILED, b"401 No"), "does not let the call in: no", False),
        (message(b"busy", b"503 Busy"), "does not let the call in: status 503", False),
        (message(FAILED, b"413 Large"), "does not let the call in", False),
        (message(FAILED, b"403 No", b"NPL-Cwd: refused"), "does not let the call in", False),
        (message(b"Not Found", b"404 Not Found"), "does not know the tool", False),
        (message(b"oops", b"500 Error"), "no answer of a tool", True),
        (message(b"oops"), "no answer of a tool", True),
        (message(b"[]"), "no answer of a tool", True),
        (message(b'{"success": true}'), "no answer of a tool", True),
        (message(b'{"success": 1, "data": 1}'), "no answer of a tool", True),
        (message(b'{"success": false, "error": 3}'), "no answer of a tool", True),
        (message(DONE, b"502 Bad"), "no answer of a tool", True),
        (b"", "ended the connection", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "ended the connection", True),
    ],
)
def test_what_became_of_a_call(
    answer: bytes, problem: str, sent: bool, stage: Callable[[Play], Stage]
) -> None:
    """A call that was sent away can be made elsewhere; one whose answer is lost may have been carried out."""
    theatre = stage(playing(message(HEALTHY), answer))
    with pytest.raises(WireError, match=problem) as raised:
        servers.call(theatre.where, "x", b"{}", {})
    assert raised.value.sent is sent


def test_a_call_that_was_not_sent_whole_was_not_made(stage: Callable[[Play], Stage]) -> None:
    """A server that goes while it is told cannot have understood."""

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(message(HEALTHY))
        line.recv(10)
        # With unread data in its buffer a close resets the connection.

    theatre = stage(play)
    with pytest.raises(WireError) as raised:
        servers.call(theatre.where, "x", b'"' + b"x" * (32 << 20) + b'"', {})
    assert not raised.value.sent


def test_a_server_that_hangs_is_left_in_a_second(stage: Callable[[Play], Stage]) -> None:
    """It takes the connection and says nothing; the call is not sent."""
    ended = threading.Event()

    def play(_: socket.socket) -> None:
        ended.wait(20)

    theatre = stage(play)
    try:
        with pytest.raises(WireError, match="does not answer within 1 s") as raised:
            servers.call(theatre.where, "x", b"{}", {})
    finally:
        ended.set()
    assert not raised.value.sent


def test_a_tool_may_take_longer_than_a_greeting(
    stage: Callable[[Play], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the server has proved to be there it is waited for."""
    monkeypatch.setattr(servers, "GREETING", 0.3)

    def play(line: socket.socket) -> None:
        heard(line)
        line.sendall(message(HEALTHY))
        heard(line)
        time.sleep(0.6)
        line.sendall(message(DONE))

    assert servers.call(stage(play).where, "x", b"{}", {})["success"]


def state(folder: Path, body: object, mode: int = 0o600) -> Path:
    file = folder / STATE_FILE
    file.write_text(body if isinstance(body, str) else json.dumps(body), encoding="utf-8")
    file.chmod(mode)
    return file


def test_the_state_file_says_where_the_server_is(tmp_path: Path) -> None:
    """A socket is preferred to a port, since its file says who may call."""
    url = "http://127.0.0.1:1"
    state(tmp_path, {"url": url, "socket": "/s", "token": "t"})
    assert servers.read_state(str(tmp_path / STATE_FILE)) == ("unix:/s", url, "t", "")
    state(tmp_path, {"url": url, "socket": None, "token": "t", "pid": 1, "places": "NPL_HOME=/n"})
    assert servers.read_state(str(tmp_path / STATE_FILE)) == (url, url, "t", "NPL_HOME=/n")


@pytest.mark.parametrize("body", ["", "[]", "{", "\0", {}, {"url": 3}, {"socket": ""}, "[" * 50_000])
def test_a_state_file_that_says_nothing(body: object, tmp_path: Path) -> None:
    """Whatever is wrong with it, it is as if it were not there."""
    state(tmp_path, body)
    assert servers.read_state(str(tmp_path / STATE_FILE)) is None


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_a_state_file_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    """It could lead the user's calls to somebody else."""
    file = state(tmp_path, {"url": "http://127.0.0.1:1", "token": "t"}, 0o666)
    assert servers.read_state(str(tmp_path / STATE_FILE)) is None
    file.chmod(0o600)
    assert servers.read_state(str(tmp_path / STATE_FILE)) is not None
