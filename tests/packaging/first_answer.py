"""A newcomer's first minute: a server starts in a folder of notes and answers one question."""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
from fastmcp import Client
from fastmcp.client.transports import StdioTransport

NOTES = "# Garden\n\n## Watering\n\nWater early in the morning.\n\n## Pruning\n\nCut in late winter.\n"
QUESTION = {"context": "when do I water", "token_budget": 300}
ANSWER = "Water early in the morning."
# Nothing of this environment may be imported by the one that is tried.
OF_THIS_ONE = ("PYTHONPATH", "VIRTUAL_ENV")
# A start compiles every module once; a bundle installs its packages as well.
PATIENCE = 300

Ask = Callable[[Client[Any]], Coroutine[Any, Any, Any]]


def first_answer(command: Callable[[Path], list[str]], folder: Path) -> int:
    """Return how many tools a server lists that also answers a question from a file.

    :param command: returns the program and its arguments for a folder of Markdown.
    :param folder: an empty one.
    :raises AssertionError: the answer is another.
    """
    notes = folder / "notes"
    notes.mkdir(parents=True)
    (notes / "garden.md").write_text(NOTES, encoding="utf-8")
    tools: int = asked([*command(notes), "--data-dir", str(folder / "data")], notes, _first)
    return tools


def asked(command: list[str], folder: Path, ask: Ask) -> Any:
    """Start a server in a folder, and return what ``ask`` returns for its client."""

    async def talk() -> Any:
        program, *arguments = command
        server = StdioTransport(program, arguments, env=environment(), cwd=str(folder), keep_alive=False)
        with anyio.fail_after(PATIENCE):
            async with Client(server, init_timeout=PATIENCE) as client:
                return await ask(client)

    return anyio.run(talk)


def environment() -> dict[str, str]:
    """Return the variables for a program that is tried."""
    return {name: value for name, value in os.environ.items() if name not in OF_THIS_ONE}


async def _first(client: Client[Any]) -> int:
    tools = await client.list_tools()
    answer = await client.call_tool("npl_load_tailored", {"file": "garden.md", **QUESTION})
    text = answer.content[0].text
    assert ANSWER in text, text
    return len(tools)
