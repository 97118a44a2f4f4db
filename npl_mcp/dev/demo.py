"""``python -m npl_mcp.dev.demo``: start the server as a client does, and load what one task needs.

Prints what an agent would have paid for the whole documents and what it pays for the sections it gets.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from npl_mcp.config.settings import corpus_folder

TASK = "I write a prompt for an agent that reviews code; it repeats a block for every remark"
TOPICS = ["example fence", "handlebars"]
BUDGET = 1500
WIDTH = 100
SHOWN_LINES = 16


async def run(write: Callable[[str], object], server: Any = None) -> None:
    """Run the demonstration.

    :param write: takes each line.
    :param server: by default one is started as a client does.
    """
    corpus = corpus_folder()
    write(f"$ npl-mcp --root {corpus.name}     # an MCP server over standard input and output\n")
    with tempfile.TemporaryDirectory() as data:  # nobody's own data is touched
        command = ["-m", "npl_mcp", "--root", str(corpus), "--data-dir", data]
        started = server or StdioTransport(sys.executable, command, keep_alive=False)
        await _run(write, started)


async def _run(write: Callable[[str], object], server: Any) -> None:
    async with Client(server) as client:
        tools = await client.list_tools()
        loading = [tool.name for tool in tools if tool.name.startswith("npl_")]
        write(f"{len(loading)} tools for prompts: {', '.join(loading)}")
        others = len(tools) - len(loading)
        domains = "sessions, artifacts, rooms, reviews, worklogs, change requests, templates and repositories"
        write(f"{others} for {domains}\n")
        index = await _call(client, "npl_section_index", {"file": "npl"})
        whole = sum(node["token_count"] for node in index["sections"])
        write('npl_section_index(file="npl")')
        write(
            f"  {len(index['sections'])} files, {index['total_sections']} sections, {whole:,} tokens in all:"
        )
        for node in index["sections"][:3]:
            write(f"    {node['name']:<40} {node['more']:>3} sections {node['token_count']:>6,} tokens")
        write("    …")
        request = {"context": TASK, "topics": TOPICS, "file": "npl", "token_budget": BUDGET}
        arguments = ",\n    ".join(f"{name}={json.dumps(value)}" for name, value in request.items())
        write(f"\nnpl_load_tailored(\n    {arguments})")
        _show(await _call(client, "npl_load_tailored", request), whole, index["token_counter"], write)


async def _call(client: Client[Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, {**arguments, "format": "json"})
    data: dict[str, Any] = json.loads(result.content[0].text)["data"]  # type: ignore[union-attr]
    return data


def _show(answer: dict[str, Any], whole: int, counter: str, write: Callable[[str], object]) -> None:
    share = 100 * answer["total_tokens"] / whole
    counted = "counted exactly" if counter.startswith("tiktoken") else "estimated"
    write(f"  {answer['total_tokens']:,} tokens ({counted}): {share:.1f} % of the files\n")
    for section in answer["sections"]:
        write(
            f"    {section['relevance_score']:.2f} {section['token_count']:>5} tokens  {section['selector']}"
        )
    if answer["suggestions"]:
        write("\n  may be wanted next")
    for suggestion in answer["suggestions"]:
        write(f"    {suggestion['selector']}  ({suggestion['reason']})")
    write("\n  the content begins")
    for line in answer["content"].splitlines()[:SHOWN_LINES]:
        write(f"    | {line[: WIDTH - 6]}".rstrip())


def main() -> None:
    """Run the demonstration on standard output."""
    asyncio.run(run(lambda line: sys.stdout.write(f"{line}\n")))


if __name__ == "__main__":
    main()
