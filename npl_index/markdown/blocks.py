"""Block structure of Markdown: markdown-it-py's block parser, made fast for an index.

Stock markdown-it-py tries up to eleven rules on every line, cuts out the text of every paragraph, cell
and code block, and then parses inline markup. An index of sections needs none of that, so here

* rules stand behind the first character of a line;
* leaf blocks have rules of their own (:mod:`npl_index.markdown.leaves`); block quotes and lists
  (markdown-it-py) and definition lists (its plugin) stay as they are;
* a token is kept only for the blocks an index needs.

The tokens have the type, level, lines and info string that stock CommonMark with tables and definition
lists gives; a test compares the two. Deliberate differences: containers nest up to 100 levels and what
lies deeper is text of the innermost one (stock stops at 20 and drops the rest of the document); a link
label has at most 999 characters, as CommonMark says, and a definition at most 1,000 lines; a line of more
than 65,536 characters is a link definition only if it is a plain one, without escapes, entities or
parentheses, and begins an HTML block only if its tag is of a kind that does so by name; no term of a
definition list is a line that begins another block.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.ruler import Ruler
from markdown_it.rules_block import blockquote, list_block
from markdown_it.token import Token
from mdit_py_plugins.deflist import deflist_plugin

from npl_index.markdown.leaves import (
    TRIM,
    atx_heading,
    fence,
    first_character,
    html,
    indented_code,
    link_definition,
    npl_header,
    table,
    thematic_break,
)
from npl_index.markdown.state import NO_DEADLINE, BlockState, Deadline, find_lines

# The state is a BlockState; markdown-it declares its own.
_Rule = Callable[[Any, int, int, bool], bool]
_Rules = Mapping[str, tuple[_Rule, ...]]

_MAX_NESTING = 100
_LONG_LINE = 4096
_MAX_DEFINITION_LINES = 1000
_ITEM = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|\Z)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*")
_FOREIGN_TERM = re.compile(r"^ ?([-+*0-9>`~_#<])[^\n]*(?=\n(?:[ \t]*\n)?[ \t]*[:~][ \t])", re.MULTILINE)
_DELIMITER_START = frozenset("|-:")
_DEFINITION_START = frozenset(":~")


def parse_blocks(
    source: str, first: int = 0, *, nesting: bool = False, deadline: Deadline = NO_DEADLINE
) -> list[Token]:
    r"""List the blocks of a text, paragraphs and table rows included.

    :param source: text with ``\n`` line ends.
    :param first: number of the line to begin at.
    :param nesting: fences of equal length nest.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    starts = find_lines(source)
    return read_blocks(source, starts, first, nesting=nesting, complete=True, deadline=deadline).tokens


def read_blocks(
    source: str,
    line_starts: array[int],
    first: int,
    *,
    nesting: bool,
    complete: bool = False,
    deadline: Deadline = NO_DEADLINE,
) -> BlockState:
    r"""Find the blocks of a document.

    :param source: text with ``\n`` line ends.
    :param line_starts: as of :func:`npl_index.markdown.state.find_lines`.
    :param first: number of the line to begin at.
    :param nesting: fences of equal length nest.
    :param complete: record every block, not only those an index needs.
    :param deadline: when to give up.
    :returns: the state at the end: ``tokens``, ``env["references"]``, ``inner_fences``, ``open_fence``.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    deadline.check()
    state = BlockState(source, line_starts, _MD, nesting=nesting, complete=complete, deadline=deadline)
    _MD.block.tokenize(state, first, state.lineMax)
    return state


def _list(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """List: the stock rule, if there is a marker at all."""
    pos = state.bMarks[start] + state.tShift[start]
    return _ITEM.match(state.src, pos, state.eMarks[start]) is not None and list_block(
        state, start, end, silent
    )


def _plugin_rule() -> _Rule:
    """Return the rule the plugin adds; it has no name of its own to import."""
    return MarkdownIt("zero").use(deflist_plugin).block.ruler.getRules("")[0]


_stock_definition_list = _plugin_rule()


def _definition_list(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Definition list: the plugin's rule, but a line that begins another block is never a term.

    The plugin looks for other blocks only at the first term, and so makes a heading behind a list a term
    if a line like ``: text`` follows.
    """
    if silent or state.level:
        return _stock_definition_list(state, start, end, silent)
    if state.foreign_terms is None:
        state.foreign_terms = [
            line
            for found in _FOREIGN_TERM.finditer(state.src)
            for line in (bisect_left(state.bMarks, found.start()),)
            if any(rule(state, line, state.lineMax, True) for rule in _STARTS[found[1]])
        ]
    position = bisect_right(state.foreign_terms, start)
    limit = min([end, *state.foreign_terms[position : position + 1]])
    return _stock_definition_list(state, start, limit, silent)


def _by_first_character(*rules: tuple[str, _Rule]) -> _Rules:
    """Make a table from each character a rule's block may begin with to the rules, in order."""
    table: dict[str, tuple[_Rule, ...]] = {}
    for characters, rule in rules:
        for character in characters:
            table[character] = (*table.get(character, ()), rule)
    return table


