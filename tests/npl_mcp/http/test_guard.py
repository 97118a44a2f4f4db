"""Who may call the HTTP server: every way a page, a stranger or a broken client may try."""

from __future__ import annotations

import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from npl_index.errors import InvalidRequestError
from npl_mcp.config.settings import Listening
from npl_mcp.http.guard import BODY_SECONDS, HELD_BODIES, Guard, Policy, names
from npl_mcp.http.listening import bind_path, bind_port
from npl_mcp.http.service import check, is_loopback
from tests.npl_mcp.http.http_server import (
    JSON,
    Running,
    call,
    connected,
    mcp,
    read,
    request,
    serving,
)

TOKEN = "a-token-of-this-test-alone"
BODY = {"file": "guide.md"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that needs a token on its port and none on its socket."""
    folder = tmp_path_factory.mktemp("guard")
    root = folder / "docs"
    root.mkdir()
    (root / "guide.md").write_text("# Guide\n\n## One\n\nText.\n", encoding="utf-8")
    flags = ("--root", str(root), "--socket", str(folder / "s"), "--port", "0")
    extra = {"NPL_MCP_HOSTS": "tools.example", "NPL_MCP_ORIGINS": "https://app.example"}
    with serving(folder, *flags, NPL_MCP_TOKEN=TOKEN, NPL_MCP_MAX_BODY_BYTES="100000", **extra) as running:
        yield running


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def index(server: Running, host: str | None = "", **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return request(
        server, "POST", "/mcp/tools/npl_section_index", BODY, {**JSON, **bearer(), **named}, host
    ).status


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "tools.example"])
def test_the_servers_own_names_are_let_in(server: Running, name: str) -> None:
    """A request that names the server as it is known, with its port, is answered."""
    assert index(server, host=f"{name}:{server.port}") == 200


def test_an_added_name_needs_no_port(server: Running) -> None:
    """Behind a proxy the port of the name is another one."""
    assert index(server, host="tools.example") == 200


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1.evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""]
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index", "/metrics", "/healthz"])
def test_foreign_names_are_refused(server: Running, name: str, path: str) -> None:
    """A page whose host name was made to mean this machine gets nothing from any path."""
    method = "POST" if path.startswith("/mcp") else "GET"
    host = name.format(port=server.port) or " "
    assert request(server, method, path, BODY, {**JSON, **bearer()}, host).status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:{port}", ""]
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index"])
def test_web_pages_are_refused(server: Running, origin: str, path: str) -> None:
    """A local page is no friend: any origin that is not allowed is refused, and no answer says CORS."""
    headers = {**JSON, **bearer(), "Origin": origin.format(port=server.port)}
    answer = request(server, "POST", path, BODY, headers)
    assert answer.status == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert request(server, "OPTIONS", path, None, headers).status == 403


def test_an_allowed_origin_is_let_in(server: Running) -> None:
    """A page the user allowed may call."""
    assert index(server, Origin="https://app.example") == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "text/json"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index"])
def test_what_a_form_can_send_is_refused(server: Running, kind: str, path: str) -> None:
    """A content type that browsers send without asking is refused."""
    headers = {**bearer(), **({"Content-Type": kind} if kind else {})}
    assert request(server, "POST", path, BODY, headers).status == 400


@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong-token-wrong-token", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer "]
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index", "/metrics"])
def test_without_the_token_nothing_is_answered(server: Running, authorization: str | None, path: str) -> None:
    """A missing or wrong token is 401, and what is asked for does not matter."""
    headers = {**JSON, **({"Authorization": authorization} if authorization is not None else {})}
    method = "GET" if path == "/metrics" else "POST"
    answer = request(server, method, path, BODY, headers)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.data["error_code"] == "PERMISSION_DENIED"


def test_health_needs_no_token_and_tells_no_secret(server: Running) -> None:
    """Whoever watches over servers learns that it lives, its name and its version."""
    answer = request(server, "GET", "/healthz")
    assert answer.status == 200
    assert answer.data.keys() == {"ok", "name", "version"}


def test_the_token_of_the_state_file_is_let_in(server: Running) -> None:
    """Who can read the state file is the user who runs the server."""
    assert index(server, Authorization=f"Bearer {server.state.token}") == 200


def test_the_socket_is_this_users_alone_and_needs_no_token(server: Running) -> None:
    """The file's mode says who may call; the name a caller gives the server means nothing there."""
    path = server.state.socket
    assert path is not None
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(30)
        line.connect(path)
        line.sendall(
            b"POST /mcp/tools/npl_section_index HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b'Content-Length: 19\r\n\r\n{"file":"guide.md"}'
        )
        assert read(line).status == 200


def test_the_callers_folder_is_its_own_affair(server: Running, tmp_path: Path) -> None:
    """A folder is searched for the user who runs the server; a stranger is told that it is not."""
    (tmp_path / "mine.md").write_text("# Mine\n", encoding="utf-8")
    wanted = {"file": "mine.md"}
    own = bearer(server.state.token)
    headers = {"NPL_Cwd": str(tmp_path)}
    assert call(server, "npl_section_index", wanted, **own, **headers).data["data"]["file"] == "mine.md"
    assert call(server, "npl_section_index", wanted, **own).status == 404
    refused = call(server, "npl_section_index", wanted, **bearer(), **headers)
    assert (refused.status, refused.headers["npl-cwd"]) == (403, "refused")
    assert str(tmp_path) not in refused.body.decode()
    missing = call(server, "npl_section_index", wanted, **own, NPL_Cwd=str(tmp_path / "gone"))
    assert (missing.status, missing.headers["npl-cwd"]) == (403, "refused")


def test_the_callers_folder_over_mcp(server: Running, tmp_path: Path) -> None:
    """The same by a message of the protocol; a refusal is marked for programs."""
    (tmp_path / "mine.md").write_text("# Mine\n", encoding="utf-8")
    params = {
        "name": "npl_section_index",
        "arguments": {"file": "mine.md"},
        "_meta": {"npl/cwd": str(tmp_path)},
    }
    allowed = mcp(server, "tools/call", params, **bearer(server.state.token)).data["result"]
    assert not allowed.get("isError")
    refused = mcp(server, "tools/call", params, **bearer()).data["result"]
    assert refused["isError"]
    assert refused["_meta"]["npl/cwd"] == "refused"


def test_a_folder_below_a_root_is_anyones(server: Running) -> None:
    """What is shown to all may be the place to look from."""
    docs = server.folder / "docs"
    assert call(server, "npl_section_index", BODY, **bearer(), NPL_Cwd=str(docs)).status == 200


def test_long_bodies_are_refused_before_they_are_read(server: Running) -> None:
    """The limit is the same by its length, in parts, and for both faces."""
    for path in ("/mcp", "/mcp/tools/npl_section_index"):
        body = b'{"file": "' + b"x" * 100_000 + b'"}'
        assert request(server, "POST", path, body, {**JSON, **bearer()}).status == 413
        parts = {**JSON, **bearer(), "Transfer-Encoding": "chunked"}
        with connected(server) as line:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost:{server.port}\r\n"
            line.sendall((head + "".join(f"{k}: {v}\r\n" for k, v in parts.items()) + "\r\n").encode())
            for _ in range(2):
                line.sendall(b"f000\r\n" + b"x" * 0xF000 + b"\r\n")
            assert read(line).status == 413
    assert index(server) == 200


def test_half_sent_bodies_are_refused(server: Running) -> None:
    """Who sends half of a body is refused in time; others are served meanwhile, whoever sends nothing."""
    head = f"POST /mcp HTTP/1.1\r\nHost: localhost:{server.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
    half = [
        b"",
        b"POST /mcp HT",
        head.encode(),
        f"{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode(),
    ]
    lines = [connected(server) for _ in range(10) for _ in half]
    start = time.monotonic()
    try:
        for number, line in enumerate(lines):
            line.sendall(half[number % len(half)])
        assert index(server) == 200
        for number, line in enumerate(lines):
            if number % len(half) == len(half) - 1:
                line.settimeout(BODY_SECONDS + 10)
                assert line.recv(100).startswith(b"HTTP/1.1 408")
                assert time.monotonic() - start > BODY_SECONDS * 0.9
    finally:
        for line in lines:
            line.close()


@pytest.mark.parametrize(
    "listening",
    [
        Listening(host="0.0.0.0"),
        Listening(host="::"),
        Listening(host="192.0.2.1"),
        Listening(host="my-machine"),
        Listening(token="short"),
        Listening(token="with a\nline end in it, long enough"),
    ],
    ids=str,
)
def test_what_everyone_could_call_does_not_start(listening: Listening) -> None:
    """Another address than this machine's own needs a token, and one worth the name."""
    with pytest.raises(InvalidRequestError):
        check(listening)


@pytest.mark.parametrize(
    "listening",
    [
        Listening(),
        Listening(host="::1"),
        Listening(host="127.0.0.7"),
        Listening(host="0.0.0.0", token=TOKEN),
        Listening(host="0.0.0.0", port=None, socket=Path("s")),
    ],
    ids=str,
)
def test_what_only_this_machine_or_holders_of_the_token_can_call_starts(listening: Listening) -> None:
    """The machine's own addresses need none, nor does a socket."""
    check(listening)


def test_the_names_of_a_server() -> None:
    """A port of 80 is left out by clients; the address listened on is a name as well."""
    assert "localhost" in names(Listening(), 80)
    assert "localhost" not in names(Listening(), 8765)
    assert "[fd00::1]:8765" in names(Listening(host="fd00::1"), 8765)
    assert not is_loopback("localhost.evil.example")


def test_a_socket_replaces_only_what_nobody_listens_on(tmp_path: Path) -> None:
    """A left-over socket is replaced; one in use, a file, and a folder others may write to are refused."""
    path = tmp_path / "s"
    first = bind_path(path)
    with pytest.raises(InvalidRequestError, match="in use"):
        bind_path(path)
    first.close()
    bind_path(path).close()
    file = tmp_path / "file"
    file.write_text("kept", encoding="utf-8")
    with pytest.raises(InvalidRequestError):
        bind_path(file)
    assert file.read_text(encoding="utf-8") == "kept"
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(InvalidRequestError, match="others may write"):
        bind_path(shared / "s")


def test_answers_do_not_wait_for_the_clients_system() -> None:
    """Only what has the number of TCP is told to send small packets at once; otherwise each takes 40 ms."""
    with bind_port("127.0.0.1", 0) as one:
        assert one.proto == socket.IPPROTO_TCP


def test_calls_beyond_the_cap_are_sent_away() -> None:
    """One call more than allowed is told when to come back; a place is free once an answer begins."""

    async def run() -> list[int]:
        started, finish, sent = anyio.Event(), anyio.Event(), []

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            assert (await receive())["body"] == b"{}"
            started.set()
            await finish.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            assert sent[-1]["status"] == 200
            await post(guard, sent)

        policy = Policy(frozenset({"h"}), (), None, "own", body_limit=10, max_calls=1)
        guard = Guard(slow, policy)
        async with anyio.create_task_group() as group:
            group.start_soon(post, guard, sent)
            await started.wait()
            await post(guard, sent)
            busy = sent[0]
            assert (b"retry-after", b"1") in busy["headers"]
            finish.set()
            with anyio.move_on_after(5):
                while len([one for one in sent if one["type"].endswith("start")]) < 3:
                    await anyio.sleep(0.001)
            group.cancel_scope.cancel()
        return [one["status"] for one in sent if one["type"].endswith("start")]

    assert anyio.run(run)[:3] == [503, 200, 200]


def test_bodies_in_memory_are_bounded() -> None:
    """Many callers that send long bodies slowly do not fill the memory; short ones are served again after."""

    async def run() -> list[int]:
        sent: list[Any] = []

        async def quick(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})

        guard = Guard(quick, Policy(frozenset({"h"}), (), None, "own", body_limit=10, max_calls=99))
        async with anyio.create_task_group() as group:
            for _ in range(HELD_BODIES):
                group.start_soon(post, guard, [], b"x" * 10, anyio.sleep_forever)
            await anyio.wait_all_tasks_blocked()
            await post(guard, sent)
            group.cancel_scope.cancel()
        await post(guard, sent)
        return [one["status"] for one in sent if one["type"].endswith("start")]

    assert anyio.run(run) == [503, 200]


async def post(guard: Guard, sent: list[Any], body: bytes = b"{}", wait: Any = None) -> None:
    """Send a request to a guard.

    :param wait: awaited after the body, which has no end then.
    """
    headers = [(b"host", b"h"), (b"content-type", b"application/json")]
    server = ("127.0.0.1", 1)
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers, "server": server}

    messages = [{"type": "http.request", "body": body, "more_body": wait is not None}]

    async def receive() -> Any:
        return messages.pop() if messages else await wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await guard(scope, receive, send)
