"""A text names a section, and titles have one spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import SectionNotFoundError
from npl_index.markdown.sections import parse_sections
from npl_mcp.documents.format import heading_of, title_in_heading, without_title
from npl_mcp.documents.paths import Outline
from tests.conftest import case_text, cases

DOCUMENT = case_text("texts/equal-headings.md")
SHOWN = Outline(parse_sections(DOCUMENT.encode(), "x"))


@pytest.mark.parametrize(("wanted", "content"), cases("npl_mcp/documents/paths"))
def test_the_strictest_reading_decides(wanted: str, content: str) -> None:
    """An exact heading beats names that contain it, in any case and number; parts must be unique."""
    assert SHOWN.content(SHOWN.find(wanted, "X-001")) == content


def test_the_title_is_meant_only_where_nothing_else_is() -> None:
    """One of its words selects no section; its whole text does."""
    assert SHOWN.find("Goals of the import", "X-001") == SHOWN.tree.title
    assert SHOWN.find("# Goals of the import", "X-001") == SHOWN.tree.title
    with pytest.raises(SectionNotFoundError):
        SHOWN.find("import", "X-001")


headings = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.sampled_from(
            ["A", "B", "1. A", "a / b", "A / ## B", "B [1]", "A [2]", '"A"', "*A*", "C ###", "t\tu\x01v", ""]
        ),
    ),
    max_size=8,
)


@given(headings)
def test_every_path_leads_to_its_section(marks: list[tuple[int, str]]) -> None:
    """The full path and the listed one work for any headings."""
    text = "".join(f"{'#' * level} {name}\n\ntext\n\n" for level, name in marks)
    shown = Outline(parse_sections(text.encode(), "x"))
    for index, address in shown.addresses.items():
        assert shown.find(address, "X-001", whole=True) == index
        assert shown.find(shown.short[index], "X-001", whole=True) == index


def test_composed_and_decomposed_letters_are_the_same() -> None:
    """Programs write an accent with its letter or after it."""
    assert SHOWN.addresses[SHOWN.find("Cafe\u0301", "X-001", whole=True)].endswith("## Café")


def test_versioned_parts_do_not_share_paths() -> None:
    """Each part may have a heading of the same name."""
    part = "npl-instructions:\n  name: p\n  version: 1\n---\n\n## A\n\n{}\n\n### B\n\n* * *\n\n"
    shown = Outline(parse_sections(("# T\n\n" + part.format("x") + part.format("y")).encode(), "x"))
    assert [
        shown.content(shown.find(shown.short[index], "X-001"))[:1] for index in [*shown.addresses][1::2]
    ] == ["x", "y"]


def test_long_lists_of_candidates_end() -> None:
    many = Outline(parse_sections(b"## Notes\n\n" * 100, "x"))
    with pytest.raises(SectionNotFoundError, match="100 sections") as caught:
        many.find("Notes", "X-001")
    assert len(caught.value.near) == 20
    assert "and 80 more" in str(caught.value)


@pytest.mark.parametrize(
    "title", ["plain", "C #", "###", "a ## b", "# x", "x \\#", "`code` *x*", "1. x", "終 🎯"]
)
def test_a_title_is_read_as_it_was_written(title: str) -> None:
    tree = parse_sections(f"{heading_of(title)}\n\ntext\n".encode(), "x")
    assert [section.level for section in tree.sections] == [0, 1]
    assert title_in_heading(tree.sections[1].heading) == title


@pytest.mark.parametrize(
    ("content", "kept"), cases("npl_mcp/documents/titles")["only_a_title_that_begins_a_text_gives_way"]
)
def test_only_a_title_that_begins_a_text_gives_way(content: str, kept: str) -> None:
    assert without_title(content) == kept
