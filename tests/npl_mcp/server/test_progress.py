"""What clients are told of calls that take long."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import anyio
from fastmcp import Client

from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import with_client

Told = list[tuple[float, float | None, str | None]]

ROOM = {"name": "den", "members": ["ann", "bo"]}
HELLO = {"room_id": 1, "persona": "ann", "message": "hello"}
NEWS = {"room_id": 1, "since": 2, "wait": 60}


def test_a_call_that_takes_long_is_told_of(settings: Settings) -> None:
    """One holds no thread and waits for the other, whose thread waits for the database."""

    async def ask(client: Client[Any]) -> dict[str, Told]:
        await client.call_tool("chat_create_room", ROOM)
        told: dict[str, Told] = {"chat_get_feed": [], "chat_send_message": []}
        with ExitStack() as held:
            stores = engines.stores(settings.data_folder)
            held.callback(stores.close)
            held.enter_context(stores.database.write())

            async def call(tool: str, arguments: dict[str, Any]) -> None:
                async def tell(*progress: Any) -> None:
                    told[tool].append(progress)
                    if all(told.values()):
                        held.close()

                await client.call_tool(tool, arguments, progress_handler=tell)

            async with anyio.create_task_group() as group:
                group.start_soon(call, "chat_get_feed", NEWS)
                group.start_soon(call, "chat_send_message", HELLO)
        return told

    for told in with_client(settings, ask).values():
        values = [value for value, _, _ in told]
        assert values == sorted(set(values))
        assert {(total, (message or "")[:8]) for _, total, message in told} == {(None, "working,")}
