"""Other servers of Markdown, pinned, each in an environment of its own, asked by their main search tool.

What an answer lists is read as an agent would: the section where the peer has a tool for one, else the page.
A peer that cuts pages into pieces is read by piece.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastmcp import Client
from mcp.types import TextContent

from benchmarks.agent_day.player import Answer, Hit
from benchmarks.agent_day.tasks import Documents, Phrasing
from benchmarks.servers import client_of, environment

ENVIRONMENTS = Path(__file__).parents[2] / ".peers"
_ANCHOR = re.compile(r"\s*\{\s*#[^}]*\}\s*$")
_MARKS = re.compile(r"</?mark>|\*\*")
_SECONDS = 120
"""For which the index of a peer is waited."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Reading:
    """What a peer's tool reads.

    :param path: of the page.
    :param arguments: of the tool.
    :param heading: of the section; none for the whole page.
    """

    path: str
    arguments: Mapping[str, str]
    heading: str | None = None


@dataclass(frozen=True)
class Peer:
    """A server and its tools.

    ``{docs}`` stands for the folder of the documents, ``{home}`` for an empty one.

    :param package: name and version; its program has that name.
    :param prepare: flags with which the program makes the index, if a server does not.
    :param ready: a tool whose answer has ``document_count`` above 0 when the index is complete.
    :param read: name of the tool that reads.
    """

    package: str
    serve: tuple[str, ...] = ("serve",)
    prepare: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    search: str = "search"
    read: str = "read"
    ready: str | None = None

    @property
    def name(self) -> str:
        """Name of the package and of its program."""
        return re.split(r"[\[=]", self.package)[0]

    def install(self) -> str:
        """Return the path of the program; the first time its environment is made."""
        folder = ENVIRONMENTS / re.sub(r"[^\w.-]+", "-", self.package)
        program, complete = folder / "bin" / self.name, folder / "complete"
        if not complete.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", self.package]
            subprocess.run(pip, check=True)
            complete.touch()
        return str(program)

    def readings(self, row: Row) -> Iterator[Reading]:
        """Return what a row of an answer names."""
        if "doc" in row:
            yield Reading(row["doc"], {"id": row["id"]}, row["heading_path"].rpartition(" > ")[2])
        elif "file_path" in row:
            yield Reading(row["file_path"], {"path": row["file_path"]})
        else:
            for section in row["sections"]:
                heading = section["heading"]
                named = {"section": heading} if heading else {}
                yield Reading(row["path"], {"path": row["path"], **named}, heading)


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "gnosis-mcp==0.17.5",
            prepare=("ingest", "{docs}"),
            variables={"GNOSIS_MCP_DATABASE_URL": "{home}/docs.db"},
            search="search_docs",
            read="get_doc",
        ),
        Peer(
            "markdown-vault-mcp==5.1.0",
            variables={
                "MARKDOWN_VAULT_MCP_SOURCE_DIR": "{docs}",
                "MARKDOWN_VAULT_MCP_READ_ONLY": "true",
                "MARKDOWN_VAULT_MCP_DEFAULT_SEARCH_MODE": "keyword",
            },
            ready="stats",
        ),
        Peer("contextpull[mcp]==0.2.1", serve=("serve", "{docs}", "--store", "{home}/store.sqlite")),
    )
}


class PeerSystem:
    """A peer over documents."""

    def __init__(self, client: Client[Any], peer: Peer, documents: Documents) -> None:
        self._client, self._peer, self._documents = client, peer, documents

    @classmethod
    @asynccontextmanager
    async def started(cls, name: str, documents: Documents) -> AsyncIterator[PeerSystem]:
        """Start a peer with an index of its own, and wait for the index."""
        peer, docs = PEERS[name], str(documents.folder)
        program = peer.install()
        with TemporaryDirectory(ignore_cleanup_errors=True) as home:
            own = {key: _with_folders(value, docs, home) for key, value in peer.variables.items()}
            if peer.prepare:
                command = [program, *(_with_folders(part, docs, home) for part in peer.prepare)]
                subprocess.run(
                    command, env=environment(home, **own), cwd=home, check=True, capture_output=True
                )
            serve = [_with_folders(part, docs, home) for part in peer.serve]
            async with client_of([program, *serve], home, **own) as client:
                if peer.ready:
                    await _complete(client, peer.ready)
                yield cls(client, peer, documents)

    async def ask(self, phrasing: Phrasing) -> Answer:
        """Search."""
        arguments = {"query": phrasing.text}
        text = await self._call(self._peer.search, arguments)
        rows = json.loads(text or "[]")
        rows = rows["hits"] if isinstance(rows, dict) else rows
        hits = {hit.handle: hit for row in rows for hit in self._hits(row)}
        return Answer(arguments, text, list(hits.values()), _plain(rows))

    async def read(self, hit: Hit, phrasing: Phrasing) -> Answer:
        """Read a section, or a page."""
        del phrasing
        arguments = json.loads(hit.handle or "{}")
        text = await self._call(self._peer.read, arguments)
        try:
            return Answer(arguments, text, plain=_plain(json.loads(text)))
        except ValueError:
            return Answer(arguments, text)

    def passages(self, answer: Answer) -> str:
        """Return the answer's text; without hits there is none."""
        return answer.text if answer.hits else ""

    def _hits(self, row: Row) -> Iterator[Hit]:
        for reading in self._peer.readings(row):
            if reading.path not in self._documents.files:
                continue
            tree = self._documents.files[reading.path].tree
            name = _ANCHOR.sub("", reading.heading or "")
            places = frozenset(
                (reading.path, section.index)
                for section in tree.sections
                if reading.heading is None or section.name == name
            )
            yield Hit(json.dumps(dict(reading.arguments)), places)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        answer = await self._client.call_tool(tool, arguments, raise_on_error=False)
        return "".join(part.text for part in answer.content if isinstance(part, TextContent))


def _with_folders(text: str, docs: str, home: str) -> str:
    return text.replace("{docs}", docs).replace("{home}", home)


async def _complete(client: Client[Any], tool: str) -> None:
    for _ in range(_SECONDS):
        answer = await client.call_tool(tool, {})
        if json.loads(answer.content[0].text)["document_count"]:  # type: ignore[union-attr]
            return
        await asyncio.sleep(1)
    raise TimeoutError(f"{tool} reports no documents after {_SECONDS} s")


def _plain(value: object) -> str:
    """Return the texts in a value, as they are and without the marks of found words."""
    texts = list(_texts(value))
    return "\n".join([*texts, *(_MARKS.sub("", text) for text in texts)])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
