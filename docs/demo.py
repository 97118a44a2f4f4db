"""``python -m docs.demo``: start the server as a client does, and ask for what one task needs.

Prints the call, the answer as an agent reads it, and what the whole documents would have cost.
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

from npl_index.tokens.estimated import estimator
from npl_mcp.config.settings import corpus_folder

REQUEST = {"context": "write the commit message for a fix", "token_budget": 250}


async def run(write: Callable[[str], object], server: Any = None) -> None:
    """Run the demonstration.

    :param write: takes each line.
    :param server: by default one is started as a client does.
    """
    corpus = corpus_folder()
    write(f"$ npl-mcp --root {corpus.name}     # an MCP server over standard input and output\n")
    with tempfile.TemporaryDirectory() as data:  # the user's data folder stays unchanged
        command = ["-m", "npl_mcp", "--root", str(corpus), "--data-dir", data]
        async with Client(server or StdioTransport(sys.executable, command, keep_alive=False)) as client:
            result = await client.call_tool("npl_load_tailored", {**REQUEST, "format": "markdown"})
    answer: str = result.content[0].text
    shown = ", ".join(f"{name}={json.dumps(value)}" for name, value in REQUEST.items())
    write(f"npl_load_tailored({shown})\n")
    for line in answer.splitlines():
        write(f"  {line}".rstrip())
    files = [estimator().count(path.read_text(encoding="utf-8")) for path in corpus.rglob("*.md")]
    tokens, whole = estimator().count(answer), sum(files)
    share = 100 * tokens / whole
    write(f"\n{tokens:,} tokens (estimated), {share:.1f} % of the {whole:,} in {len(files)} files")


def main() -> None:
    """Run the demonstration on standard output."""
    asyncio.run(run(lambda line: sys.stdout.write(f"{line}\n")))


if __name__ == "__main__":
    main()
