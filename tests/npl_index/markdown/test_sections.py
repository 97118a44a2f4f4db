"""The section tree: structure, positions, names, versions and limits."""

import json
import re
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from npl_index.errors import DocumentTimeoutError, DocumentTooLargeError, UnreadableDocumentError
from npl_index.markdown.sections import Section, SectionTree, Span, parse_sections
from npl_index.markdown.state import MAX_SECTIONS
from npl_index.markdown.traits import Traits, count_words
from npl_index.selectors.grammar import compile_selector
from npl_index.selectors.selection import select
from npl_index.selectors.writing import selectors_of
from tests.conftest import cases

CASES = Path(__file__).parents[2] / "cases" / "sections"
NAMES = sorted(path.stem for path in CASES.glob("*.md"))
CORPUS = sorted((Path(__file__).parents[3] / "corpus").rglob("*.md"))
NPL_OR_FRONT_MATTER = re.compile(r"\A---|npl-instructions:|⌜")
BOM = b"\xef\xbb\xbf"

# What stands between sections: a byte order mark, front matter, separators and headers, blank lines.
SET_ASIDE = re.compile(
    r"\ufeff?(?:---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z))?"
    r"(?:[ \t]*\n|\* \* \*[ \t]*(?:\n|\Z)|npl-instructions:\n(?:[ \t]+.+\n)+---.*(?:\n|\Z))*"
)

LINES = cases("npl_index/markdown/sections")["lines"]
documents = st.lists(st.sampled_from(LINES), max_size=25).flatmap(
    lambda lines: st.builds(
        lambda ends, last: "".join(line + end for line, end in zip(lines, ends, strict=True)) + last,
        st.lists(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]), min_size=len(lines), max_size=len(lines)),
        st.sampled_from(["", "end", "# end", "  "]),
    )
)


def read(name: str) -> bytes:
    return (CASES / f"{name}.md").read_bytes()


def traits(words: str, count: int) -> Traits:
    fields = {"example": "has_examples", "table": "has_tables", "definitions": "has_definitions"}
    return Traits(**{fields.get(word, f"has_{word}"): True for word in words.split()}, word_count=count)


def described(section: Section, expected: dict[str, object]) -> dict[str, object]:
    """Show a section in the form of the case files, with the keys the file uses for it."""
    every = {
        "level": section.level,
        "name": section.name,
        "heading": section.heading,
        "version": section.version,
        "lines": [section.own.start + 1, section.own.stop + 1],
        "heading_lines": section.heading_lines.stop - section.heading_lines.start,
        "end": section.whole.stop + 1,
        "parent": section.parent,
    }
    usual = {
        "heading": section.name if section.level else "",
        "version": None,
        "heading_lines": 1 if section.level else 0,
        "end": section.own.stop + 1,
        "parent": None,
    }
    return {key: value for key, value in every.items() if key in expected or value != usual.get(key)}


def positions(tree: SectionTree) -> list[tuple[object, ...]]:
    """Return all positions but those in bytes."""
    return [
        (s.level, s.heading, s.name, s.version, s.own, s.whole, s.parent, s.own_traits, s.whole_traits)
        for s in tree.sections
    ]


def headings(data: bytes, *, npl: bool = False) -> list[str]:
    return [section.name for section in parse_sections(data, "x", npl=npl).sections if section.level]


def gaps(data: bytes, tree: SectionTree) -> list[str]:
    """Return what lies before, between and after the own texts, each of which is the text of its lines."""
    between, end = [], 0
    for section in tree.sections:
        span = section.own_bytes
        between.append(data[end : span.start].decode().replace("\r\n", "\n").replace("\r", "\n"))
        own = data[span.start : span.stop].decode().replace("\r\n", "\n").replace("\r", "\n")
        assert (
            own
            == "".join(tree.line(line) + "\n" for line in range(section.own.start, section.own.stop))[
                : len(own)
            ]
        )
        assert section.own_traits.word_count == count_words(own)
        end = span.stop
    return [*between, data[end:].decode().replace("\r\n", "\n").replace("\r", "\n")]


