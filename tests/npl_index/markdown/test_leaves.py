"""A fence after a list or definition marker may be closed at the margin."""

import pytest

from npl_index.markdown.sections import SectionTree, parse_sections
from tests.conftest import cases, every
from tests.npl_index.conftest import lines_run

RULE = "# Rules\n\n### One\n\n**how**\n: ```python\n# not a heading\ndef one():\n    pass\n```\n\n"
OTHER = "### Two\n\n**how**\n: ```python\n# neither is this\n```\n\n"
END = "## Last\n\ntext\n"


def read(text: str, *, npl: bool = False) -> SectionTree:
    return parse_sections(text.encode(), "x", npl=npl)


def names(tree: SectionTree) -> list[str]:
    return [section.name for section in tree.sections if section.level]


@pytest.mark.parametrize(
    ("text", "expected", "doubtful"),
    [
        (RULE + END, ["Rules", "One", "Last"], [6]),  # CommonMark ends inside a fence
        (RULE + OTHER + END, ["Rules", "One", "Two", "Last"], [6, 15]),  # … hides what is between two
        (RULE + OTHER + OTHER + END, ["Rules", "One", "Two", "Two", "Last"], [6, 15, 22]),
        ("# A\n- ```sh\nrun\n```\n\n## B\n\n- ```sh\nrun\n```\n# C\n", ["A", "B", "C"], [2, 8]),
        ("# A\n12) ~~~\nrun\n~~~\n# B\n", ["A", "B"], [2]),
        ("# A\n* - ```\n  run\n  ```\n# B\n* - ```\nrun\n```\n# C\n", ["A", "B", "C"], [2, 6]),
        ("# A\nterm\n: ```md\n```py\n# x\n```\n# y\n```\n# B\n", ["A", "B"], [3]),  # with one inside
        # Not closed by its author: the item ends it, as in CommonMark.
        ("# A\n- ```\n  run\n- more\n\n# B\n- ```\nrun\n```\n# C\n", ["A", "B", "C"], [2, 7]),
    ],
)
def test_a_fence_ends_where_its_author_closed_it(text: str, expected: list[str], doubtful: list[int]) -> None:
    """The documents declare no NPL; only the lost headings show it."""
    tree = read(text)
    assert names(tree) == expected
    assert tree.dialect == "npl"
    assert [line + 1 for line in tree.doubtful_fences] == doubtful
    assert names(read(text, npl=True)) == expected


@pytest.mark.parametrize(
    ("text", "expected", "doubtful"),
    cases("npl_index/markdown/leaves")["other_documents_are_read_as_commonmark_reads_them"],
)
def test_other_documents_are_read_as_commonmark_reads_them(
    text: str, expected: list[str], doubtful: list[int]
) -> None:
    """Suspicious fences are still reported."""
    tree = read(text)
    assert (names(tree), tree.dialect) == (expected, "commonmark")
    assert [line + 1 for line in tree.doubtful_fences] == doubtful


@pytest.mark.parametrize("line", every(2, [": ```\nx\n", "- - ```\nx\n", "- ```\nx\n\n", "- > ```\nx\n"]))
def test_many_fences_that_are_never_closed_take_linear_time(line: str) -> None:
    """No line is read again for each fence before it."""

    def work(times: int) -> int:
        data = ("a\n" + line * times).encode()
        return lines_run(lambda: parse_sections(data, "x", npl=True))

    assert work(400) < 5 * work(100)
