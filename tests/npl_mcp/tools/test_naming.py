"""Todos and sessions name documents; todos and change requests are questions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import Call, Connect

TEXT = "Prune as guide.md and plants/roses.md say (not as gone.md, ../secret.md or plants)."
NAMED = ["guide", "plants/roses"]


def named(data: dict[str, Any]) -> list[str]:
    documents = data["documents"]
    assert all(row["tokens"] > 5 for row in documents)
    return [row["selector"] for row in documents]


@pytest.fixture
def den(call: Call) -> Call:
    call("chat_create_room", name="den", members=["ann", "bo"])
    return call


def test_a_claim_is_answered_with_the_documents(den: Call) -> None:
    """They come with selectors that load them, and their sizes."""
    todo = den("chat_create_todo", room_id=1, persona="ann", description=TEXT)["data"]["event_id"]
    claim = den("chat_claim_todo", persona="bo", event_id=todo)["data"]
    assert named(claim) == NAMED
    loaded = den("npl_load_tailored", selectors=[claim["documents"][1]["selector"]])
    assert "Cut above an outward bud." in loaded["data"]["content"]
    den("session_create", session_id="s", title="Prune as guide.md says")
    assert named(den("session_get", session_id="s")["data"]) == ["guide"]


def test_no_large_document_is_read_while_writers_wait(den: Call, docs: Path) -> None:
    """It is named without the number of its tokens."""
    (docs / "large.md").write_text("# Large\n\n" + "Cut the roses above a bud.\n" * 20_000)
    text = "Prune as large.md and guide.md say."
    todo = den("chat_create_todo", room_id=1, persona="ann", description=text)["data"]["event_id"]
    large, guide = den("chat_claim_todo", persona="bo", event_id=todo)["data"]["documents"]
    assert large == {"selector": "large"}
    assert guide["selector"] == "guide"
    assert guide["tokens"] > 5


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
