"""What people look at beside an answer, and questions that they label."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from npl_mcp.config.settings import Settings
from tests.conftest import Call, calls

ROOT = Path(__file__).resolve().parents[3]


def test_both_forms_are_what_an_agent_gets(settings: Settings) -> None:
    """The text, to the byte, and its cost; in the form that is asked for the states are told."""
    given = {"context": "water the garden", "token_budget": 250, "topics": ["compost"]}
    (audit,) = calls(settings, [("npl_audit", given)])
    (plain,) = calls(settings, [("npl_load_tailored", given)])
    answers = audit["data"]["answers"]
    assert json.loads(answers["json"]["text"]) == plain
    assert all(answer["tokens"] <= 250 for answer in answers.values())
    assert audit["data"]["form"] == "json"
    (marked,) = calls(settings, [("npl_audit", {**given, "format": "markdown"})])
    assert marked["data"]["answers"] == answers
    assert marked["data"]["form"] == "markdown"


def test_a_labelled_question_is_asked_by_the_benchmark(call: Call, tmp_path: Path) -> None:
    """What is saved is what ``benchmarks.relevance`` reads: it finds the sections and measures."""
    for question, right in (
        ("How do I water roots?", ["## Watering", "beans"]),
        ("堆肥", ["# Roses > ## Pruning [depth=0]"]),
    ):
        saved = call("npl_label", context=question, right=right, name="garden")
        assert saved["success"], saved
    path = Path(saved["data"]["file"])
    assert path == tmp_path / "data" / "labels" / "garden.jsonl"
    assert path.stat().st_mode & 0o777 == 0o600
    assert saved["data"]["questions"] == 2
    first, second = map(json.loads, path.read_text("utf-8").splitlines())
    assert first["relevant"] == [
        {"file": "guide.md", "line": 8},
        {"file": "plants/beans.md", "heading": "beans"},
    ]
    assert second == {
        "query": "堆肥",
        "relevant": [{"file": "plants/roses.md", "line": 3}],
        "corpus": str(tmp_path / "docs"),
    }
    command = [sys.executable, "-m", "benchmarks.relevance", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "folder   questions 2" in done.stdout
    assert "recall" in done.stdout


def test_what_cannot_be_labelled(call: Call) -> None:
    """Each refusal says what to do instead, and nothing is saved."""
    for given, error in (
        ({"context": "a", "right": []}, "right has 0 selectors"),
        ({"right": ["## Watering"]}, "there is no question to save"),
        ({"context": "a", "right": ["## Nowhere"]}, "Nowhere"),
        ({"context": "a", "right": ["## Watering"], "name": "../x"}, "name is '../x'"),
    ):
        refused = call("npl_label", **given)
        assert not refused["success"]
        assert error in refused["error"]
    call("artifact_create", name="plan", filename="plan.md", content="# Plan\n\nTea.\n", artifact_type="text")
    refused = call("npl_label", context="tea", file="artifact:1", right=["# Plan"])
    assert "is not a file" in refused["error"]
    assert call("npl_label", context="tea", right=["## Watering"])["data"]["questions"] == 1
