"""Standard streams: messages behind headers, methods from before there were tools, and limits."""

import base64
import io
import json
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from npl_mcp.projects.directive import scaffold
from npl_mcp.server import stdio
from npl_mcp.server.stdio import Headers, Lines
from npl_mcp.tools.domains import listed_tools
from tests.conftest import cases
from tests.messages import READY, asking, calling, hello
from tests.npl_mcp.server.speaking import spoken_to

HELLO = hello("2025-06-18")
A = {"jsonrpc": "2.0", "method": "a"}


def framed(message: object, extra: bytes = b"", **how: Any) -> bytes:
    body = json.dumps(message, **how).encode()
    return extra + b"Content-Length: %d\r\n\r\n" % len(body) + body


@contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "npl_mcp", "--data-dir", str(folder / "data"), *words]
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
    process.stdin.write(framed(asking(identity, method, **params), extra))
    process.stdin.flush()
    name, _, length = process.stdout.readline().partition(b":")
    assert (name, process.stdout.readline()) == (b"Content-Length", b"\r\n")
    body = process.stdout.read(int(length))
    assert body.isascii()
    answer = json.loads(body)
    assert answer["id"] == identity
    return answer


def test_methods_answer_with_fields_whatever_form_tools_have(tmp_path: Path) -> None:
    """Models read the answers of tools, programs those of methods."""
    scaffold(tmp_path)
    with running(tmp_path, "--format", "markdown") as process:
        called = ask(process, 1, "tools/call", name="directive_files_list", arguments={"limit": 1})
        assert called["result"]["content"][0]["text"].startswith("items: [directive/reference/")
        answer = ask(process, 2, "directive.files.list", limit=1)["result"]
        assert answer["files"] == answer["items"] != []


def test_a_client_with_headers_is_answered_with_headers(tmp_path: Path) -> None:
    """Without a handshake it gets the list, a call, and the methods of Directive with their errors."""
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
        assert (outside["code"], "outside" in outside["message"]) == (-32602, True)
        assert ask(process, 9, "directive.file.get")["error"]["code"] == -32602
        assert ask(process, 10, "nothing.here")["error"]["code"] == -32601
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_client_with_headers_may_shake_hands(tmp_path: Path) -> None:
    """Its own handshake is answered, and the server adds none."""
    with running(tmp_path) as process:
        params: Any = HELLO["params"]
        assert ask(process, 0, "initialize", **params)["result"]["serverInfo"]["name"] == "npl"
        assert process.stdin is not None
        process.stdin.write(framed(READY))
        assert ask(process, 1, "ping")["result"] == {}


def test_methods_are_accepted_on_lines_too(tmp_path: Path) -> None:
    """They come after the handshake, as the protocol demands."""
    scaffold(tmp_path)
    with spoken_to(tmp_path, "--root", str(tmp_path), cwd="") as server:
        bundle = server.ask("tdr.template")["result"]
    assert list(bundle)[:2] == ["primer", "agentOperatingProcedure"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("data", "methods"),
    [
        (framed(A), ["a"]),
        (framed(A) * 2, ["a", "a"]),
        (framed(HELLO) + framed(A), ["initialize", "a"]),
        (framed(A, indent=1), ["a"]),
        (framed(A, b"X: 1\r\ncontent-type: b\r\n"), ["a"]),
        (framed(A).replace(b"\r\n", b"\n"), ["a"]),
        (framed(HELLO) + framed(A)[:-1], ["initialize"]),
        (framed(HELLO) + b"Content-Length: 101\r\n\r\n" + b" " * 101, ["initialize"]),
        (framed(HELLO) + b'Content-Length: -1\r\n\r\n{"jsonrpc": "2.0", "method": "a"}', ["initialize"]),
        (framed(HELLO) + b'Content-Length: x\r\n\r\n{"jsonrpc": "2.0", "method": "a"}', ["initialize"]),
        (framed(HELLO) + b'{"jsonrpc": "2.0", "method": "a"}\n', ["initialize"]),
        (framed(HELLO) + b"X: 1\r\n" * 1000 + framed(A), ["initialize"]),
        (b"Content-Length", []),
        (b"", []),
    ],
)
def test_messages_behind_headers_are_read(data: bytes, methods: list[str]) -> None:
    """Whole messages within the limit are read; unreadable headers end the input."""
    limit = max(100, len(json.dumps(HELLO)))
    read, _ = through(data.replace(b"101", b"%d" % (limit + 1)), limit, Headers)
    assert [message.method for message in read] == ["notifications/initialized", *methods]


