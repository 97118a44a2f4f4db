"""A question's answer has the right section and little else, as an MCP client sees it."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Call, case_text, cases
from tests.folders import fill

SETTINGS = case_text("texts/settings.md")

GUIDE = case_text("npl_mcp/tools/finding/guide.md")


@pytest.fixture
def kettle(docs: Path) -> Path:
    filler = "".join(
        f"## Note {n}\n\nOn tea number {n}: a kettle, a cup, the code of good tea and a new leaf to add.\n\n"
        for n in range(60)
    )
    files = {"settings.md": SETTINGS, "guide.md": GUIDE.format(filler=filler)}
    for n in range(1, 9):
        name = f"qrst{n}uvw"
        text = f"# {name}\n\nAll about {name}: what {name} does.\n\n## Uses of {name}\n\nMany.\n"
        files[f"part-{n}.md"] = text if n != 5 else "# Parts\n\nAnd qrst5uvw.\n"
    return fill(docs / "kettle", files)


def titles(answer: dict[str, Any]) -> list[str]:
    return [section["title"] for section in answer["data"]["sections"]]


@pytest.mark.usefixtures("kettle")
def test_an_identifier_among_near_variants(call: Call) -> None:
    """The identifier as written comes first among names that differ in a digit."""
    answer = call("npl_load_tailored", context="qrst5uvw", file="kettle", token_budget=1_000)
    assert titles(answer)[0] == "Parts"


@pytest.mark.parametrize(
    ("question", "text"), cases("npl_mcp/tools/finding")["small_questions_have_small_answers"]
)
@pytest.mark.usefixtures("kettle")
def test_small_questions_have_small_answers(call: Call, question: str, text: str) -> None:
    """The answer to a few words over all files has 300 tokens at most."""
    answer = call("npl_load_tailored", context=question, file="kettle", token_budget=300)
    assert text in answer["data"]["content"]
    assert answer["data"]["total_tokens"] <= 300
