"""Completion of addresses of documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastmcp import Client
from mcp_types import PromptReference, ResourceTemplateReference

from npl_mcp.config.settings import Settings
from npl_mcp.server.primitives.document_resources import FILE, SECTION
from tests.conftest import with_client


def completed(settings: Settings, name: str, value: str, template: str, path: str | None) -> list[str]:
    async def ask(client: Client[Any]) -> list[str]:
        ref = ResourceTemplateReference(type="ref/resource", uri=template)
        given = {"path": path} if path else None
        answer = await client.complete(ref, {"name": name, "value": value}, context_arguments=given)
        return answer.values

    values: list[str] = with_client(settings, ask)
    return values


@pytest.mark.parametrize(
    ("name", "value", "template", "path", "values"),
    [
        ("path", "plants/", FILE, None, ["plants/beans.md", "plants/roses.md"]),
        ("path", "gui", FILE, None, ["guide.md", "npl-tool-guide"]),
        ("path", "BEANS", SECTION, None, ["plants/beans.md"]),
        ("path", "code-rev", FILE, None, ["code-review", "code-reviewer"]),
        ("path", "cr:", FILE, None, []),
        ("path", "nosuch", FILE, None, []),
        ("path", "guide", "npl://other/{path*}", None, []),
        ("selector", "drip", SECTION, "guide.md", ["guide ### Drip lines"]),
        ("selector", "", SECTION, "plants/beans.md", ["plants/beans > # Beans", "plants/beans > ## Sowing"]),
        ("selector", "", SECTION, "plants", []),
        ("selector", "", SECTION, "absent.md", []),
        ("selector", "", SECTION, None, []),
    ],
)
def test_values(
    settings: Settings, name: str, value: str, template: str, path: str | None, values: list[str]
) -> None:
    """What begins so comes first, then what holds it."""
    found = completed(settings, name, value, template, path)
    assert sorted(found) == sorted(values)
    assert [one.startswith(value) for one in found] == sorted(
        (one.startswith(value) for one in found), reverse=True
    )


ARGUMENTS = [
    ("file", "guid", {}, ["guide.md", "npl-tool-guide"]),
    ("selector", "drip", {"file": "guide.md"}, ["guide ### Drip lines"]),
    ("item", "code-rev", {"resource_type": "style"}, ["code-review"]),
    ("file", "artifact:", {}, ["artifact:2", "artifact:1"]),
    ("file", "artifact:3", {}, []),
    ("plant", "", {}, []),
]
FILE_OF = {"artifact_type": "document", "file_content_base64": "IyBQ", "filename": "p.md"}


def test_arguments_of_prompts(settings: Settings) -> None:
    """Their names say what they are."""

    async def ask(client: Client[Any]) -> list[list[str]]:
        for name in ("plan", "list"):
            await client.call_tool("artifact_create", {"name": name, **FILE_OF})
        ref = PromptReference(type="ref/prompt", name="code-reviewer")
        answers = [
            await client.complete(ref, {"name": name, "value": typed}, context_arguments=given)
            for name, typed, given, _ in ARGUMENTS
        ]
        return [answer.values for answer in answers]

    assert with_client(settings, ask) == [values for *_, values in ARGUMENTS]


def test_of_many_values_a_hundred_come(settings: Settings, docs: Path) -> None:
    """With how many there are."""
    for number in range(120):
        (docs / f"leaf-{number}.md").write_text("# Leaf\n", encoding="utf-8")

    async def ask(client: Client[Any]) -> Any:
        ref = ResourceTemplateReference(type="ref/resource", uri=FILE)
        return await client.complete(ref, {"name": "path", "value": "leaf-"})

    found = with_client(settings, ask)
    assert (len(found.values), found.total, found.has_more) == (100, 120, True)


def test_a_selector_that_was_completed_works(settings: Settings) -> None:
    """It selects its section, with whatever its heading holds."""

    async def ask(client: Client[Any]) -> int:
        ref = ResourceTemplateReference(type="ref/resource", uri=SECTION)
        argument = {"name": "selector", "value": ""}
        answer = await client.complete(ref, argument, context_arguments={"path": "guide.md"})
        for one in answer.values:
            await client.read_resource(f"npl://file/guide.md#{quote(one)}")
        return len(answer.values)

    assert with_client(settings, ask) == 8
