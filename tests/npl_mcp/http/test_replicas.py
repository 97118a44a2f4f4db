"""Three servers on one PostgreSQL database give equal answers to all callers."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

from npl_mcp.config.domains import PRESETS
from npl_mcp.http.policy import SECONDS
from npl_mcp.stores.base.database import HEAD
from npl_mcp.stores.base.postgres import WRITERS
from npl_mcp.tools.domains import listed_tools
from tests import engines
from tests.clocks import shifted
from tests.conftest import GUIDE, cases, envelope
from tests.messages import asking, calling
from tests.npl_mcp.app.many import put, text, write
from tests.npl_mcp.http.http_server import BOTH, MODERN, Answer, Running, environment
from tests.npl_mcp.http.http_server import serving as server_in
from tests.npl_mcp.http.test_service import run
from tests.postgres_server import Server, serving
from tests.replicas import Balancer, kill, replica, replicas
from tests.until import until

pytestmark = pytest.mark.engine("postgres")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replicas")


@pytest.fixture(scope="module")
def servers(place: Path) -> Iterator[list[Running]]:
    """Three servers, started at one moment on a database without tables."""
    public = "http://npl.example"
    many = place / "many"
    many.mkdir()
    roots = ("--root", str(many))
    with replicas(place, engines.empty_address(place) or "", *roots, NPL_MCP_WEB_URL=public) as running:
        yield running


@pytest.fixture(scope="module")
def team(servers: list[Running]) -> Balancer:
    """Rows of each kind, each written through the next server."""
    made = Balancer(servers)
    for tool, arguments in cases("npl_mcp/http/replicas_documents")["team"]:
        made.do(tool, **{"content": GUIDE, **arguments} if "filename" in arguments else arguments)
    return made


READS: list[tuple[str, dict[str, Any]]] = cases("npl_mcp/http/replicas")


def same(servers: list[Running], tool: str, arguments: dict[str, Any]) -> str:
    """Ask all servers at one moment; return the one answer they all give."""
    with ThreadPoolExecutor(len(servers)) as pool:
        answers = list(pool.map(lambda server: (server, server.call(tool, arguments)), servers))
    # Files of artifacts are copies, in a folder of each server.
    replies = {(reply.status, reply.body.decode().replace(str(at.folder), "")) for at, reply in answers}
    assert len(replies) == 1, replies
    return replies.pop()[1]


def test_every_server_gives_the_same_answers(servers: list[Running], team: Balancer) -> None:
    """Every tool that reads a store is called, for rows of every author."""
    reading = {spec.name for spec in listed_tools(PRESETS["coordination"]) if spec.read_only}
    assert reading <= {tool for tool, _ in READS}
    for tool, arguments in READS:
        assert len(same(servers, tool, arguments)) > 50, tool


def test_what_is_written_through_one_is_seen_through_the_next(servers: list[Running], team: Balancer) -> None:
    """The very next call sees rows and cursors; ids have one order."""
    room = team.do("chat_create_room", name="next", members=["ann", "bo"])["room_id"]
    ids = []
    for number in range(6):
        ids.append(
            team.do("chat_send_message", room_id=room, persona="ann", message=f"m{number}")["event_id"]
        )
        assert team.do("chat_get_feed", room_id=room)["items"][-1]["id"] == ids[-1]
        team.do("worklog_log", session_id="s", agent_id="ann", action="a", summary=f"w{number}")
        read = team.do("worklog_read", session_id="s", agent_id="next")["items"]
        assert read[-1]["summary"] == f"w{number}"
        assert number == 0 or len(read) == 1
        revision = team.do("artifact_add_revision", artifact_id=1, filename="p.md", content=f"# P{number}\n")
        artifact = team.do("artifact_get", artifact_id=1, text=True)
        assert (artifact["content"], artifact["revision_num"]) == (f"# P{number}\n", revision["revision_num"])
        assert {"file_path", "meta_path"}.isdisjoint(artifact)
    assert ids == sorted(set(ids))


def newest(team: Balancer, room: int) -> int:
    """Return the cursor after a room's last entry."""
    return max(entry["id"] for entry in team.do("chat_get_feed", room_id=room)["items"])


