"""Calls that only read change no row of the database."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from docs.reference import prepare
from npl_mcp.app.app import App
from npl_mcp.app.call_reports import HTTP, Caller
from npl_mcp.calls.invoking import ToolCalls
from npl_mcp.config.settings import Settings
from npl_mcp.stores.access import Identity
from npl_mcp.tools.domains import declared_tools
from tests import engines
from tests.conftest import calls


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    database = engines.stores(folder).database
    try:
        with database.read() as tx:
            tables = database.engine.tables(tx)
            return {table.name: tx.all(f"SELECT * FROM {table.name}") for table in tables}
    finally:
        database.close()


def test_read_only_tools_change_no_row(settings: Settings, tmp_path: Path) -> None:
    """All of them are called, and the calls of others that a read-only token may make."""
    prepare(tmp_path / "project")
    own = replace(settings, cwd=tmp_path / "project", roots=(tmp_path / "project",), write=True)
    specs = declared_tools()
    calls(own, [(spec.name, dict(spec.example)) for spec in specs if spec.example])
    room = {"name": "den", "members": ["ann", "bo"]}
    todo = {"room_id": 2, "persona": "ann", "description": "sow"}
    calls(
        own,
        [
            ("chat_create_room", room),
            ("chat_create_todo", todo),
            ("chat_claim_todo", {"room_id": 2, "persona": "bo"}),
        ],
    )
    before = rows(own.data_folder)
    reader = Caller(HTTP, identity=Identity("bo", read_only=True))

    async def read() -> set[str]:
        tools, done = ToolCalls(App(own)), set()
        for spec in specs:
            for given in ({**spec.example, "request_id": "r1"}, {"persona": "bo"}):
                if spec.may_read(given) and "wait" not in given:
                    outcome = await tools.invoke(spec.name, reader, given)
                    done |= {spec.name} if outcome.code is None else set()
        return done

    done = anyio.run(read)
    assert rows(own.data_folder) == before
    assert {"chat_get_notifications", "chat_list_todos", "search", "session_get"} <= done
