"""jDocMunch, another MCP server that searches Markdown by section, as a client meets it.

It is no dependency: `pip install jdocmunch-mcp` into an environment of its own, and name its executable. Its
licence is free for personal use only. It ranks by words as installed; embeddings need a provider.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

from benchmarks.relevance.__main__ import Question
from benchmarks.tokens_to_answer import WINDOWS, Page

MOST_HITS = 50
"""Hits that are asked for where only their order counts."""


class Place(NamedTuple):
    """A heading: path of its file, and its line, counted from 0."""

    file: str
    line: int


class Peer:
    """The server in a process of its own, with one folder indexed.

    :param folder: the absolute path of its documents.
    :param name: what the server calls the folder.
    """

    def __init__(self, client: Client[Any], folder: Path, name: str) -> None:
        self._client, self._folder, self._name = client, folder, name

    @classmethod
    @asynccontextmanager
    async def started(cls, command: str, folder: Path) -> AsyncIterator[Peer]:
        """Start it in an empty home, and let it index a folder."""
        with TemporaryDirectory() as home:
            environment = {**os.environ, "HOME": home}
            transport = StdioTransport(command, [], env=environment, keep_alive=False)
            async with Client(transport) as client:
                answer = await client.call_tool(
                    "index_local", {"path": str(folder.resolve()), "use_ai_summaries": False}
                )
                yield cls(client, folder, json.loads(answer.content[0].text)["repo"])

    async def tools(self) -> list[dict[str, Any]]:
        """Return its list of tools."""
        tools = await self._client.list_tools()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

    def version(self) -> str:
        """Return its version."""
        return str(self._client.initialize_result.server_info.version)

    async def call(self, tool: str, **arguments: Any) -> str:
        """Return the text of an answer."""
        answer = await self._client.call_tool(tool, {"repo": self._name, **arguments})
        return str(answer.content[0].text)

    async def cost(self, question: Question, page: Page, count: Callable[[str], int], *, known: bool) -> int:
        """Return the tokens of a search for a few sections and of reading them one by one, best first.

        The reader stops at the answer. If none of them is it, the whole file is read as well.

        :param known: the file that holds the answer is.
        """
        search = {
            "query": question.text,
            "max_results": WINDOWS,
            **({"doc_path": page.name} if known else {}),
        }
        found = await self.call("search_sections", **search)
        spent, seen = count(str(search)) + count(found), list(_strings(json.loads(found)))
        for hit in json.loads(found)["results"]:
            if page.is_in("\n".join(seen)):
                return spent
            text = await self.call("get_section", section_id=hit["id"])
            spent += count(hit["id"]) + count(text)
            seen += _strings(json.loads(text))
        return spent if page.is_in("\n".join(seen)) else spent + count(f"cat {page.name}{page.text}")

    async def ranked(self, question: Question, file: str | None = None) -> list[Place]:
        """Return the headings of the sections it finds, the best first.

        :param file: only in this one.
        """
        search = {"query": question.text, "max_results": MOST_HITS, **({"doc_path": file} if file else {})}
        hits = json.loads(await self.call("search_sections", **search))["results"]
        return [
            Place(
                hit["doc_path"],
                (self._folder / hit["doc_path"]).read_bytes()[: hit["byte_start"]].count(b"\n"),
            )
            for hit in hits
        ]


def _strings(value: Any) -> Iterator[str]:
    """Return every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)