@pytest.mark.parametrize("name", NAMES)
def test_a_document_becomes_the_tree_written_down_for_it(name: str) -> None:
    """Levels, names, lines, parents, traits and versions are those checked by hand in the case file."""
    expected = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    tree = parse_sections(read(name), name)
    assert (tree.dialect, tree.title, len(tree.line_starts) - 1) == (
        expected["dialect"],
        expected["title"],
        expected["lines"],
    )
    assert tree.front_matter == expected.get("front_matter", "")
    rows = [
        {key: row[key] for key in row if key not in ("own", "whole", "words")} for row in expected["sections"]
    ]
    assert [described(section, row) for section, row in zip(tree.sections, rows, strict=False)] == rows
    assert len(tree.sections) == len(rows)
    for section, row in zip(tree.sections, expected["sections"], strict=True):
        inside = [expected["sections"][index]["words"] for index in tree.subtree(section.index)]
        assert section.own_traits == traits(row.get("own", ""), row["words"])
        assert section.whole_traits == traits(row.get("whole", row.get("own", "")), sum(inside))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_line_ends_and_byte_order_mark_change_only_bytes(name: str, end: bytes) -> None:
    """A document with CRLF or CR and a byte order mark has its LF twin's tree, with its own bytes."""
    data = BOM + read(name).replace(b"\n", end)
    tree = parse_sections(data, name)
    assert positions(tree) == positions(parse_sections(read(name), name))
    assert all(map(SET_ASIDE.fullmatch, gaps(data, tree)))


@given(documents, st.booleans(), st.booleans())
def test_own_texts_tile_the_file(text: str, mark: bool, npl: bool) -> None:
    """Every byte is in exactly one own text, or in a byte order mark, front matter, header or separator."""
    data = (BOM if mark else b"") + text.encode()
    assert all(map(SET_ASIDE.fullmatch, gaps(data, parse_sections(data, "x", npl=npl))))


@given(documents)
def test_the_tree_is_consistent(text: str) -> None:
    """Children, parents, subtrees, spans, traits and word counts of a tree agree with each other."""
    tree = parse_sections(text.encode(), "x")
    for section in tree.sections:
        below = [tree.sections[index] for index in tree.subtree(section.index)]
        assert below[0] is section
        assert section.whole == Span(section.own.start, below[-1].own.stop)
        assert section.whole_bytes == Span(section.own_bytes.start, below[-1].own_bytes.stop)
        assert section.whole_traits.word_count == sum(other.own_traits.word_count for other in below)
        assert section.whole_traits.has_code == any(other.own_traits.has_code for other in below)
        assert [tree.sections[child].parent for child in section.children] == [section.index] * len(
            section.children
        )
        assert all(a < b for a, b in pairwise(section.children))
        path = tree.ancestors(section.index)
        assert path == (() if section.parent is None else (*tree.ancestors(section.parent), section.parent))
        levels = [tree.sections[index].level for index in path if tree.sections[index].level]
        assert all(a < b for a, b in pairwise([*levels, section.level or 7]))
        assert section.heading_lines.start == section.own.start


def test_text_is_the_lines_without_blank_ones_at_the_end() -> None:
    tree = parse_sections(b"\n# A\n\nx  \n \n\n# B\n\n\n# C", "x")
    a, b, c = tree.sections[1:]
    assert [tree.text(section.own) for section in (a, b, c)] == ["# A\n\nx  \n", "# B\n", "# C\n"]
    assert tree.text(tree.sections[0].own) == ""
    lines = [tree.line(number) for number in range(len(tree.line_starts) - 1)]
    assert lines == ["", "# A", "", "x  ", " ", "", "# B", "", "", "# C"]


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"\r\n\n", BOM, BOM + b"\n", b"   ", b"text", b"---", b"---\n---"]
)
def test_a_document_without_headings_is_one_section(data: bytes) -> None:
    """An empty file, and a file without headings, is node 0 alone."""
    (only,) = parse_sections(data, "name").sections
    assert (only.level, only.name, only.parent, only.children) == (0, "name", None, ())
    assert only.whole_bytes.stop == len(data)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"# A\n\xff", 4),
        (b"\xc3\x28", 0),
        (b"# A\n\xed\xa0\x80", 4),
        (BOM + b"a\xe2\x82", 4),
        ("é".encode("latin-1"), 0),
    ],
)
def test_a_file_that_is_not_utf8_is_refused_with_the_place(data: bytes, place: int) -> None:
    """The error names the offset of the first byte that cannot be read."""
    with pytest.raises(UnreadableDocumentError, match=rf"^handbook is not UTF-8 at byte {place}\b"):
        parse_sections(data, "handbook")


