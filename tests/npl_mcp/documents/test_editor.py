"""A section that is found again after another program wrote to its file."""

from __future__ import annotations

import pytest

from npl_index.errors import SectionNotFoundError
from npl_mcp.app.section_edits import SectionNames
from npl_mcp.documents.editor import Editor, Expected, SectionEdit
from npl_mcp.stores.base.errors import ConflictError

TEXT = "---\na: 1\n---\n# T\n\n## A\n\na\n\n### N\n\nn\n\n## B\n\n### N\n\nm\n"


def edit() -> SectionEdit[SectionNames]:
    """Make what replaces the second of two sections of a name."""

    def find(names: SectionNames) -> int:
        shown = [names.shown(section.index) for section in names.tree.sections]
        if "## B > ### N" not in shown:
            raise SectionNotFoundError("not there")
        return shown.index("## B > ### N")

    editor = Editor()
    expected = Expected(
        editor,
        "note.md",
        lambda data: editor.read(data, "note"),
        lambda tree: SectionNames(tree, "note.md"),
        None,
    )
    return SectionEdit(expected, find, "replace", "new")


@pytest.mark.parametrize(
    ("old", "new"),
    [("a: 1", "a: 2"), ("\na\n", "\nother\n"), ("## A\n", "## A\n\n### N2\n"), ("# T\n", "# T\n\nintro\n")],
)
def test_an_outside_edit_elsewhere_is_merged(old: str, new: str) -> None:
    """Both changes are in the text."""
    made = edit()
    made(TEXT.encode())
    other = TEXT.replace(old, new)
    assert made(other.encode()).decode() == other.replace("\nm\n", "\nnew\n")


def test_an_outside_edit_of_the_same_section_is_kept() -> None:
    """The call is refused, and says what the other program changed."""
    made = edit()
    made(TEXT.encode())
    problem = r"note\.md has changed since you read it: '## B > ### N' changed; read it again"
    with pytest.raises(ConflictError, match=problem):
        made(TEXT.replace("\nm\n", "\no\n").encode())


@pytest.mark.parametrize(("old", "new"), [("## B", "## C"), ("### N\n\nm", "### M\n\nm")])
def test_a_section_that_has_another_name_now_is_not_changed(old: str, new: str) -> None:
    """It may be another one."""
    made = edit()
    made(TEXT.encode())
    with pytest.raises(SectionNotFoundError):
        made(TEXT.replace(old, new).encode())
