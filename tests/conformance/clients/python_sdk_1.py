"""A client with the Python SDK for protocol revisions with sessions: it lists tools, makes calls and prints
JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(task: dict[str, Any]) -> None:
    """Do a task: ``url`` or ``command``, and ``calls`` of a ``name`` and ``arguments`` each."""
    if "url" in task:
        transport: Any = streamablehttp_client(task["url"])
    else:
        program, *rest = task["command"]
        given = StdioServerParameters(command=program, args=rest, env=dict(os.environ))
        transport = stdio_client(given)
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        greeting = await session.initialize()
        listed = await session.list_tools()
        answers = [await session.call_tool(call["name"], call["arguments"]) for call in task["calls"]]
    report = {
        "protocol": greeting.protocolVersion,
        "tools": [tool.name for tool in listed.tools],
        "answers": [answer.model_dump(mode="json", exclude_none=True) for answer in answers],
    }
    sys.stdout.write(json.dumps(report) + "\n")


asyncio.run(main(json.loads(sys.argv[1])))
