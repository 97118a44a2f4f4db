"""Front matter and versions, as written by hand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.items.front_matter import front_matter, version_of


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("---\nname: a\nversion: 1.10\n---\n# A\n", {"name": "a", "version": "1.10"}),
        ("---\nname: a\n...\ntext", {"name": "a"}),
        ("---   \nname: a\n---   \n", {"name": "a"}),
        ("---\ntags: [a, b]\non: yes\nnothing:\n---\n", {"tags": ["a", "b"], "on": "yes", "nothing": ""}),
        ("---\ntext: |\n  one\n  two\n---\n", {"text": "one\ntwo\n"}),
        ("---\n1: one\n---\n", {"1": "one"}),
        ("---\ntext: 2 & 3 *bold*\n---\n", {"text": "2 & 3 *bold*"}),
        ("---\n---\n", {}),
        ("---\njust text\n---\n", {}),
        ("---\n- a\n---\n", {}),
        ("---\na: b: c\n---\n", {}),
        ("---\na: [\n---\n", {}),
        ("---\na: &x 1\nb: *x\n---\n", {}),
        ("---\n<<: {a: 1}\nb: *x\n---\n", {}),
        ("---\n!!python/object/apply:os.system [ls]: a\n---\n", {}),
        ("---\nname: a\n", {}),
        ("name: a\n---\n", {}),
        ("\n---\nname: a\n---\n", {}),
        ("# A\n\n---\nname: a\n---\n", {}),
        ("", {}),
        ("---\na: " + "x" * 20_000 + "\n---\n", {}),
        ("---\na: " + "[" * 17 + "]" * 17 + "\n---\n", {}),
        ("---\na: " + "[" * 10 + "]" * 10 + "\n---\n", {"a": [[[[[[[[[[]]]]]]]]]]}),
    ],
    ids=range(23),
)
def test_fields(text: str, fields: dict[str, object]) -> None:
    """Front matter is read as text, lists and mappings; what is broken or abusive gives no fields."""
    assert front_matter(text) == fields


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("npl-instructions:\n   name: p\n   version: 1.5.0\n---\n\n# P\n", "1.5.0"),
        ("npl-instructions:\n  version: 1.10\n---\n", "1.10"),
        ("npl-instructions:\n  version: '2.0' # new\n---\n", "2.0"),
        ("* * *\n\nnpl-instructions:\n  version: 1\n---\n", "1"),
        ("---\nversion: 3\n---\n\nnpl-instructions:\n  version: 4\n---\n", "4"),
        ("---\nversion: 3.10\n---\n# A\n", "3.10"),
        ("---\nversion: [1, 2]\n---\n# A\n", None),
        ("npl-instructions:\n   name: p\n---\n", None),
        ("npl-instructions:\n  version:\n---\n", None),
        ("npl-instructions:\n  version: 1\n# no end\n", None),
        ("# A\n\nnpl-instructions:\n  version: 1\n---\n", None),
        ("version: 1\n", None),
        ("", None),
    ],
    ids=range(13),
)
def test_versions(text: str, version: str | None) -> None:
    """The version is that of the header at the start, else of the front matter, as written."""
    assert version_of(text) == version


@given(
    st.lists(
        st.sampled_from(
            ["---\n", "a: ", "b", "\n", "[", "{", "&x ", "*x", "!!t ", "- ", "|\n", "'", "\t", "é"]
        )
    )
)
def test_nothing_raises(parts: list[str]) -> None:
    """Whatever stands between two lines of dashes, reading it is no error."""
    text = "---\n" + "".join(parts) + "\n---\n"
    assert isinstance(front_matter(text), dict)
    assert version_of(text) is None or isinstance(version_of(text), str)


@pytest.mark.parametrize(
    "unit", ["[", "- ", "? ", "{a: ", "\n", " ", "a: b\n", "npl-instructions:\n", " x\n"]
)
def test_long_front_matter_takes_linear_time(unit: str) -> None:
    """Four times the text does not take sixteen times the time."""

    def cost(size: int) -> float:
        text = "---\n" + unit * (size // len(unit))
        start = time.process_time()
        front_matter(text + "\n---\n")
        version_of(unit * (size // len(unit)))
        return time.process_time() - start

    small = min(cost(4_000) for _ in range(3))
    large = min(cost(16_000) for _ in range(3))
    assert large < 12 * small + 0.01
