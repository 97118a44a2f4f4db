"""Todos and change requests are questions."""

from dataclasses import replace
from pathlib import Path

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect


@pytest.fixture
def den(call: Call) -> Call:
    call("chat_create_room", name="den", members=["ann", "bo"])
    return call


def test_a_todo_is_a_question(den: Call) -> None:
    """Its description is asked; a missing todo is an error."""
    text = "When to turn the compost heap?"
    todo = den("chat_create_todo", room_id=1, persona="ann", description=text)["data"]["event_id"]
    asked = den("npl_load_tailored", context=f"todo:{todo}")
    assert asked == den("npl_load_tailored", context=text)
    assert "Turn the heap every month." in asked["data"]["content"]
    assert den("npl_load_tailored", context="todo:999")["error_code"] == "NOT_FOUND"


def test_a_change_request_is_a_question(settings: Settings, connect: Connect, tmp_path: Path) -> None:
    """Its title and first paragraphs are asked."""
    folder = tmp_path / "project"
    (folder / "docs" / "CRs").mkdir(parents=True)
    (folder / ".mdt-config.toml").write_text('[project]\ncode = "DEMO"\nname = "Demo"\n')
    head = "---\ncode: DEMO-001\ntitle: Turn the compost heap\nstatus: Proposed\ntype: Research\n---\n"
    (folder / "docs" / "CRs" / "DEMO-001-heap.md").write_text(f"{head}\n# Turn the compost heap\n")
    call = connect(replace(settings, cwd=folder))
    asked = call("npl_load_tailored", context="cr:DEMO-001")
    assert "Turn the heap every month." in asked["data"]["content"]
    assert call("npl_load_tailored", context="cr:DEMO-002")["error_code"] == "NOT_FOUND"
