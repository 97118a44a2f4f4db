"""The server as a process, called line by line and by the protocol's own SDK."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from npl_mcp.tools.domains import listed_tools
from tests.npl_mcp.http.http_server import META, MODERN
from tests.npl_mcp.server.speaking import started

ALWAYS = ["search", "npl_load_tailored", "npl_section_index"]
SHORT = [*ALWAYS, "search_tools", "call_tool"]
KEPT = {"server/discover", "tools/list", "resources/templates/list"}
FREE = {"prompts/list", "resources/list", "resources/read"}


@pytest.mark.parametrize(
    ("flags", "names"),
    [((), [spec.name for spec in listed_tools()]), (("--small-list",), SHORT)],
    ids=["whole", "small"],
)
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_the_list_on_the_wire(
    version: str, flags: tuple[str, ...], names: list[str], docs: Path, tmp_path: Path
) -> None:
    """The first three tools ask to be loaded at once. Only lists that change with a restart may be cached,
    privately.
    """
    params: dict[str, Any] = {"_meta": {**META}} if version == MODERN else {}
    with started(tmp_path, "--root", str(docs), *flags) as server:
        if not params:
            server.shake_hands(version)
        methods = sorted((KEPT if params else KEPT - {"server/discover"}) | FREE)
        uri = {"resources/read": {"uri": "npl://file/guide.md"}}
        said = {method: server.ask(method, **params, **uri.get(method, {}))["result"] for method in methods}
    tools = said["tools/list"]["tools"]
    assert [tool["name"] for tool in tools] == names
    metas = {tool["name"]: tool["_meta"] for tool in tools if "_meta" in tool}
    assert metas == {name: {"anthropic/alwaysLoad": True} for name in ALWAYS}
    extensions = said.get("server/discover", {}).get("capabilities", {}).get("extensions", {})
    assert not any("/ui" in name for name in extensions)
    times = {method: result["ttlMs"] for method, result in said.items() if "ttlMs" in result}
    if not params:
        assert times == {}
        return
    assert {method for method, time in times.items() if time > 0} == KEPT
    assert {method for method, time in times.items() if time == 0} == FREE
    assert {result["cacheScope"] for result in said.values()} == {"private"}


async def test_the_sdk_of_the_protocol_lists_and_calls(docs: Path, tmp_path: Path) -> None:
    """A client by other authors loads tailored text."""
    words = ["-m", "npl_mcp", "--root", str(docs)]
    server = StdioServerParameters(command=sys.executable, args=words, cwd=tmp_path)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = await session.list_tools()
        result = await session.call_tool(
            "npl_load_tailored", {"selectors": ["guide > ## Compost"], "file": "guide.md"}
        )
        names, text = [tool.name for tool in tools.tools], result.content[0].text
    assert "npl_load_tailored" in names
    assert json.loads(text)["data"]["sections"][0]["title"] == "Compost"


WITHOUT_SEARCH = """
from sqlite3 import *
from sqlite3 import dbapi2
class Connection(dbapi2.Connection):
    def execute(self, statement, *given):
        if "fts5" in statement:
            raise OperationalError("no such module: fts5")
        return super().execute(statement, *given)
def connect(*given, **named):
    return dbapi2.connect(*given, factory=Connection, **named)
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command", [["npl_mcp"], ["npl_mcp.cli.commands.serving", "--port", "0"]], ids=["stdio", "http"]
)
def test_an_sqlite_without_full_text_search(command: list[str], tmp_path: Path) -> None:
    """Each server prints one line with a remedy at its start, and ends with 2."""
    package = tmp_path / "packages" / "pysqlite3"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "dbapi2.py").write_text(WITHOUT_SEARCH, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "lacks FTS5, which the index needs; pip install pysqlite3" in done.stderr
    assert done.stderr.count("\n") == 1
