"""Clients that put a header before each message, and methods from before there were tools."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.projects.directive import scaffold
from npl_mcp.server.stdio import HeaderInput, HeaderOutput, LineInput
from npl_mcp.tools.domains import listed_tools
from tests.npl_mcp.http.http_server import environment

HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def framed(message: object, extra: bytes = b"", **how: Any) -> bytes:
    body = json.dumps(message, **how).encode()
    return extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "npl_mcp", "--data-dir", str(folder / "data")]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(
    process: subprocess.Popen[bytes], identity: int, method: str, extra: bytes = b"", **params: Any
) -> Any:
    """Write one message with a header and read one; nothing stands before it."""
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    process.stdin.write(framed(request, extra))
    process.stdin.flush()
    name, _, length = process.stdout.readline().partition(b":")
    assert (name, process.stdout.readline()) == (b"Content-Length", b"\r\n")
    body = process.stdout.read(int(length))
    assert body.isascii()
    answer = json.loads(body)
    assert answer["id"] == identity
    return answer


def test_a_client_with_headers_is_answered_with_headers(tmp_path: Path) -> None:
    """Without a handshake: the list, a call, the methods of Directive and their errors."""
    scaffold(tmp_path)
    (tmp_path / "directive" / "specs.md").write_text("堆", encoding="utf-8")
    with running(tmp_path) as process:
        tools = ask(process, 1, "tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == [spec.name for spec in listed_tools()]
        called = ask(process, 2, "tools/call", name="directive/spec.template", arguments={})
        bundle = json.loads(called["result"]["content"][0]["text"])["data"]
        assert ask(process, 3, "spec.template", b"Content-Type: application/json\r\n")["result"] == bundle
        files = ask(process, 4, "directive.files.list")["result"]["files"]
        assert files[-1] == "directive/specs.md"
        for kind in ("impact", "tdr"):
            path = ask(process, 5, f"{kind}.template")["result"]["template"]["path"]
            assert path == f"directive/reference/templates/{kind}_template.md"
        read = ask(process, 6, "directive.file.get", path="specs.md")["result"]
        assert read == {"path": "specs.md", "content": "堆"}
        missing = ask(process, 7, "directive.file.get", path="nope.md")["error"]
        assert missing["code"] == 1001
        assert missing["message"].startswith("File not found under directive/: nope.md")
        outside = ask(process, 8, "directive.file.get", path="../secret")["error"]
        assert (outside["code"], "outside directive/" in outside["message"]) == (-32602, True)
        assert ask(process, 9, "directive.file.get")["error"]["code"] == -32602
        assert ask(process, 10, "nothing.here")["error"]["code"] == -32601
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_client_with_headers_may_shake_hands(tmp_path: Path) -> None:
    """Its own handshake is answered; none is made for it."""
    with running(tmp_path) as process:
        params: Any = HELLO["params"]
        assert ask(process, 0, "initialize", **params)["result"]["serverInfo"]["name"] == "npl"
        assert process.stdin is not None
        process.stdin.write(framed({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        assert ask(process, 1, "ping")["result"] == {}


def test_methods_are_accepted_on_lines_too(tmp_path: Path) -> None:
    """After the handshake, as the protocol wants it."""
    scaffold(tmp_path)
    with running(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tdr.template"}\n')
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [answer["id"] for answer in answers] == [0, 1]
    assert list(answers[1]["result"])[:2] == ["primer", "agentOperatingProcedure"]


@pytest.mark.parametrize(
    ("data", "methods"),
    [
        (framed({"method": "a"}), ["initialize", "notifications/initialized", "a"]),
        (framed({"method": "a"}) * 2, ["initialize", "notifications/initialized", "a", "a"]),
        (framed(HELLO) + framed({"method": "a"}), ["initialize", "a"]),
        (framed({"method": "a"}, indent=1), ["initialize", "notifications/initialized", "a"]),
        (
            framed({"method": "a"}, b"X: 1\r\ncontent-type: b\r\n"),
            ["initialize", "notifications/initialized", "a"],
        ),
        (framed({"method": "a"}).replace(b"\r\n", b"\n"), ["initialize", "notifications/initialized", "a"]),
        (framed(HELLO) + framed({"method": "a"})[:-1], ["initialize"]),
        (framed(HELLO) + b'Content-Length: 101\r\n\r\n{"method": "a"}' + b" " * 86, ["initialize"]),
        (framed(HELLO) + b'Content-Length: -1\r\n\r\n{"method": "a"}', ["initialize"]),
        (framed(HELLO) + b'Content-Length: x\r\n\r\n{"method": "a"}', ["initialize"]),
        (framed(HELLO) + b'{"method": "a"}\n', ["initialize"]),
        (framed(HELLO) + b"X: 1\r\n" * 1000 + framed({"method": "a"}), ["initialize"]),
        (b"Content-Length", []),
        (b"", []),
    ],
)
def test_messages_become_lines(data: bytes, methods: list[str]) -> None:
    """Whole ones within the limit; what cannot be read ends the input."""
    limit = max(100, len(json.dumps(HELLO)))
    source = io.BytesIO(data.replace(b"101", b"%d" % (limit + 1)))
    lines = io.BufferedReader(HeaderInput(source, limit), 7).read().splitlines()
    assert [json.loads(line)["method"] for line in lines] == methods


def test_lines_become_messages() -> None:
    """However they are cut; the answer to the handshake that was made is not among them."""
    target = io.BytesIO()
    output = HeaderOutput(target)
    for part in ('{"id":1,"result"', ':"é"}\n{"id":"npl-handshake"}\n{"id"', ":2}\n"):
        output.write(part.encode())
    assert target.getvalue() == (
        b'Content-Length: 26\r\n\r\n{"id":1,"result":"\\u00e9"}Content-Length: 8\r\n\r\n{"id":2}'
    )


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_lines_of_standard_input_end_at_the_limit(chunk: int) -> None:
    """A line up to the limit is whole, a longer one is cut, and the next begins where it should."""
    lines = [b"a" * length for length in (0, 5, 9, 10, 11, 40, 3, 200, 10)]
    source = io.BytesIO(b"\n".join([*lines, b"b" * 30]))
    with io.BufferedReader(LineInput(source, limit=10), chunk) as read:
        assert read.read() == b"\n".join([*(line[:10] for line in lines), b"b" * 10])


def test_a_long_message_over_standard_streams_is_left_out(tmp_path: Path) -> None:
    """The limit is that of HTTP; what is longer takes no memory, and the next message is answered."""
    with subprocess.Popen(
        [sys.executable, "-m", "npl_mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(tmp_path, NPL_MCP_MAX_BODY_BYTES="100000"),
        cwd=tmp_path,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ping = b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":{"x":"%s"}}\n'
        try:
            for number, length in ((1, 90_000), (2, 30_000_000), (3, 1)):
                process.stdin.write(ping % (number, b"x" * length))
                process.stdin.flush()
            answered = [json.loads(process.stdout.readline())["id"] for _ in range(2)]
            memory = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
            peak = int(memory.partition("VmHWM:")[2].split()[0]) // 1024
        finally:
            process.stdin.close()
    assert sorted(answered) == [1, 3]
    assert peak < 250
