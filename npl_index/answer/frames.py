"""The frame of some lines: the lines above and below that keep their meaning.

These are the opening and closing lines of every pair around them (fence, container, element, shortcode,
comment), the head of a table, the first line of an item, of an admonition or of an alert, the term of a
definition. The frame depends only on the lines, so that their selector gives the same text again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass

from npl_index.answer.cleaning import LAYOUT
from npl_index.markdown.sections import SectionTree, Span

MAX_LINES_BACK = 2_000
"""Maximum lines to search backwards for the start of a block."""

MAX_OPENING = 240
"""Maximum characters of an opening line that is shown above later lines, except that of a fence."""

TITLED = r"(?:!!!|\?\?\?\+?|===)[ \t]"
"""The start of an admonition or a tab."""

MARKER = r"(?:[-+*:~]|[0-9]{1,9}[.)]|\[\^[^\]\n]+\]:)"
_MARK = re.compile(  # a pattern that begins with a set of characters is several times as fast
    rf"[\n<{{*-](?:(?<=\n)(?P<margin>(?:[ \t>]|{MARKER}(?=[ \t]))*)(?:"
    r"(?P<run>`{3,}(?=[^`\n]*$)|~{3,}|:{3,})(?P<info>.*)$"
    r"|(?P<opening><[A-Za-z][\w.:-]*(?=[\s/>])|(?:\{\{[<%]|\{%-?(?![ \t]*end))[ \t]*[\w-]+(?![\w-])"
    r"(?=(?:[^<>{}\n]|\{(?!%|\{[<%])|\n(?!\n))*[>}]))"  # many that no sign closes would take quadratic time
    r"(?:[^<>\n]|\n(?!\n))*?(?P<is_empty>/)?[>}]"
    r"|(?P<comment><!--|\{/\*))"
    r"|(?P<closing>(?:(?<=<)/|(?<=\{)(?:\{[<%][ \t]*/[ \t]*|%-?[ \t]*(?:/[ \t]*|end)))[\w.:-]+(?![\w.:-]))"
    r"[^<>\n}]*[>}]\}{0,2}"
    r"|(?P<commented>(?<=-)->|(?<=\*)/\}))",
    re.MULTILINE,
)
_LABEL = "<summary"
"""The key of an element that labels the rest of the element around it."""

_COMMENTS = {"<!--": "-->", "{/*": "*/}"}
_MAX_DEPTH = 100
"""Maximum open pairs: an opening mark without a closing one may be a placeholder."""

_MARGIN = re.compile(rf"((?:[ \t]*>)*)([ \t]*)(?:({MARKER}[ \t]+)|{TITLED})?")
"""Quote markers, indentation, and the marker of an item or the start of an admonition."""

_ALERT = re.compile(r"[ \t>]*>[ \t]*(?:\[![\w-]+\]|(\*\*|__)[^*_\n]+\1[ \t]*$)")
"""The first line of a quote that says what the quote is."""

DELIMITER = re.compile(r"^[ \t>:|-]+$", re.MULTILINE)
"""The line below the head of a table."""

_LEAD = 1_000
"""Maximum characters between a blank line and the head of a table; the usual number is 0."""

_LEADS_IN = re.compile(rf"[ \t>]*(?:{TITLED}|:{{3,}}[ \t]*\w|(\*\*|__)[^*_]+\1\Z)")
_LEADING = (":", "：", "{", "[", "(")
_CLOSERS = "*_`\"'”’)] "
MAY_LEAD_IN = re.compile(
    rf"[:：{{\[(*_!?=](?:(?<=[:：{{\[(])(?:[^\S\n ]|[{re.escape(_CLOSERS)}])*$|(?<=[*_])[*_][^\S\n]*$"
    r"|(?<=!)!!|(?<=\?)\?\?|(?<==)==|(?<=:)::)",
    re.MULTILINE,
)
"""A place in the last line of a block for which :func:`leads_in` is true, and in a few others."""

_NOT_QUOTE = re.compile(r"[^\s>]")
_TAB = 4
"""Columns of a tab, and of the indentation of code outside items and admonitions."""


@dataclass(frozen=True, slots=True)
class Stretch(Span):
    """A range of characters within lines: sentences of a long line.

    :param begin: offset in the source.
    :param end: offset after the last character.
    """

    begin: int
    end: int


@dataclass(slots=True, eq=False)
class Pair:
    """A block between two marks.

    :param key: what its closing mark must have; a fence's or container's own mark.
    :param opening: lines of its opening mark.
    :param margin: indentation and quote markers of that line.
    :param outer: the pair around it, if any.
    :ivar stop: line of its closing mark; -1 without one.
    :ivar end: the closing mark, without the margin.
    """

    key: str
    opening: Span
    margin: str
    outer: Pair | None
    stop: int = -1
    end: str = ""

    @property
    def is_code(self) -> bool:
        """Whether it is a fence of code."""
        return self.key[0] in "`~"


def framed(tree: SectionTree, own: Span, lines: Span, pairs: Pairs) -> str:
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
    around = pairs.around(first)
    head = table_head(tree, own, first)
    block = min((first, *head, *(pair.opening.start for pair in around if pair.is_code)))
    labels = (*_holders(tree, own, block), *_alert(tree, own, first))
    above = {line for line in labels if len(tree.line(line)) <= MAX_OPENING}
    above.update(head, *(range(pair.opening.start, min(pair.opening.stop, first)) for pair in around))
    shown = "".join(f"{tree.line(line)}\n" for line in sorted(above))
    shown += "".join(f"{pair.margin}…\n" for pair in pairs.cut_at(first, inside))
    if inside and block == first:
        text = _matched(tree.line(first))[0] + text
    ends = isinstance(lines, Stretch) and lines.end < tree.line_starts[lines.stop]
    below = [f"{pair.margin}…\n" for pair in pairs.cut_at(lines.stop, ends, is_end=True)]
    below += [f"{pair.margin}{pair.end}\n" for pair in reversed(pairs.around(lines.stop)) if pair.end]
    if lines.stop < own.stop and leads_in(text, 0, len(text)):
        below.insert(0, "…\n")
    return f"{shown}{text}{''.join(below)}" if text else ""


def leads_in(source: str, begin: int, end: int) -> bool:
    """Return whether a block's last line introduces the next block."""
    line = source[max(begin, end - MAX_OPENING) : end].rstrip().rpartition("\n")[2]
    return line.rstrip(_CLOSERS).endswith(_LEADING) or bool(_LEADS_IN.match(line))


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


