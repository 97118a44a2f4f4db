"""Change requests as documents of the tools for sections."""

from pathlib import Path
from typing import Any

import pytest

from npl_mcp.config.settings import Settings
from tests.conftest import calls, case_text, cases
from tests.npl_mcp.documents.change_requests import SECOND, inside, make_project

IMPORTER = case_text("npl_mcp/app/cr_documents/importer.md")


@pytest.fixture
def project(settings: Settings, tmp_path: Path) -> tuple[Settings, Path]:
    file = make_project(tmp_path / "proj")
    file.with_name("TST-003-importer.md").write_text(IMPORTER, encoding="utf-8")
    make_project(tmp_path / "proj" / "sub", code="SUB")
    return inside(settings, tmp_path / "proj"), file


def ask(settings: Settings, tool: str, **arguments: Any) -> Any:
    answer = calls(settings, [(tool, arguments)])[0]
    assert answer["success"], answer
    return answer["data"]


def test_a_folder_of_them_ranks_together(project: tuple[Settings, Path]) -> None:
    """Hits name their change request, and their selectors load only that."""
    data = ask(project[0], "npl_load_tailored", context="importer loses rows of files", file="cr:TST")
    best = data["sections"][0]
    assert "TST-003" in best["selector"]
    again = ask(project[0], "npl_load_tailored", selectors=[best["selector"]], file="cr:TST")
    assert "loses rows" in again["content"]


@pytest.mark.parametrize(
    ("filter", "keys"), cases("npl_mcp/app/cr_documents")["fields_of_the_front_matter_filter"]
)
@pytest.mark.parametrize("name", ["cr:TST", "cr:*"])
def test_fields_of_the_front_matter_filter(
    project: tuple[Settings, Path], name: str, filter: dict[str, Any], keys: list[str]
) -> None:
    data = ask(project[0], "npl_section_index", file=name, filter=filter)
    assert [key for key in ("TST-002", "TST-003") if key in str(data["sections"])] == keys


@pytest.mark.parametrize(
    ("name", "code"), cases("npl_mcp/app/cr_documents")["a_name_that_leads_nowhere_is_told"]
)
def test_a_name_that_leads_nowhere_is_told(project: tuple[Settings, Path], name: str, code: str) -> None:
    answer = calls(project[0], [("npl_section_index", {"file": name})])[0]
    assert (answer["success"], answer["error_code"]) == (False, code)


def test_an_edit_is_seen_at_once(project: tuple[Settings, Path]) -> None:
    """The next call sees edits by tools and by other programs; a new change request joins the set."""
    settings, file = project
    zebra = {"key": "2", "operation": "append", "section": "Rationale", "content": "zebra"}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("npl_load_tailored", {"selectors": ["TST-002 > ## 2. Rationale [depth=0]"], "file": "cr:TST"}),
        ("manage_cr_sections", zebra),
        ("npl_load_tailored", {"selectors": ["TST-002 // ### Sub A"], "file": "cr:TST"}),
        ("create_cr", {"type": "Research", "data": {"title": "Striped animals"}}),
        ("npl_load_tailored", {"context": "striped animals", "file": "cr:TST"}),
    ]
    first, _, second, _, third = calls(settings, requests)
    assert "why" in first["data"]["content"]
    assert "zebra" in second["data"]["content"]
    assert "TST-004" in str(third["data"]["sections"])
    file.write_text(SECOND.replace("why", "giraffe"), encoding="utf-8")
    assert "giraffe" in ask(settings, "npl_load_tailored", **requests[0][1])["content"]


def test_the_file_itself_stays_a_document_of_its_own(project: tuple[Settings, Path]) -> None:
    """Its path remains its name, whichever of its names was used first; its key is another name."""
    names = ("cr:TST-003", "docs/CRs/TST-003-importer.md", "cr:TST-003", "cr:TST-002")
    by_key, by_path, again, other = (ask(project[0], "npl_section_index", file=name) for name in names)
    assert by_key == again
    assert (by_key["file"], by_path["file"].rpartition("/")[2]) == ("cr:TST-003", "TST-003-importer.md")
    assert all(name in str(other) for name in ("cr:TST-002", "1. Description", "2. Rationale", "Sub A"))
