"""Documents are resources: whole, or a section by its selector."""

from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from mcp import MCPError
from mcp_types import TextResourceContents

from npl_mcp.config.settings import Settings
from tests.conftest import GUIDE, cases, client_of, with_client

DRIP = GUIDE[GUIDE.index("### Drip") : GUIDE.index("## Pruning")].rstrip() + "\n"
WATERING = GUIDE[GUIDE.index("## Watering") : GUIDE.index("## Pruning")].rstrip() + "\n"
ALSO = ("### See Also\n\nSharpen the shears first.\n", "### See Also\n\nTurn the heap every month.\n")


def read(settings: Settings, *paths: str, **changes: Any) -> list[str]:
    async def ask(client: Client[Any]) -> list[str]:
        texts = []
        for path in paths:
            (content,) = await client.read_resource(f"npl://file/{path}")
            assert isinstance(content, TextResourceContents)
            assert content.mime_type == "text/markdown"
            texts.append(content.text)
        return texts

    texts: list[str] = with_client(settings, ask, **changes)
    return texts


def test_whole_documents(settings: Settings, docs: Path) -> None:
    """Their names are those of the tools: a path, or a bundled item."""
    roses, guide, agent = read(settings, "plants/roses.md", "guide", "code-reviewer")
    assert roses == (docs / "plants/roses.md").read_text()
    assert guide == GUIDE
    assert "code-reviewer" in agent


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("guide.md#Watering", WATERING),
        ("guide.md#Watering%20%3E%20Drip%20lines", DRIP),
        ("guide.md#Drip lines", DRIP),
        ("guide.md#guide%20%3E%20%23%23%20Watering", WATERING),
        ("guide.md#See%20Also", "\n".join(ALSO)),
        ("guide.md#%E5%A0%86%E8%82%A5%E3%81%A8%E6%B0%B4%E3%82%84%E3%82%8A", GUIDE[GUIDE.index("## 堆肥") :]),
    ],
)
def test_sections(settings: Settings, path: str, text: str) -> None:
    assert read(settings, path) == [text]


@pytest.mark.parametrize(
    ("path", "problem"),
    cases("npl_mcp/server/primitives/document_resources")["what_cannot_be_read"],
)
def test_what_cannot_be_read(settings: Settings, docs: Path, path: str, problem: str) -> None:
    """The error has the protocol's code for a caller's mistake, and the message of the tools."""
    secret = settings.home / "secret.md"
    secret.write_text("LEAK")
    (docs / "link.md").symlink_to(secret)
    with pytest.raises(MCPError) as raised:
        read(settings, path)
    assert raised.value.error.code == -32602
    assert problem in raised.value.error.message
    assert "LEAK" not in raised.value.error.message


async def test_a_document_as_it_is_now(settings: Settings, docs: Path) -> None:
    async with client_of(settings) as client:
        texts = []
        for text in ("# One\n", "# Another\n"):
            (docs / "one.md").write_text(text)
            (content,) = await client.read_resource("npl://file/one.md")
            assert isinstance(content, TextResourceContents)
            texts.append(content.text)
        assert texts == ["# One\n", "# Another\n"]