def _alert(tree: SectionTree, own: Span, line: int) -> list[int]:
    """Return the first line of the quote around a line, if it says what the quote is."""
    first, last = line, max(own.start, line - MAX_LINES_BACK)
    while first > last and tree.line(first - 1).lstrip().startswith(">"):
        first -= 1
    is_quoted = first < line and tree.line(line).lstrip().startswith(">")
    return [first] if is_quoted and _ALERT.match(tree.line(first)) else []


def _defines(margin: re.Match[str]) -> bool:
    return (margin[3] or "-")[0] in ":~"


def _width(margin: re.Match[str]) -> int:
    """Return the columns of a line's indentation; a definition counts as indented below its term."""
    return len(margin[2].expandtabs(_TAB)) + _defines(margin)


class Pairs:
    """The paired marks of a section's own text, read in linear time."""

    def __init__(self, tree: SectionTree, own: Span) -> None:
        self._tree, self._own = tree, own
        self._pairs, self._stack = list[Pair](), list[Pair]()
        self._depths: dict[str, list[int]] = defaultdict(list)  # of the open pairs, by key
        begin, end = tree.line_starts[own.start], tree.line_starts[own.stop]
        self._before = begin - 1
        for mark in _MARK.finditer(f"\n{tree.source[begin:end]}"):
            self._read(mark, self._stack[-1] if self._stack else None)
        for pair in self._stack:
            if pair.end:
                pair.stop = own.stop
        self.fences = [
            pair for pair in self._pairs if pair.is_code and not (pair.outer and pair.outer.is_code)
        ]

    def around(self, line: int) -> list[Pair]:
        """Return the pairs around a line, outermost first; their closing lines are inside."""
        at, around = bisect_left(self._pairs, line, key=lambda pair: pair.opening.start), []
        pair = self._pairs[at - 1] if at else None
        while pair:
            if line <= pair.stop:
                around.append(pair)
            pair = pair.outer
        return around[::-1]

    def cut_at(self, line: int, is_within: bool, *, is_end: bool = False) -> list[Pair]:
        """Return the fence of code that a cut before a line divides, if any.

        :param is_within: whether the cut is within a line.
        :param is_end: whether the text before the line is shown, not the text after it.
        """
        *_, last = [None, *self.around(line)]
        if last is None or not last.is_code:
            return []
        shown = self._tree.line(line).strip(" \t>") if line < self._own.stop else ""
        is_whole = shown.startswith(last.end) if is_end else line == last.opening.stop
        return [] if is_whole and not is_within else [last]

    def _read(self, mark: re.Match[str], inner: Pair | None) -> None:
        if inner and inner.is_code:
            if mark["run"] and mark["run"].startswith(inner.end):
                if not mark["info"].strip():
                    self._close(inner.key, mark)
                elif self._tree.dialect == "npl":
                    self._open(mark["run"], mark, mark["run"])
        elif inner and inner.key in _COMMENTS:
            if mark[0] == _COMMENTS[inner.key]:
                self._close(inner.key, mark)
        elif mark["run"]:
            self._read_run(mark, mark["run"])
        elif mark["closing"]:
            self._close(_key(mark[0][0] + mark["closing"]), mark)
        elif mark["comment"]:
            self._open(mark["comment"], mark)
        elif mark["opening"] and not mark["is_empty"] and len(self._stack) < _MAX_DEPTH:
            key = _key(mark["opening"])
            if key[1:].lower() not in LAYOUT:
                self._open(key, mark)

    def _read_run(self, mark: re.Match[str], run: str) -> None:
        if run[0] == ":":
            if mark["info"].strip():
                self._open(":", mark, run)
            else:
                self._close(":", mark)
            return
        margin = mark["margin"].expandtabs(_TAB)
        is_indented = len(margin) >= _TAB and margin.isspace()
        if not is_indented or _holders(self._tree, self._own, self._line(mark.start("margin"))):
            self._open(run, mark, run)

    def _open(self, key: str, mark: re.Match[str], end: str = "") -> None:
        opening = Span(self._line(mark.end("margin")), self._line(mark.end() - 1) + 1)
        if opening.stop - opening.start > 1 and mark.end() - mark.start("margin") > MAX_OPENING:
            return
        margin = _NOT_QUOTE.sub(" ", mark["margin"])
        self._depths[key].append(len(self._stack))
        self._stack.append(Pair(key, opening, margin, self._stack[-1] if self._stack else None, end=end))
        self._pairs.append(self._stack[-1])

    def _close(self, key: str, mark: re.Match[str]) -> None:
        depths, stack = self._depths[key], self._stack
        while depths and (depths[-1] >= len(stack) or stack[depths[-1]].key != key):
            depths.pop()
        if key == _LABEL or not depths or not (mark["run"] or ":").startswith(stack[depths[-1]].end or ":"):
            return
        closed, *inner = stack[depths[-1] :]
        del stack[depths.pop() :]
        closed.end = closed.end or mark[0].lstrip()
        for pair in (closed, *(pair for pair in inner if pair.end or pair.key == _LABEL)):
            pair.stop = self._line(mark.end() - 1)

    def _line(self, at: int) -> int:
        return bisect_right(self._tree.line_starts, self._before + at) - 1


def _key(mark: str) -> str:
    """Return the kind and the name of an opening or closing mark, which a pair has in common."""
    name = mark.lstrip("<{%-/ \t")
    return (
        f"{{%{name.removeprefix('end')}"
        if mark.startswith("{%")
        else f"{mark[:2] if mark[0] == '{' else '<'}{name}"
    )


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
    for row in DELIMITER.finditer(tree.source, begin, min(at + len(tree.line(line)), begin + _LEAD)):
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
