"""Calls that wait for news: what wakes them, what ends them, and the resources they use."""

import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client

from npl_mcp.app.app import App
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.stores.chat.rooms import POSITIONS
from npl_mcp.stores.commits import Topic
from tests.conftest import cases, envelope
from tests.messages import asking, calling
from tests.npl_mcp.http.http_server import (
    BOTH,
    JSON,
    META,
    MODERN,
    connected,
    in_flight,
    message,
    request,
    serving,
)
from tests.npl_mcp.server.speaking import spoken_to
from tests.until import soon, until

LONG = 60
"""Seconds that no test waits unless it fails."""

ROOM = ("chat_create_room", {"name": "den", "members": ["ann", "bo"]})
LOG = ("worklog_init", {"session_id": "w1"})

# By kind of news: the call that waits, the call that wakes it, and an unrelated call.
NEWS: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]] = (
    cases("npl_mcp/tools/waiting")
)


class Desk:
    """A client of one server in this process."""

    def __init__(self, client: Client[Any], app: App) -> None:
        self.client, self.app = client, app

    async def ask(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return envelope(await self.client.call_tool(tool, arguments, raise_on_error=False))

    async def do(self, tool: str, arguments: dict[str, Any]) -> Any:
        answer = await self.ask(tool, arguments)
        assert answer["success"], answer
        return answer["data"]

    async def until(self, waiting: int) -> None:
        await soon(lambda: self.app.news.waiting == waiting)


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Desk]:
    app = App(settings)
    async with Client(create_server(settings, ToolCalls(app))) as client:
        desk = Desk(client, app)
        await desk.do(*ROOM)
        await desk.do(*LOG)
        yield desk


def elsewhere(settings: Settings, tool: str, arguments: dict[str, Any]) -> list[str]:
    """Return a command that makes a call in another process, on the same data folder."""
    code = (
        "import sys, json, pathlib; from npl_mcp.config.settings import Settings\n"
        "from npl_mcp.app.app import App; from npl_mcp.tools.domains import tool_named\n"
        "work, data, tool, arguments = sys.argv[1:]; work = pathlib.Path(work)\n"
        "from tests import engines\n"
        "data = pathlib.Path(data)\n"
        "url = engines.address(data)\n"
        "app = App(Settings(cwd=work, home=work, data_dir=data, database_url=url, warm_up=False))\n"
        "tool_named(tool)(app, **json.loads(arguments)); app.close()"
    )
    places = [str(settings.cwd), str(settings.data_folder)]
    return [sys.executable, "-c", code, *places, tool, json.dumps(arguments)]


@pytest.mark.parametrize("case", NEWS)
async def test_a_call_waits_until_there_is_something_new(desk: Desk, case: str) -> None:
    """Its answer is that of a later call; rows that concern others do not wake it."""
    (tool, arguments), news, other = NEWS[case]
    answers = []

    async def wait() -> None:
        answers.append(await desk.do(tool, {**arguments, "wait": LONG}))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await desk.until(1)
        await desk.do(*other)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        await desk.do(*news)
    assert len(answers[0]["items"]) == 1
    assert desk.app.news.waiting == 0
    if tool != "worklog_read" or arguments.get("peek"):
        assert answers[0] == await desk.do(tool, arguments)


@pytest.mark.parametrize("case", ["feed", "current worklog"])
async def test_what_another_process_commits_wakes_a_call(settings: Settings, desk: Desk, case: str) -> None:
    """The other process only needs the same data folder."""
    (tool, arguments), news, _ = NEWS[case]
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.run_process, elsewhere(settings, *news))
        answer = await desk.do(tool, {**arguments, "wait": LONG})
    assert len(answer["items"]) == 1


@pytest.mark.parametrize("case", NEWS)
async def test_a_call_that_waited_in_vain_answers_as_an_empty_one(desk: Desk, case: str) -> None:
    tool, arguments = NEWS[case][0]
    empty = await desk.do(tool, arguments)
    assert empty["items"] == []
    assert await desk.do(tool, {**arguments, "wait": 0.05}) == empty
    assert desk.app.news.waiting == 0


async def test_a_cancelled_call_waits_no_longer_and_moves_no_cursor(desk: Desk) -> None:
    """The next call gets the later entries."""
    async with anyio.create_task_group() as group:
        group.start_soon(desk.do, "worklog_read", {"agent_id": "reader", "wait": LONG})
        await desk.until(1)
        group.cancel_scope.cancel()
    await desk.until(0)
    await desk.do("worklog_log", {"agent_id": "a", "action": "did", "summary": "s"})
    read = await desk.do("worklog_read", {"agent_id": "reader"})
    assert [entry["seq"] for entry in read["items"]] == [1]


