"""Block rules that replace markdown-it-py's own.

Two of them are for NPL: nested fences, and ``npl-instructions`` headers. The others protect the stock rules
from hostile input: no line of many megabytes may keep the parser busy past its deadline. Each rule has
markdown-it's signature: ``state``, first line of the block, end of its container, and ``silent``: only test
whether the block begins here.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from markdown_it.rules_block import reference
from markdown_it.rules_block.html_block import HTML_SEQUENCES

from npl_index.markdown.preambles import match_npl_header
from npl_index.markdown.state import BlockState

_MAX_LINE = 65_536

_FENCE = re.compile(r"(`{3,})([^`]*)|(~{3,})(?!~)(.*)")
_MARKED_FENCE = re.compile(r"(?:(?:[-+*:~]|[0-9]{1,9}[.)])[ \t]+)+(?:`{3}|~{3})")
_LOOSE_FENCE = re.compile(r"(?:[>:~]|[0-9]{1,9}[.)])[ \t]+(?:(`{3,})[^`\n]*|(~{3,})(?!~)[^\n]*)")
_BREAK = re.compile(r"([-*_])[ \t]*\1")
_SEQUENCES = [(re.compile(r"^\{/\*"), re.compile(r"\*/\}"), True), *HTML_SEQUENCES]
_LABEL = re.compile(r"\[(?:[^\[\]\\]|\\.){1,999}\]:", re.DOTALL)


def fence(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Fenced code.

    With ``state.npl``, a marker line with an info string opens an inner fence and a bare one closes the
    innermost, if it is at least as long as the innermost's marker. A fence after the marker of a list or
    definition may continue and close at the margin; in CommonMark it ends with the item.
    """
    source, begins, shifts, ends = state.src, state.bMarks, state.tShift, state.eMarks
    opening, info = _fence_marks(state, start)
    if not opening or silent:
        return bool(opening)
    open_runs = [opening]
    behind_marker = source[begins[start] : begins[start] + shifts[start]].strip(" \t") != ""
    container_end = None
    line = start + 1
    while line < end and open_runs:
        if not line & 1023:
            state.check()
        pos = begins[line] + shifts[line]
        if pos < ends[line] and state.sCount[line] < state.blkIndent:
            container_end = container_end or line
            # Before another fence of this kind, the author forgot to close this one. This also keeps the time
            # linear.
            if not (state.npl and behind_marker) or _MARKED_FENCE.match(source, pos):
                break
        if source[pos : pos + 1] == opening[0]:
            run, further = _fence_marks(state, line)
            if run.startswith(open_runs[-1]):
                if not further.strip(" \t"):
                    open_runs.pop()
                elif state.npl:
                    open_runs.append(run)
                    state.npl_fences = True
        line += 1
    if open_runs:
        line = container_end or line
        state.cut_fence |= behind_marker and container_end is not None
        state.open_fence |= line >= len(begins) - 1
    elif container_end:
        state.npl_fences = True
    if open_runs or container_end:
        state.doubtful_fences.append(start)
    state.leaf("fence", start, line).info = info
    return True


def _fence_marks(state: BlockState, line: int) -> tuple[str, str]:
    """Return the marks of a fence at a line and the text after them; ``""`` without marks."""
    begin, end = state.bMarks[line] + state.tShift[line], state.eMarks[line]
    mark = None if state.is_code_block(line) else _FENCE.fullmatch(state.src, begin, end)
    return (mark[1] or mark[3], mark[2] or mark[4] or "") if mark else ("", "")


def loose_fence(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Fenced code after a marker without a container, closed at the margin.

    The marker is that of a quote of one line, of a definition without a term, or of a list that may not begin
    there. CommonMark sees no fence there, and takes the closing line for an opening one.
    """
    source, begins, shifts, ends = state.src, state.bMarks, state.tShift, state.eMarks
    opening = None
    if not state.level and not state.is_code_block(start):
        opening = _LOOSE_FENCE.fullmatch(source, begins[start] + shifts[start], ends[start])
    if opening is None:
        return False
    run = opening[1] or opening[2]
    line, closed = start + 1, False
    while line < end and not closed:
        if not line & 1023:
            state.check()
        pos = begins[line] + shifts[line]
        first = source[pos : pos + 1]
        if first == ">" or _MARKED_FENCE.match(source, pos):
            break  # the quote continues, or the fence is not closed
        if first == run[0]:
            marks, further = _fence_marks(state, line)
            closed = marks.startswith(run) and not further.strip(" \t")
            if marks and not closed:
                break
        line += 1
    if line == start + 1 and not closed:
        return False
    state.cut_fence |= closed
    state.doubtful_fences.append(start)
    if not closed or not state.npl:
        return False
    if not silent:
        state.npl_fences = True
        state.leaf("fence", start, line).info = opening[0].split(run, 1)[1].strip()
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


def html(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """HTML or a comment of MDX: to its closing sequence, or to a blank line for the kinds that end there."""
    if state.is_code_block(start):
        return False
    text = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    # The expression of the last kind, any complete tag, takes a gigabyte for a million attributes.
    kinds = _SEQUENCES if len(text) <= _MAX_LINE else _SEQUENCES[:-1]
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
    if not to_blank and not closed and not state.level:
        state.open_html = start, closing.pattern
    state.leaf("html_block", start, line)
    return True


def link_definition(state: BlockState, start: int, end: int, silent: bool) -> bool:
    """Link definition: the stock rule, except for long lines and labels, which it reads by character."""
    pos, stop = state.bMarks[start] + state.tShift[start], state.eMarks[start]
    if stop - pos > _MAX_LINE or not _LABEL.match(state.src, pos):
        return False
    state.definition = start
    return reference(state, start, end, silent)


def npl_header(state: BlockState, start: int, _end: int, silent: bool) -> bool:
    """``npl-instructions`` header, only at the very start of its line."""
    pos = state.bMarks[start]
    if pos and state.src[pos - 1] != "\n":
        return False
    header = match_npl_header(state.src, pos)
    if header is None:
        return False
    if not silent:
        stop = bisect_right(state.bMarks, header.end() - 1, start, state.lineMax)
        state.leaf("npl_header", start, stop).content = header[1]
    return True
