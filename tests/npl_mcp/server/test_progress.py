"""Long calls send progress notifications."""

from contextlib import ExitStack
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from fastmcp import Client, FastMCP

from npl_mcp.app.app import App
from npl_mcp.app.progress import PROGRESS
from npl_mcp.config.settings import Settings
from npl_mcp.server.callers import KnowCaller
from tests import engines
from tests.conftest import client_of

Told = list[tuple[float, float | None, str | None]]

ROOM = {"name": "den", "members": ["ann", "bo"]}
HELLO = {"room_id": 1, "persona": "ann", "message": "hello"}
NEWS = {"room_id": 1, "since": 2, "wait": 60}

WITHIN = 30.0
"""Seconds after which an answer counts as missing."""


async def test_a_call_that_takes_long_is_told_of(settings: Settings) -> None:
    """One call waits without a thread for another, whose thread waits for the database."""
    async with client_of(settings) as client:
        await client.call_tool("chat_create_room", ROOM)
        told_of: dict[str, Told] = {"chat_get_feed": [], "chat_send_message": []}
        with ExitStack() as writer:
            stores = engines.stores(settings.data_folder)
            writer.callback(stores.close)
            writer.enter_context(stores.database.write())

            async def call(tool: str, arguments: dict[str, Any]) -> None:
                async def tell(*progress: Any) -> None:
                    told_of[tool].append(progress)
                    if all(told_of.values()):
                        writer.close()

                await client.call_tool(tool, arguments, progress_handler=tell)

            async with anyio.create_task_group() as group:
                group.start_soon(call, "chat_get_feed", NEWS)
                group.start_soon(call, "chat_send_message", HELLO)
    for told in told_of.values():
        values = [value for value, _, _ in told]
        assert values == sorted(set(values))
        assert {(total, (message or "")[:8]) for _, total, message in told} == {(None, "working,")}


@pytest.mark.parametrize("rounds", range(12))
async def test_parts_that_are_ready_with_the_answer_do_not_hold_it_up(
    settings: Settings, rounds: int
) -> None:
    server = FastMCP("test", middleware=[KnowCaller((), App(settings))])

    async def work() -> str:
        PROGRESS.get()(1, 2)
        for _ in range(rounds):
            await anyio.lowlevel.checkpoint()
        PROGRESS.get()(2, 2)
        return "done"

    server.tool(work)

    told: Told = []

    async def tell(*progress: Any) -> None:
        told.append(progress)

    async with Client(server) as client:
        with anyio.fail_after(WITHIN):
            answer = await client.call_tool("work", progress_handler=tell)
    assert (told[-1][:2], answer.data) == ((2, 2), "done")
