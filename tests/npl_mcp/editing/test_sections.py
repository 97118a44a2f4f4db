"""A section that is found again after another program wrote to its file."""

from __future__ import annotations

import pytest

from npl_index.markdown.sections import parse_sections
from npl_mcp.core.section_edits import SectionNames
from npl_mcp.editing.sections import SectionEdit
from npl_mcp.stores.base.errors import ConflictError

TEXT = "---\na: 1\n---\n# T\n\n## A\n\na\n\n### N\n\nn\n\n## B\n\n### N\n\nm\n"


def edit() -> SectionEdit[SectionNames]:
    """Make what replaces the second of two sections of a name."""

    def read(data: bytes) -> SectionNames:
        return SectionNames(parse_sections(data, "note"), "note.md")

    def find(names: SectionNames) -> int:
        return next(i for i in range(6) if names.shown(i) == "note > ## B > ### N")

    return SectionEdit(read, find, "replace", "new", "note.md", check=lambda _: None)


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


@pytest.mark.parametrize(("old", "new"), [("\nm\n", "\no\n"), ("## B", "## C"), ("### N\n\nm", "### M\n\nm")])
def test_an_outside_edit_of_the_same_section_is_kept(old: str, new: str) -> None:
    """The call is refused; a section that moved elsewhere is another."""
    made = edit()
    made(TEXT.encode())
    with pytest.raises(
        ConflictError, match=r"'note > ## B > ### N' of note\.md was changed by another program"
    ):
        made(TEXT.replace(old, new).encode())
