"""The frame of some lines: the lines above and below that keep their meaning.

These are the head of a table, the opening and closing lines of a fence, the first line of an item or
of an admonition, the term of a definition. The frame depends only on the lines, so that their selector gives
the same text again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from npl_index.markdown.sections import SectionTree, Span

MAX_LINES_BACK = 2_000
"""Maximum lines to search backwards for the start of a block."""

_FENCE = re.compile(
    r"^(?:[ \t>]|[-+*:~](?=[ \t])|[0-9]{1,9}[.)](?=[ \t]))*(`{3,}(?=[^`\n]*$)|~{3,}|:{3,})(.*)$", re.MULTILINE
)
_MARGIN = re.compile(
    r"((?:[ \t]*>)*)([ \t]*)"
    r"(?:((?:[-+*:~]|[0-9]{1,9}[.)]|\[\^[^\]\n]+\]:)[ \t]+)|(?:!!!|\?\?\?\+?|===)[ \t])?"
)
"""Quote markers, indentation, and the marker of an item or the start of an admonition."""

_DELIMITER = re.compile(r"^[ \t>:|-]+$", re.MULTILINE)
_LEAD = 1_000
"""Maximum characters between a blank line and the head of a table; the usual number is 0."""

MAX_PARENT = 240
"""Maximum characters of the first line of an item that is shown above its later lines."""

_NOT_QUOTE = re.compile(r"[^\s>]")
_CODE = 4
"""Indentation of code, outside items and admonitions."""


@dataclass(frozen=True, slots=True)
class Stretch(Span):
    """A range of characters within lines: sentences of a long line.

    :param begin: offset in the source.
    :param end: offset after the last character.
    """

    begin: int
    end: int


class Opening(NamedTuple):
    """The opening line of a fence.

    :param sign: its closing mark, without indentation.
    """

    line: int
    sign: str


def framed(tree: SectionTree, own: Span, lines: Span, fences: Fences) -> str:
    """Return some lines of a section in their frame, without surrounding blank lines.

    :param own: lines of the section's own text.
    """
    first, inside = lines.start, False
    if isinstance(lines, Stretch):
        inside = lines.begin > tree.line_starts[first]
        text = tree.source[lines.begin : lines.end].strip("\n").rstrip() + "\n"
    else:
        text = tree.text(lines).lstrip("\n")
    while first + 1 < lines.stop and not tree.line(first).strip():
        first += 1
    framing = [*(fence.line for fence in fences.around(first)), *table_head(tree, own, first)]
    holders = _holders(tree, own, min([first, *framing]))
    parents = (line for line in holders if len(tree.line(line)) <= MAX_PARENT)
    above = "".join(f"{tree.line(line)}\n" for line in (*parents, *framing))
    above += "".join(f"{_margin(tree, fence)}…\n" for fence in fences.cut_at(first, inside))
    if inside and not framing:
        text = _matched(tree.line(first))[0] + text
    ends = isinstance(lines, Stretch) and lines.end < tree.line_starts[lines.stop]
    below = [f"{_margin(tree, fence)}…\n" for fence in fences.cut_at(lines.stop, ends, is_end=True)]
    below += [f"{_margin(tree, fence)}{fence.sign}\n" for fence in reversed(fences.around(lines.stop))]
    return f"{above}{text}{''.join(below)}" if text else ""


def _margin(tree: SectionTree, opening: Opening) -> str:
    """Return the indentation and the quote markers of a fence."""
    return _NOT_QUOTE.sub(" ", tree.line(opening.line).partition(opening.sign)[0])


def _matched(text: str) -> re.Match[str]:
    margin = _MARGIN.match(text)
    assert margin is not None  # each of its signs may be missing
    return margin


def _holders(tree: SectionTree, own: Span, line: int) -> list[int]:
    """Return the first lines of the items, definitions and admonitions around a line, outermost first."""
    inner = _matched(tree.line(line))
    holders: list[int] = []
    last = max(own.start, line - MAX_LINES_BACK)
    while _width(inner) and line > last:
        line -= 1
        margin = _matched(tree.line(line))
        if margin.end() == len(margin.string):
            continue
        if margin[1].count(">") != inner[1].count(">"):
            break
        if _width(margin) < _width(inner):
            if _defines(inner) or margin.end() > margin.end(2):
                holders.append(line)
            inner = margin
    return holders[::-1]


def _defines(margin: re.Match[str]) -> bool:
    return (margin[3] or "-")[0] in ":~"


def _width(margin: re.Match[str]) -> int:
    """Return the columns of a line's indentation; a definition counts as indented below its term."""
    return len(margin[2].expandtabs(4)) + _defines(margin)


