"""The order in which calls of several callers run outside the event loop."""

import gc
import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from fastmcp import Client

from npl_mcp.app.call_reports import CALLER, Caller
from npl_mcp.app.lanes import HEAVY_WORKERS, LANES, WorkerLane, blocked, lane
from npl_mcp.config.settings import Settings
from npl_mcp.http import app as http_app
from npl_mcp.server.server import create_server
from tests.conftest import envelope
from tests.until import soon


class Gates:
    """Calls that block until they are let go; ``begun`` has their callers in order."""

    def __init__(self) -> None:
        self.begun: list[Hashable] = []
        self._let_go = threading.Semaphore(0)

    def of(self, caller: Hashable) -> Callable[[], None]:
        def work() -> None:
            self.begun.append(caller)
            assert self._let_go.acquire(timeout=60)

        return work

    async def open(self, lanes: WorkerLane, count: int = 1) -> None:
        """Let a number of calls end one by one, waiting until as many others have begun or all have ended."""
        for _ in range(count):
            wanted = min(len(self.begun) + 1, len(self.begun) + lanes.waiting)
            self._let_go.release()
            await self.until(wanted)

    async def until(self, begun: int) -> None:
        await soon(lambda: len(self.begun) >= begun)

    def end(self) -> None:
        self._let_go.release(10_000)


async def queue(group: Any, lane: WorkerLane, gates: Gates, caller: Hashable, count: int) -> None:
    async def call() -> None:
        CALLER.set(Caller(key=caller))
        await lane.run(gates.of(caller))

    for _ in range(count):
        group.start_soon(call)
    await anyio.wait_all_tasks_blocked()


@pytest.mark.parametrize("name", [name for name, threads in LANES.items() if threads > 1])
async def test_a_quiet_caller_goes_before_a_hundred_calls_of_another(name: str) -> None:
    """It gets the next free thread; the busy caller's other calls come after."""
    workers, gates = lane(name), Gates()
    busy = min(LANES[name], max(2, LANES[name] - 1))
    async with anyio.create_task_group() as group:
        await queue(group, workers, gates, "busy", 100)
        await gates.until(busy)
        await queue(group, workers, gates, "quiet", 1)
        if busy == LANES[name]:
            await gates.open(workers)
        await gates.until(busy + 1)
        gates.end()
    assert gates.begun[: busy + 1] == ["busy"] * busy + ["quiet"]
    assert len(gates.begun) == 101


async def test_callers_take_turns() -> None:
    workers, gates = WorkerLane(1), Gates()
    async with anyio.create_task_group() as group:
        await queue(group, workers, gates, "a", 5)
        await queue(group, workers, gates, "b", 3)
        await queue(group, workers, gates, "c", 1)
        await gates.open(workers, 8)
        gates.end()
    assert gates.begun == list("aabcababa")


async def test_calls_that_are_given_up_take_no_turn() -> None:
    """Their caller leaves no trace."""
    workers, gates = WorkerLane(1), Gates()
    async with anyio.create_task_group() as group:
        await queue(group, workers, gates, "a", 1)
        await gates.until(1)
        async with anyio.create_task_group() as others:
            await queue(others, workers, gates, "gone", 3)
            others.cancel_scope.cancel()
        await queue(group, workers, gates, "b", 1)
        gates.end()
    assert gates.begun == ["a", "b"]
    assert not workers.waiting
    gc.collect()
    assert not workers._callers


async def test_a_small_file_does_not_wait_behind_long_calls(settings: Settings) -> None:
    """Its sections are loaded among the short calls; those of a large file or a folder are not."""
    root = settings.cwd / "pages"
    root.mkdir()
    (root / "small.md").write_text("# Small\n\n## Valve\n\nClose it.\n", encoding="utf-8")
    (root / "large.md").write_text("# Large\n\n## Valve\n\n" + "Close it.\n" * 10_000, encoding="utf-8")
    done: list[str] = []

    gates = Gates()
    async with Client(create_server(replace(settings, roots=(root,)))) as client:

        async def load(file: str) -> None:
            asked = {"file": file, "selectors": ["## Valve"], "token_budget": 200}
            assert envelope(await client.call_tool("npl_load_tailored", asked))["success"]
            done.append(file)

        await load("small.md")
        async with anyio.create_task_group() as group:
            for caller in range(LANES["heavy"]):
                await queue(group, lane("heavy"), gates, caller, 1)
            await gates.until(LANES["heavy"])
            for file in ("large.md", "."):
                group.start_soon(load, file)
            await soon(lambda: lane("heavy").waiting >= 2)
            await load("small.md")
            assert done == ["small.md"] * 2
            gates.end()
    assert len(done) == 4


async def test_a_lane_without_turns_is_named() -> None:
    """It is named exactly while calls wait for one that hangs."""
    end = threading.Event()
    async with anyio.create_task_group() as group:
        for _ in range(3 * HEAVY_WORKERS):
            group.start_soon(lane("heavy").run, end.wait)
        await anyio.wait_all_tasks_blocked()
        await lane("light").run(lambda: None)
        assert blocked(0.01) == ["heavy"]
        assert blocked(http_app.BLOCKED_SECONDS) == []
        end.set()
    assert blocked(0.0) == []
