"""Promises to operators of several servers on one database."""

import subprocess
import threading
from pathlib import Path

import anyio
import pytest

from npl_mcp.app.lanes import HEAVY_WORKERS, blocked, lane
from npl_mcp.http import app as http_app
from tests import engines
from tests.npl_mcp.http.http_server import command, environment, serving


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


@pytest.mark.engine("postgres")
def test_a_server_of_another_project_does_not_start(tmp_path: Path) -> None:
    """The error names the project of the others; answers name no local path."""
    variables = engines.environment(tmp_path / "data")
    project = str(tmp_path / "project")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    with serving(first, **variables, NPL_PROJECT=project) as server:
        given = {"name": "plan", "artifact_type": "text", "filename": "a.md", "content": "# A\n"}
        made = server.call("artifact_create", given).data["data"]
        room = server.call("chat_create_room", {"name": "den", "members": ["ann"]}).data["data"]
        assert {"file_path", "meta_path", "web_url"}.isdisjoint({*made, *room})
        other = subprocess.run(
            command(),
            cwd=second,
            env=environment(second, **variables, NPL_MCP_PORT="0"),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert other.returncode == 2
        assert f"set NPL_PROJECT={project}" in other.stderr