class Fences:
    """The fences and containers of a section, whose text is read only once.

    :param own: lines of the section's own text.
    """

    def __init__(self, tree: SectionTree, own: Span) -> None:
        self._tree, self._own = tree, own
        self._openings: dict[int, list[Opening]] = {own.start: []}

    def around(self, line: int) -> list[Opening]:
        """Return the fences and containers around a line, outermost first."""
        if line not in self._openings:
            first = max((earlier for earlier in self._openings if earlier < line), default=line)
            self._openings[line] = self._openings_at(first, line) if first < line else []
        return self._openings[line]

    def cut_at(self, line: int, is_within: bool, *, is_end: bool = False) -> list[Opening]:
        """Return the fence of code that a cut before a line divides, if any.

        :param is_within: whether the cut is within a line.
        :param is_end: whether the text before the line is shown, not the text after it.
        """
        *_, last = [None, *self.around(line)]
        if last is None or last.sign[0] == ":":
            return []
        shown = self._tree.line(line).strip(" \t>") if line < self._own.stop else ""
        is_whole = shown.startswith(last.sign) if is_end else line == last.line + 1
        return [] if is_whole and not is_within else [last]

    def _openings_at(self, first: int, line: int) -> list[Opening]:
        tree, stack = self._tree, list(self._openings[first])
        begin = tree.line_starts[first]
        text = tree.source[begin : tree.line_starts[line]]
        if "```" not in text and "~~~" not in text and ":::" not in text:
            return stack
        nests = tree.dialect == "npl"
        for marker in _FENCE.finditer(text):
            run, is_bare = marker[1], not marker[2].strip()
            top = stack[-1].sign if stack else ":"
            opens = run[0] != ":" or not is_bare if top[0] == ":" else nests and run.startswith(top)
            if run.startswith(top) and is_bare and stack:
                stack.pop()
            elif opens:
                at = bisect_right(tree.line_starts, begin + marker.start()) - 1
                margin = text[marker.start() : marker.start(1)].expandtabs(4)
                if len(margin) < _CODE or not margin.isspace() or _holders(tree, self._own, at):
                    stack.append(Opening(at, run))
        return stack


def table_head(tree: SectionTree, own: Span, line: int) -> range:
    """Return the lines of a table's head, for a line of its body; empty if the line is in no table.

    :param own: lines of the section's own text.
    """
    starts = tree.line_starts
    first, at = starts[own.start], starts[min(line, own.stop)]
    table = tree.source.rfind("<table", first, at)
    if table > tree.source.rfind("</table", first, at):
        begin, end = _html_head(tree.source, table, min(at, table + _LEAD))
        return range(bisect_right(starts, begin) - 1, min(line, bisect_right(starts, end)))
    if line >= own.stop or "|" not in tree.line(line):
        return range(0)
    blank = max(tree.source.rfind(gap, first, at) for gap in ("\n\n", "\n>\n"))
    begin = max(first, blank + 1)
    for row in _DELIMITER.finditer(tree.source, begin, min(at + len(tree.line(line)), begin + _LEAD)):
        if "|" in row[0] and "-" in row[0]:
            delimiter = bisect_right(starts, row.end()) - 1
            head = range(delimiter - 1, min(delimiter + 1, line))
            return head if own.start <= head.start and "|" in tree.line(head.start) else range(0)
    return range(0)


def _html_head(source: str, begin: int, end: int) -> tuple[int, int]:
    """Return the range of the head of a table in HTML, or of its first row of headings; empty without one."""
    head = source.find("<thead", begin, end)
    stop = source.find("</thead>", head, end) if head >= 0 else -1
    if stop < 0:
        cell = source.find("<th", begin, end)
        head = source.rfind("<tr", begin, cell) if cell >= 0 else -1
        stop = source.find("</tr>", cell, end) if head >= 0 else -1
    return (head, stop) if stop >= 0 else (end, begin)
