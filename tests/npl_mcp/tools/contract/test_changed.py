"""A caller is told once of each section that it has read and that has changed since."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_index import estimator
from npl_mcp.config.settings import Settings
from tests import engines
from tests.conftest import Call, Connect
from tests.npl_mcp.http.http_server import Running, call, serving

READ: dict[str, Any] = {"selectors": ["guide > ## Pruning"]}
TOLD = "guide > ## Pruning"


def edit(docs: Path, old: str = "late winter", new: str = "early spring") -> None:
    file = docs / "guide.md"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


NEXT: dict[str, tuple[str, dict[str, Any]]] = {
    "the same section": ("npl_load_tailored", READ),
    "another": ("npl_load_tailored", {"selectors": ["roses > ## Pruning"]}),
    "a question": ("npl_load_tailored", {"context": "sow beans"}),
    "a search": ("search", {"query": "beans"}),
    "an outline": ("npl_section_index", {"file": "plants/beans.md"}),
}


@pytest.mark.parametrize("case", NEXT)
@pytest.mark.parametrize("form", ["json", "markdown"])
def test_the_next_answer_tells_a_change_once(docs: Path, call: Call, case: str, form: str) -> None:
    """Any next call tells it, with the current text."""
    tool, arguments = NEXT[case]
    first = call.text("npl_load_tailored", **READ)
    edit(docs)
    told, again = (call.text(tool, **arguments, format=form) for _ in range(2))
    assert "changed" not in first + again
    if form == "json":
        assert json.loads(told)["data"]["changed"] == [TOLD]
    else:
        assert told.startswith(f"<!-- changed since you read it: {TOLD} -->\n")
    if case == "the same section":
        assert "early spring" in told


def test_other_callers_and_other_sections_are_not_told(
    settings: Settings, docs: Path, connect: Connect
) -> None:
    """Another caller, or a caller that has read another section of the file, is not told."""
    holder, other, stranger = (connect(settings) for _ in range(3))
    holder("npl_load_tailored", **READ)
    other("npl_load_tailored", selectors=["guide > ## Compost"])
    edit(docs)
    answers = [caller("search", query="beans")["data"] for caller in (stranger, other, holder)]
    assert ["changed" in answer for answer in answers] == [False, False, True]


def test_what_is_gone_or_moved_is_told(settings: Settings, docs: Path, call: Call) -> None:
    """Surrounding blank lines and other sections do not count."""
    call("npl_load_tailored", **READ)
    edit(docs, "## Watering", "Moved down.\n\n\n## Watering")
    assert "changed" not in call("search", query="beans")["data"]
    edit(docs, "## Pruning", "## Cutting")
    assert call("search", query="beans")["data"]["changed"] == [TOLD]
    assert "changed" not in call("search", query="beans")["data"]


def test_an_edit_of_ones_own_is_not_told(settings: Settings, docs: Path, connect: Connect) -> None:
    own, other = (connect(replace(settings, write=True)) for _ in range(2))
    for caller in (own, other):
        caller("npl_load_tailored", **READ)
    edited = {"file": "guide.md", "selector": "## Pruning", "operation": "append", "content": "Use a saw."}
    assert own("npl_update_section", **edited)["success"]
    assert "changed" not in own("search", query="beans")["data"]
    assert len(other("search", query="beans")["data"]["changed"]) == 1


def test_a_change_is_told_within_the_budget(settings: Settings, docs: Path, call: Call) -> None:
    """One answer has at most 60 tokens of it; the rest is told later."""
    many = "".join(f"## Section number {number} of the guide\n\nOld text.\n\n" for number in range(12))
    (docs / "many.md").write_text(f"# Many\n\n{many}", encoding="utf-8")
    for number in range(12):
        call("npl_load_tailored", selectors=[f"many > ## Section number {number} of the guide"])
    (docs / "many.md").write_text(f"# Many\n\n{many}".replace("Old", "New"), encoding="utf-8")
    count = estimator("o200k_base").count
    told: list[str] = []
    for _ in range(12):
        answer = call("npl_load_tailored", context="compost", token_budget=200)
        assert count(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))) <= 200
        lines = answer["data"].get("changed", [])
        assert count("\n".join(lines)) <= 60
        told += lines
    assert len(told) == len(set(told)) == 12


@pytest.mark.thorough
def test_a_section_grows_to_any_length(docs: Path, call: Call) -> None:
    call("npl_load_tailored", **READ)
    edit(docs, "late winter.\n", "late winter.\n" + "x\n" * 400_000)
    assert call("search", query="beans")["data"]["changed"] == [TOLD]


def test_a_piece_stands_for_its_section(docs: Path, call: Call) -> None:
    """Text inserted above a piece moves its lines without changing it."""
    words = "\n\n".join(f"The siphon lifts water over edge {number}." for number in range(200))
    (docs / "siphons.md").write_text(f"# Siphons\n\n## Edges\n\n{words}\n\n### More\n", encoding="utf-8")
    question = {"file": "siphons.md", "context": "siphon edge 40", "token_budget": 300}
    (section,) = call("npl_load_tailored", **question)["data"]["sections"]
    assert "[lines=" in section["selector"]
    for old, new, changed in (
        ("# Siphons\n", "# Siphons\n\nMoved down.\n", None),
        ("edge 199", "edge 200", ["siphons > ## Edges [depth=0]"]),
    ):
        text = (docs / "siphons.md").read_text(encoding="utf-8")
        (docs / "siphons.md").write_text(text.replace(old, new, 1), encoding="utf-8")
        assert call("search", query="beans")["data"].get("changed") == changed


def test_an_answer_that_is_refused_tells_nothing(docs: Path, connect: Connect, settings: Settings) -> None:
    call = connect(replace(settings, max_body_bytes=20_000))
    (docs / "long.md").write_text("# Long\n\n" + "Words. " * 5_000, encoding="utf-8")
    call("npl_load_tailored", **READ)
    edit(docs)
    assert not call("npl_load_tailored", selectors=["long"])["success"]
    assert call("search", query="beans")["data"]["changed"] == [TOLD]


def test_the_setting_ends_it(settings: Settings, docs: Path, connect: Connect) -> None:
    """With NPL_TELL_CHANGES=0 nothing is remembered."""
    call = connect(replace(settings, tell_changes=False))
    call("npl_load_tailored", **READ)
    edit(docs)
    assert "changed" not in call("search", query="beans")["data"]


@pytest.fixture
def served(tmp_path: Path, docs: Path) -> Iterator[tuple[Running, dict[str, str]]]:
    place = tmp_path / "served"
    place.mkdir()
    tokens = engines.tokens(place / "data", [f"agent{number}" for number in range(6)])
    with serving(place, "--root", str(docs), **engines.environment(place / "data")) as server:
        yield server, tokens


@pytest.mark.thorough
def test_each_token_that_holds_a_section_is_told(served: tuple[Running, dict[str, str]], docs: Path) -> None:
    """Each of five tokens is told of every edit in its next call, once; the sixth never is."""
    server, tokens = served

    def ask(who: str, tool: str, arguments: dict[str, Any]) -> Any:
        return call(server, tool, arguments, Authorization=f"Bearer {tokens[who]}").data["data"]

    *holders, stranger = tokens
    for who in holders:
        ask(who, "npl_load_tailored", READ)
    old = "late winter"
    for turn in range(10):
        edit(docs, old, f"week {turn}")
        old = f"week {turn}"
        for who in holders:
            assert ask(who, "search", {"query": "beans"})["changed"] == [TOLD]
        assert all("changed" not in ask(who, "search", {"query": "beans"}) for who in (*holders, stranger))
