"""The blocks of a section: paragraphs, items, table rows, code. A piece is a run of blocks.

Blocks are found line by line, once for a section. A block that introduces the next one is joined to it.
A block with a term that does not fit is divided: code between lines, text between sentences, a long sentence
between words.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from npl_index.answer.frames import DELIMITER, MARKER, MAY_LEAD_IN, TITLED, Pairs, leads_in
from npl_index.markdown.sections import Section, SectionTree

_START = re.compile(
    rf"^(?:(?P<blank>(?:[ \t>]*\n)+)|[ \t>]*(?:(?P<definition>[:~][ \t])|{MARKER}[ \t]|{TITLED}|:::|<tr\b)"
    r"|(?P<row>[^\n|]*\|))",
    re.MULTILINE,
)
"""The end of blank lines, or a line that begins a block by its mark; any line with a bar may be a row."""

_END = (  # a pattern that begins with a set of characters is several times as fast
    r"[.!?…。！？](?:(?:(?<=\.)(?<!\b\w\.)(?<!\b[0-9]{2}\.)(?<!\b[0-9]{3}\.)"
    r"(?<!\b(?:vs|cf|ca|Dr|Mr|St|No)\.)(?<!\b(?:Mrs|Fig)\.)|(?<=[^\s!?…][!?…])[!?…]*)"
    r"[\"'”’»)\]*_`]*%s(?![a-zß-ÿа-яα-ω])|(?<=[。！？])[”’」』）]*%s)"
)
_LINE = re.compile(r"\n")
_BREAKS = {
    False: (re.compile(_END % (r"[ \t]*\n", r"[ \t]*\n")), re.compile(_END % (r"\s+", r"\s*")), _LINE),
    True: (re.compile(r"\n[ \t>]*\n"), _LINE, _LINE),
}
"""Places of cuts in text and in code, better ones first."""

_GAP = re.compile(r"(?<!:)[\s,;。，、]+")
_GAPS = 16
"""Approximate number of possible cuts between words in a piece."""


class Blocks:
    """The blocks of a section's own text.

    :param pairs: its paired marks.
    :ivar body: offset of the first line below the heading that is not blank.
    :ivar starts: offsets of the starts of blocks, in order; the first block begins with the heading.
    """

    def __init__(self, tree: SectionTree, section: Section, pairs: Pairs) -> None:
        self._source, offsets, own = tree.source, tree.line_starts, section.own
        self._fences = [
            (offsets[pair.opening.start], offsets[pair.opening.stop], offsets[min(pair.stop, own.stop)])
            for pair in pairs.fences
        ]
        begin, end = offsets[max(own.start, section.heading_lines.stop)], offsets[own.stop]
        text = re.compile(r"\s*").match(self._source, begin, end)
        self.body = text.end() if text else begin
        found = dict(self._found(begin, end))
        self.starts = starts = [offsets[own.start], *(at for at in found if self.body < at < end)]
        # Few blocks can introduce the next one, and one expression finds them.
        marks = MAY_LEAD_IN.finditer(self._source, starts[0], starts[-1])
        blocks = {bisect_right(starts, mark.start()) for mark in marks}
        joined = {starts[block] for block in blocks if leads_in(self._source, *starts[block - 1 : block + 1])}
        cuts = [at for at in starts[1:] if at not in joined]
        self._firm, self._joints = ([at for at in cuts if found[at] is joint] for joint in (False, True))

    def _found(self, begin: int, end: int) -> Iterator[tuple[int, bool]]:
        """Yield the starts of blocks, and whether each is joined to the block before it."""
        for opening, _, closing in (*self._fences, (end, end, end)):
            for mark in _START.finditer(self._source, begin, opening):
                kind = mark.lastgroup
                if kind == "blank":
                    yield mark.end(), False
                elif kind != "row" or not DELIMITER.match(self._source, mark.start()):
                    yield mark.start(), kind == "definition"
            yield opening, bool(self._source[begin:opening].strip())
            begin = self._source.find("\n", closing, end) + 1 or end
            yield begin, False

    def bounds(self, begin: int, end: int, seeds: Sequence[int], width: int) -> list[int]:
        """Return the possible cuts in a range of the text, with its ends.

        :param seeds: offsets in order; a block with one of them that is longer than a piece is divided.
        :param width: maximum characters of a piece.
        """
        firm = [begin, *self._firm[bisect_right(self._firm, begin) : bisect_left(self._firm, end)], end]
        blocks = dict.fromkeys(bisect_right(firm, at) for at in seeds if begin <= at < end)
        large = (block for block in blocks if firm[block] - firm[block - 1] > width)
        inner = (self._divisions(firm[block - 1], firm[block], seeds, width) for block in large)
        return sorted({*firm, *(at for cuts in inner for at in cuts)})

    def _divisions(
        self, begin: int, end: int, seeds: Sequence[int], width: int, step: int = 0
    ) -> Iterator[int]:
        """Yield the cuts within a range that does not fit, finer ones around the seeds."""
        seeds = seeds[bisect_left(seeds, begin) : bisect_left(seeds, end)]
        if not seeds or step > len(_BREAKS[True]) + 1:
            return
        cuts = [
            at
            for low, high in _around(seeds, width)
            for at in self._cuts(max(begin, low), min(end, high), step, width)
        ]
        yield from cuts
        for first, last in pairwise([begin, *cuts, end]):
            if last - first > width:
                yield from self._divisions(first, last, seeds, width, step + 1)

    def _cuts(self, begin: int, end: int, step: int, width: int) -> Iterator[int]:
        """Yield the cuts of one step within a range: before code, then finer ones, then between words."""
        if not step:
            yield from self._joints[bisect_right(self._joints, begin) : bisect_left(self._joints, end)]
            return
        source = self._source
        for first, last, is_code in self._stretches(begin, end):
            if step > len(_BREAKS[is_code]):
                places = range(first, last, width // _GAPS + 1)
                gaps = ((at, _GAP.search(source, at, min(at + width, last))) for at in places)
                cuts = sorted({gap.end() if gap else at for at, gap in gaps})
            else:
                ends = _BREAKS[is_code][step - 1].finditer(source, max(first, begin - 1), last)
                cuts = [end.start() + end[0].rfind("\n") + 1 if "\n" in end[0] else end.end() for end in ends]
                cuts = [at for at in cuts if at < last and not leads_in(source, first, at)]
            yield from (at for at in cuts if max(first, self.body) < at < last)

    def _stretches(self, begin: int, end: int) -> Iterator[tuple[int, int, bool]]:
        """Yield the text and the code in a range in turn, without the lines that open fences."""
        number = max(0, bisect_left(self._fences, (begin,)) - 1)
        for opening, first, last in self._fences[number : bisect_left(self._fences, (end,))]:
            if begin < last and opening < end:
                first, last = max(begin, first), min(last, end)
                yield begin, opening, False
                yield first, last, True
                begin = last
        yield begin, end, False


def _around(seeds: Sequence[int], width: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of text with all that lies within a width of a seed."""
    far = [number for number, (at, after) in enumerate(pairwise(seeds), 1) if after - at > 2 * width]
    for first, last in pairwise([0, *far, len(seeds)]):
        yield seeds[first] - width, seeds[last - 1] + width
