"""Block rules for what holds no blocks: code, headings, thematic breaks, tables, HTML, link definitions.

Each rule has markdown-it's signature: ``state``, the line the block would begin at, the line its
container ends at, and ``silent``: only say whether it begins here. Unlike the stock rules they keep
none of the text, so they read the source in place, by expressions that take linear time on any
line. That the blocks are those of the stock rules is tested by comparison.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block import reference
from markdown_it.rules_block.html_block import HTML_SEQUENCES

from npl_index.markdown.state import BlockState

_MAX_LINE = 65_536
_MAX_ADDED_CELLS = 0x10000  # as in the stock rule: a table that lacks more cells than this ends

# What the stock rules strip from headings and table rows.
TRIM = "\t\n\v\f\r \xa0\u1680\u202f\u205f\u3000\u2028\u2029" + "".join(map(chr, range(0x2000, 0x200B)))

_FENCE = re.compile(r"(`{3,})([^`]*)|(~{3,})(.*)")
_ATX = re.compile(r"(#{1,6})(?:[ \t]|\Z)")
_BREAK = re.compile(r"([-*_])[ \t]*\1")
_LABEL = re.compile(r"\[(?:[^\[\]\\]|\\.){1,999}\]:", re.DOTALL)
_PLAIN_DEFINITION = re.compile(
    r"\[([^\[\]\\]{1,999})\]:[ \t]*"
    r"(?:<([^<>\\&]*)>|([^\s<\\&()\x00-\x1f\x7f][^\s\\&()\x00-\x1f\x7f]*))"
    r"""(?:[ \t]+("[^"\\]*"|'[^'\\]*'))?[ \t]*"""
)
_ALIGNMENT = re.compile(r"[ \t]*:?-+:?[ \t]*")

NPL_HEADER = re.compile(r"npl-instructions:[ \t]*\n((?:[ \t]+[^\s:#][^:\n]*:.*\n){1,64})---.*(?:\n|\Z)")
"""An ``npl-instructions`` header; group 1 holds its indented ``key: value`` lines."""


def first_character(state: BlockState, line: int) -> str:
    r"""Return the first character of a line that is not white space; ``"\n"`` or ``""`` if there is none."""
    pos = state.bMarks[line] + state.tShift[line]
    return state.src[pos : pos + 1]


def indented_code(state: BlockState, start: int, end: int) -> None:
    """Code by indent: up to its last line, blank lines between included."""
    stop = line = start + 1
    while line < end:
        if not line & 1023:
            state.check()
        empty = state.isEmpty(line)
        if not empty and not state.is_code_block(line):
            break
        line += 1
        if not empty:
            stop = line
    state.leaf("code_block", start, stop)


