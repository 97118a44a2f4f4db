"""A setting gives the size of an answer without a budget, on every way to the answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index import estimator
from npl_index.choices import DEFAULT_BUDGET
from npl_mcp.config.settings import Settings
from tests.conftest import Connect, by_name

PART = "Tulips in bed {n} want {n} litres of water, and lime every spring.\n\n" * 6
BEDS = "# Beds\n\n" + "".join(f"## Tulips in bed {n}\n\n{PART.format(n=n)}" for n in range(30))
QUESTION = {"context": "water for tulips"}

CASES: list[tuple[str, int, dict[str, Any], int | None]] = [
    # what, the setting, arguments, most tokens of the answer (None: more than twice the default)
    ("a context", DEFAULT_BUDGET, QUESTION, DEFAULT_BUDGET),
    ("topics", DEFAULT_BUDGET, {"topics": ["tulips"]}, DEFAULT_BUDGET),
    ("a context with a selector", DEFAULT_BUDGET, {**QUESTION, "selectors": ["beds"]}, 1_100),
    ("selectors alone", DEFAULT_BUDGET, {"selectors": ["beds"]}, None),
    ("a blank context", DEFAULT_BUDGET, {"context": " ", "topics": [""], "selectors": ["beds"]}, None),
    ("a budget of its own", DEFAULT_BUDGET, {**QUESTION, "token_budget": 900}, 900),
    ("no limit", DEFAULT_BUDGET, {**QUESTION, "token_budget": 0}, None),
    ("another setting", 220, QUESTION, 220),
    ("a setting without limit", 0, QUESTION, None),
    ("a budget where none is set", 0, {**QUESTION, "token_budget": 220}, 220),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("what", "setting", "arguments", "most"), CASES, ids=[case[0] for case in CASES])
def test_the_setting_bounds_answers_to_questions(
    settings: Settings,
    connect: Connect,
    docs: Path,
    what: str,
    setting: int,
    arguments: dict[str, Any],
    most: int | None,
) -> None:
    """An explicit budget replaces it, 0 means no limit; selectors alone bring sections whole."""
    (docs / "beds.md").write_text(BEDS, encoding="utf-8")
    call = connect(replace(settings, token_budget=setting))
    sent = call.text("npl_load_tailored", **{"file": "beds.md", "format": "markdown", **arguments})
    tokens = estimator("o200k_base").count(sent)
    assert tokens <= most if most else tokens > 2 * DEFAULT_BUDGET, what


@pytest.mark.parametrize("setting", [DEFAULT_BUDGET, 1200, 0])
def test_the_list_of_tools_names_the_default(settings: Settings, setting: int) -> None:
    schema = by_name(settings, token_budget=setting)["npl_load_tailored"]["inputSchema"]
    assert schema["properties"]["token_budget"]["description"] == f"Default {setting}; 0: no limit"