def test_a_binary_file_is_refused_with_the_place() -> None:
    with pytest.raises(UnreadableDocumentError, match="NUL at byte 5"):
        parse_sections(b"# A\n \0", "handbook")


def test_front_matter_needs_both_lines_and_the_look_of_a_mapping() -> None:
    """Front matter is set aside only where CommonMark text cannot be meant."""
    assert parse_sections(b"---\na: b\n...\n# H\n", "x").front_matter == "a: b\n"
    assert parse_sections(b"---\n\n---\n# H\n", "x").sections[0].own == Span(3, 3)
    assert parse_sections(b"---  \n\"a b\": 1\n'c': 2\n? d\n---", "x").front_matter == ""
    for text in (
        b"---\na: b\n# H\n",  # never closed
        b"---\nFoo\n---\nBar\n---\nBaz\n",  # CommonMark 0.31, example 96
        b"\n---\na: b\n---\n# H\n",  # not on the first line
        b"---\nNote: this\n\nis text\n\n---\n# H\n",
        b"----\na: b\n---\n# H\n",
        b" ---\na: b\n---\n# H\n",
        b"---\nhttp://example.org\n---\n# H\n",
    ):
        assert parse_sections(text, "x").front_matter == ""


@pytest.mark.parametrize(
    ("value", "version"),
    [("1.10", "1.10"), ('"2.0"', "2.0"), ("'3'", "3"), ("1.0 # new", "1.0"), ("1e3", "1e3"), ("a#b", "a#b")],
)
def test_a_version_stays_as_it_is_written(value: str, version: str) -> None:
    """The version is text: 1.10 is not the number 1.1."""
    tree = parse_sections(f"npl-instructions:\n  version: {value}\n  name: tides\n---\n# H\n".encode(), "x")
    assert (tree.sections[0].name, tree.sections[0].version, tree.name) == ("tides", version, "x")


@pytest.mark.parametrize("text", cases("npl_index/markdown/sections")["what_only_resembles_a_header_is_text"])
def test_what_only_resembles_a_header_is_text(text: str) -> None:
    """A header needs column 0, indented fields, a closing line, and a place outside code and quotes."""
    top = parse_sections(text.encode(), "x").sections[0]
    assert (top.name, top.version, top.own.start) == ("x", None, 0)


def test_a_header_inside_front_matter_counts() -> None:
    """The version of a prompt whose header stands between ``---`` lines is known."""
    top = parse_sections(b"---\nnpl-instructions:\n  name: tides\n  version: 1.0\n---\n# H\n", "x").sections[
        0
    ]
    assert (top.name, top.version, top.own.start) == ("tides", "1.0", 5)


@pytest.mark.parametrize(("data", "npl", "expected"), cases("npl_index/markdown/nested_fences"))
def test_fences_nest_in_npl_documents_only(data: str, npl: bool, expected: list[str]) -> None:
    """Fences of equal length nest where NPL is declared or shows, or CommonMark leaves one open."""
    assert headings(data.encode(), npl=npl) == expected


LOOSE = cases("npl_index/markdown/sections")["loose"]
"""Openings of fences that their authors close at the margin."""