def fence(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Fenced code.

    With ``state.nesting`` a marker line with an info string opens an inner fence and a bare one
    closes the innermost, if they are at least as long as the innermost's.
    """
    source, begins, shifts, ends = state.src, state.bMarks, state.tShift, state.eMarks
    opening = _FENCE.fullmatch(source, begins[start] + shifts[start], ends[start])
    if opening is None or state.is_code_block(start):
        return False
    if silent:
        return True
    run = opening[1] or opening[3]
    marker, open_runs = run[0], [len(run)]
    line = start + 1
    while line < end and open_runs:
        if not line & 1023:
            state.check()
        pos = begins[line] + shifts[line]
        if pos < ends[line] and state.sCount[line] < state.blkIndent:
            break
        if source[pos : pos + 1] == marker and not state.is_code_block(line):
            found = _FENCE.fullmatch(source, pos, ends[line])
            run = found[1] or found[3] if found else ""
            if found and len(run) >= open_runs[-1]:
                if not (found[2] or found[4] or "").strip(" \t"):
                    open_runs.pop()
                elif state.nesting:
                    open_runs.append(len(run))
                    state.inner_fences = True
        line += 1
    if open_runs and line >= len(begins) - 1:
        state.open_fence = True
    state.leaf("fence", start, line).info = opening[2] or opening[4] or ""
    return True


def thematic_break(state: BlockState, start: int, _end: int, silent: bool) -> bool:
    """Three or more equal markers and white space."""
    pos, stop = state.bMarks[start] + state.tShift[start], state.eMarks[start]
    if not _BREAK.match(state.src, pos, stop) or state.is_code_block(start):
        return False
    text = state.src[pos:stop]
    if text.count(text[0]) < 3 or text.strip(text[0] + " \t"):
        return False
    if not silent:
        state.leaf("hr", start, start + 1)
    return True


def atx_heading(state: BlockState, start: int, _end: int, silent: bool) -> bool:
    """Heading behind ``#`` marks."""
    stop = state.eMarks[start]
    marks = _ATX.match(state.src, state.bMarks[start] + state.tShift[start], stop)
    if marks is None or state.is_code_block(start):
        return False
    if silent:
        return True
    text = state.src[marks.end(1) : stop].rstrip(" \t")
    bare = text.rstrip("#")
    text = bare if bare.endswith((" ", "\t")) else text
    state.heading(len(marks[1]), start, start + 1, text.strip(TRIM))
    return True


def html(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """HTML: to its closing sequence, or to a blank line for the kinds that end there."""
    if state.is_code_block(start):
        return False
    text = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    # The last kind, any whole tag, takes a gigabyte for a tag of a million attributes.
    kinds = HTML_SEQUENCES if len(text) <= _MAX_LINE else HTML_SEQUENCES[:-1]
    kind = next((sequence for sequence in kinds if sequence[0].search(text)), None)
    if kind is None:
        return False
    if silent:
        return kind[2]
    closing = kind[1]
    to_blank = closing.search("") is not None
    closed = closing.search(text) is not None
    line = start + 1
    while line < end and not closed:
        if not line & 1023:
            state.check()
        empty = state.isEmpty(line)
        if (to_blank and empty) or (state.sCount[line] < state.blkIndent and not empty):
            break
        begin = state.bMarks[line] + state.tShift[line]
        closed = not to_blank and closing.search(state.src, begin, state.eMarks[line]) is not None
        line += 1
    state.line = line
    if state.complete:
        state.leaf("html_block", start, line)
    return True


def link_definition(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Link definition: plain ones by one expression, others by the stock rule."""
    pos, stop = state.bMarks[start] + state.tShift[start], state.eMarks[start]
    plain = _PLAIN_DEFINITION.fullmatch(state.src, pos, stop)
    if plain is None or (not plain[4] and first_character(state, start + 1) in ('"', "'", "(")):
        if stop - pos > _MAX_LINE or not _LABEL.match(state.src, pos):
            return False
        state.definition = start
        return reference(state, start, end, silent)
    label = normalizeReference(plain[1])
    target = plain[2] or plain[3] or ""
    if not label or not state.md.validateLink(target[:64]):
        return False
    state.env.setdefault("references", {}).setdefault(label, {"title": "", "href": target})
    state.line = start + 1
    return True


def npl_header(state: BlockState, start: int, _end: int, silent: bool) -> bool:
    """``npl-instructions`` header, only at the very start of its line."""
    pos = state.bMarks[start]
    if pos and state.src[pos - 1] != "\n":
        return False
    header = NPL_HEADER.match(state.src, pos)
    if header is None:
        return False
    if not silent:
        stop = bisect_right(state.bMarks, header.end() - 1, start, state.lineMax)
        state.leaf("npl_header", start, stop).content = header[1]
    return True


def table(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """GFM table: a header row, a delimiter row with as many cells, and rows up to another block."""
    if start + 2 > end or not 0 <= state.sCount[start + 1] - state.blkIndent <= 3:
        return False
    header = _row(state, start)
    if "|" not in header:
        return False
    width = _cells(header)
    if width < 1 or width != _delimiter_cells(state, start + 1):
        return False
    if silent:
        return True
    outer, state.parentType = state.parentType, "table"
    ends_table = state.md.block.ruler.getRules("blockquote")[0]
    missing = 0
    line = start + 2
    while line < end:
        if not line & 255:
            state.check()
        row = _row(state, line)
        if not row or state.sCount[line] < state.blkIndent or state.is_code_block(line):
            break
        missing += width - _cells(row)
        if missing > _MAX_ADDED_CELLS or ends_table(state, line, end, True):
            break
        line += 1
    state.leaf("table_open", start, line)
    if state.complete:
        for row_line in (start, *range(start + 2, line)):
            state.leaf("tr_open", row_line, row_line + 1).level += 2  # inside thead or tbody
        state.line = line
    state.parentType = outer
    return True


def _row(state: BlockState, line: int) -> str:
    """Return a line without the white space at its ends."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip(TRIM)


def _cells(row: str) -> int:
    """Count the cells of a row: pipes that no backslash precedes divide them."""
    bars = row.count("|") - row.count("\\|")
    return bars + 1 - row.startswith("|") - (row.endswith("|") and not row.endswith("\\|"))


def _delimiter_cells(state: BlockState, line: int) -> int:
    """Count the cells of a delimiter row; 0 if the line is none."""
    row = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip(" \t")
    if len(row) < 2 or row[0] not in "|-:" or row.startswith(("- ", "-\t")) or row.strip("|-: \t"):
        return 0
    cells = row.removeprefix("|").removesuffix("|").split("|")
    for number, cell in enumerate(cells):
        if not number & 1023:
            state.check()
        if not _ALIGNMENT.fullmatch(cell):
            return 0
    return len(cells)
