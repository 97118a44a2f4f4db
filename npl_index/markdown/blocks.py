"""Block structure of Markdown: markdown-it-py's block parser, reduced to the needs of a section index.

Most block rules are markdown-it-py's own, with tables and its plugin for definition lists; the exceptions are
in :mod:`npl_index.markdown.leaves`. Own rules for the others would make indexing only 10 to 20 % faster.
Inline markup is not parsed. A rule is tried only on lines that begin with one of its characters, and only
tokens of blocks that an index needs are kept.

Tokens have the type, level, lines and info string of stock CommonMark with tables and definition lists; a
test compares the two. Deliberate differences: containers nest up to 100 levels, and deeper ones are text of
the innermost container (stock drops the remaining document); a link label has at most 999 characters, as
CommonMark says, and a definition at most 1,000 lines; a line of more than 65,536 characters is no link
definition, and begins an HTML block only if its tag's name says so; a line that begins another block is never
a term of a definition list.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.ruler import Ruler
from markdown_it.rules_block import blockquote, code, heading, lheading, list_block, paragraph, table
from mdit_py_plugins.deflist import deflist_plugin

from npl_index.deadline import NO_DEADLINE, Deadline
from npl_index.markdown.leaves import fence, html, link_definition, loose_fence, npl_header, thematic_break
from npl_index.markdown.state import BlockState, find_lines

# The state is a BlockState; markdown-it declares its own.
_Rule = Callable[[Any, int, int, bool], bool]

_MAX_NESTING = 100
_LONG_LINE = 4096
_MAX_DEFINITION_LINES = 1000
_DELIMITER_START = frozenset("|-:")
_DEFINITION_START = frozenset(":~")
_FOREIGN_TERM = re.compile(r"^ ?([-+*0-9>`~_#<])[^\n]*(?=\n(?:[ \t]*\n)?[ \t]*[:~][ \t])", re.MULTILINE)


def read_blocks(
    source: str,
    *,
    starts: array[int] | None = None,
    first: int = 0,
    npl: bool = False,
    complete: bool = False,
    deadline: Deadline = NO_DEADLINE,
) -> BlockState:
    r"""Parse the blocks of a document.

    :param source: text with ``\n`` line ends.
    :param starts: its :func:`npl_index.markdown.state.find_lines`, if known.
    :param first: number of the first line to parse.
    :param npl: apply NPL's rules for fences, see :func:`npl_index.markdown.leaves.fence`.
    :param complete: record every block, paragraphs and table rows included, not only those an index needs.
    :param deadline: the time at which parsing ends in an error.
    :returns: the final state: ``tokens``, ``env["references"]``, ``open_fence``, ``open_html`` and the other
        attributes of :class:`~npl_index.markdown.state.BlockState` about fences.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    deadline.check()
    starts = find_lines(source) if starts is None else starts
    state = BlockState(source, starts, _MD, npl=npl, complete=complete, deadline=deadline)
    _MD.block.tokenize(state, first, state.lineMax)
    return state


def _container(rule: _Rule) -> _Rule:
    """Return a container's rule with a limit on the nesting."""

    def container(state: BlockState, line: int, end: int, silent: bool) -> bool:
        return state.level < _MAX_NESTING and rule(state, line, end, silent)

    return container


def _table(state: BlockState, line: int, end: int, silent: bool) -> bool:
    """Table: the stock rule, if the next line may be a delimiter row; an index needs no cells."""
    whole = state.complete and not silent
    if _first_character(state, line + 1) not in _DELIMITER_START or not table(state, line, end, not whole):
        return False
    if not (silent or whole):
        outside, state.parentType, stop = state.parentType, "table", line + 2
        while stop < end and state.is_text(stop) and not _ends_text(state, stop, end, True):
            stop += 1
        state.parentType = outside
        state.leaf("table_open", line, stop)
    return True


def _first_character(state: BlockState, line: int) -> str:
    r"""Return the first character of a line that is not white space; ``"\n"`` or ``""`` for a blank line."""
    pos = state.bMarks[line] + state.tShift[line]
    return state.src[pos : pos + 1]