async def test_answers_have_headers_in_ascii() -> None:
    target = io.BytesIO()
    client = Headers(io.BytesIO(), target, 1_000)

    for request, result in ((1, "é"), (2, "y")):
        answer = JSONRPCResponse(jsonrpc="2.0", id=request, result={"r": result})
        await client.send(SessionMessage(answer))
    assert target.getvalue() == (
        b'Content-Length: 48\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{"r":"\\u00e9"}}'
        b'Content-Length: 43\r\n\r\n{"jsonrpc":"2.0","id":2,"result":{"r":"y"}}'
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end of the input wait for no answers, since these tests only read."""
    monkeypatch.setattr(stdio, "LAST_SECONDS", 0.0)


def through(data: bytes, limit: int = 1_000, kind: type[Lines] = Lines) -> tuple[list[Any], list[Any]]:
    """Return the readable messages, and the answers to the others."""
    target = io.BytesIO()
    read: list[Any] = []

    async def run() -> None:
        read.extend([item.message async for item in kind(io.BytesIO(data), target, limit)])

    anyio.run(run)
    written = target.getvalue().replace(b"Content-Length: ", b"\nContent-Length: ").splitlines()
    return read, [json.loads(line) for line in written if line.startswith(b"{")]


@pytest.mark.usefixtures("impatient")
def test_lines_of_standard_input_end_at_the_limit() -> None:
    """A line up to the limit is whole, a longer one is answered, and the next begins where it should."""
    ping = '{"jsonrpc":"2.0","id":%d,"method":"%s"}'
    lines = [(ping % (number, "x" * (length - 37))).encode() for number, length in enumerate(LENGTHS, 10)]
    assert list(map(len, lines)) == LENGTHS
    read, answers = through(b"\n".join(lines), 100)
    numbers = range(10, 10 + len(LENGTHS))
    assert [message.id for message in read] == [
        at for at, size in zip(numbers, LENGTHS, strict=True) if size <= 100
    ]
    assert [answer["id"] for answer in answers] == [
        at for at, size in zip(numbers, LENGTHS, strict=True) if size > 100
    ]
    assert all("longer than 100 bytes" in answer["error"]["message"] for answer in answers)


LENGTHS = [38, 99, 100, 101, 140, 38, 5_000, 100_000, 100, 200]

CALL = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x","arguments":{"a":%s}}}'
LAST = '{"method":"tools/call","params":{"name":"x","arguments":{"id":1,"a":%s}},"jsonrpc":"2.0","id":%s}'

UNREADABLE: dict[str, tuple[str | bytes, int, object]] = {
    **cases("npl_mcp/server/stdio")["unreadable"],
    "half a surrogate pair in bytes": (CALL.encode() % (b"7", b'"\xed\xa0\x80"'), -32700, 7),
    "not UTF-8": (CALL.encode() % (b"7", b'"\xff"'), -32700, 7),
    "300 levels": (CALL % (7, "[" * 300 + "]" * 300), -32600, 7),
    "100,000 levels": (CALL % (7, "[" * 100_000 + "]" * 100_000), -32600, 7),
    "100,000 levels, the id last": (LAST % ('{"a":' * 100_000 + "1" + "}" * 100_000, 7), -32600, 7),
    "unclosed levels": (CALL % (7, "[" * 100_000), -32600, 7),
    "5,000 digits": (CALL % (7, "9" * 5_000), -32700, 7),
    "100,000 values": (CALL % (7, "[" + "1," * 100_000 + "1]"), -32600, 7),
    "100,000 texts": (CALL % (7, "[" + '"a,",' * 100_000 + "1]"), -32600, 7),
    "100,000 keys": (CALL % (7, "{" + '"a":1,' * 100_000 + '"b":1}'), -32600, 7),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("case", UNREADABLE)
def test_what_the_sdk_would_drop_is_answered(case: str) -> None:
    """The answer has the request's id if it can be read; messages before and after are served."""
    line, code, request = UNREADABLE[case]
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    line = line if isinstance(line, bytes) else line.encode()
    read, answers = through(ping + line + b"\n\n \n" + ping, 10_000_000)
    assert [message.id for message in read] == [1, 1]
    (answer,) = answers
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", request, code), answer
    assert 20 < len(answer["error"]["message"]) < 300


@pytest.mark.usefixtures("impatient")
def test_texts_full_of_brackets_are_no_levels() -> None:
    """Brackets inside of strings do not count, with any escapes."""
    text = json.dumps('[{,"' * 50_000 + "\\")
    (message,), answers = through((CALL % (7, text)).encode() + b"\n", 10_000_000)
    assert (message.params["arguments"]["a"], answers) == (json.loads(text), [])


@pytest.mark.usefixtures("impatient")
def test_a_message_behind_a_header_is_answered_too() -> None:
    """A too long message is skipped; an unreadable one does not end the input."""
    long = (LAST % ('"' + "x" * 5_000 + '"', 8)).encode()
    parts = [b"{", (CALL % (7, r'"\ud800"')).encode(), long, b'{"jsonrpc":"2.0","id":9,"method":"ping"}']
    data = b"".join(b"Content-Length: %d\r\n\r\n" % len(part) + part for part in parts) + b"X: 1\n\n"
    read, answers = through(data, 1_000, Headers)
    assert read[-1].id == 9
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        (None, -32700),
        (7, -32700),
        (8, -32600),
        (None, -32700),
    ]


