"""An edited section reads back as written, and no other byte changes."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError, MissingRequestError
from npl_index.markdown.editing import edit_section
from npl_index.markdown.sections import SectionTree, parse_sections
from npl_mcp.config.settings import corpus_folder
from tests.conftest import case_text, cases, every

CASES = Path(__file__).parents[2] / "cases" / "sections"

DOCUMENT = case_text("texts/sections.md")


def section_of(tree: SectionTree, name: str) -> int:
    return next(section.index for section in tree.sections if section.name == name)


def edit(
    data: bytes, tree: SectionTree, index: int, operation: str, text: str = "", **options: bool
) -> bytes:
    return edit_section(data, tree, index, operation, text, lambda new: parse_sections(new, "x"), **options)[
        0
    ]


def edited(operation: str, name: str, text: str, document: str = DOCUMENT, **options: bool) -> str:
    data = document.encode()
    tree = parse_sections(data, "x")
    return edit(data, tree, section_of(tree, name), operation, text, **options).decode()


@pytest.mark.parametrize(
    ("operation", "name", "text", "options", "old", "new"),
    cases("npl_index/markdown/editing")["an_edit_changes_these_bytes_and_no_others"],
)
def test_an_edit_changes_these_bytes_and_no_others(
    operation: str, name: str, text: str, options: dict[str, bool], old: str, new: str
) -> None:
    """Only the shown part changes; blank lines around it stay."""
    assert DOCUMENT.count(old) == 1
    assert edited(operation, name, text, **options) == DOCUMENT.replace(old, new)


@pytest.mark.parametrize(
    ("document", "operation", "name", "text", "expected"),
    cases("npl_index/markdown/editing")["line_ends_and_blank_lines_fit_the_file"],
)
def test_line_ends_and_blank_lines_fit_the_file(
    document: str, operation: str, name: str, text: str, expected: str
) -> None:
    assert edited(operation, name, text, document) == expected


@pytest.mark.parametrize(
    ("operation", "name", "text", "reason"),
    cases("npl_index/markdown/editing")["a_text_that_would_change_the_tree_around_it_is_refused"],
)
def test_a_text_that_would_change_the_tree_around_it_is_refused(
    operation: str, name: str, text: str, reason: str | None
) -> None:
    """Headings that end the section, open fences and the like are refused; subsections are not."""
    if reason is None:
        assert text in edited(operation, name, text)
    else:
        with pytest.raises(InvalidRequestError, match=reason):
            edited(operation, name, text)


def test_headings_that_would_capture_others_are_refused() -> None:
    """A new subsection before existing ones may not become their parent."""
    with pytest.raises(InvalidRequestError, match="outside 'A'"):
        edited("prepend", "A", "## B", "# A\n\n### C\n")


@pytest.mark.parametrize(
    ("end", "what"),
    [("```\ncode\n", "code fence"), ("<!-- x\n\ny", "comment"), ("a\n<script>\nx\n", "block of HTML")],
)
def test_what_is_never_closed_takes_no_more_text(end: str, what: str) -> None:
    """A section that ends inside a fence or a comment is not appended to: the text would be part of it."""
    with pytest.raises(InvalidRequestError, match=f"ends inside a {what}"):
        edited("append", "A", "x", f"# A\n\n{end}")
    for closed in ("<!-- x\n\ny -->", "- <!-- x", "<div>\nx", "a <!-- b"):
        assert edited("append", "A", "x", f"# A\n\n{closed}\n") == f"# A\n\n{closed}\n\nx\n"


@pytest.mark.parametrize("operation", ["append", "prepend"])
@pytest.mark.parametrize("text", ["", " \n\t\n", "\r\n"])
def test_there_must_be_text_to_add(operation: str, text: str) -> None:
    """A blank text cannot be added; it can clear a section."""
    with pytest.raises(MissingRequestError, match="no text"):
        edited(operation, "Tasks", text)


@pytest.mark.parametrize(
    ("document", "name", "expected"),
    cases("npl_index/markdown/editing")["a_section_is_deleted_and_nothing_else"],
)
def test_a_section_is_deleted_and_nothing_else(document: str, name: str, expected: str | None) -> None:
    """Its subsections go too; blank lines before it and the file's last line end stay. A whole file stays."""
    data = document.encode()
    tree = parse_sections(data, "x")
    if expected is None:
        with pytest.raises(InvalidRequestError, match="is the whole document"):
            edit(data, tree, section_of(tree, name), "delete")
    else:
        assert edit(data, tree, section_of(tree, name), "delete").decode() == expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_what_is_deleted_can_be_put_back_byte_by_byte(end: bytes) -> None:
    """A section of the bundled documents returns to its place, as first or last subsection."""
    returned = 0
    for path in every(3, sorted(corpus_folder().rglob("*.md"))):
        data = path.read_bytes().replace(b"\n", end)
        tree = parse_sections(data, "x")
        for section in tree.sections[1 :: 1 + len(tree.sections) // 8]:
            if section.index == tree.title or not section.level:
                continue
            span, above = section.whole_bytes, tree.sections[section.parent or 0]
            left = edit(data, tree, section.index, "delete")
            assert left.startswith(data[: span.start].rstrip())
            assert left.endswith(data[span.stop :])
            assert left.endswith(end) == data.endswith(end)
            is_last = tree.subtree(section.index).stop == tree.subtree(above.index).stop
            if is_last or section.index == above.index + 1:
                text = data[span.start : span.stop].decode()
                rest = parse_sections(left, "x")
                assert edit(left, rest, above.index, "append", text, whole=is_last) == data, path
                returned += 1
    assert returned > 15


PARAGRAPHS = cases("npl_index/markdown/editing")["paragraphs"]
texts = st.lists(st.sampled_from(PARAGRAPHS), min_size=1, max_size=4).map("\n\n".join)
starts = st.sampled_from(["", "\n", "text\n\n", "---\nkey: value\n---\n", "\ufeff", "\ufefftext\n"])
headings = st.sampled_from(
    ["# A\n", "## B\n\n", "### C ###\n", "D\n===\n", "Two\nlines\n---\n\n", "# A\n\n\n"]
)
bodies = st.sampled_from(
    ["", "text\n", "text\n\n", "- a\n\n  b\n", "```\n# x\n```\n\n\n", "a\n\n\nb\n", "日本\n"]
)
documents = st.tuples(
    starts,
    st.lists(st.tuples(headings, bodies).map("".join), max_size=5).map("".join),
    st.sampled_from(["", "", "end"]),
).map("".join)


@given(
    documents,
    texts,
    st.sampled_from(["append", "prepend", "replace"]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
def test_what_is_written_is_read_and_all_else_is_unchanged(
    document: str, text: str, operation: str, whole: bool, end: str, draw: st.DataObject
) -> None:
    """After an edit the section reads as asked for, and every other section has the bytes it had."""
    data = document.replace("\n", end).encode()
    tree = parse_sections(data, "x")
    index = draw.draw(st.integers(0, len(tree.sections) - 1))
    options = {} if operation == "prepend" else {"whole": whole}
    result = edit(data, tree, index, operation, text, **options)
    new = parse_sections(result, "x")
    twin = new.sections[index]
    replaced = operation == "replace" and whole and index not in (0, tree.title)
    kept = [s for s in tree.sections if not replaced or s.index not in tree.subtree(index)[1:]]
    assert len(new.sections) == len(kept)
    touched = tree.subtree(index)[-1] if operation == "append" and whole else index
    for before, after in zip(kept, new.sections, strict=True):
        assert (before.level, before.heading) == (after.level, after.heading)
        old_bytes = data[before.own_bytes.start : before.own_bytes.stop]
        new_bytes = result[after.own_bytes.start : after.own_bytes.stop]
        if before.index != touched:
            assert new_bytes == old_bytes
    height = twin.heading_lines.stop - twin.heading_lines.start
    target = new.sections[touched]
    own = new.text(target.own).split("\n")
    body = "\n".join(own[height if touched == index else 0 :]).strip("\n")
    if operation != "prepend" and not text.rstrip().endswith("---"):
        body = re.sub(r"\n+---\Z", "", body)  # a divider at the end of a section stays there
    if operation == "replace":
        assert body == text.strip("\n")
    elif operation == "append":
        assert body.endswith(text.rstrip())
    else:
        assert body.startswith(text.strip("\n"))
    assert result.endswith(b"\n") == data.endswith(b"\n") or data in (b"", b"\xef\xbb\xbf")
    if b"\n" in data:
        assert (b"\r" not in result) if end == "\n" else (b"\n" not in result.replace(b"\r\n", b""))


@pytest.mark.parametrize("name", ["npl-prompt", "npl-assembled"])
def test_sections_of_npl_documents_are_edited_by_their_dialect(name: str) -> None:
    """Nested fences in text and document are read as NPL reads them, and headers stay."""
    data = (CASES / f"{name}.md").read_bytes()
    tree = parse_sections(data, name)
    text = "```example\n```template\n# x\n```\n# y\n```"
    for section in tree.sections[1:]:
        result = edit(data, tree, section.index, "replace", text, whole=False)
        new = parse_sections(result, name)
        assert [(s.level, s.heading, s.version) for s in new.sections] == [
            (s.level, s.heading, s.version) for s in tree.sections
        ]
        assert text + "\n" in new.text(new.sections[section.index].own)
