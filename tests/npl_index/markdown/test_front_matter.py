"""Front matter, as people write it and as the program sets it."""

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from npl_index.markdown.front_matter import (
    divide,
    front_matter,
    new_front_matter,
    values,
    with_line_feeds,
    with_values,
)
from npl_index.markdown.sections import parse_sections
from tests.conftest import cases
from tests.npl_index.conftest import lines_run

FIELDS = cases("front-matter")


@pytest.mark.parametrize(("text", "fields"), FIELDS, ids=range(len(FIELDS)))
def test_fields(text: str, fields: dict[str, object]) -> None:
    """Front matter is read as text, lists and mappings; what is broken or abusive stays as it is written."""
    assert front_matter(text) == fields


@given(
    st.lists(
        st.sampled_from(
            ["---\n", "a: ", "b", "\n", "[", "{", "&x ", "*x", "!!t ", "- ", "|\n", "'", "\t", "é"]
        )
    )
)
def test_nothing_raises(parts: list[str]) -> None:
    text = "---\n" + "".join(parts) + "\n---\n"
    assert isinstance(front_matter(text), dict)


@pytest.mark.parametrize("unit", ["[", "- ", "a: b" + 1_000 * " ", "? ", "{a: ", "\n", " ", "a: b\n", " x\n"])
def test_long_front_matter_takes_linear_time(unit: str) -> None:
    """Four times the text does not take sixteen times the steps."""

    def steps(size: int) -> int:
        return lines_run(lambda: front_matter("---\n" + unit * (size // len(unit)) + "\n---\n"))

    assert steps(16_000) < 8 * steps(4_000)


texts = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1).map(str.strip)
lines = st.sampled_from(cases("npl_index/markdown/front_matter")["lines"])


@given(texts.filter(bool))
@example("0xAB")
@example("2026-01-31")
@example("Yes")
@example("A-")
@example("a: b # c")
@example('"it\'s" \\')
def test_a_value_is_read_as_it_was_written(value: str) -> None:
    """The value is equal for this program and for a YAML reader."""
    text = new_front_matter({"code": "TST-001", "assignee": value})
    assert text.count("\n") == 4
    assert values(text)["assignee"] == value
    if value.isprintable():
        assert yaml.safe_load(text.split("---\n")[1])["assignee"] == value


@given(
    st.lists(lines, max_size=6, unique=True), texts, st.sampled_from(["a", "list", "e", "new"]), st.booleans()
)
def test_one_field_is_set_and_no_other_byte_changes(
    kept: list[str], value: str, name: str, dos: bool
) -> None:
    source = "\n".join(["---", "code: TST-001", *kept, "---", "", "# T", ""])
    text = source.replace("\n", "\r\n" if dos else "\n")
    front, body = divide(text)
    assert front + body == text
    before = values(front)
    changed = with_values(front, {name: value})
    after = values(changed)
    if name == "e" and isinstance(before.get("e"), list):
        assert str(after.get("e")).count("1, 2") == 0 or value == "1, 2"
    elif name == "new" or name in before:
        assert after.get(name, "") == value or isinstance(before.get(name), list)
    assert {key: part for key, part in after.items() if key != name} == {
        key: part for key, part in before.items() if key != name
    }
    old_lines, new_lines = front.splitlines(keepends=True), changed.splitlines(keepends=True)
    assert [line for line in new_lines if line not in old_lines] == [
        line for line in new_lines if line.startswith(name) and line not in old_lines
    ]
    assert not dos or "\n" not in changed.replace("\r\n", "")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("a\nb", "a\nb"), ("a\r\nb\r\n", "a\nb\n"), ("a\rb\r", "a\nb\n"), ("a\r\r\n\nb", "a\n\n\nb"), ("", "")],
)
def test_every_line_end_becomes_a_line_feed(text: str, wanted: str) -> None:
    """CommonMark says which line ends count (https://spec.commonmark.org/0.31.2/#line-ending)."""
    assert with_line_feeds(text) == wanted


@pytest.mark.parametrize("sign", ["\x0b", "\x01", "\x7f", "\ufffe"])
def test_a_control_character_in_front_matter_is_no_error(sign: str) -> None:
    """The document has a tree, whether or not its front matter can be read."""
    tree = parse_sections(f"---\n  a: b{sign}\n---\n# T\n".encode(), "x")
    assert tree.sections[-1].title == "T"
