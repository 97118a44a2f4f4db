"""``python -m npl_mcp.demo``: start the server as a client would, and load what one task needs.

Prints what an agent would have paid for the whole documents and what it pays for the sections it gets.
"""

from __future__ import annotations

import asyncio
import json
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from npl_mcp.settings import corpus_folder

TASK = "I am building a code review agent; its prompt needs an example fence and placeholders for the diff"
BUDGET = 1500
WIDTH = 100


async def run(write: Callable[[str], object]) -> None:
    """Run the demonstration.

    :param write: takes each line.
    """
    corpus = corpus_folder()
    command = [sys.executable, "-m", "npl_mcp", "--root", str(corpus)]
    write(f"$ npl-mcp --root {corpus.name}          (an MCP server over standard input and output)\n")
    transport = StdioTransport(command[0], command[1:], keep_alive=False)
    async with Client(transport) as client:
        tools = await client.list_tools()
        write(f"It offers {len(tools)} tools: {', '.join(tool.name for tool in tools)}\n")
        index = await _call(client, "npl_section_index", {"file": "npl"})
        whole = sum(node["token_count"] for node in index["sections"])
        write(f'npl_section_index(file="npl")\n  {len(index["sections"])} files, ')
        write(f"{index['total_sections']} sections, {whole:,} tokens if all were loaded; the first ones:")
        for node in index["sections"][:4]:
            write(f"    {node['name']:<44} {node['more']:>3} sections {node['token_count']:>6,} tokens")
        arguments = {"context": TASK, "file": "npl", "token_budget": BUDGET}
        shown = ",\n    ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
        write(f"\nnpl_load_tailored(\n    {shown})")
        answer = await _call(client, "npl_load_tailored", arguments)
        _show(answer, whole, write)


async def _call(client: Client[Any], tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    data: dict[str, Any] = json.loads(result.content[0].text)["data"]  # type: ignore[union-attr]
    return data


def _show(answer: dict[str, Any], whole: int, write: Callable[[str], object]) -> None:
    share = 100 * answer["total_tokens"] / whole
    write(f"  {answer['total_tokens']:,} tokens ({answer['token_counter']}), {share:.1f} % of the files; ")
    write(f"  keywords: {', '.join(answer['keywords_extracted'][:8])}\n")
    for section in answer["sections"]:
        write(
            f"    {section['relevance_score']:.2f}  {section['token_count']:>4} tokens  {section['selector']}"
        )
    if answer["request_more"]:
        write("  did not fit (ask for these with selectors=[…]):")
        for selector in answer["request_more"][:3]:
            write(f"    {selector}")
    write("  may be wanted next:")
    for suggestion in answer["suggestions"]:
        write(f"    {suggestion['selector']}  ({suggestion['reason']})")
    write("\n  The content begins:")
    for line in answer["content"].splitlines()[:14]:
        write(textwrap.indent(line[: WIDTH - 6], "    | ") if line.strip() else "    |")


def main() -> None:
    """Run the demonstration on standard output."""
    asyncio.run(run(lambda line: sys.stdout.write(f"{line}\n")))


if __name__ == "__main__":
    main()
