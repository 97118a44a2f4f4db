"""Text at a section's end that serves other sections stays; tables and lists are continued."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import InvalidRequestError
from npl_index.markdown.sections import parse_sections
from tests.conftest import cases
from tests.npl_index.markdown.test_editing import edit, section_of

NEXT = "## Next\n\nVisible [guide][g], HTML, and a note.[^n]\n"

# What stands between the text of the edited section and the next one.
TAILS = cases("npl_index/markdown/surroundings")["tails"]
OPENINGS = cases("npl_index/markdown/surroundings")["openings"]
CLOSINGS = {"beginning of an element": "\n</details>\n"}


def document(tail: str, *, between: str = "\n", text: str = "Old text.") -> str:
    part = f"## Part\n\n{text}\n{between}{TAILS[tail]}"
    return f"# Doc\n\n{OPENINGS.get(tail, '')}{part}{NEXT}{CLOSINGS.get(tail, '')}"


def edited(text: str, operation: str, name: str, content: str = "", **options: bool) -> str:
    data = text.encode()
    tree = parse_sections(data, "x")
    return edit(data, tree, section_of(tree, name), operation, content, **options).decode()


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", TAILS)
def test_the_end_of_a_section_stays(tail: str, ends: str) -> None:
    """New text comes before it, and neither replacing nor deleting removes it."""
    before = document(tail).replace("\n", ends)
    assert edited(before, "append", "Part", "New.") == before.replace("Old text.", f"Old text.{ends * 2}New.")
    assert edited(before, "replace", "Part", "New.") == before.replace("Old text.", "New.")
    whole = f"New.\n\n{TAILS[tail]}"
    assert edited(before, "replace", "Part", whole) == before.replace("Old text.", "New.")
    assert edited(before, "delete", "Part") == before.replace(f"## Part{ends * 2}Old text.{ends * 2}", "")
    assert edited(before, "append", "Doc", "New.", whole=False).endswith(before[before.index("## Part") :])


@pytest.mark.parametrize("tail", ["anchor", "label", "end of an element", "end of an admonition"])
def test_the_end_may_follow_the_text_directly(tail: str) -> None:
    before = document(tail, between="")
    assert edited(before, "append", "Part", "New.") == before.replace("Old text.\n", "Old text.\n\nNew.\n\n")


# A section, its operation, and a part of the refusal.
REFUSED = cases("npl_index/markdown/surroundings")["refused"]


@pytest.mark.parametrize("case", REFUSED)
def test_what_others_need_is_not_lost(case: str) -> None:
    text, new, problem = REFUSED[case]
    closing = "\n</div>\n" if "</div>" not in text else ""
    before = f"# Doc\n\n<div>\n\n[s].\n\n## Part\n\n{text}{NEXT}{closing}\n[s]: s.md\n\n## The [z]\n"
    with pytest.raises(InvalidRequestError) as raised:
        edited(before, "replace", "Part", new)
    assert problem in str(raised.value)


CONTINUED = cases("npl_index/markdown/surroundings")["continued"]


@pytest.mark.parametrize("case", CONTINUED)
@pytest.mark.parametrize("tail", ["divider", "anchor", "link definition"])
def test_tables_and_lists_are_continued(case: str, tail: str) -> None:
    old, new, gap = CONTINUED[case]
    before = document(tail, text=old)
    assert edited(before, "append", "Part", new) == before.replace(old, f"{old}{gap}{new}")
    if old.startswith("- ") and new.startswith("- "):
        assert edited(before, "prepend", "Part", new) == before.replace(old, f"{new}{gap}{old}")


BELONGING = cases("npl_index/markdown/surroundings")["belonging"]


@pytest.mark.parametrize(("before", "operation", "content", "after"), BELONGING.values(), ids=BELONGING)
def test_what_belongs_to_a_section_changes_with_it(
    before: str, operation: str, content: str, after: str
) -> None:
    assert edited(before, operation, "A", content) == after


BLOCKS = st.sampled_from(cases("npl_index/markdown/surroundings")["blocks"])


@given(
    st.lists(BLOCKS, min_size=2, max_size=12),
    st.lists(
        BLOCKS.filter(lambda block: "## " not in block and "Setext" not in block), min_size=1, max_size=3
    ),
    st.sampled_from(["replace", "append", "prepend", "delete"]),
    st.integers(1, 5),
    st.booleans(),
)
def test_all_other_sections_stay(
    blocks: list[str], new: list[str], operation: str, index: int, whole: bool
) -> None:
    """Their texts, names and links stay; a deletion only extends the end of the section before."""
    data = ("# Title\n\n" + "\n\n".join(blocks) + "\n").encode()
    tree = parse_sections(data, "x")
    index = min(index, len(tree.sections) - 1)
    try:
        result = edit(data, tree, index, operation, "\n\n".join(new), whole=whole)
    except InvalidRequestError:
        return
    after = parse_sections(result, "x")
    changed = set(tree.subtree(index)) if whole or operation == "delete" else {index}
    kept = [section for section in tree.sections if section.index not in changed]
    texts = [section.name + after.text(section.own) for section in after.sections]
    for section in kept:
        text = section.name + tree.text(section.own)
        grown = operation == "delete" and section.index == index - 1
        assert any(left.startswith(text.rstrip()) if grown else left == text for left in texts)
    if operation in ("append", "prepend"):
        assert new[0] in result.decode()
        lines = iter(result.decode().split("\n"))
        assert all(line in lines for line in data.decode().split("\n") if line)