@pytest.mark.parametrize(
    "above", ["word", "**tool**", "### Heading", "words in a paragraph\nof two lines", ""]
)
@pytest.mark.parametrize("opening", LOOSE)
def test_a_fence_behind_any_marker_ends_where_its_author_closed_it(opening: str, above: str) -> None:
    """It hides no heading after it, and its own lines are not headings."""
    run = re.search(r"`{3,}|~{3,}", opening)
    assert run
    block = f"{above}\n{opening}\n# comment\nx = 1\n{run[0]}\n\n"
    names = headings(f"# T\n\n## A\n\n{block}## B\n\ntext\n\n{block}## C\n\n{block}".encode())
    assert [name for name in names if name != "Heading"] == ["T", "A", "B", "C"]


@pytest.mark.parametrize(
    "text",
    cases("npl_index/markdown/sections")["other_fences_stay_as_they_are"],
)
def test_other_fences_stay_as_they_are(text: str) -> None:
    """Their container closes them, or their lines only look like fences."""
    assert headings(text.encode()) == ["A"]


@pytest.mark.parametrize(
    ("text", "title"),
    cases("npl_index/markdown/sections")["the_title_is_the_only_first_level_heading_at_the_start"],
)
def test_the_title_is_the_only_first_level_heading_at_the_start(text: str, title: int | None) -> None:
    """A single leading heading of level 1 is the document's title."""
    assert parse_sections(text.encode(), "x").title == title


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("npl_index/markdown/sections")["comments_hide_headings_and_name_those_without_words"],
)
def test_comments_hide_headings_and_name_those_without_words(text: str, expected: list[str]) -> None:
    tree = parse_sections(text.encode(), "x")
    assert [section.name for section in tree.sections[1:]] == expected
    for number, selector in enumerate(selectors_of(tree)):
        assert [found.sections[0] for found in select((tree,), compile_selector(selector))] == [number]


def test_limits_are_errors_with_the_document_named() -> None:
    """One section too many, and a deadline that has passed, are refused."""
    fits = b"# h\n" * (MAX_SECTIONS - 1)
    assert len(parse_sections(fits, "x").sections) == MAX_SECTIONS
    with pytest.raises(DocumentTooLargeError, match="handbook has more than 20000 sections"):
        parse_sections(fits + b"h\n===\n", "handbook")
    with pytest.raises(DocumentTooLargeError):
        parse_sections(b"npl-instructions:\n a: b\n---\n" * MAX_SECTIONS, "x")
    with pytest.raises(DocumentTimeoutError, match="handbook"):
        parse_sections(b"# h\n", "handbook", deadline=time.monotonic() - 1)


@given(st.binary(max_size=200) | st.text(alphabet="#->*`~|: \t\n=[]()<!&_1.", max_size=200).map(str.encode))
def test_no_input_raises_anything_else(data: bytes) -> None:
    with suppress(UnreadableDocumentError):
        assert parse_sections(data, "x").sections[0].whole_bytes.stop <= len(data)


PLAIN = ("code", "containers", "headings", "names", "scripts", "setext", "thematic-break", "traits")


@pytest.mark.parametrize(
    "path",
    [CASES / f"{name}.md" for name in PLAIN]
    + [path for path in CORPUS if not NPL_OR_FRONT_MATTER.search(path.read_text("utf-8"))],
    ids=lambda path: path.stem,
)
def test_headings_are_those_of_the_stock_parser(path: Path) -> None:
    """Levels, lines and names are what markdown-it-py finds, inline markup included."""
    data = path.read_bytes()
    tokens = MarkdownIt("commonmark").enable("table").parse(data.decode())
    wanted = []
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0:
            parts = [
                child.content
                if child.type in ("text", "code_inline", "image")
                else " " * child.type.endswith("break")
                for child in inline.children or []
            ]
            wanted.append((int(opening.tag[1]), Span(*opening.map or ()), "".join("".join(parts).split())))
    sections = parse_sections(data, "x").sections[1:]
    assert [(s.level, s.heading_lines, "".join(s.name.split())) for s in sections] == [
        (level, lines, shown.replace("*", "") if "image" in shown else shown)
        for level, lines, shown in wanted
    ]
