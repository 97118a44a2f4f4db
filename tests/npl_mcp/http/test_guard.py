"""Access to the HTTP server, as a web page, a stranger and a broken client try it."""

import base64
import errno
import os
import pwd
import socket
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from npl_index.errors import InvalidRequestError
from npl_mcp.config.settings import Settings
from npl_mcp.http import guard as guard_module
from npl_mcp.http import listening
from npl_mcp.http.guard import BODY_SECONDS, CROWD, MAX_ANSWERS, MAX_BODIES, READ_AT_ONCE, Guard
from npl_mcp.http.listening import bind_port
from npl_mcp.http.policy import Policy, host_names
from npl_mcp.http.service import bind_path, check, is_loopback, needs_token
from npl_mcp.stores.access import add_token, revoke_token
from npl_mcp.stores.data_folder import Stores
from tests.conftest import cases
from tests.npl_mcp.http.http_server import JSON, Running, read, serving
from tests.until import PATIENCE, until

TOKEN = "a-token-of-this-test-alone"
BODY = {"file": "guide.md"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that needs a token on its port and none on its socket."""
    folder = tmp_path_factory.mktemp("guard")
    files = {"docs/guide.md": "# Guide\n\n## One\n\nText.\n"}
    flags = ("--socket", str(folder / "s"), "--port", "0")
    variables = {"NPL_MCP_HOSTS": "tools.example", "NPL_MCP_ORIGINS": "https://app.example"}
    variables |= {"NPL_MCP_TOKEN": TOKEN, "NPL_MCP_MAX_BODY_BYTES": "100000"}
    with serving(folder, *flags, files=files, **variables) as running:
        yield running


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def index(server: Running, host: str | None = "", **headers: str) -> int:
    sent = {**JSON, **bearer(), **headers}
    return server.request("POST", "/mcp/tools/npl_section_index", BODY, sent, host).status


NAMES = ["127.0.0.1:{0}", "localhost:{0}", "LOCALHOST:{0}", "[::1]:{0}", "tools.example:{0}", "tools.example"]


@pytest.mark.parametrize("name", NAMES)
def test_the_servers_own_names_are_let_in(server: Running, name: str) -> None:
    """An added name needs no port, since behind a proxy that differs."""
    assert index(server, host=name.format(server.port)) == 200


@pytest.mark.parametrize(
    "name", ["evil.example", "127.0.0.1.evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", ""]
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index", "/metrics", "/healthz"])
def test_foreign_names_are_refused(server: Running, name: str, path: str) -> None:
    """A page whose host name was made to mean this machine gets nothing from any path."""
    method = "POST" if path.startswith("/mcp") else "GET"
    host = name.format(port=server.port) or " "
    assert server.request(method, path, BODY, {**JSON, **bearer()}, host).status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:{port}", ""]
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index"])
def test_web_pages_are_refused(server: Running, origin: str, path: str) -> None:
    """Every origin that is not allowed is refused, even a local one, and no answer allows CORS."""
    headers = {**JSON, **bearer(), "Origin": origin.format(port=server.port)}
    answer = server.request("POST", path, BODY, headers)
    assert answer.status == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert server.request("OPTIONS", path, None, headers).status == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "text/json"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index"])
def test_what_a_form_can_send_is_refused(server: Running, kind: str, path: str) -> None:
    """A content type that browsers send without asking is refused."""
    headers = {**bearer(), **({"Content-Type": kind} if kind else {})}
    assert server.request("POST", path, BODY, headers).status == 400


@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong-token-wrong-token", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer "]
)
@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index", "/metrics"])
def test_without_the_token_nothing_is_answered(server: Running, authorization: str | None, path: str) -> None:
    headers = {**JSON, **({"Authorization": authorization} if authorization is not None else {})}
    method = "GET" if path == "/metrics" else "POST"
    answer = server.request(method, path, BODY, headers)
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.data["error_code"] == "PERMISSION_DENIED"


def test_health_needs_no_token_and_tells_no_secret(server: Running) -> None:
    answer = server.request("GET", "/healthz")
    assert answer.status == 200
    assert answer.data.keys() == {"ok", "name", "version"}


def test_the_socket_is_this_users_alone_and_needs_no_token(server: Running) -> None:
    """The file's mode says who may call; the Host header means nothing there."""
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
    """It is searched for the user who runs the server, whom the token of the state file proves; others may
    name a folder below a root, and programs recognize a refusal.
    """
    (tmp_path / "mine.md").write_text("# Mine\n", encoding="utf-8")
    wanted, own = {"file": "mine.md"}, bearer(server.state.token)
    headers = {"NPL_Cwd": str(tmp_path)}
    answer = server.call("npl_section_index", wanted, **own, **headers)
    assert answer.data["data"]["file"] == "mine.md"
    assert server.call("npl_section_index", wanted, **own).status == 404
    for who, folder in ((bearer(), tmp_path), (own, tmp_path / "gone")):
        refused = server.call("npl_section_index", wanted, **who, NPL_Cwd=str(folder))
        assert (refused.status, refused.headers["npl-cwd"]) == (403, "refused")
        assert str(tmp_path) not in refused.body.decode()
    docs = str(server.folder / "docs")
    assert server.call("npl_section_index", BODY, **bearer(), NPL_Cwd=docs).status == 200
    params = {"name": "npl_section_index", "arguments": wanted, "_meta": {"npl/cwd": str(tmp_path)}}
    assert not server.mcp("tools/call", params, **own).data["result"].get("isError")
    result = server.mcp("tools/call", params, **bearer()).data["result"]
    assert (result["isError"], result["_meta"]["npl/cwd"]) == (True, "refused")


def test_long_bodies_are_refused_before_they_are_read(server: Running) -> None:
    """The limit is the same for an announced length, for chunks, and for both faces."""
    for path in ("/mcp", "/mcp/tools/npl_section_index"):
        body = b'{"file": "' + b"x" * 100_000 + b'"}'
        assert server.request("POST", path, body, {**JSON, **bearer()}).status == 413
        chunked = {**JSON, **bearer(), "Transfer-Encoding": "chunked"}
        with server.connected() as line:
            line.sendall(server.message("POST", path, None, chunked))
            for _ in range(2):
                line.sendall(b"f000\r\n" + b"x" * 0xF000 + b"\r\n")
            assert read(line).status == 413
    assert index(server) == 200


@pytest.mark.thorough
def test_half_sent_bodies_are_refused(server: Running) -> None:
    """Half a body is refused in time; other callers are served meanwhile."""
    begun = server.message("POST", "/mcp", b"{", {**bearer(), **JSON, "Content-Length": "50"})
    half = [b"", begun[:12], begun[: begun.index(b"Content-Type")], begun]
    lines = [server.connected() for _ in range(10) for _ in half]
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


OPEN = [{"host": host} for host in ("0.0.0.0", "::", "192.0.2.1", "my-machine")]
CLOSED = [{}, {"host": "::1"}, {"host": "127.0.0.7"}, {"host": "0.0.0.0", "token": TOKEN}]
CLOSED += [{"host": "0.0.0.0", "port": None, "socket": Path("s")}]
STARTS = [*((True, changes) for changes in OPEN), *((False, changes) for changes in CLOSED)]


@pytest.mark.parametrize(("open_to_all", "changes"), STARTS, ids=str)
def test_what_everyone_could_call_does_not_start(
    open_to_all: bool, changes: dict[str, Any], settings: Settings
) -> None:
    """An address that others reach needs a token; a socket needs none."""
    with pytest.raises(InvalidRequestError) if open_to_all else nullcontext():
        check(replace(settings, **changes))


def test_tokens_of_single_callers_are_enough(settings: Settings) -> None:
    """A server with tokens is closed to all others, even after the last is revoked."""
    public = replace(settings, host="0.0.0.0")
    stores = Stores(settings.data_folder)
    stores.database.writing(add_token, "alice")
    stores.database.writing(revoke_token, "alice")
    stores.close()
    check(public)
    assert needs_token(public)
    assert needs_token(replace(public, no_token=True))


def test_the_names_of_a_server(settings: Settings) -> None:
    """Clients leave out port 80; the listening address is a name as well."""
    assert "localhost" in host_names(settings, 80)
    assert "localhost" not in host_names(settings, 8765)
    assert "[fd00::1]:8765" in host_names(replace(settings, host="fd00::1"), 8765)
    assert not is_loopback("localhost.evil.example")


def test_a_socket_replaces_only_one_without_a_listener(tmp_path: Path) -> None:
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
    """A connection sends small packets at once; otherwise each takes 40 ms."""
    with bind_port("127.0.0.1", 0) as port, socket.create_connection(port.getsockname()):
        line, _ = port.accept()
        with line:
            assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_system_ends_a_connection_whose_caller_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer would otherwise stay in memory."""
    monkeypatch.setattr(listening, "READ_SECONDS", 1)
    with bind_port("127.0.0.1", 0) as port, socket.create_connection(port.getsockname()):
        line, _ = port.accept()
        line.settimeout(60)
        with line, pytest.raises(TimeoutError) as raised:
            line.sendall(bytes(100_000_000))
    assert raised.value.errno == errno.ETIMEDOUT


def policy_of(body_limit: int, max_calls: int) -> Policy:
    settings = Settings(Path(), Path(), max_body_bytes=body_limit, max_calls=max_calls)
    return Policy(settings, frozenset({"h"}), "own")


def statuses(sent: list[Any]) -> list[int]:
    return [message["status"] for message in sent if message["type"].endswith("start")]


async def test_calls_beyond_the_cap_are_sent_away() -> None:
    """The answer says when to come back; a sent answer frees a place."""
    started, finish, read, sent = anyio.Event(), anyio.Event(), anyio.Event(), []

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"{}"
        started.set()
        await finish.wait()
        await answer(b"x")(scope, receive, send)

    guard = Guard(slow, policy_of(10, 1))
    async with anyio.create_task_group() as group:
        group.start_soon(partial(post, guard, sent, reading=read.wait, caller=1))
        await started.wait()
        await post(guard, sent, caller=1)
        assert (b"retry-after", b"1") in sent[0]["headers"]
        finish.set()
        await anyio.wait_all_tasks_blocked()
        await post(guard, sent, caller=1)
        assert statuses(sent) == [503, 503]
        read.set()
        await anyio.wait_all_tasks_blocked()
        await post(guard, sent, caller=1)
        assert statuses(sent) == [503, 503, 200, 200]


async def test_the_only_call_of_a_caller_waits_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tokens each connection is a caller."""
    monkeypatch.setattr(guard_module, "BUSY_SECONDS", 0.01)

    finish, sent = anyio.Event(), []

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await finish.wait()
        await answer(b"x")(scope, receive, send)

    guard = Guard(slow, policy_of(1_000, 1))
    async with anyio.create_task_group() as group:
        for caller in range(3 * guard_module.CROWD):
            group.start_soon(partial(post, guard, sent, caller=caller))
        await anyio.wait_all_tasks_blocked()
        assert statuses(sent) == []
        finish.set()
    assert statuses(sent) == [200] * (3 * guard_module.CROWD)


async def test_a_caller_with_many_calls_is_refused_before_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """One caller leaves a quarter of the places to others; after that each still has a few."""
    monkeypatch.setattr(guard_module, "BUSY_SECONDS", 0)
    monkeypatch.setattr(guard_module, "TURN_SECONDS", 0)

    async def never(scope: Any, receive: Any, send: Any) -> None:
        await anyio.sleep_forever()

    guard = Guard(never, policy_of(1_000, 16))
    sent: dict[str, list[Any]] = {"one": [], "another": [], "third": [], "quiet": []}
    async with anyio.create_task_group() as group:
        for who, calls, refused in (("one", 20, 8), ("another", 20, 16), ("third", 20, 18), ("quiet", 2, 0)):
            for _ in range(calls):
                group.start_soon(partial(post, guard, sent[who], caller=who))
            await anyio.wait_all_tasks_blocked()
            assert statuses(sent[who]) == [503] * refused, who
        for number in range(CROWD * 16 - 20):
            group.start_soon(partial(post, guard, sent["quiet"], caller=number))
        await anyio.wait_all_tasks_blocked()
        assert sent["quiet"] == []
        await post(guard, sent["quiet"])
        assert statuses(sent["quiet"]) == [503]
        group.cancel_scope.cancel()


@pytest.mark.parametrize("bodies", [range(MAX_BODIES), [1] * MAX_BODIES])
async def test_small_bodies_find_room_next_to_any_others(bodies: Sequence[int]) -> None:
    """Long bodies on their way, of many callers or of one, delay no ordinary call."""
    small, long = [], []
    policy = policy_of(100_000, 99)
    guard = Guard(answer(b"x"), policy)
    async with anyio.create_task_group() as group:
        for caller in bodies:
            group.start_soon(
                partial(post, guard, long, b"x" * 100_000, anyio.sleep_forever, caller=f"c{caller}")
            )
        await anyio.wait_all_tasks_blocked()
        await post(guard, small)
        await post(guard, long, b"[" + b" " * 99_000 + b"]", caller="c1")
        group.cancel_scope.cancel()
    assert statuses(small) == [200]
    assert set(statuses(long)) == {503}
    await post(guard, small, b"[" + b" " * 99_000 + b"]", caller="c1")
    assert statuses(small) == [200, 200]


def answer(body: bytes) -> Any:
    """Return an application that answers with a body."""

    async def answering(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answering


LONG = bytes(range(256)) * 16 * 1024


async def test_a_long_answer_is_sent_whole_and_waited_for() -> None:
    """The end of the answer is sent once the body has been read."""
    sent: list[Any] = []
    guard = Guard(answer(LONG), policy_of(10, 1))
    await post(guard, sent)
    assert statuses(sent) == [200]
    assert [(message["body"], message.get("more_body", False)) for message in sent[1:]] == [
        (LONG, True),
        (b"", False),
    ]


@pytest.mark.parametrize("one", [False, True])
async def test_long_answers_in_memory_are_bounded(one: bool) -> None:
    """While others are being read, the next caller is told to come back; one caller leaves room for all."""
    policy = policy_of(len(LONG), 99)
    guard, slow, sent = Guard(answer(LONG), policy), list[Any](), list[Any]()
    async with anyio.create_task_group() as group:
        for _ in range(MAX_ANSWERS):
            caller = 1 if one else None
            group.start_soon(partial(post, guard, slow, reading=anyio.sleep_forever, caller=caller))
        await anyio.wait_all_tasks_blocked()
        await post(guard, sent)
        await post(Guard(answer(b"x" * (READ_AT_ONCE + 1)), policy), sent)
        group.cancel_scope.cancel()
    assert (statuses(slow), statuses(sent)) == ([], [200 if one else 503, 200])


@pytest.mark.thorough
def test_a_reader_that_reads_nothing_takes_next_to_no_memory(tmp_path: Path) -> None:
    """Connections ask for a large answer and do not read it; others are served all the while."""
    with serving(tmp_path, NPL_MCP_MAX_CALLS="8") as server:
        content = base64.b64encode(bytes(8 * 1024 * 1024)).decode()
        whole = {"name": "a", "artifact_type": "data", "filename": "a", "file_content_base64": content}
        assert server.call("artifact_create", whole).status == 200
        asked = server.message("POST", "/mcp/tools/artifact_get", {"artifact_id": 1}, JSON)
        lines = []
        try:
            for _ in range(40):
                line = server.connected()
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                line.sendall(asked)
                lines.append(line)
            until(lambda: server.call("session_list", {}).status == 200)
        finally:
            for line in lines:
                line.close()
        memory = Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
        assert int(memory.partition("VmHWM:")[2].split()[0]) // 1024 < 600
        assert "Traceback" not in server.log


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(("part", "status"), [(b"x", 408), (b"x" * 1_000, 413)])
async def test_a_body_has_one_deadline(
    part: bytes, status: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that trickle in end with it, however often they come; a body that arrives fast gets more time."""
    monkeypatch.setattr(guard_module, "BODY_SECONDS", 0.1)
    monkeypatch.setattr(guard_module, "BODY_RATE", 1_000)
    sent: list[Any] = []

    async def dribbled() -> Any:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": part, "more_body": True}

    with anyio.fail_after(PATIENCE):
        await post(Guard(answer(b"x"), policy_of(20_000, 99)), sent, b"", dribbled, method=method)
    assert statuses(sent) == [status]


async def post(
    guard: Guard,
    sent: list[Any],
    body: bytes = b"{}",
    wait: Any = None,
    reading: Any = None,
    caller: object = None,
    method: str = "POST",
) -> None:
    """Send a request to a guard.

    :param wait: awaited after the body, which has no end then.
    :param reading: awaited before each message of the answer is taken.
    :param caller: whose connection it is; by default one of its own.
    """
    headers = [(b"host", b"h"), (b"content-type", b"application/json")]
    server = ("127.0.0.1", 1)
    scope = {"type": "http", "method": method, "path": "/mcp", "headers": headers, "server": server}

    messages = [{"type": "http.request", "body": body, "more_body": wait is not None}]

    async def receive() -> Any:
        return messages.pop() if messages else await wait()

    async def send(message: Any) -> None:
        if reading is not None:
            await reading()
        sent.append(message)

    await guard({**scope, "client": caller, "state": {}}, receive, send)


SENT = ("accept", "authorization", "content-type", "mcp-protocol-version", "mcp-session-id")
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": ", ".join(SENT)}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/npl_section_index"])
def test_a_browser_may_ask_for_a_listed_origin(server: Running, path: str) -> None:
    """It needs no token yet; the answer allows what MCP clients in pages send."""
    headers = {"Origin": "https://app.example", **PREFLIGHT, "Access-Control-Request-Private-Network": "true"}
    answer = server.request("OPTIONS", path, None, headers)
    assert answer.status == 200
    told = {name: value for name, value in answer.headers.items() if name.startswith("access-control")}
    assert told.pop("access-control-allow-origin") == "https://app.example"
    assert {"POST", "GET", "DELETE"} == set(told.pop("access-control-allow-methods").split(", "))
    allowed = told.pop("access-control-allow-headers").lower().split(", ")
    assert set(SENT) <= set(allowed)
    assert told.pop("access-control-allow-private-network") == "true"
    assert answer.headers["vary"].startswith("Origin")
    for other in ("https://evil.example", "null"):
        refused = server.request("OPTIONS", path, None, {**headers, "Origin": other})
        assert refused.status == 403
        assert not any(name.startswith("access-control") for name in refused.headers)


def test_a_page_of_a_listed_origin_may_read_every_answer(server: Running) -> None:
    """It may read successes, refusals and the session's id."""
    page = {"Origin": "https://app.example"}
    for answer in (
        server.request("POST", "/mcp/tools/npl_section_index", BODY, {**JSON, **bearer(), **page}),
        server.request("POST", "/mcp/tools/npl_section_index", BODY, {**JSON, **page}),
        server.request("GET", "/healthz", None, page),
        server.mcp("tools/list", {}, Origin="https://app.example", **bearer()),
    ):
        assert answer.status in (200, 401)
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
    assert server.request("OPTIONS", "/mcp", None, page).status == 401
    assert "access-control-allow-origin" not in server.request("GET", "/healthz").headers


WIDE = {
    "values": b'{"topics":[' + b"1," * 100_000 + b"1]}",
    "levels": b'{"file":' + b"[" * 2_000 + b"]" * 2_000 + b"}",
    "keys": b"{" + b'"a":1,' * 50_000 + b'"b":1}',
}


@pytest.mark.parametrize("case", WIDE)
async def test_wide_bodies_are_refused_before_they_are_parsed(case: str) -> None:
    """A parser would need many times their size, on either route."""

    async def never(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    sent: list[Any] = []
    await post(Guard(never, policy_of(10_000_000, 1)), sent, WIDE[case])
    assert statuses(sent) == [400]
    assert b"INVALID_PARAMETER" in sent[1]["body"]


ACCOUNTS = cases("npl_mcp/http/guard")["accounts"]


@pytest.mark.parametrize("case", ACCOUNTS)
def test_accounts_that_could_reach_a_port(
    case: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only accounts with a login shell count, not those of services."""
    accounts, own, expected = ACCOUNTS[case]
    entries = [pwd.struct_passwd(("", "", number, 0, "", "", shell)) for number, shell in accounts]
    monkeypatch.setattr(pwd, "getpwall", lambda: entries)
    monkeypatch.setattr(os, "geteuid", lambda: own)
    assert needs_token(settings) is expected


def test_a_port_needs_a_token_where_other_people_have_accounts(tmp_path: Path, settings: Settings) -> None:
    """The password database decides; an option turns it off, and a socket needs none."""
    wanted = needs_token(settings)
    with serving(tmp_path, NPL_MCP_NO_TOKEN="0") as server:
        assert server.state.guarded is wanted
        assert server.call("session_list", {}).status == (401 if wanted else 200)
        assert server.call("session_list", {}, **bearer(server.state.token)).status == 200
    with serving(tmp_path, "--no-token", NPL_MCP_NO_TOKEN="0") as server:
        assert server.state.guarded is False
        assert server.call("session_list", {}).status == 200
    assert needs_token(replace(settings, no_token=True)) is False
    assert needs_token(replace(settings, port=None, socket=tmp_path / "s")) is False
