"""The text of a document outside of code."""

from __future__ import annotations

import re
from collections import defaultdict

from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.state import BlockState

_MAY_BE_CODE = re.compile(r"`|~~~|    |\t")
_INLINE = frozenset({"paragraph_open", "heading_open", "tr_open", "dt_open"})
_TICKS = re.compile("`+")
_OPENING = re.compile(r"\\.|`+", re.DOTALL)
_VISIBLE = re.compile(r"[^\n]")


def without_code(source: str) -> str:
    r"""Replace code in a text by blanks: fences, indented blocks and code spans.

    :param source: Markdown with ``\n`` line ends.
    """
    if _MAY_BE_CODE.search(source) is None:
        return source
    return "\n".join(lines_of_prose(read_blocks(source, complete=True)))


def lines_of_prose(blocks: BlockState) -> list[str]:
    """Return the lines of a text with blanks for code.

    :param blocks: all blocks of the text.
    """
    lines = blocks.lines_without_code()
    for token in blocks.tokens:
        if token.type in _INLINE and token.map:
            first, stop = token.map
            place = slice(first, max(stop, first + 1))  # a term of a definition has no lines
            lines[place] = without_spans("\n".join(lines[place])).split("\n")
    return lines


def without_spans(text: str) -> str:
    """Replace the code spans of a block by blanks, in linear time."""
    if "`" not in text:
        return text
    closing = defaultdict(list)
    for ticks in reversed(list(_TICKS.finditer(text))):
        closing[len(ticks[0])].append(ticks)
    kept, done, at = [], 0, 0
    while opening := _OPENING.search(text, at):
        at = opening.end()
        ends = closing[len(opening[0])] if opening[0][0] == "`" else []
        while ends and ends[-1].start() < at:
            ends.pop()
        if ends:
            at = ends.pop().end()
            kept += [text[done : opening.start()], _VISIBLE.sub(" ", text[opening.start() : at])]
            done = at
    return "".join((*kept, text[done:]))
