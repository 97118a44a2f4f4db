"""The library's two functions over a file, a folder, and unreadable paths."""

import logging
from pathlib import Path

import pytest

from npl_index import TraitFilter, estimator, load_tailored, section_index
from npl_index.errors import (
    DocumentNotFoundError,
    SectionNotFoundError,
    UnreadableDocumentError,
)

USAGE = "## Usage\n\nBoil water.\n\n```\nboil\n```\n"
GUIDE = f"# Guide\n\nWhat it is for.\n\n## Setup\n\nInstall the kettle.\n\n{USAGE}"
NOTES = "# Notes\n\nDescale the kettle every month.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (tmp_path / "docs" / "guide.md").write_text(GUIDE, encoding="utf-8")
    (tmp_path / "docs" / "more" / "notes.md").write_text(NOTES, encoding="utf-8")
    return tmp_path / "docs"


def test_a_task_gets_its_sections_from_a_folder(folder: Path) -> None:
    """All files are ranked together, and each section says where it comes from."""
    answer = load_tailored(folder, "how do I descale the kettle")
    assert answer.content.startswith("<!-- more/notes.md -->\n\n# Notes\n\nDescale")
    assert answer.sections[0].file == "more/notes.md"


def test_a_task_gets_its_sections_from_a_file(folder: Path) -> None:
    """Text, topics and selectors choose sections; a single file needs no marks."""
    path = folder / "guide.md"
    assert load_tailored(path, "boil water").content == USAGE
    assert load_tailored(str(path), topics=["setup"]).sections[0].title == "Setup"
    assert load_tailored(path, selectors=["## Setup"]).content == "## Setup\n\nInstall the kettle.\n"
    assert load_tailored(path, "boil water", explain=True).ranking


def test_the_budget_holds(folder: Path) -> None:
    """The content has no more tokens than asked for, by the counter that was given."""
    counter = estimator("cl100k_base")
    answer = load_tailored(folder, "kettle water", budget=20, counter=counter)
    assert 0 < answer.total_tokens == counter.count(answer.content) <= 20
    assert answer.token_counter == "estimate:cl100k_base"
    assert answer.truncated


def test_an_index_has_a_tree_for_each_file(folder: Path) -> None:
    """One node per file; a folder's selectors name the file."""
    (guide,) = section_index(folder / "guide.md")
    assert [node.name for node in guide.children[0].children] == ["Setup", "Usage"]
    assert guide.children[0].children[1].selector == "guide > ## Usage"
    nodes = section_index(folder, depth=0)
    assert [(node.name, node.children) for node in nodes] == [("guide.md", ()), ("more/notes.md", ())]
    code, none = section_index(folder, conditions=TraitFilter(has_code=True, heading_level=2))
    assert [node.name for node in code.children[0].children] == ["Usage"]
    assert none.children == ()


def test_paths_may_be_relative_and_lead_out_of_the_working_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / "more")
    assert load_tailored("../guide.md", "boil").file == "../guide.md"
    assert section_index(".")[0].name == "notes.md"


def test_a_changed_file_is_read_again(folder: Path) -> None:
    path = folder / "guide.md"
    assert load_tailored(path, "kettle").sections
    path.write_text("# Guide\n\nPots only.\n", encoding="utf-8")
    assert not load_tailored(path, "kettle").sections


def test_what_is_not_there_is_told(folder: Path) -> None:
    """The error has near names; an empty folder is an error as well."""
    with pytest.raises(DocumentNotFoundError, match=r"guid\.md.*guide\.md"):
        section_index(folder / "guid.md")
    (folder / "empty").mkdir()
    with pytest.raises(DocumentNotFoundError, match="contains no Markdown"):
        load_tailored(folder / "empty", "kettle")
    with pytest.raises(SectionNotFoundError):
        load_tailored(folder, selectors=["## Nowhere"])


def test_unreadable_files_of_a_folder_are_left_out_and_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One bad file does not cost the answer; alone it is an error."""
    (folder / "bad.md").write_bytes(b"\0\1")
    answer = load_tailored(folder, "descale the kettle")
    assert answer.sections
    assert answer.unreadable is not None
    assert answer.unreadable[0].startswith("bad.md: ")
    with caplog.at_level(logging.WARNING):
        assert len(section_index(folder)) == 2
    assert "bad.md" in caplog.text
    with pytest.raises(UnreadableDocumentError):
        section_index(folder / "bad.md")
    for good in (folder / "guide.md", folder / "more" / "notes.md"):
        good.unlink()
    with pytest.raises(DocumentNotFoundError, match="can be read"):
        load_tailored(folder, "kettle")