def test_a_server_takes_six_connections_at_most(servers: list[Running], team: Balancer, place: Path) -> None:
    """One writes, four read, and one listens for commits of other servers while a call waits."""
    quiet = team.do("chat_create_room", name="quiet", members=["ann"])["room_id"]
    wait = {"room_id": quiet, "since": newest(team, quiet), "wait": 1}

    def work(number: int) -> int:
        read = ("session_get", {"session_id": "s"})
        say = ("chat_send_message", {"room_id": 1, "persona": "ann", "message": "m"})
        assert servers[0].call(*(say if number % 4 == 0 else read)).status == 200
        return len(engines.query(place, STATEMENT)) if number % 10 == 0 else 0

    with psycopg.connect(engines.empty_address(place) or "", autocommit=True) as connection:
        connection.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM ({STATEMENT}) AS theirs")
    with ThreadPoolExecutor(24) as pool:
        waits = pool.submit(servers[0].call, "chat_get_feed", wait)
        most = max(pool.map(work, range(120)))
        assert waits.result().status == 200
    assert 2 <= most <= 6


STATEMENT = "SELECT pid FROM pg_stat_activity WHERE application_name = 'npl' AND datname = current_database()"


def command(place: Path, *words: str, **variables: str) -> str:
    """Run ``npl-mcp`` on the servers' database, as on another machine."""
    env = environment(place, **{"NPL_DATABASE_URL": engines.empty_address(place) or "", **variables})
    line = [sys.executable, "-m", "npl_mcp", *words]
    return subprocess.run(line, cwd=place, env=env, capture_output=True, text=True, check=True).stdout


QUESTIONS: list[tuple[str, dict[str, Any]]] = cases("npl_mcp/http/replicas_documents")["questions"]


def test_documents_of_a_shared_folder_are_the_same_everywhere(place: Path, servers: list[Running]) -> None:
    """All servers are asked at once before any has the index; the next call sees an edit."""
    write(place / "many", 48)
    first = [same(servers, tool, arguments) for tool, arguments in QUESTIONS]
    assert all('"success":false' not in body for body in first)
    put(place / "many" / "part2" / "page007.md", f"# Page 7\n\n{text(7)}\n\nThe valve of a whale.\n")
    changed = {"file": "many:", "context": "whale", "token_budget": 200}
    assert "valve of a whale" in same(servers, "npl_load_tailored", changed)
    again = [same(servers, tool, arguments) for tool, arguments in QUESTIONS]
    assert again[4] != first[4]


