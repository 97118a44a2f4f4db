"""The audit of an answer, for people."""

import json
from typing import Any

import pytest
from fastmcp import Client

from npl_mcp.config.settings import Settings
from tests.conftest import with_client


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_the_answer_is_what_an_agent_gets(settings: Settings, form: str) -> None:
    given = {"context": "water the garden", "token_budget": 250, "topics": ["compost"], "format": form}

    async def ask(client: Client[Any]) -> list[str]:
        tools = ("npl_load_tailored", "npl_audit")
        return [(await client.call_tool(tool, given)).content[0].text for tool in tools]

    plain, audited = with_client(settings, ask)
    answer = json.loads(audited)["data"]
    assert answer["text"] == plain
    assert answer["content_tokens"] < answer["tokens"] <= 250
