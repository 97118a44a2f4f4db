"""Filters by front matter and traits, in ranked answers, searches and the section index."""

import shutil
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect, cases
from tests.folders import fill

FILES = cases("npl_mcp/tools/filters")["files"]

CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({"type": "policy"}, {"plan.md", "rule.md"}),
    ({"TYPE": ["POLICY", "note"]}, {"plan.md", "rule.md", "toml.md"}),
    ({"tags": "year"}, {"plan.md", "toml.md"}),
    ({"tags": ["money", "!year"]}, {"rule.md"}),
    ({"status": "!draft"}, {"rule.md", "toml.md", "bare.md"}),
    ({"tags": "\\!odd"}, {"toml.md"}),
    ({"tags": "#year"}, {"plan.md", "toml.md"}),
    ({"date": "2024-03-06"}, {"rule.md"}),
    ({"type": "policy", "status": "stable"}, {"rule.md"}),
    ({"fm.has_code": False}, set()),
    ({"fm.has_code": "no"}, {"rule.md"}),
    ({"has_code": True}, {"bare.md"}),
    ({"type": "recipe"}, set()),
    ({"type": None, "has_code": True}, {"bare.md"}),
]


@pytest.fixture
def filtered(settings: Settings, connect: Connect) -> Call:
    """Call tools of a server of these files."""
    (root,) = settings.roots
    shutil.rmtree(root)
    fill(root, FILES)
    return connect(settings)


@pytest.mark.parametrize(("conditions", "wanted"), CASES)
def test_a_filter_is_exact_everywhere(filtered: Call, conditions: dict[str, Any], wanted: set[str]) -> None:
    loaded = filtered("npl_load_tailored", context="margin", token_budget=4000, filter=conditions)
    searched = filtered("search", query="margin", filter=conditions)
    indexed = filtered("npl_section_index", filter=conditions)
    assert {row["file"] for row in loaded["data"]["sections"]} == wanted
    assert {row["file"] for row in searched["data"]["items"]} == wanted
    assert {row["name"] for row in indexed["data"]["sections"]} == wanted


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_filter_for_one_file(filtered: Call, name: str) -> None:
    answer = filtered("npl_load_tailored", context="margin", file=name, filter={"has_code": False})
    assert answer["data"]["sections"]
    assert "margin = 1" not in answer["data"]["content"]


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("npl_load_tailored", {"context": "margin"}),
        ("search", {"query": "margin"}),
        ("npl_section_index", {}),
    ],
)
def test_an_unknown_field_names_the_known_ones(filtered: Call, tool: str, asked: dict[str, Any]) -> None:
    near, other, wrong = (
        filtered(tool, **asked, filter=given)
        for given in ({"has_cod": True}, {"zzzz": 1}, {"type": {"a": 1}})
    )
    assert near["error_code"] == other["error_code"] == wrong["error_code"] == "INVALID_PARAMETER"
    assert "fields: has_code (1), tags (3)" in near["error"]
    assert "traits: has_code" in near["error"]
    assert "type (3)" in other["error"]
    assert "tags (3)" in other["error"]


def test_a_field_follows_edits(filtered: Call, settings: Settings) -> None:
    answers = []
    for text in (FILES["plan.md"], FILES["plan.md"].replace("status: draft", "status: stable")):
        (settings.roots[0] / "plan.md").write_text(text)
        answer = filtered(
            "npl_load_tailored", context="margin", token_budget=4000, filter={"status": "stable"}
        )
        answers.append({row["file"] for row in answer["data"]["sections"]})
    assert answers == [{"rule.md"}, {"rule.md", "plan.md"}]


def test_tags_are_searched(filtered: Call, settings: Settings) -> None:
    (settings.roots[0] / "tag.md").write_text("---\ntags: [zebrafish]\n---\n# Fish\n\nIt swims.\n")
    hits = filtered("search", query="zebrafish")
    assert [row["file"] for row in hits["data"]["items"]] == ["tag.md"]
