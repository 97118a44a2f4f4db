"""The block parser's state over one document."""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterator
from itertools import accumulate, islice, repeat
from operator import sub
from typing import Any, Literal

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from npl_index.deadline import Deadline
from npl_index.errors import DocumentTooLargeError
from npl_index.markdown.traits import TRAIT_OF_BLOCK

MAX_SECTIONS = 20_000
"""Maximum sections of a document, itself included."""

MAX_LINES = 2_000_000
"""Maximum lines of a document; each takes up to 30 bytes during parsing."""

MAX_BLOCKS = 200_000
"""Maximum indexed blocks of a document; each takes about 400 bytes during parsing."""

_MANY_LINES = 200_000  # above, arrays: a fifth of the memory of lists, but slower
_CHUNK = 16_384
_RECORDED = frozenset(("heading_open", "fence", "hr", "npl_header", *TRAIT_OF_BLOCK))
_CELLS = frozenset(("inline", "th_open", "td_open"))
_CODE = frozenset(("fence", "code_block"))
_INDENT = re.compile(r"[ \t]+")


_LIMITS = {"lines": MAX_LINES, "sections": MAX_SECTIONS, "headings, fences, tables and breaks": MAX_BLOCKS}


def check_count(name: str, number: int, parts: str) -> None:
    """Refuse a document with too many parts of a kind.

    :raises DocumentTooLargeError: it has more than the maximum.
    """
    if number > _LIMITS[parts]:
        problem = f"{name} has more than {_LIMITS[parts]} {parts}"
        raise DocumentTooLargeError(problem, hint="split it into smaller documents")


def find_lines(source: str, newline: str = "\n") -> array[int]:
    r"""Return the offset of each line's first character, and ``len(source)`` at the end.

    :param source: text whose last line is not followed by another one.
    :param newline: how lines end; ``""`` for ``\n``, ``\r`` or ``\r\n``.
    """
    return in_turns(accumulate(map(len, io.StringIO(source, newline=newline)), initial=0))


def in_turns(numbers: Iterator[int]) -> array[int]:
    """Return numbers as an array, built in pieces: building a piece blocks other threads."""
    made = array("i")
    while piece := array("i", islice(numbers, _CHUNK)):
        made.extend(piece)
    return made


