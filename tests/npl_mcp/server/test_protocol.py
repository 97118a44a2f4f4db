"""The server as a process, called line by line and by the protocol's own SDK."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from npl_mcp.tools.domains import listed_tools
from tests.npl_mcp.http.http_server import META, MODERN


@pytest.fixture
def command(docs: Path) -> list[str]:
    return [sys.executable, "-m", "npl_mcp", "--root", str(docs)]


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def ask(process: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    while line := process.stdout.readline():
        answer: dict[str, Any] = json.loads(line)
        if answer.get("id") == number:
            return answer
    raise AssertionError("the server ended its output")


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


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
    version: str, flags: tuple[str, ...], names: list[str], command: list[str], tmp_path: Path
) -> None:
    """The first three tools ask to be loaded at once. Only lists that change with a restart may be cached,
    privately.
    """
    with running([*command, *flags], tmp_path) as process:
        params: dict[str, Any] = {"_meta": {**META}} if version == MODERN else {}
        if not params:
            hello = ask(process, 1, "initialize", {**HELLO, "protocolVersion": version})["result"]
            assert hello["protocolVersion"] == version
            assert process.stdin is not None
            process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        methods = sorted((KEPT if params else KEPT - {"server/discover"}) | FREE)
        uri = {"resources/read": {"uri": "npl://file/guide.md"}}
        said = {
            method: ask(process, number, method, {**params, **uri.get(method, {})})["result"]
            for number, method in enumerate(methods, 2)
        }
    tools = said["tools/list"]["tools"]
    assert [tool["name"] for tool in tools] == names
    metas = {tool["name"]: tool["_meta"] for tool in tools if "_meta" in tool}
    assert metas == {name: {"anthropic/alwaysLoad": True} for name in ALWAYS}
    times = {method: result["ttlMs"] for method, result in said.items() if "ttlMs" in result}
    if not params:
        assert times == {}
        return
    assert {method for method, time in times.items() if time > 0} == KEPT
    assert {method for method, time in times.items() if time == 0} == FREE
    assert {result["cacheScope"] for result in said.values()} == {"private"}


def test_the_sdk_of_the_protocol_lists_and_calls(command: list[str], tmp_path: Path) -> None:
    """A client by other authors loads tailored text."""

    async def run() -> tuple[list[str], str]:
        server = StdioServerParameters(command=command[0], args=command[1:], cwd=tmp_path)
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            result = await session.call_tool(
                "npl_load_tailored", {"selectors": ["guide > ## Compost"], "file": "guide.md"}
            )
            return [tool.name for tool in tools.tools], result.content[0].text  # type: ignore[union-attr]

    names, text = anyio.run(run)
    assert "npl_load_tailored" in names
    assert json.loads(text)["data"]["sections"][0]["title"] == "Compost"


def test_the_server_ends_when_its_input_ends(command: list[str], tmp_path: Path) -> None:
    """A client that disconnects leaves no process, and no more output."""
    with running(command, tmp_path) as process:
        ask(process, 1, "initialize", HELLO)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""


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
