"""Pages for chat windows are there for clients that show such pages, and for nobody else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest
from fastmcp import Client
from mcp import MCPError
from mcp.client.extension import advertise

from npl_mcp.config.settings import Settings
from npl_mcp.server.server import create_server

PAGE = "ui://npl/ask"
KIND = "text/html;profile=mcp-app"
SHOWING = [advertise("io.modelcontextprotocol/ui", {"mimeTypes": [KIND]})]
QUESTION = {"context": "prune fruit trees", "token_budget": 400}


def asked(settings: Settings, *, shows: bool, **changes: Any) -> Mapping[str, Any]:
    """Return what a client of a new server sees, and what it gets when it asks."""

    async def run() -> dict[str, Any]:
        server = create_server(replace(settings, **changes))
        async with Client(server, extensions=SHOWING if shows else None) as client:
            seen: dict[str, Any] = {
                "tools": await client.list_tools(),
                "resources": await client.list_resources(),
                "answer": await client.call_tool("npl_ask", QUESTION, raise_on_error=False),
                "plain": await client.call_tool("npl_load_tailored", QUESTION),
            }
            try:
                seen["page"] = await client.read_resource(PAGE)
            except MCPError as error:
                seen["page"] = error
            return seen

    return anyio.run(run)


@pytest.mark.parametrize("small_list", [False, True])
def test_a_client_that_shows_pages(settings: Settings, small_list: bool) -> None:
    """The tool says which page shows its answer; the model is sent the text, the page everything."""
    seen = asked(settings, shows=True, small_list=small_list)
    (tool,) = [tool for tool in seen["tools"] if tool.name == "npl_ask"]
    assert tool.meta == {"ui": {"resourceUri": PAGE}}
    assert [str(one.uri) for one in seen["resources"] if str(one.uri).startswith("ui:")] == [PAGE]
    (page,) = seen["page"]
    assert page.mime_type == KIND
    assert page.meta["ui"] == {"prefersBorder": True}
    assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page.text
    answer = seen["answer"]
    assert [block.text for block in answer.content] == [block.text for block in seen["plain"].content]
    html = answer.structured_content["html"]
    assert "Prune fruit trees in late winter." in html.replace("<mark>", "").replace("</mark>", "")
    assert '<textarea name="context" rows="2"' in html
    assert "prune fruit trees</textarea>" in html
    assert 'aria-label="taken"' in html
    assert "curl" not in html


@pytest.mark.parametrize("small_list", [False, True])
def test_any_other_client(settings: Settings, small_list: bool) -> None:
    """It is neither shown the tool nor the page, and cannot use them by name."""
    seen = asked(settings, shows=False, small_list=small_list)
    assert "npl_ask" not in {tool.name for tool in seen["tools"]}
    assert [one for one in seen["resources"] if str(one.uri).startswith("ui:")] == []
    assert isinstance(seen["page"], MCPError)
    assert json.loads(seen["answer"].content[0].text)["error_code"] == "NOT_FOUND"


def test_without_its_domain_there_is_no_page(settings: Settings) -> None:
    seen = asked(replace(settings, domains=("npl",)), shows=True)
    assert "npl_ask" in {tool.name for tool in seen["tools"]}

    async def run() -> set[str]:
        async with Client(create_server(replace(settings, domains=("chat",))), extensions=SHOWING) as client:
            found = {tool.name for tool in await client.list_tools()}
            return found | {str(one.uri) for one in await client.list_resources()}

    assert not anyio.run(run) & {"npl_ask", PAGE}