class BlockState(StateBlock):
    r"""markdown-it's state, over known lines, with a deadline.

    ``tokens`` receives one token for each block that an index needs, in document order: headings (those
    outside containers with their source text in ``content``), fences, indented code, tables, thematic
    breaks, openings of definition lists, and ``npl_header``. Each has ``map`` (half-open lines) and
    ``level`` (number of enclosing containers).

    :param source: text with ``\n`` line ends.
    :param starts: result of :func:`find_lines`.
    :param md: the parser with the block rules.
    :param npl: apply NPL's rules for fences, see :func:`npl_index.markdown.leaves.fence`.
    :param complete: also record all other blocks, openings of containers, and table rows.
    :param deadline: time limit of the parsing.
    :ivar npl_fences: whether CommonMark would parse a fence differently.
    :ivar cut_fence: whether a fence after the marker of a list or definition ended, unclosed, with the item.
    :ivar doubtful_fences: first lines of fences without a proper end.
    :ivar open_fence: whether the document ended inside a fence.
    :ivar open_html: first line of an HTML block, such as a comment, at the end of the document, and the
        pattern of its end.
    :ivar definition: first line of the current link definition.
    :ivar foreign_terms: lines before a definition that begin another block, if known.
    """

    _bs_count: list[int]

    def __init__(
        self, source: str, starts: array[int], md: MarkdownIt, npl: bool, complete: bool, deadline: Deadline
    ) -> None:
        self._deadline, self.check = deadline, deadline.check
        self._unrecorded = Token("", "", 0)
        super().__init__("", md, {}, [])
        self.src, self.npl, self.complete = source, npl, complete
        self._headings = self.definition = 0
        self.npl_fences = self.cut_fence = self.open_fence = False
        self.doubtful_fences: list[int] = []
        self.open_html: tuple[int, str] | None = None
        self.foreign_terms: list[int] | None = None
        self._mark_lines(starts)

    def _mark_lines(self, line_starts: array[int]) -> None:
        """Fill markdown-it's five tables: where lines begin and end, and how far they are indented."""
        source, count = self.src, len(line_starts) - 1
        ends: Any = in_turns(map(sub, islice(line_starts, 1, None), repeat(1)))
        if count and source[-1] != "\n":
            ends[-1] += 1
            if not source[line_starts[-2] :].strip(" \t"):
                count -= 1  # markdown-it sees no line there
        begins: Any = line_starts[:count]
        ends = ends[:count]
        zeros: Any = array("i", bytes(4 * count))
        if count < _MANY_LINES:
            begins, ends, zeros = begins.tolist(), ends.tolist(), zeros.tolist()
        shifts, indents = zeros[:], zeros[:]
        for first in range(0, count, _CHUNK):
            self.check()
            for line, start in enumerate(begins[first : first + _CHUNK], first):
                if source[start] in " \t":
                    indent = _INDENT.match(source, start)[0]  # type: ignore[index]
                    shifts[line] = len(indent)
                    indents[line] = len(indent.expandtabs(4))
        tables = (begins, ends, shifts, indents, zeros)
        for table, last in zip(tables, (len(source), len(source), 0, 0, 0), strict=True):
            table.append(last)  # the line after the last, which rules may look up
        self.bMarks, self.eMarks, self.tShift, self.sCount, self._bs_count = tables
        self.lineMax = count

    @property
    def bsCount(self) -> list[int]:  # noqa: N802
        """Columns of a tab that belong to the block quote's marker before it, for each line.

        The block quote rule reads it for each line; only here can a deadline end that loop.
        """
        self.check()
        return self._bs_count

    @bsCount.setter
    def bsCount(self, value: list[int]) -> None:  # noqa: N802
        self._bs_count = value

    def lines_without_code(self) -> list[str]:
        """Return the lines of the text; those of fences and indented code are empty."""
        lines = self.src.split("\n")
        for token in self.tokens:
            if token.type in _CODE and token.map:
                place = slice(*token.map)
                lines[place] = [""] * len(lines[place])
        return lines

    def isEmpty(self, line: int) -> bool:  # noqa: N802
        """Return whether a line is blank; rules call this for each possible line of a block."""
        if not line & 255:
            self.check()
        return self.bMarks[line] + self.tShift[line] >= self.eMarks[line]

    def is_text(self, line: int) -> bool:
        """Return whether a line of this container is neither blank nor indented as code."""
        return 0 <= self.sCount[line] - self.blkIndent < 4 and not self.isEmpty(line)

    def is_code_block(self, line: int) -> bool:
        """Return whether a line is indented as code."""
        return self.sCount[line] - self.blkIndent >= 4

    def getLines(self, begin: int, end: int, indent: int, keepLastLF: bool) -> str:  # noqa: ARG002, N802, N803
        """Return the text of lines unchanged; only headings outside containers need it."""
        return self.src[self.bMarks[begin] : self.eMarks[end - 1]]

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        """Record a block, and keep the level.

        Other blocks share one token, because the rules write into it.

        :raises DocumentTooLargeError: the document has too many blocks.
        """
        self.check()
        if nesting < 0:
            self.level -= 1
        level = self.level
        if nesting > 0:
            self.level += 1
        if ttype == "heading_close" and not level:
            # The rule has written the heading's text into the shared token.
            self.tokens[-1].content = self._unrecorded.content
            self._headings += 1
            check_count(self._deadline.name, self._headings + 1, "sections")
        if ttype not in _RECORDED and (nesting < 0 or not self.complete or ttype in _CELLS):
            return self._unrecorded
        token = Token(ttype, tag, nesting, level=level)
        self.tokens.append(token)
        if not self.complete:
            check_count(self._deadline.name, len(self.tokens), "headings, fences, tables and breaks")
        return token

    def leaf(self, kind: str, start: int, stop: int) -> Token:
        """Record a block without inner blocks, and continue after it."""
        token = self.push(kind, "", 0)
        token.map = [start, stop]
        self.line = stop
        return token
