"""Our own documents answer what strangers ask."""

import json
import shutil
from pathlib import Path

import pytest

from tests.programs import Run

ROOT = Path(__file__).parents[2]
NAMES = ("README", "GUIDE", "CLIENTS", "OPERATIONS", "SECURITY", "COMMANDS", "SETTINGS", "MIGRATION", "API")
QUESTIONS = "documents.questions.md"

FLOOR = 53
"""Minimum number of questions, of 71, that the first answer covers; raise it with the result."""


def test_strangers_get_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: Run) -> None:
    """The first answer has the right section for most questions, and every selector names a section."""
    for path in (*(ROOT / f"{name}.md" for name in NAMES), ROOT / "tests/questions" / QUESTIONS):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPL_MCP_DATA_DIR", str(tmp_path / "data"))
    report = json.loads(program("npl-load", "test", "--json").out)
    outcomes = report["outcomes"][QUESTIONS]
    assert [row["wrong"] for row in outcomes if row["wrong"]] == []
    assert report["problems"] == []
    missed = [row["question"]["text"] for row in outcomes if not row["passed"]]
    assert report["asked"] >= 60
    assert report["passed"] >= FLOOR, missed
