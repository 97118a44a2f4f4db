"""Foreign Markdown becomes HTML of text, structure and harmless links only."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_mcp.web.markdown import LIMIT, REL, markdown
from tests.conftest import cases

ELEMENTS = {"a", "blockquote", "br", "code", "div", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong"}
ELEMENTS |= {"ul", "table", "thead", "tbody", "tr", "th", "td", "h2", "h3", "h4", "h5", "h6"}
ATTRIBUTES = {"href", "rel", "title", "class", "start", "tabindex", "role", "aria-label"}


class Read(HTMLParser):
    """The elements that a browser would find."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.open: list[str] = []
        self.feed(str(html))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    @property
    def links(self) -> list[str | None]:
        return [attrs["href"] for tag, attrs in self.elements if tag == "a"]

    @property
    def headings(self) -> list[str]:
        return [tag for tag, _ in self.elements if tag[0] == "h" and tag != "hr"]


def read(text: str) -> Read:
    """Return the HTML of Markdown, after a check that it is harmless."""
    got = Read(markdown(text))
    assert got.open == []
    for tag, attrs in got.elements:
        assert tag in ELEMENTS, tag
        assert attrs.keys() <= ATTRIBUTES, attrs
        if tag == "a":
            assert attrs["rel"] == REL
            assert urlsplit(attrs["href"] or "").scheme in ("", "http", "https", "mailto")
    return got


HOSTILE = cases("npl_mcp/web/markdown")


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_becomes_more_than_text(text: str) -> None:
    shown = markdown(text)
    assert not {*"\0\x1b\x07\u202e\u2066"} & {*shown}
    read(text)


@given(st.lists(st.sampled_from([*HOSTILE, *"[]()!<>*_`~#|-\n &:\\"]), max_size=12).map("".join))
def test_nor_do_pieces_of_it(text: str) -> None:
    read(text)


def test_links_lead_where_they_may() -> None:
    got = read("[a](b.md#c) [d](#e) [f](https://g) <mailto:h@i> [j](javascript:k) ![l](m.png)")
    assert got.links == ["b.md#c", "#e", "https://g", "mailto:h@i", "m.png"]
    changed = Read(markdown("[a](b) [c](d)", lambda url: "/x" if url == "b" else None))
    assert changed.links == ["/x"]
    assert changed.words.strip() == "a c"
    assert Read(markdown("[a](b)", lambda _: "javascript:x")).links == []
    assert Read(markdown("[a][b] [c]", definitions="[b]: d\n[C]: e\n")).links == ["d", "e"]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# a\n### b\n###### c\n# d", ["h2", "h3", "h4", "h2"]),
        ("### a\n# b\n## c", ["h2", "h2", "h3"]),
        ("#\n\n## <!-- -->\n\n# a", ["h2", "h2"]),
    ],
)
def test_headings_have_no_gaps(text: str, headings: list[str]) -> None:
    assert read(text).headings == headings


def test_everything_that_can_be_followed_has_words() -> None:
    assert read("[](a) ![](b) [![](c)](d) [](javascript:e)").words.split() == [
        "a",
        "b",
        "c",
        "[](javascript:e)",
    ]
    cells = [tag for tag, _ in read("| | b |\n|-|-|\n| 1 | 2 |").elements if tag[0] == "t" and len(tag) == 2]
    assert cells == ["tr", "td", "th", "tr", "td", "td"]


@pytest.mark.parametrize("piece", ["[", "![", "[[](", "a|", "> ", "*a ", "`a", "<a ", "word "])
def test_long_texts_are_bounded(piece: str) -> None:
    got = read(piece * LIMIT + "end")
    assert "end" not in got.words
    assert len(got.words) < 2 * LIMIT


def test_tasks_have_boxes() -> None:
    words = Read(markdown("- [ ] tie\n- [x] **cut** [x] it\n\n[ ] no list\n")).words
    assert [line for line in words.split("\n") if line] == ["☐ tie", "☑ cut [x] it", "[ ] no list"]
