"""Many connections of one caller, and a caller that makes one call after the other."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import engines
from tests.npl_mcp.http.http_server import Running, call, serving

pytestmark = pytest.mark.thorough

CALLS = 10


@pytest.mark.parametrize("tool", ["chat_send_message", "npl_load_components"])
@pytest.mark.parametrize("tokens", [True, False])
def test_a_quiet_caller_is_not_refused_in_a_crowd(tmp_path: Path, tool: str, tokens: bool) -> None:
    """The crowd may be, where a token says that it is one caller."""
    stores = engines.stores(tmp_path / "data")
    room = {"name": "r", "members": ["crowd", "quiet"]}
    callers = [
        {"Authorization": f"Bearer {stores.access.add(name)}"} if tokens else {} for name in room["members"]
    ]
    stores.close()
    many = (
        {"items": "*"}
        if tool == "npl_load_components"
        else {"room_id": 1, "message": "x", "persona": "crowd"}
    )
    over = threading.Event()

    def press(server: Running) -> set[int]:
        came = set()
        while not over.is_set():
            came.add(call(server, tool, many, **callers[0]).status)
        return came

    with serving(tmp_path, **engines.environment(tmp_path / "data"), NPL_MCP_MAX_CALLS="8") as server:
        assert call(server, "chat_create_room", room, **callers[1]).status == 200
        with ThreadPoolExecutor(24) as crowd:
            pressing = [crowd.submit(press, server) for _ in range(24)]
            try:
                quiet = [call(server, "chat_list_rooms", {}, **callers[1]).status for _ in range(CALLS)]
            finally:
                over.set()
            told = set().union(*(one.result(120) for one in pressing))
    assert quiet == [200] * CALLS
    assert told <= ({200, 503} if tokens else {200})
