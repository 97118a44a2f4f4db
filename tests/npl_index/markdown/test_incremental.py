"""Documents read piece by piece: the same trees, whatever changed between two readings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npl_index.errors import UnreadableDocumentError
from npl_index.markdown.incremental import PieceReader
from npl_index.markdown.sections import parse_sections
from tests.npl_index.conftest import lines_run

CASES = Path(__file__).parents[2] / "cases" / "sections"

BLOCKS = [
    "# One\n",
    "## Two\n",
    "##\ttab\n",
    "##\n",
    "### Three ###\n",
    "###### Six\n",
    "Setext\n---\n",
    "two\nlines\n===\n",
    "text\n",
    "text  \n\n",
    "- item\n\n  ## inside\n",
    "> quote\n",
    "    ## code\n\n",
    "```example\n## code\n```\n",
    "```\n",
    "~~~ sh\n",
    "- ```py\n",
    "term\n: ```py\n# code\n```\n",
    "<!-- a comment\n",
    "-->\n",
    "<div>\n",
    "<pre>\n",
    "</pre>\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "term\n: definition\n",
    "[link]: http://example.com\n",
    "## A [link] and `code`\n",
    "終\n",
    "---\n",
    "a: b\n",
    "\n",
    "\n\n",
]
FRONT = "---\ntitle: T 終\n# ## none\na: b\n---\n"
documents = st.lists(st.sampled_from(BLOCKS), max_size=14).map("".join)
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(documents, documents, st.sampled_from(["", "\ufeff", "end", FRONT, "\ufeff" + FRONT]), ends)
def test_trees_are_those_of_a_document_parsed_whole(one: str, other: str, start: str, end: str) -> None:
    """Also when pieces of another document are remembered."""
    reader = PieceReader(1 << 20)
    for text in (one, other, one + other, other + one, one):
        data = (start + text).replace("\n", end).encode()
        assert reader.read(data, "x") == parse_sections(data, "x")


@pytest.mark.parametrize("path", sorted(CASES.glob("*.md")), ids=lambda path: path.stem)
def test_documents_of_all_kinds_are_read_alike(path: Path) -> None:
    """Front matter, NPL, fences in fences."""
    data = path.read_bytes()
    try:
        expected = parse_sections(data, "x")
    except UnreadableDocumentError:
        with pytest.raises(UnreadableDocumentError):
            PieceReader(1 << 20).read(data, "x")
        return
    assert PieceReader(1 << 20).read(data, "x") == expected


def test_only_what_changed_is_parsed() -> None:
    """One section of many takes a fraction of the work of all."""
    body = "".join(f"text with `code` {number}\n\n- item\n\n" for number in range(20))
    sections = [f"## {number}\n\n{body}" for number in range(60)]
    reader = PieceReader(1 << 24)
    whole = lines_run(lambda: reader.read("".join(sections).encode(), "x"))
    sections[7] += "more\n\n"
    assert 5 * lines_run(lambda: reader.read("".join(sections).encode(), "x")) < whole


def test_what_is_no_text_is_refused() -> None:
    """As it is when parsed whole."""
    for data in (b"## a\n\n\xff\n## b\n", b"## a\n\n\0\n## b\n"):
        with pytest.raises(UnreadableDocumentError):
            PieceReader(1 << 20).read(data, "x")
