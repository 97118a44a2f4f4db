"""The fast block parser agrees with the stock one, and has limits."""

import itertools
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin

from npl_index.deadline import Deadline
from npl_index.errors import DocumentTimeoutError
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.state import find_lines
from tests.conftest import cases

CASES = Path(__file__).parents[2] / "cases" / "sections"
CORPUS = Path(__file__).parents[3] / "corpus"
STOCK = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").use(deflist_plugin)
STOCK.disable(["inline", "text_join"])

NOT_RECORDED = {"inline", "th_open", "td_open"}
BEGINS_A_BLOCK = re.compile(r" ?[-+*0-9>`~_#<]")

ATOMS = cases("blocks")
INDENTS = ["", "", "", "", "", " ", "  ", "   ", "    ", "      ", "\t", " \t", "> ", "- ", "  > ", "1. "]
lines = st.builds(
    "".join, st.tuples(st.sampled_from(INDENTS), st.sampled_from(ATOMS), st.sampled_from(["", "", " ", "\t"]))
)
documents = st.lists(lines, max_size=14).map("\n".join)


def row(token: Token, content: str) -> tuple[Any, ...]:
    """Describe a block; ``content`` counts for headings."""
    tag, shown = (token.tag, content) if token.type == "heading_open" else ("", "")
    return token.type, tag, token.level, token.map, token.info, shown


def stock(text: str) -> list[tuple[Any, ...]]:
    """List the stock parser's blocks, headings outside of containers with their text."""
    tokens = STOCK.parse(text)
    return [
        row(token, "" if token.level or token.type != "heading_open" else tokens[place + 1].content)
        for place, token in enumerate(tokens)
        if token.nesting >= 0 and token.type not in NOT_RECORDED
    ]


def fast(text: str) -> list[tuple[Any, ...]]:
    return [row(token, token.content) for token in read_blocks(text, complete=True).tokens]


def has_foreign_term(text: str) -> bool:
    """Return whether the stock parser takes a line that begins another block as a later term of a list."""
    rows = text.split("\n")
    starts = {token.map[0] for token in STOCK.parse(text) if token.type == "dl_open" and token.map}
    terms = {token.map[0] for token in STOCK.parse(text) if token.type == "dt_open" and token.map}
    return any(BEGINS_A_BLOCK.match(rows[term]) for term in terms - starts)


@given(documents)
@example("> ```\n# a\n")
@example("[a]: /u\n'two\nlines'\n===\n")
@example("- a\n\n  b\n\n\n  c\n- d\n")
@example("|a|\n|-|\n\xa0\n|b|\n")
def test_blocks_are_those_of_the_stock_parser(text: str) -> None:
    """Types, levels, lines, info strings and heading texts agree on generated documents."""
    # At a last line of nothing but a quote's mark the stock fence rule ends one line early.
    assume(not has_foreign_term(text) and not text.rstrip(" \t").endswith(">"))
    assert fast(text) == stock(text)


@pytest.mark.parametrize(
    "path",
    [path for path in (*CASES.glob("*.md"), *CORPUS.rglob("*.md")) if path.stem != "traits"],
    ids=lambda path: path.stem,
)
def test_blocks_of_whole_documents_are_those_of_the_stock_parser(path: Path) -> None:
    """The parsers agree on the longer documents of the cases and the bundled prompts."""
    # No document begins with front matter then, and none of its headers is one of NPL.
    text = "\n" + path.read_text(encoding="utf-8").replace("npl-instructions:", "npl:")
    assert fast(text) == stock(text)


def test_link_definitions_are_those_of_the_stock_parser() -> None:
    """Both find the same labels, in every form of a definition."""
    text = (
        "\n\n".join(atom for atom in ATOMS if atom.startswith("["))
        + "\n\n[l]: <>\n[L]: /b\n[m]:\n/c\n'd'\n[n\no]: /p 'q\nr'\n"
    )
    env: dict[str, dict[str, object]] = {}
    STOCK.parse(text, env)
    state = read_blocks(text)
    assert list(state.env["references"]) == list(env["references"])


@pytest.mark.parametrize(
    ("text", "expected"),
    cases("npl_index/markdown/blocks")["a_definition_list_takes_no_other_block_as_a_term"],
)
def test_a_definition_list_takes_no_other_block_as_a_term(text: str, expected: list[str]) -> None:
    """A heading or fence behind a list stays one even where a line like a definition follows."""
    state = read_blocks(text)
    assert [token.type for token in state.tokens] == expected


@pytest.mark.parametrize("mark", ["- ", "> ", "1. ", ">", "- > ", ": "])
def test_what_is_nested_too_deep_does_not_swallow_the_rest(mark: str) -> None:
    """Ten thousand nested containers raise no RecursionError and hide no heading."""
    text = "term\n" + mark * 10_000 + "x\n\n# Behind\n"
    assert fast(text)[-1] == ("heading_open", "h1", 0, [3, 4], "", "Behind")


def test_headings_under_long_and_hostile_lines_are_found() -> None:
    """Lines of a million characters that look like the beginning of something are read in passing."""
    size = 1_000_000
    for line in (
        *("*" * size + "x", "- " * (size // 2) + "x", "[" * size, "[a]: " + "b" * size, "[a]: " + "(" * size),
        *(
            "[" + "a" * size + "]: b",
            "<a" + " b" * (size // 2),
            "`" * size + " `",
            "#" * size,
            "=" * size,
            "|" * size,
        ),
        *("\\" * size, "a|" * (size // 2), "&" * size, " " * size + "x", "\t" * size, "1" * size, "<" * size),
    ):
        assert fast(f"{line}\n\n# Behind\n")[-1][-1] == "Behind"


LONG = cases("npl_index/markdown/blocks")["long"]
FIRST = cases("npl_index/markdown/blocks")["first"]


@pytest.mark.parametrize("kind", LONG)
def test_no_construct_runs_on_past_the_deadline(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each construct looks at the clock repeatedly, so a passed deadline ends it."""
    looks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(looks) > 8))
    text = FIRST.get(kind, "") + LONG[kind] * 10_000
    with pytest.raises(DocumentTimeoutError, match="handbook"):
        read_blocks(text, deadline=Deadline("handbook", 0.5))


def test_a_document_of_very_many_lines_is_read_like_any_other() -> None:
    """Beyond 200,000 lines only the form of the line tables changes."""
    once = "> - a\n\n\tcode\n\n- b\n\n      c\n\nText\n"
    gap = 200_000
    tokens = fast(once + "\n" * gap + once)
    first = fast(once)
    moved = [(*row[:3], [line + once.count("\n") + gap for line in row[3]], *row[4:]) for row in first]
    assert tokens == first + moved


def test_lines_end_at_line_feeds_only() -> None:
    """Other separators of ``str.splitlines`` are ordinary characters."""
    assert find_lines("a\u2028b\x0bc\x85d\x1ce\n\nf").tolist() == [0, 10, 11, 12]
    assert find_lines("").tolist() == [0]
    assert find_lines("a\n").tolist() == [0, 2]