# The rules in stock order. Tables and plain text are tried apart: any character may begin them.
_FENCE = ("`~", fence)
_QUOTE = (">", blockquote)
_BREAK = ("*-_", thematic_break)
_LIST = ("-+*0123456789", _list)
_HTML = ("<", html)
_ATX = ("#", atx_heading)
_HEADER = ("n", npl_header)
_DEFINITIONS = (":~", _definition_list)
_STARTS = _by_first_character(_FENCE, _QUOTE, _BREAK, _LIST, ("[", link_definition), _HTML, _ATX, _HEADER)
_DEEP_STARTS = _by_first_character(_FENCE, _BREAK, ("[", link_definition), _HTML, _ATX, _HEADER)
_ENDS_TEXT = _by_first_character(_FENCE, _QUOTE, _BREAK, _LIST, _HTML, _ATX, _HEADER, _DEFINITIONS)
_ENDS_ITEM = _by_first_character(_FENCE, _QUOTE, _BREAK, _HEADER)


def _ending(rules: _Rules, *, tables: bool) -> _Rule:
    """Make one rule of many, for the question whether a line ends the block before it."""

    def ends(state: BlockState, line: int, end: int, _silent: bool) -> bool:
        source = state.src
        pos = state.bMarks[line] + state.tShift[line]
        for rule in rules.get(source[pos : pos + 1], ()):
            if rule(state, line, end, True):
                return True
        if not tables or line + 1 >= end:
            return False
        pos = state.bMarks[line + 1] + state.tShift[line + 1]
        return source[pos : pos + 1] in _DELIMITER_START and table(state, line, end, True)

    return ends


_ends_paragraph = _ending(_ENDS_TEXT, tables=True)


def _ends_definition(state: Any, line: int, end: int, silent: bool) -> bool:
    """End a link definition before other blocks, and where the stock rule would take ever longer."""
    state.check()
    return line - state.definition > _MAX_DEFINITION_LINES or _ends_paragraph(state, line, end, silent)


def _text(state: BlockState, start: int, end: int) -> None:
    """Setext heading, definition list or paragraph: whatever no other rule has taken."""
    stop, underlined = _text_end(state, start + 1, end)
    if underlined:
        text = state.src[state.bMarks[start] : state.eMarks[stop - 1]].strip(TRIM)
        state.heading(1 if first_character(state, stop) == "=" else 2, start, stop + 1, text)
        return
    marker = start + 2 if state.isEmpty(start + 1) else start + 1
    if (
        marker < end
        and first_character(state, marker) in _DEFINITION_START
        and state.level < _MAX_NESTING
        and _definition_list(state, start, end, False)
    ):
        return
    if stop == end < state.lineMax:  # a paragraph may go on behind its container, a heading may not
        stop, _ = _text_end(state, stop, state.lineMax)
    state.line = stop
    if state.complete:
        state.leaf("paragraph_open", start, stop)


def _text_end(state: BlockState, line: int, end: int) -> tuple[int, bool]:
    """Find the first line that is not the paragraph's, and say whether it underlines a heading."""
    source, begins, shifts, ends, indents = state.src, state.bMarks, state.tShift, state.eMarks, state.sCount
    indent = state.blkIndent
    outer, state.parentType = state.parentType, "paragraph"
    underlined = False
    while line < end:
        pos = begins[line] + shifts[line]
        if pos >= ends[line]:
            break
        if not line & 255:
            state.check()
        if indents[line] - indent <= 3:
            underlined = (
                source[pos] in "=-"
                and indents[line] >= indent
                and _UNDERLINE.fullmatch(source, pos, ends[line]) is not None
            )
            if underlined or (indents[line] >= 0 and _ends_paragraph(state, line, end, True)):
                break
        line += 1
    state.parentType = outer
    return line, underlined


class _Parser(ParserBlock):
    """The parser that the container rules call back into."""

    def __init__(self) -> None:
        self.ruler = Ruler()
        self.ruler.push("definition", _ends_definition, {"alt": ["reference"]})
        self.ruler.push("quote", _ending(_ENDS_TEXT, tables=False), {"alt": ["blockquote"]})
        self.ruler.push("item", _ending(_ENDS_ITEM, tables=False), {"alt": ["list"]})
        self.ruler.getRules("")  # compiles the chains, which is not safe to do in two threads at once

    def tokenize(self, state: Any, startLine: int, endLine: int) -> None:  # noqa: N803
        """Record the blocks of some lines; afterwards ``state.line`` is the first line not read."""
        begins, shifts, ends, indents = state.bMarks, state.tShift, state.eMarks, state.sCount
        starts = _STARTS if state.level < _MAX_NESTING else _DEEP_STARTS
        line, blank = startLine, False
        while line < endLine:
            while line < state.lineMax and begins[line] + shifts[line] >= ends[line]:
                line += 1
            state.line = line
            if line >= endLine or indents[line] < state.blkIndent:
                break
            if ends[line] - begins[line] > _LONG_LINE:
                state.check()
            state.tick()
            if indents[line] - state.blkIndent >= 4:
                indented_code(state, line, endLine)
            else:
                _block(state, line, endLine, starts)
            state.tight = not blank
            line = state.line
            if line - 1 < endLine and begins[line - 1] + shifts[line - 1] >= ends[line - 1]:
                blank = True
            if line < endLine and begins[line] + shifts[line] >= ends[line]:
                blank = True
                state.line = line = line + 1


def _block(state: BlockState, line: int, end: int, starts: _Rules) -> None:
    """Record the one block that begins at a line."""
    source, begins, shifts = state.src, state.bMarks, state.tShift
    if line + 1 < end:
        pos = begins[line + 1] + shifts[line + 1]
        if source[pos : pos + 1] in _DELIMITER_START and table(state, line, end, False):
            return
    for rule in starts.get(source[begins[line] + shifts[line]], ()):
        if rule(state, line, end, False):
            return
    _text(state, line, end)


_MD = MarkdownIt("commonmark")
_MD.block = _Parser()