@pytest.mark.parametrize("frame", [lambda message: json.dumps(message).encode() + b"\n", framed])
def test_calls_at_the_end_of_the_input_are_answered(tmp_path: Path, frame: Callable[[object], bytes]) -> None:
    """Then the process ends; a cancelled call gets no answer."""
    calls = [
        HELLO,
        READY,
        calling("dén", "chat_create_room", name="den", members=["ann"]),
        calling("gone", "chat_get_feed", room_id=7, since=0, wait=60),
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "gone"}},
        calling(7, "search", query="quokka"),
    ]
    with running(tmp_path, "--root", str(tmp_path)) as process:
        sent, _ = process.communicate(b"".join(map(frame, calls)), 60)
        assert process.returncode == 0
    lines = re.findall(rb'\{"jsonrpc".*?(?=\s*Content-Length|\n|$)', sent)
    answers = {answer["id"]: answer for answer in map(json.loads, lines) if "id" in answer}
    assert {0, "dén", 7} <= answers.keys()
    assert all("result" in answers[number] for number in (0, "dén", 7))


def peak_of(process: subprocess.Popen[bytes]) -> int:
    memory = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(memory.partition("VmHWM:")[2].split()[0]) // 1024


def test_a_long_message_over_standard_streams_is_answered(tmp_path: Path) -> None:
    """The limit is that of HTTP; a longer message takes no memory, and the next is answered."""
    with spoken_to(tmp_path, NPL_MCP_MAX_BODY_BYTES="100000") as server:
        answers = [server.ask("ping", x="x" * length) for length in (90_000, 30_000_000, 1)]
        assert peak_of(server.process) < 250
    assert ["error" in answer for answer in answers] == [False, True, False]


