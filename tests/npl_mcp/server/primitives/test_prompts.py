"""NPL prompts and agents are prompts of the protocol."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from mcp import MCPError
from mcp_types import TextContent

from npl_mcp.config.settings import Settings, corpus_folder
from tests.conftest import case_text, cases, with_client

BED = case_text("npl_mcp/server/primitives/prompts/bed.md")


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def listed(settings: Settings, **changes: Any) -> dict[str, Any]:
    async def ask(client: Client[Any]) -> dict[str, Any]:
        return {prompt.name: prompt for prompt in await client.list_prompts()}

    prompts: dict[str, Any] = with_client(settings, ask, **changes)
    return prompts


def asked(settings: Settings, name: str, **arguments: str) -> str:
    async def ask(client: Client[Any]) -> str:
        (message,) = (await client.get_prompt(name, arguments)).messages
        assert isinstance(message.content, TextContent)
        return message.content.text

    text: str = with_client(settings, ask)
    return text


def test_what_comes_with_the_program(settings: Settings) -> None:
    """Each bundled prompt and agent has a description and one argument. Other roots have no prompts."""
    assert listed(settings, domains=("npl",)) == {}
    assert asked(settings, "code-reviewer")
    prompts = listed(settings, domains=("npl",), roots=(corpus_folder(),))
    assert listed(settings, domains=("npl",), roots=()) == prompts
    files = [path for kind in ("prompts", "agents") for path in sorted((corpus_folder() / kind).glob("*.md"))]
    assert list(prompts) == [path.stem for path in files]
    assert prompts["npl-worklog"].description
    assert prompts["code-reviewer"].description.startswith("Reviews a code change")
    assert {
        tuple((argument.name, argument.required) for argument in prompt.arguments)
        for prompt in prompts.values()
    } == {(("task", False),)}


def test_a_prompt_and_what_it_is_about(settings: Settings) -> None:
    """Front matter is left out; the task comes last."""
    plain, about = asked(settings, "code-reviewer"), asked(settings, "code-reviewer", task="the last commit")
    assert plain.startswith("Load the review rules")
    assert about == f"{plain.rstrip()}\n\nthe last commit\n"


def test_own_prompts_and_their_arguments(settings: Settings, docs: Path) -> None:
    """Prompts of roots and of the project have their arguments filled into the text."""
    write(docs / "prompts", "bed.md", BED)
    write(settings.cwd / ".npl" / "prompts", "soil.md", "# Try the Soil\n\nDig.\n")
    write(docs / "prompts", "npl-worklog.md", "Mine.\n")
    prompts = listed(settings)
    assert prompts["bed"].description == "Plan a bed"
    assert [
        (argument.name, argument.description, argument.required) for argument in prompts["bed"].arguments
    ] == [("plant", "What will grow there", True), ("place", "Where it lies", True)]
    assert prompts["soil"].description == "Try the Soil"
    assert asked(settings, "npl-worklog") == "Mine.\n"
    text = asked(settings, "bed", plant="{place} beans", place="the wall")
    assert text == "# Beds\n\nPlan a bed of {place} beans at the wall, {month}.\n"


@pytest.mark.parametrize(
    ("fields", "expected"), cases("npl_mcp/server/primitives/prompts")["forms_of_declared_arguments"]
)
def test_forms_of_declared_arguments(
    settings: Settings, docs: Path, fields: str, expected: list[list[object]]
) -> None:
    """Arguments are declared in the protocol's form or as names alone."""
    write(docs / "prompts", "short.md", f"---\narguments: {fields}\n---\n{{a}} and {{b}}\n")
    arguments = listed(settings)["short"].arguments
    assert [[argument.name, argument.description, argument.required] for argument in arguments] == expected


def test_an_argument_that_is_not_required_may_be_left_out(settings: Settings, docs: Path) -> None:
    write(docs / "prompts", "short.md", "---\narguments:\n  - name: a\n---\n[{a}]\n")
    assert asked(settings, "short") == "[]\n"
    assert asked(settings, "short", a="x") == "[x]\n"


@pytest.mark.parametrize("text", ["{a}" * 20_000, "{a}{b}{ä}" * 900])
def test_a_short_prompt_does_not_grow_without_bound(settings: Settings, docs: Path, text: str) -> None:
    """The size with the values is known before the text is made; other answers have the same bound."""
    small = replace(settings, max_artifact_bytes=1_000, max_body_bytes=100_000)
    write(docs / "prompts", "many.md", f"---\narguments: [a, b, ä]\n---\n{text}")
    assert asked(small, "many", a="", b="", ä="") == ""
    fits = 100_000 // text.count("{a}") // (3 if "b" in text else 1)
    assert len(asked(small, "many", a="x" * fits, b="x" * fits, ä="x" * fits)) <= 100_000
    with pytest.raises(MCPError) as raised:
        asked(small, "many", a="x" * (fits + 1), b="x" * (fits + 1), ä="x" * (fits + 1))
    assert "longer than 100,000 bytes" in raised.value.error.message


@pytest.mark.parametrize(
    ("name", "problem"), [("bed", "'bed' needs place"), ("nosuch", "nosuch"), ("broken", "Unknown prompt")]
)
def test_what_cannot_be_had(settings: Settings, docs: Path, name: str, problem: str) -> None:
    """A missing prompt is named; an unreadable file is not a prompt and hides no other."""
    write(docs / "prompts", "bed.md", BED)
    (docs / "prompts" / "broken.md").write_bytes(b"caf\xe9")
    write(docs / "prompts", "odd.md", '---\ndescription: "\\ud800"\n---\nText.\n')
    names = set(listed(settings))
    assert names >= {"bed"}
    assert "broken" not in names
    with pytest.raises(MCPError) as raised:
        asked(settings, name, plant="beans")
    assert problem in raised.value.error.message
