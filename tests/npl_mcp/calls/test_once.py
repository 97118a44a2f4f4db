"""The function of a tool runs once per call, also if the call waits."""

import fcntl
import functools
import inspect
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastmcp import Client

from npl_index.library.documents import DocumentRef
from npl_mcp.app.app import App
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server
from npl_mcp.tools.contract.spec import ToolSpec
from npl_mcp.tools.domains import declared_tools
from tests.conftest import cases, envelope
from tests.npl_mcp.app import many
from tests.npl_mcp.tools.test_waiting import LOG, LONG, ROOM
from tests.until import soon

FILES = 70
SPECS = {spec.name: spec for spec in declared_tools()}
PARAMETERS = {name: inspect.signature(spec.function).parameters for name, spec in SPECS.items()}

NEWS = [name for name, known in PARAMETERS.items() if "wait" in known]
DOCUMENTS = [
    name for name, spec in SPECS.items() if inspect.iscoroutinefunction(spec.function) and name not in NEWS
]

GIVEN: dict[str, Any] = cases("npl_mcp/server/once")


@pytest.fixture
def large(settings: Settings, tmp_path: Path) -> Settings:
    return replace(many.large(settings, tmp_path / "large", FILES), time_limit=600)


class Counted:
    """A server whose tools record each run of their functions.

    :param settings: of the server.
    :param more: further tools.
    """

    def __init__(self, settings: Settings, *more: ToolSpec) -> None:
        self.ran: list[str] = []
        self.app = App(settings)
        calls = ToolCalls(self.app)
        calls.add(*map(self._counted, (*SPECS.values(), *more)))
        self.server = create_server(settings, calls)

    def _counted(self, spec: ToolSpec) -> ToolSpec:
        def function(*given: Any, **arguments: Any) -> Any:
            self.ran.append(spec.name)
            return spec.function(*given, **arguments)

        async def waiting(*given: Any, **arguments: Any) -> Any:
            return await function(*given, **arguments)

        counted = waiting if inspect.iscoroutinefunction(spec.function) else function
        return replace(spec, function=functools.wraps(spec.function)(counted))

    @property
    def client(self) -> Client[Any]:
        return Client(self.server)


def arguments(tool: str) -> dict[str, Any]:
    return {name: GIVEN[name] for name in PARAMETERS[tool] if name in GIVEN}


@pytest.mark.thorough
async def test_calls_about_a_folder_that_is_not_indexed_run_once(large: Settings) -> None:
    """Each call waits for the index without a thread; another process indexes it once all have begun."""
    counted = Counted(large)
    given = {tool: {**arguments(tool), "since": None, "session_id": None} for tool in DOCUMENTS}
    answers = {}

    async with counted.client as client:

        async def ask(tool: str) -> None:
            sent = {name: value for name, value in given[tool].items() if value is not None}
            answers[tool] = envelope(await client.call_tool(tool, sent, raise_on_error=False))

        handle = os.open(large.data_dir, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        async with anyio.create_task_group() as group:
            for tool in DOCUMENTS:
                group.start_soon(ask, tool)
            await soon(lambda: set(counted.ran) == set(DOCUMENTS))
            assert counted.app.state.sets.built == 0
            os.close(handle)
        await soon(lambda: counted.app.state.sets.built == FILES)  # a search does not wait for all
    for tool, answer in answers.items():
        late = "being indexed; ask again" in answer.get("error", "")  # a page waits a second
        assert answer["success"] or answer["error_code"] == "INVALID_PARAMETER" or late, (tool, answer)
    assert sorted(counted.ran) == sorted(DOCUMENTS)


@pytest.mark.parametrize("tool", NEWS)
async def test_a_call_that_waits_for_news_runs_once(settings: Settings, tool: str) -> None:
    counted = Counted(settings)
    given = {**arguments(tool), **({"since": 2} if tool == "chat_get_feed" else {})}
    answers = []

    async with counted.client as client:

        async def wait() -> None:
            answers.append(envelope(await client.call_tool(tool, {**given, "wait": LONG})))

        await client.call_tool(ROOM[0], {**ROOM[1], "session_id": "s1"})
        await client.call_tool(LOG[0], {"session_id": "s1"})
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await soon(lambda: counted.app.news.waiting)
            todo = {"room_id": 1, "persona": "ann", "description": "oil it", "assigned_to": "bo"}
            await client.call_tool("chat_create_todo", todo)
            await client.call_tool("worklog_log", {"agent_id": "a", "action": "did", "summary": "s"})
    assert answers[0]["success"]
    assert counted.app.news.waiting == 0
    assert counted.ran.count(tool) == 1


async def test_what_a_tool_does_before_it_gathers_is_done_once(large: Settings) -> None:
    """A tool that is not told to wait waits in its own thread."""
    effects: list[int] = []

    def gather_all(app: App) -> int:
        effects.append(1)
        return len(app.gather(DocumentRef()).locations)

    counted = Counted(large, ToolSpec(gather_all, read_only=False))

    async with counted.client as client:
        assert envelope(await client.call_tool("gather_all", {}))["data"] == FILES
    assert effects == [1]