@pytest.mark.thorough
def test_the_largest_artifact_passes_standard_streams(tmp_path: Path) -> None:
    """It passes both ways at the documented size; one byte more is refused in the envelope."""
    content = random.Random(1).randbytes(10 * 1024 * 1024)
    whole = {"artifact_type": "data", "filename": "a.bin"}
    with spoken_to(tmp_path) as server:

        def ask(tool: str, **arguments: Any) -> Any:
            return json.loads(server.call(tool, **arguments)["content"][0]["text"])

        sent = base64.b64encode(content).decode()
        made = ask("artifact_create", name="a", file_content_base64=sent, **whole)
        assert made["success"], made
        got = ask("artifact_get", artifact_id=made["data"]["artifact_id"])
        assert base64.b64decode(got["data"]["file_content"]) == content
        more = base64.b64encode(content + b"x").decode()
        refused = ask("artifact_create", name="b", file_content_base64=more, **whole)
        assert (refused["success"], refused["error_code"]) == (False, "INVALID_PARAMETER")


MISTAKES: tuple[tuple[str, dict[str, Any]], ...] = cases("npl_mcp/server/stdio")["mistakes"]


@pytest.mark.parametrize("flags", [(), ("--exact-names",)])
def test_mistakes_of_a_client_leave_standard_error_silent(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """The answer tells the client; the log is for faults of the server."""
    with spoken_to(tmp_path, *flags) as server:
        for tool, arguments in MISTAKES:
            assert server.call(tool, **arguments)["isError"] is True
        for line in ("nonsense", '{"jsonrpc":"2.0","id":1,"method":"no/such"}', CALL % (2, r'"\ud800"')):
            server.send(line.encode())
            assert "error" in server.receive()
        server.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}')
        assert server.receive()["error"]
        server.send(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}')
        server.send(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"x"}}')
        server.send(b'{"jsonrpc":"2.0","id":77,"result":{}}')
        server.ask("ping")
        assert server.end() == 0
    assert (tmp_path / "stderr.txt").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize(("flags", "names", "warnings"), cases("npl_mcp/server/stdio")["old_names"])
def test_an_old_name_warns_once(
    tmp_path: Path, flags: list[str], names: list[str], warnings: list[str]
) -> None:
    """A name that is not listed causes one warning per process, on standard error, at the default level."""
    with spoken_to(tmp_path, *flags) as server:
        for name in names:
            server.call(name)
        server.end()
    lines = (tmp_path / "stderr.txt").read_text(encoding="utf-8").splitlines()
    assert [line.split(" WARNING ")[1].split(": the tool name ")[1] for line in lines] == warnings


def test_the_parser_keeps_its_rules_to_itself(tmp_path: Path) -> None:
    """At the level DEBUG the log has keywords and scores, not each rule of the parser."""
    with spoken_to(tmp_path, "--log-level", "DEBUG") as server:
        assert not server.call("npl_load_tailored", context="nested fences", file="npl.md").get("isError")
        server.end()
    said = (tmp_path / "stderr.txt").read_text(encoding="utf-8")
    assert ["keywords" in said, "ranked" in said, "markdown_it" in said] == [True, True, False]


BEFORE_THE_END = {
    "a large answer": json.dumps(calling(2, "artifact_get", artifact_id=1)).encode() + b"\n",
    "several": b"".join(
        json.dumps(calling(number, "artifact_get", artifact_id=1)).encode() + b"\n" for number in range(2, 8)
    ),
    "half a line": b'{"jsonrpc":"2.0","id":2,"meth',
    "no messages": b"nonsense\n" * 2_000,
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sent", "keeps"),
    cases("npl_mcp/server/stdio")["a_client_that_goes_away_leaves_no_traceback"],
)
def test_a_client_that_goes_away_leaves_no_traceback(tmp_path: Path, sent: str, keeps: str) -> None:
    """The process ends, even if another program keeps standard input open."""
    content = base64.b64encode(bytes(2 * 1024 * 1024)).decode()
    whole = {"name": "a", "artifact_type": "data", "filename": "a", "file_content_base64": content}
    with spoken_to(tmp_path) as server:
        server.call("artifact_create", **whole)
        server.stdin.write(BEFORE_THE_END[sent])
        server.stdin.flush()
        server.stdout.close()
        if keeps == "nothing":
            server.stdin.close()
        assert server.process.wait(60) == 0
    assert (tmp_path / "stderr.txt").read_text(encoding="utf-8") == ""