class Turns(httpx2.AsyncBaseTransport):
    """Sends each request to the next server, as a load balancer that knows nothing of sessions."""

    def __init__(self, ports: list[int]) -> None:
        self._inside = httpx2.AsyncHTTPTransport()
        self._ports = cycle(ports)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        port = next(self._ports)
        request.url = request.url.copy_with(port=port)
        request.headers["Host"] = f"127.0.0.1:{port}"
        return await self._inside.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inside.aclose()


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_may_reach_another_server_each_time(
    servers: list[Running], team: Balancer, mode: Any
) -> None:
    """A client with a handshake may too: no server keeps its session."""

    def factory(**options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(**{**options, "transport": Turns([server.port for server in servers])})

    transport = StreamableHttpTransport("http://127.0.0.1/mcp", httpx_client_factory=factory)
    async with Client(transport, mode=mode) as client:
        for _ in range(4):
            assert len(await client.list_tools()) > 40
            answer = envelope(await client.call_tool("session_get", {"session_id": "s"}))
            assert answer["data"]["session"]["title"] == "Release"


def test_calls_that_are_repeated_while_servers_are_killed_are_made_once(tmp_path: Path) -> None:
    """Each is sent to the next server with its id until one answers; database connections are cut."""
    address, over = engines.address(tmp_path) or "", threading.Event()
    cut = f"SELECT pg_terminate_backend(pid) FROM ({STATEMENT}) AS theirs"

    def write(name: str) -> list[str]:
        own, said = Balancer(servers), []

        def sent(message: str) -> bool:
            what = {"room_id": 1, "persona": "ann", "message": message, "request_id": message}
            try:
                return own.answer("chat_send_message", **what).status == 200
            except OSError:
                return False

        while not over.is_set():
            said.append(f"{name} {len(said)}")
            until(partial(sent, said[-1]))
        return said

    with replicas(tmp_path, address) as servers, ExitStack() as others, ThreadPoolExecutor(4) as pool:
        team = Balancer(servers)
        team.do("chat_create_room", name="den", members=["ann", "bo"])
        writing = [pool.submit(write, name) for name in "abcd"]
        try:
            for number in range(len(servers)):
                kill(servers[number])
                with psycopg.connect(address, autocommit=True) as connection:
                    connection.execute(cut)
                servers[number] = others.enter_context(replica(tmp_path, address, number))
        finally:
            over.set()
        events, cursor = [], 0
        while page := team.do("chat_get_feed", room_id=1, since=cursor, limit=1_000)["items"]:
            events += [event["data"]["message"] for event in page if event["event_type"] == "message"]
            cursor = page[-1]["id"]
    for name, written in zip("abcd", writing, strict=True):
        assert [message for message in events if message.startswith(name)] == written.result()


def test_a_client_without_a_session_that_goes_waits_no_longer(servers: list[Running], team: Balancer) -> None:
    """The end of its request ends its call."""
    arguments = {"agent_id": "gone", "session_id": "s", "since": 1000, "wait": 60}
    asked = calling(1, "worklog_read", **arguments)
    with servers[0].connected() as line:
        line.sendall(
            servers[0].message("POST", "/mcp", asked, {**BOTH, "MCP-Protocol-Version": "2025-11-25"})
        )
        until(lambda: servers[0].in_flight() == 1)
    until(lambda: servers[0].in_flight() == 0)


def test_a_token_counts_on_every_server(tmp_path: Path) -> None:
    """All servers know a new or revoked token within the stated time, and its name."""
    address = engines.address(tmp_path) or ""
    with replicas(tmp_path, address, number=2) as servers:
        assert [server.call("session_list", {}).status for server in servers] == [200] * 2
        token = command(tmp_path, "token", "add", "ann").split()[-1]
        named = {"Authorization": f"Bearer {token}"}
        until(lambda: [server.call("session_list", {}).status for server in servers] == [401] * 2)
        assert [server.call("session_list", {}, **named).status for server in servers] == [200] * 2
        team = Balancer(servers, **named)
        team.do("chat_create_room", name="den", members=["ann", "bo"])
        for server in servers:
            assert server.call("chat_send_message", {"room_id": 1, "message": "m"}, **named).status == 200
            other = {"room_id": 1, "message": "m", "persona": "bo"}
            assert server.call("chat_send_message", other, **named).status == 403
        events = team.do("chat_get_feed", room_id=1)["items"]
        messages = [event for event in events if event["event_type"] == "message"]
        assert [message["persona"] for message in messages] == ["ann"] * 2
        command(tmp_path, "token", "revoke", "ann")
        until(lambda: [server.call("session_list", {}, **named).status for server in servers] == [401] * 2)


UNUSABLE = (500, 503)
"""Statuses of a call without a database: its own failure, or unreadable tokens."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    """A database server that can end and start again."""
    with serving("fsync=off") as made:
        yield made


def database(postgres: Server, name: str) -> str:
    """Make an empty database, and return its address."""
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.address(name)


def ready(servers: list[Running]) -> list[int]:
    return [server.request("GET", "/readyz").status for server in servers]


def test_a_restart_of_the_database_costs_calls_and_nothing_else(tmp_path: Path, postgres: Server) -> None:
    """Calls meanwhile fail with the advice to retry; then the servers and their waiting calls go on."""
    with replicas(tmp_path, database(postgres, "restarted")) as servers, ThreadPoolExecutor(3) as pool:
        team = Balancer(servers)
        team.do("chat_create_room", name="den", members=["ann", "bo"])
        since = team.do("chat_send_message", room_id=1, persona="ann", message="before")["event_id"]
        wait = {"room_id": 1, "since": since, "wait": 60}

        def all_wait() -> list[Future[Answer]]:
            begun = [pool.submit(server.call, "chat_get_feed", wait) for server in servers]
            until(lambda: all(server.in_flight() == 1 for server in servers))
            return begun

        waited = all_wait()
        postgres.ask("stop")
        refused = [answer.result() for answer in waited]
        asked = (("session_list", {}), ("chat_send_message", SAY))
        refused += [server.call(tool, given) for server in servers for tool, given in asked]
        assert {answer.data["error_code"] for answer in refused} == {"DATABASE_ERROR"}
        assert all(answer.status in UNUSABLE and "try again" in answer.data["error"] for answer in refused)
        assert ready(servers) == [503] * 3
        assert [server.request("GET", "/healthz").status for server in servers] == [200] * 3

        postgres.ask("start")
        until(lambda: ready(servers) == [200] * 3)
        waited = all_wait()
        team.do("chat_send_message", room_id=1, persona="bo", message="after")
        news = [answer.result().data["data"]["items"] for answer in waited]
        assert [[item["data"]["message"] for item in items] for items in news] == [["after"]] * 3


def test_a_token_counts_when_the_database_was_away(tmp_path: Path, postgres: Server) -> None:
    """Meanwhile each call is told that the database is away."""
    address = database(postgres, "tokens")
    with replica(tmp_path, address, 0) as server, ThreadPoolExecutor(3) as pool:
        token = token_of(tmp_path, address, "ann")
        named = {"Authorization": f"Bearer {token}"}
        until(lambda: admits(server, named))
        team = Balancer([server], **named)
        since = team.do("chat_create_room", name="den", members=["ann", "bo"])["room_id"]
        wait = {"room_id": since, "since": newest(team, since), "wait": 60}
        asked = {"name": "chat_get_feed", "arguments": wait}
        old = asking(1, "tools/call", **asked)
        head = {**BOTH, **named, "MCP-Protocol-Version": "2025-11-25"}
        ways: list[Callable[[], Answer]] = [
            lambda: server.call("chat_get_feed", wait, **named),
            lambda: server.mcp("tools/call", asked, **named),
            lambda: server.request("POST", "/mcp", old, head),
        ]
        waited = [pool.submit(way) for way in ways]
        until(lambda: server.in_flight() == 3)
        time.sleep(SECONDS)  # the tokens that the server knows are old
        postgres.ask("stop")
        for answer in waited:
            assert b"DATABASE_ERROR" in answer.result().body, answer.result()
        for way in ways:
            answer = way()
            assert (answer.status, answer.data["error_code"]) == (503, "DATABASE_ERROR")
        postgres.ask("start")
        until(lambda: admits(server, named))


def admits(server: Running, named: dict[str, str]) -> bool:
    return server.call("session_list", {}, **named).status == 200


def token_of(place: Path, address: str, name: str) -> str:
    """Make a token in a database, and return it."""
    return command(place, "token", "add", name, NPL_DATABASE_URL=address).split()[-1]


def test_a_write_is_acknowledged_though_its_token_cannot_be_checked(tmp_path: Path) -> None:
    """The write had to wait for its turn, and the tokens cannot be read when it is done."""
    address = engines.address(tmp_path) or ""
    with (
        replica(tmp_path, address, 0) as server,
        psycopg.connect(address, autocommit=True) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        named = {"Authorization": f"Bearer {token_of(tmp_path, address, 'ann')}"}
        until(lambda: admits(server, named))
        team = Balancer([server], **named)
        team.do("chat_create_room", name="den", members=["ann"])
        connection.execute("SELECT pg_advisory_lock(%s)", [WRITERS])
        said = pool.submit(team.do, "chat_send_message", room_id=1, message="done")
        turns = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        until(lambda: connection.execute(turns).fetchone() == (1,))
        time.sleep(SECONDS)  # the tokens that the server knows are old
        connection.execute("ALTER TABLE access_token RENAME TO hidden")
        connection.execute("SELECT pg_advisory_unlock(%s)", [WRITERS])
        number = said.result()["event_id"]
        connection.execute("ALTER TABLE hidden RENAME TO access_token")
        assert team.do("chat_get_feed", room_id=1)["items"][-1]["id"] == number


@pytest.mark.parametrize("limit", ["ROLE few", "DATABASE scarce"])
def test_servers_share_the_connections_that_there_are(tmp_path: Path, postgres: Server, limit: str) -> None:
    """Calls wait for a connection; after too long, the error names the limit."""
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS scarce WITH (FORCE)")
        connection.execute("DROP ROLE IF EXISTS few")
        connection.execute("CREATE ROLE few LOGIN")
        connection.execute("CREATE DATABASE scarce OWNER few")
        address = postgres.address("scarce").replace("nobody@", "few@")
        with replicas(tmp_path, address, number=2) as servers, ThreadPoolExecutor(66) as pool:
            team = Balancer(servers)
            team.do("chat_create_room", name="den", members=["ann", "bo"])
            connection.execute(f"ALTER {limit} CONNECTION LIMIT 4")
            asked = [("session_list", {}), ("chat_send_message", SAY), ("chat_get_feed", {"room_id": 1})]
            answers = list(pool.map(lambda at: team.answer(asked[at % 3][0], **asked[at % 3][1]), range(66)))
            assert {answer.status for answer in answers} == {200}, [answer.data for answer in answers]
            connection.execute(f"ALTER {limit} CONNECTION LIMIT 0")
            theirs = STATEMENT.replace("current_database()", "'scarce'")
            connection.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM ({theirs}) AS theirs")
            refused = servers[0].call(*asked[0]).data
            assert refused["error_code"] == "DATABASE_ERROR"
            assert "CONNECTION LIMIT" in refused["error"]


def test_a_server_starts_without_its_database_and_is_ready_when_that_comes(
    tmp_path: Path, postgres: Server
) -> None:
    address = database(postgres, "later")
    postgres.ask("stop")
    with replica(tmp_path, address, 0) as server:
        assert ready([server]) == [503]
        postgres.ask("start")
        until(lambda: ready([server]) == [200])
        assert server.call("session_create", {}).status == 200


def upgraded(address: str, versions: int) -> None:
    """Make a database one of a later version, which servers of the version before can use."""
    with psycopg.connect(address, autocommit=True) as connection:
        number, oldest = (f"{int(HEAD) + versions - before:04}" for before in (0, 1))
        connection.execute(f"UPDATE alembic_version SET version_num = '{number}'")
        connection.execute(f"COMMENT ON TABLE alembic_version IS 'npl, from schema {oldest} on'")


def test_clocks_of_servers_may_differ(tmp_path: Path) -> None:
    """A claim runs on a server whose clock is ahead; all times are the database's."""
    address = engines.address(tmp_path) or ""
    wrong = shifted(tmp_path / "ahead", 15)
    with replica(tmp_path, address, 0) as right, replica(tmp_path, address, 1, **wrong) as ahead:
        token = command(tmp_path, "token", "add", "ann", "--expires", "10m").split()[-1]
        other = command(tmp_path, "token", "add", "bo", "--expires", "10m", **wrong).split()[-1]
        ann, bo = ({"Authorization": f"Bearer {own}"} for own in (token, other))
        for server, named in ((right, ann), (ahead, bo)):
            until(partial(admits, server, named))
        assert right.call("chat_create_room", {"name": "den", "members": ["ann", "bo"]}, **ann).status == 200
        write_all(ahead, bo)
        for description in ("weed", "water"):
            todo = {"room_id": 1, "description": description}
            assert right.call("chat_create_todo", todo, **ann).status == 200
        claimed = right.call("chat_claim_todo", {"room_id": 1}, **ann).data["data"]["todo"]
        taken = ahead.call("chat_claim_todo", {"event_id": claimed["event_id"]}, **bo)
        assert (taken.status, taken.data["error_code"]) == (422, "OPERATION_FAILED")
        second = ahead.call("chat_claim_todo", {"room_id": 1}, **bo).data["data"]["todo"]
        for server in (right, ahead):
            listed = server.call("chat_list_todos", {"room_id": 1}, **bo).data["data"]["items"]
            assert {todo["event_id"]: todo["assigned_to"] for todo in listed} == {
                claimed["event_id"]: "ann",
                second["event_id"]: "bo",
            }
    now = engines.query(tmp_path, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS')")
    for table, column in engines.query(tmp_path, TIMES):
        late = f"SELECT max({column}) FROM {table} WHERE {column} > '{now[0][0]}Z'"
        assert (engines.query(tmp_path, late) == [(None,)]) is (column != "expires_at"), (table, column)


TIMES = """
SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
AND (column_name LIKE '%\\_at' OR column_name IN ('timestamp', 'ts', 'created', 'closed', 'last_read'))
AND table_name <> 'tool_call'
"""


def write_all(server: Running, headers: dict[str, str]) -> None:
    """Write something of each kind."""
    for tool, arguments in WRITES:
        answer = server.call(tool, arguments, **headers)
        assert answer.status == 200, answer.data


WRITES: list[tuple[str, dict[str, Any]]] = cases("npl_mcp/http/replicas_writes")


def test_servers_are_upgraded_one_after_the_other(tmp_path: Path) -> None:
    """Older servers go on where the next schema allows it, else they are refused, running or not."""
    address = engines.address(tmp_path) or ""
    with replicas(tmp_path, address, number=2) as servers:
        team = Balancer(servers)
        team.do("chat_create_room", name="den", members=["ann", "bo"])
        upgraded(address, 1)
        for server in servers:  # some have connections, some open the first
            assert server.call("chat_send_message", SAY).status == 200
        kill(servers[0])
        with replica(tmp_path, address, 0) as again:
            assert again.call("chat_send_message", SAY).status == 200
            assert len(team.do("chat_get_feed", room_id=1)["items"]) == 3 + len(servers)
            upgraded(address, 2)
            for server in (again, *servers[1:]):
                refused = server.call("chat_send_message", SAY)
                assert (refused.status in UNUSABLE, refused.data["error_code"]) == (True, "DATABASE_ERROR")
                assert "created by a newer version of npl" in refused.data["error"]
                assert "install that version" in refused.data["error"]
                assert server.call("chat_get_feed", {"room_id": 1}).status in UNUSABLE
            until(lambda: ready([again, *servers[1:]]) == [503] * 2)
            upgraded(address, 1)
            until(lambda: ready([again, *servers[1:]]) == [200] * 2)


SAY = {"room_id": 1, "persona": "ann", "message": "m"}


def test_a_server_of_another_project_does_not_start(tmp_path: Path) -> None:
    """The error names the project of the others; answers name no local path."""
    variables = engines.environment(tmp_path / "data")
    project = str(tmp_path / "project")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    with server_in(first, **variables, NPL_PROJECT=project) as server:
        given = {"name": "plan", "artifact_type": "text", "filename": "a.md", "content": "# A\n"}
        made = server.call("artifact_create", given).data["data"]
        room = server.call("chat_create_room", {"name": "den", "members": ["ann"]}).data["data"]
        assert {"file_path", "meta_path", "web_url"}.isdisjoint({*made, *room})
        other = run(second, **variables)
        assert other.returncode == 2
        assert f"set NPL_PROJECT={project}" in other.stderr