async def test_calls_that_wait_hold_no_thread_and_no_connection(desk: Desk) -> None:
    """They outnumber the threads; others are answered, and one message wakes its recipients."""
    rooms, waiters = 6, 60
    answers: list[int] = []

    async def wait(room: int) -> None:
        arguments = {"room_id": room, "since": room + 1, "wait": LONG}
        answers.append((await desk.do("chat_get_feed", arguments))["items"][0]["room_id"])

    for number in range(2, rooms + 1):
        await desk.do("chat_create_room", {"name": f"r{number}", "members": ["ann"]})
    threads = threading.active_count()
    async with anyio.create_task_group() as group:
        for number in range(waiters):
            group.start_soon(wait, number % rooms + 1)
        await desk.until(waiters)
        assert threading.active_count() <= threads + 10
        assert (await desk.do("chat_list_rooms", {}))["total"] == rooms
        await desk.do("chat_send_message", {"room_id": 3, "persona": "ann", "message": "m"})
        await soon(lambda: len(answers) == waiters // rooms)
        assert desk.app.news.waiting == waiters - len(answers)
        group.cancel_scope.cancel()
    assert answers == [3] * (waiters // rooms)


def test_a_server_that_ends_wakes_all_that_wait(settings: Settings) -> None:
    """A call that begins to wait afterwards returns at once."""
    app = App(settings)
    ended = app.news.expect(Topic(POSITIONS, 1), None)
    app.close()
    ended.result()
    assert app.news.expect(Topic(POSITIONS, 1), None).done()


def test_a_call_on_the_command_line_waits_where_it_is(settings: Settings) -> None:
    """Without an event loop the function itself waits."""
    from npl_mcp.tools.domains import tool_named

    app = App(settings)
    functions = {name: tool_named(name) for name in (LOG[0], "worklog_log", "worklog_read")}
    functions[LOG[0]](app, **LOG[1])
    read: list[Any] = []
    thread = threading.Thread(
        target=lambda: read.append(functions["worklog_read"](app, agent_id="r", wait=LONG))
    )
    thread.start()
    until(lambda: app.news.waiting)
    functions["worklog_log"](app, agent_id="a", action="did", summary="s")
    thread.join()
    app.close()
    assert [entry.seq for entry in read[0].items] == [1]


def test_calls_that_wait_leave_room_for_others_over_standard_streams(tmp_path: Path) -> None:
    """More calls wait than there are threads; a cancelled one is gone."""
    with spoken_to(tmp_path) as server:
        server.call(ROOM[0], **ROOM[1])
        waiting = range(10, 40)
        server.send(*(calling(at, "chat_get_feed", room_id=1, since=2, wait=LONG) for at in waiting))
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 10}})
        server.call("chat_list_rooms")
        server.send(calling(3, "chat_send_message", room_id=1, persona="ann", message="m"))
        answered = {server.receive()["id"] for _ in range(len(waiting))}
    assert answered == {3, *waiting} - {10}


@pytest.mark.parametrize("path", ["/mcp/tools/worklog_read", "/mcp"])
def test_a_caller_over_http_that_goes_ends_the_wait(tmp_path: Path, path: str) -> None:
    """Waiting calls take no places, and the cursor of a caller that left stays."""
    plain = path != "/mcp"
    arguments = {"agent_id": "reader", "wait": LONG}
    with serving(tmp_path, NPL_MCP_MAX_CALLS="1") as server:

        def tool(name: str, given: dict[str, Any]) -> Any:
            while (answer := request(server, "POST", f"/mcp/tools/{name}", given, JSON)).status == 503:
                pass
            assert answer.status == 200, answer
            return answer.data["data"]

        tool(*LOG)
        named = asking(1, "tools/call", name="worklog_read", arguments=arguments, _meta=META)
        head = {
            **BOTH,
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": "tools/call",
            "Mcp-Name": "worklog_read",
        }
        sent = message(server, "POST", path, arguments if plain else named, head)
        with ExitStack() as stack:
            for number in range(1, 6):
                stack.enter_context(connected(server)).sendall(sent)
                until(lambda number=number: in_flight(server) == number)
                # The only place is free for this call: waiting calls take none.
                assert tool("worklog_status", {})["entry_count"] == 0
        until(lambda: in_flight(server) == 0)
        tool("worklog_log", {"agent_id": "a", "action": "did", "summary": "s"})
        assert [entry["seq"] for entry in tool("worklog_read", {"agent_id": "reader"})["items"]] == [1]