# The plugin adds its rule without a public name.
_plugin_definition_list: _Rule = MarkdownIt("zero").use(deflist_plugin).block.ruler.getRules("")[0]


def _definition_list(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Definition list: the plugin's rule, but a line that begins another block is never a term.

    The plugin looks for other blocks only at the first term, and so makes a heading after a list a term
    if a line like ``: text`` follows.
    """
    if silent or state.level:
        return _plugin_definition_list(state, start, end, silent)
    marker = start + 2 if start + 1 < end and state.isEmpty(start + 1) else start + 1
    if marker >= end or _first_character(state, marker) not in _DEFINITION_START:
        return False
    if state.foreign_terms is None:
        state.foreign_terms = [
            line
            for term in _FOREIGN_TERM.finditer(state.src)
            for line in (bisect_left(state.bMarks, term.start()),)
            if _begins_block(state, line, state.lineMax, True)
        ]
    position = bisect_right(state.foreign_terms, start)
    limit = min([end, *state.foreign_terms[position : position + 1]])
    return _plugin_definition_list(state, start, limit, silent)


def _first_of(*rules: tuple[str, _Rule]) -> _Rule:
    """Combine rules into one, which tries those whose blocks may begin with a line's first character.

    :param rules: first characters and rule, in markdown-it's order.
    """
    by_character: dict[str, list[_Rule]] = {}
    for characters, rule in rules:
        for character in characters:
            by_character.setdefault(character, []).append(rule)

    def first_of(state: BlockState, line: int, end: int, silent: bool) -> bool:
        pos = state.bMarks[line] + state.tShift[line]
        if state.eMarks[line] - pos > _LONG_LINE:
            state.check()
        for rule in by_character.get(state.src[pos : pos + 1], ()):  # noqa: SIM110  any() is slower
            if rule(state, line, end, silent):
                return True
        return False

    return first_of


_FENCE = ("`~", fence)
_QUOTED = (">", loose_fence)
_LOOSE = (":~0123456789", loose_fence)
_QUOTE = (">", _container(blockquote))
_BREAK = ("*-_", thematic_break)
_LIST = ("-+*0123456789", _container(list_block))
_LINK = ("[", link_definition)
_HTML = ("<{", html)
_HEADING = ("#", heading)
_HEADER = ("n", npl_header)
_DEFINITIONS = _container(_definition_list)

_begins_block = _first_of(_QUOTED, _FENCE, _QUOTE, _BREAK, _LIST, _LINK, _HTML, _HEADING, _HEADER, _LOOSE)
_ends_text = _first_of(
    _QUOTED, _FENCE, _QUOTE, _BREAK, _LIST, _HTML, _HEADING, _HEADER, (":~", _DEFINITIONS), _LOOSE
)
_ends_item = _first_of(_FENCE, _QUOTE, _BREAK, _HEADER)


def _ends_definition(state: BlockState, line: int, end: int, silent: bool) -> bool:
    """End a link definition before other blocks, and at the maximum of lines: the stock rule is quadratic."""
    state.check()
    return line - state.definition > _MAX_DEFINITION_LINES or _ends_text(state, line, end, silent)


def _parser() -> MarkdownIt:
    """Return a parser whose rules are those above."""
    ruler: Ruler[_Rule] = Ruler()
    ruler.push("table", _table, {"alt": ["paragraph", "reference"]})
    ruler.push("code", code)
    ruler.push("begins", _begins_block)
    ruler.push("lheading", lheading)
    ruler.push("deflist", _DEFINITIONS)
    ruler.push("paragraph", paragraph)
    # A paragraph takes any line, so the rules after it are tried only to end the previous block.
    ruler.push("ends_text", _ends_text, {"alt": ["paragraph", "blockquote"]})
    ruler.push("ends_definition", _ends_definition, {"alt": ["reference"]})
    ruler.push("ends_item", _ends_item, {"alt": ["list"]})
    ruler.getRules("")  # compiles the chains, which is not safe to do in two threads at once
    # Containers have their own limit: at markdown-it's limit the remaining document would be lost.
    parser = MarkdownIt("commonmark", {"maxNesting": 2 * _MAX_NESTING})
    parser.block.ruler = ruler
    return parser


_MD = _parser()
