"""An answer of the default size has passages, then pointers, then absent words."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index import estimator
from npl_index.choices import DEFAULT_BUDGET
from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect, cases
from tests.folders import fill

GARDEN = {
    "trees.md": (
        "# Trees\n\n## Pruning\n\nPrune apple trees in late winter, before the buds swell.\n\n"
        "## Grafting\n\nA scion is bound to the rootstock in early spring.\n\n"
        "## Pests\n\nCodling moths fly in May. Hang the pheromone traps before that.\n"
    ),
    "beds.md": (
        "# Beds\n\n## Compost\n\nTurn the heap every two weeks, so that air reaches the middle of it.\n\n"
        "## Mulch\n\nStraw keeps the soil of the beds moist.\n\n"
        "## Watering\n\n" + "Water the roots in the morning, and never the leaves.\n\n" * 40
    ),
    "tools.md": "# Tools\n\n## Secateurs\n\nOil the secateurs after use.\n\n## Spade\n\nRinse the spade.\n",
    "seeds.md": "# Seeds\n\n"
    + "".join(
        f"## Sort {number}\n\nSow sort {number} in week {number}, thin in week {number + 4}.\n\n"
        for number in range(10, 40)
    ),
}


@pytest.fixture
def garden(settings: Settings, docs: Path, connect: Connect) -> Call:
    """Calls of a server that serves four files on a garden and answers in the default size."""
    for path in docs.glob("**/*.md"):
        path.unlink()
    fill(docs, GARDEN)
    return connect(replace(settings, token_budget=DEFAULT_BUDGET))


def markdown(garden: Call, **arguments: Any) -> str:
    return garden.text("npl_load_tailored", **{"file": "docs/", "format": "markdown", **arguments})


def data(garden: Call, **arguments: Any) -> Any:
    return garden.do("npl_load_tailored", **{"file": "docs/", **arguments})


def passages(text: str) -> str:
    return re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)


ABSENT = {
    "kafka consumer group rebalance": ("kafka", "rebalance"),
    "zzzqqq": ("zzzqqq",),
    "rotate_keys of the vault": ("rotate_keys", "vault"),
}


@pytest.mark.parametrize("question", ABSENT)
def test_what_no_section_has_gets_no_text(garden: Call, question: str) -> None:
    """The answer names the words and the nearest sections, within 150 tokens."""
    text = markdown(garden, context=question)
    assert passages(text) == ""
    (line,) = (line for line in text.splitlines() if line.startswith("no section has: "))
    said = line.removeprefix("no section has: ").removesuffix(" -->").split(", ")
    advice = "no section has most of these words"
    assert f"{advice}; nearest:\n" in text or f"\n{advice} -->" in text
    assert set(ABSENT[question]) <= set(said)
    assert estimator("o200k_base").count(text) <= 150
    answer = data(garden, context=question)
    assert answer["content"] == ""
    assert answer["sections"] == []
    assert answer["absent"] == said
    assert answer["advice"] == advice


def test_a_weak_answer_is_one_short_passage(garden: Call) -> None:
    """It names the question's words that the best section has; pointers follow."""
    task = "hang the pheromone traps before codling moths fly in May, not in late winter"
    question = {"context": f"{'watering ' * 14}{task}"}
    text = markdown(garden, **question)
    assert estimator("o200k_base").count(passages(text)) <= 120
    assert "## Watering" in text.splitlines()[0]
    (line,) = (line for line in text.splitlines() if line.startswith("weak: best has "))
    assert line.removesuffix(" -->").endswith(" watering")
    assert '## Pests" ' in text
    assert data(garden, **question)["weak"] is True


def test_pointers_name_the_next_sections_with_size_and_matching_line(garden: Call) -> None:
    """Each has a line in the last mark; ``request_more`` has the bare selectors."""
    question = {"context": "sow sort 12 and thin it"}
    text = markdown(garden, **question)
    pointers = re.findall(r'^("[^\n]*") (\d+)(?: \([^)]*\))?(?:: (.*))?$', text, re.MULTILINE)
    assert len(pointers) >= 2  # the last line ends the mark
    assert "Sow sort" in pointers[0][2]
    named = [json.loads(selector) for selector, _, _ in pointers]
    assert named[:2] == data(garden, **question)["request_more"][:2]
    for selector, size, _ in pointers:
        (row,) = data(garden, selectors=[selector + f" {size}: as printed"])["sections"]
        assert row["token_count"] == int(size)


def test_reading_on_brings_that_section_alone(garden: Call) -> None:
    """A selector sent with the question brings its section, a long one cut around the question."""
    question = "water the roots in the morning"
    answer = data(garden, context=question, selectors=["beds > ## Watering"], token_budget=300)
    (row,) = answer["sections"]
    assert row["title"] == "Watering"
    assert answer["truncated"]
    assert all("Watering" in selector for selector in answer["request_more"])
    text = markdown(garden, context=question, selectors=["## Mulch"])
    assert passages(text).strip() == "## Mulch\n\nStraw keeps the soil of the beds moist."


SUBJECTS = cases("npl_mcp/tools/answers")["subjects"]


@pytest.mark.parametrize(("arguments", "titles"), SUBJECTS)
def test_several_subjects_share_the_answer(
    garden: Call, arguments: dict[str, Any], titles: tuple[str, ...]
) -> None:
    assert set(titles) <= {row["title"] for row in data(garden, **arguments)["sections"]}


def test_the_best_passage_comes_first(garden: Call) -> None:
    """Markdown has passages best first; JSON keeps the order of the document."""
    question = {"context": "oil the secateurs after use and prune apple trees"}
    scores = [float(score) for score in re.findall(r" (\.\d+|1)(?: cut)? -->", markdown(garden, **question))]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) > 1
