"""Locations, and texts with comments as footnotes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from npl_index.errors import NPLError
from npl_mcp.stores.review.annotation import (
    Comment,
    Location,
    annotate,
    count_lines,
    labels,
    parse_location,
    reviewer_files,
    split_lines,
)
from tests.conftest import cases

LOCATIONS = {
    "line:1": Location(1, 1),
    "line:12": Location(12, 12),
    "line:2-3": Location(2, 3),
    "line:4-4": Location(4, 4),
    " line:007 ": Location(7, 7),
    "@x:0,y:0": Location(x=0, y=0),
    "@x:120,y:45": Location(x=120, y=45),
}


@pytest.mark.parametrize("text", LOCATIONS)
def test_locations_are_read(text: str) -> None:
    """Lines are counted from 1, pixels from 0."""
    assert parse_location(text) == LOCATIONS[text]
    assert parse_location(str(LOCATIONS[text])) == LOCATIONS[text]


@pytest.mark.parametrize("text", cases("npl_mcp/stores/review/annotation"))
def test_other_locations_are_refused(text: str) -> None:
    with pytest.raises(NPLError) as caught:
        parse_location(text)
    assert "location" in str(caught.value)


def remark(key: int, persona: str, location: str, comment: str) -> Comment:
    return Comment(key, location, comment, persona, created_at="")


RECORDED = [
    remark(1, "bob", "line:2", "b2"),
    remark(2, "amy", "line:2", "a2"),
    remark(3, "zed", "line:1", "guest"),
    remark(4, "bob", "@x:1,y:2", "spot"),
]


def test_the_copy_is_what_the_predecessor_printed() -> None:
    """Markers, their order and the footnotes are those of its recorded output."""
    assert annotate("one\ntwo\nthree\n", labels(RECORDED)) == (
        "one[^zed-1]\ntwo[^bob-2][^amy-3]\nthree\n\n\n---\n\n# Review Comments\n\n"
        "[^zed-1]: @zed: guest\n[^bob-2]: @bob: b2\n[^amy-3]: @amy: a2\n"
    )


def test_the_reviewers_files_have_the_numbers_of_the_copy() -> None:
    """Each comment has one number everywhere, even without a marker in the text."""
    about = [("bob", None), ("amy", "Fine.")]
    assert reviewer_files(about, labels(RECORDED), {1: "bob", 2: "amy", 3: "amy", 4: "bob"}) == {
        "bob": "# Inline Comments by @bob\n\n[^bob-2]: line:2: b2\n\n[^bob-4]: @x:1,y:2: spot\n\n---\n\n"
        "# Overall Review by @bob\n\n[Add overall review here]\n",
        "amy": "# Inline Comments by @amy\n\n[^zed-1]: line:1: guest\n\n[^amy-3]: line:2: a2\n\n---\n\n"
        "# Overall Review by @amy\n\nFine.\n",
    }


def test_two_reviews_of_one_reviewer_make_one_file() -> None:
    """The file has both overall comments."""
    files = reviewer_files([("bob", "First."), ("bob", "Second.")], [], {})
    assert list(files) == ["bob"]
    assert files["bob"].endswith("First.\n\nSecond.\n")


def test_a_range_is_marked_at_its_last_line() -> None:
    remarks = [remark(1, "bob", "line:1-2", "both")]
    copy = annotate("one\ntwo\nthree", labels(remarks))
    assert copy.startswith("one\ntwo[^bob-1]\nthree\n")
    assert "[^bob-1]: @bob: lines 1-2: both\n" in copy


def test_comments_are_sorted_by_number_not_by_text() -> None:
    remarks = [remark(1, "bob", "line:10", "ten"), remark(2, "bob", "line:2", "two")]
    text = "".join(f"{number}\n" for number in range(1, 12))
    assert [(label, remark.id) for label, remark in labels(remarks, text)] == [("bob-1", 2), ("bob-2", 1)]


def test_footnotes_the_text_has_are_not_used_again() -> None:
    """A number is skipped if the text has the same label."""
    remarks = [remark(1, "bob", "line:1", "new")]
    copy = annotate("old[^bob-1]\n\n[^bob-1]: mine\n", labels(remarks, "old[^bob-1]"))
    assert copy.startswith("old[^bob-1][^bob-2]\n")


def test_a_comment_of_several_lines_stays_in_its_footnote() -> None:
    """Further lines are indented, so that no line begins a new block."""
    remarks = [remark(1, "bob", "line:1", "first\n# not a heading\n\n[^amy-1]: not a footnote")]
    copy = annotate("one\n", labels(remarks))
    assert copy.endswith("[^bob-1]: @bob: first\n    # not a heading\n\n    [^amy-1]: not a footnote\n")


@pytest.mark.parametrize("persona", ["a]b", "two words", "[^x]", "ümit", "!!!"])
def test_any_persona_gives_a_marker_that_is_one(persona: str) -> None:
    """Signs that would end a marker are replaced; the footnote has the name itself."""
    remarks = [remark(1, persona, "line:1", "c")]
    copy = annotate("one\n", labels(remarks))
    assert re.match(r"one\[\^[\w-]+-1\]\n", copy)
    assert f": @{persona}: c\n" in copy


DOCUMENT = (
    "---\ntitle: T\n---\n\n# Plan\n\nTwo\nlines.\n\n```py\na = 1\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n"
    "<div>\nhtml\n</div>\n\nNext\n----\n\n- one\n\n  ```\n  x\n  ```\n- two\n\n[a]: b\n[c]: d\n"
)


@pytest.mark.parametrize("line", range(1, count_lines(DOCUMENT) + 1))
def test_a_marker_leaves_every_block_whole(line: int) -> None:
    """Behind its block it is a paragraph of its own, and the footnote names the line."""
    copy = annotate(DOCUMENT, labels([remark(1, "bob", f"line:{line}", "c")]))
    text, _, notes = copy.partition("\n\n---\n\n# Review Comments\n")
    apart = "\n\n[^bob-1]\n\n" in text
    expected = MarkdownIt("commonmark").enable("table").render(DOCUMENT.partition("---\n\n")[2])
    shown = MarkdownIt("commonmark").enable("table").render(text.partition("---\n\n")[2])
    assert re.sub(r"<p>\[\^bob-1\]</p>\n|\[\^bob-1\]", "", shown) == expected
    assert apart is (f": line {line}: c" in notes)
    assert apart is (line not in {5, 7, 8, 22, 25, 30})


def test_a_marker_in_another_file_stands_in_its_line() -> None:
    copy = annotate("if x:\n    y\n", labels([remark(1, "bob", "line:2", "c")]), markdown=False)
    assert copy.startswith("if x:\n    y[^bob-1]\n\n")


LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(st.text("ab é\x0b\u2028", max_size=5), LINE_ENDS), min_size=1, max_size=8)


@given(TEXTS, st.booleans(), st.data())
def test_every_character_of_the_text_stays(
    lines: list[tuple[str, str]], last_end: bool, data: st.DataObject
) -> None:
    """Without the markers the copy begins with the text, byte for byte, with any line ends."""
    text = "".join(line + end for line, end in lines)
    text = text if last_end else text.rstrip("\r\n") or "a"
    count = count_lines(text)
    assert count == len(list(split_lines(text)))
    assert "".join(split_lines(text)) == text
    chosen = data.draw(st.lists(st.integers(1, count), min_size=1, max_size=4))
    remarks = [remark(key, "bob", f"line:{line}", "c") for key, line in enumerate(chosen)]
    copy = annotate(text, labels(remarks, text))
    marks = r"(?:\[\^bob-\d+\](?!:))+"
    apart = re.sub(rf"(?<=[\r\n])(\r\n|\r|\n){marks}\1\1", "", copy)
    assert re.sub(marks, "", apart).startswith(text)
    assert copy.count("[^bob-") == 2 * len(remarks)
