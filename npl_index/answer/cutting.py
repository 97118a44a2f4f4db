"""Cutting a section that does not fit to the run of its blocks around the question's terms.

A window is such a piece inside the next larger one, so the text for a smaller budget is a part of the text
for a larger one. The window of :data:`PIECE` tokens is the best one of its length. Smaller windows are cut
from it; larger ones contain it.

A block with a term that does not fit is cut as well: code between lines, text between sentences, a long
sentence between words. Text out of reach is neither parsed nor counted, and each block within reach is
counted once. So the time of a cut depends on the piece, not on the section.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import log, log2
from typing import NamedTuple

from npl_index.answer.document_set import DocumentSet, SectionPart, Size
from npl_index.answer.finding import Occurrence, best_start, find_all, safe_start
from npl_index.answer.frames import Stretch, leads_in, table_head
from npl_index.markdown.blocks import read_blocks
from npl_index.markdown.sections import SectionTree, Span

PIECE = 300
"""Tokens of a piece in an answer to a question."""

WHOLE = 600
"""Maximum tokens of a section that is not cut if there is room."""

_STEPS = 3
_SMALLEST = -10
_FACTOR = (WHOLE / PIECE) ** (1 / _STEPS)

_MAX_LENGTHS = 4
"""Maximum length of a counted block, in lengths of the text in reach; a longer one does not fit."""

_MARGIN = 256
"""Characters in reach in addition to the average piece, so that even a small room reaches the end of a block.
"""

_MAX_TRIES = 6
"""Maximum runs to count: with its frame, a run may cost more than the sum of its blocks."""

_WINDOWS = 16
"""Approximate number of possible cuts between words in the text in reach."""

_ENDLESS = 1 << 40
"""Assumed tokens of an uncounted block."""

DEFINING = 2.0
"""Weight of a term where it begins a block, compared with its weight elsewhere."""

_BEGINS = re.compile(
    r"[ \t>]*((?:[-+*:~|]|[0-9]{1,9}[.)])[ \t]*)?(?:\[[ x]\][ \t]+)?(?:<[^<>\n]*>|[*_`\"'“(\[-])*",
    re.IGNORECASE,
)
_GAP = re.compile(r"(?<!:)[\s,;。，、]+")

_ASIDE = re.compile(r"[ \t>]*(?:\[(?!\^)[^\]\n]+\]:|\{\{[<%].*[>%]\}\}\s*\Z|\{%.*%\}\s*\Z)")
_BLANK = re.compile(r"\s*\Z")
_HOLDER = re.compile(r"^([ \t]*)(?:!!!|\?\?\?\+?|===|\[\^[^\]\n]+\]:)[ \t]+(?=\S)", re.MULTILINE)
"""The first line of an admonition, tab or footnote, which is parsed as an item."""

_CODE = frozenset({"fence", "code_block", "html_block"})
_END = (
    r"(?:(?:(?<!\b\w)(?<!\b[0-9]{2})(?<!\b[0-9]{3})(?<!\b(?:vs|cf|ca|Dr|Mr|St|No))(?<!\b(?:Mrs|Fig))\."
    r"|(?<=[^\s!?…])[!?…]+)[\"'”’»)\]*_`]*%s(?![a-zß-ÿа-яα-ω])|[。！？][”’」』）]*%s)"
)
_BREAKS = {
    False: (re.compile(_END % (r"[ \t]*\n", r"[ \t]*\n")), re.compile(_END % (r"\s+", r"\s*"))),
    True: (re.compile(r"\n[ \t>]*\n|\n(?=[ \t]*<tr\b)"), re.compile(r"\n")),
}
"""Places of cuts in text and in code, better ones first."""


_Fits = Callable[[int, int], bool]
"""Returns whether the text between two offsets fits."""


class _Bounds(NamedTuple):
    """Possible places of a cut.

    :param at: offsets in the source, in order, with the start of the first block and the end of the last.
    :param glued: offsets between blocks that belong together.
    :param code: start and end of each range of code lines, without the fence markers.
    :param is_open: whether the last block continues out of reach.
    """

    at: Sequence[int]
    glued: frozenset[int]
    code: Sequence[tuple[int, int]]
    is_open: bool


class _Blocks(NamedTuple):
    """Consecutive blocks of a part.

    :param bounds: offsets of possible cuts, with the start of the first block and the end of the last one.
    :param tokens: tokens of the text before each bound.
    :param worth: worth of the terms before each bound.
    :param matches: occurrences of terms in each block.
    """

    bounds: Sequence[int]
    tokens: Sequence[int]
    worth: Sequence[float]
    matches: Sequence[Sequence[Occurrence]]


def cut(
    documents: DocumentSet,
    part: SectionPart,
    room: int,
    *,
    or_beginning: bool = True,
    containing: Span | None = None,
) -> SectionPart | None:
    """Cut a part to the run of blocks with the most terms of the question, within ``room`` tokens.

    Terms of the heading do not count, because the heading is above every run. Without a term, the start of
    the part is kept. A piece of a line has the selector of the line, because selectors count whole lines.

    :param or_beginning: keep the start of the part even if its terms do not fit.
    :param containing: lines that the piece contains.
    :returns: the piece; ``None`` if nothing fits.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    cutter = _Cutter(documents, part, containing)
    matches = cutter.matches()
    piece = cutter.piece(matches, room) if matches else None
    if piece is None and (or_beginning or not matches):
        piece = cutter.piece((), room)
    return piece


class _Cutter:
    """A part, and its possible pieces.

    :ivar above: tokens of the heading, which is above a run that does not begin with it.
    :ivar body: first line of the part after the section's heading.
    :ivar begin: offset of the part in the source.
    :ivar end: offset after it.
    :ivar contained: offsets of the text that a piece contains, if any.
    """

    def __init__(self, documents: DocumentSet, part: SectionPart, containing: Span | None) -> None:
        self._documents, self._part, self._tree = documents, part, part.tree
        self._heading = self._tree.sections[part.section].heading_lines
        self.above = documents.heading(part.place)[1]
        self.body = max(part.lines.start, self._heading.stop)
        self.begin, self.end = _offsets(self._tree, part.lines)
        self.contained = None if containing is None else _offsets(self._tree, containing)

    def matches(self) -> list[Occurrence]:
        """Return the occurrences of the wanted terms, without those in the section's heading."""

        def find() -> list[Occurrence]:
            heading = find_all(documents, document, starts[self._heading.start], starts[self._heading.stop])
            above = {match.term for match in heading}
            below = find_all(documents, document, begin, end)
            matches = [match for match in below if match.term not in above and not self._is_aside(match.at)]
            return sorted((*matches, *self._definitions(matches)))

        documents, document, starts = self._documents, self._part.document, self._tree.line_starts
        begin, end = max(starts[self.body], self.begin), self.end
        return documents.once(("matches", document, begin, end), find)

    def _is_aside(self, at: int) -> bool:
        """Return whether an offset is in a link definition or a shortcode, which no reader sees as text."""
        return _ASIDE.match(self._tree.line(bisect_right(self._tree.line_starts, at) - 1)) is not None

    def _definitions(self, matches: Sequence[Occurrence]) -> Iterator[Occurrence]:
        """Yield occurrences that begin a bullet, row, definition or paragraph as those of further terms.

        A block that begins with a name says what it is; others mention it.
        """
        tree, starts, terms = self._tree, self._tree.line_starts, len(self._documents.wanted)
        pairs = self._documents.pairs(self._part.place)
        defining: dict[int, list[Occurrence]] = {}
        for match in matches:
            line = bisect_right(starts, match.at) - 1
            begins = _BEGINS.fullmatch(tree.source, starts[line], match.at)
            is_first = begins and (begins[1] or line == self.body or not tree.line(line - 1).strip())
            if is_first and not any(pair.is_code for pair in pairs.around(line)):
                defining.setdefault(match.term, []).append(match)
        for same in defining.values():
            for match in same:
                yield Occurrence(match.at, terms + match.term, DEFINING * match.worth / log2(1 + len(same)))

    def piece(self, matches: Sequence[Occurrence], room: int) -> SectionPart | None:
        """Cut the part like :func:`cut`.

        :param matches: occurrences of which a run must contain one; if empty, the start of the part is kept.
        """
        documents, part, tree = self._documents, self._part, self._tree
        reach = self._reach(matches, room)
        bounds = documents.once(
            ("bounds", part.document, part.section, part.lines, reach), lambda: self._bounds(reach)
        )
        at_start = bounds.at[0] == self.begin
        left = room
        for _ in range(_MAX_TRIES):
            blocks = self._blocks(matches, reach, bounds, left)
            run = self._best_run(blocks, left, at_start)
            if run is None:
                break
            begin, end = (blocks.bounds[bound] for bound in run)
            last = blocks.bounds[run[1] - 1]
            if not blocks.matches[run[1] - 1] and leads_in(tree.source, last, end):
                if last == begin or (self.contained and last < self.contained[1]):
                    break
                end = last
            piece = part.narrowed(_range_of(tree, begin, end))
            if (spent := documents.counter.upper_bound(max(piece.size))) <= room:
                return piece
            tokens = documents.counter.upper_bound(blocks.tokens[run[1]] - blocks.tokens[run[0]] + self.above)
            left = min(left - 1, tokens * room // spent)
        return None

    def _reach(self, matches: Sequence[Occurrence], room: int) -> Stretch:
        """Return the lines to parse for a cut, and the range of the piece."""
        part, tree, starts = self._part, self._tree, self._tree.line_starts
        begin, end = self.begin, self.end
        # A quarter more than fits on average.
        width = room * (end - begin) * 5 // (4 * max(1, part.size.last)) + _MARGIN
        at = best_start(matches, width, begin, end)
        if self.contained:
            at = max(begin, min(at, self.contained[0]), self.contained[1] - width)
        own, pairs = tree.sections[part.section].own, self._documents.pairs(part.place)
        line = safe_start(tree, own, bisect_right(starts, at) - 1, pairs)
        reached = at + width + _MARGIN
        stop = bisect_left(starts, reached)
        return Stretch(line, min(part.lines.stop, max(stop, line + 1)), at, reached)

    def _bounds(self, reach: Stretch) -> _Bounds:
        """Return the possible cuts between blocks.

        Blocks are those of the text and of its lists, quotes and tables, down to list items and table rows.
        No cut is directly after the heading.
        """
        part, tree, starts, first = self._part, self._tree, self._tree.line_starts, self.body
        while first < reach.start and not tree.line(first).strip():
            first += 1
        start = part.lines.start if reach.start <= first else reach.start
        base = min(start, reach.start)
        source = _HOLDER.sub(r"\1-   ", tree.source[starts[base] : starts[reach.stop]])
        ends: set[int] = set()
        glued: set[int] = set()
        code: list[tuple[int, int]] = []
        introduced, clock = 0, self._documents.clock
        own = tree.sections[part.section].own
        is_row = "|" in tree.line(base) and base > own.start and bool(table_head(tree, own, base))
        tokens = read_blocks(source, npl=tree.dialect == "npl", complete=True, deadline=clock).tokens
        for token, lines in ((token, token.map) for token in tokens if token.map):
            begin, end = base + lines[0], base + lines[1]
            if is_row and not ends:  # the head of the table is out of reach
                ends.update(range(base + 1, end))
            ends.add(end)
            if token.type in _CODE:
                is_fence = token.type == "fence"
                is_ended = is_fence and not end == reach.stop < part.lines.stop
                code.append((starts[begin + is_fence], starts[end - is_ended]))
                glued.add(introduced)
            introduced = end if token.type == "paragraph_open" else 0
        at = [start, *sorted(end for end in ends if max(first, start) < end < reach.stop), reach.stop]
        joints = frozenset(starts[line] for line in glued)
        offsets = sorted({min(max(starts[line], self.begin), self.end) for line in at})
        return _Bounds(offsets, joints, code, reach.stop < part.lines.stop)

    def _blocks(self, matches: Sequence[Occurrence], reach: Stretch, bounds: _Bounds, room: int) -> _Blocks:
        """Measure the blocks, cut those with a term that do not fit, and join blocks that belong together."""
        longest = _MAX_LENGTHS * (reach.end - reach.begin)

        def tokens(begin: int, end: int) -> int:
            return self._tokens(begin, end) if end - begin <= longest else _ENDLESS

        def fits(tokens: int) -> bool:
            return self._documents.counter.upper_bound(self.above + tokens) <= room

        at = self._division(matches, reach, bounds, lambda begin, end: fits(tokens(begin, end)))
        counts = [tokens(begin, end) for begin, end in pairwise(at)]
        if bounds.is_open:
            counts[-1] = _ENDLESS
        for number in range(len(counts) - 2, -1, -1):
            begin, end = at[number : number + 2]
            together = sum(counts[number : number + 2])
            if fits(together) and (end in bounds.glued or leads_in(self._tree.source, begin, end)):
                counts[number : number + 2] = [together]
                del at[number + 1]
        inside: list[list[Occurrence]] = [[] for _ in at]
        for match in matches:
            block = bisect_right(at, match.at)
            if 0 < block < len(at):
                inside[block - 1].append(match)
        worth = (sum(match.worth for match in block) for block in inside)
        return _Blocks(at, list(accumulate(counts, initial=0)), [0.0, *accumulate(worth)], inside)

    def _tokens(self, begin: int, end: int) -> int:
        documents, source = self._documents, self._tree.source
        return documents.once(
            ("tokens", self._part.document, begin, end),
            lambda: documents.counter.count(source[begin:end], documents.clock),
        )

    def _division(
        self, matches: Sequence[Occurrence], reach: Stretch, bounds: _Bounds, fits: _Fits
    ) -> list[int]:
        """Return the bounds of blocks, with finer ones in those that have a term and do not fit."""
        source, places = self._tree.source, [match.at for match in matches]
        at = list(bounds.at)
        for step in range(len(_BREAKS[True]) + 1):
            finer, is_led = [], False
            for begin, end in pairwise(at):
                finer.append(begin)
                has_term = is_led or bisect_left(places, begin) < bisect_left(places, end)
                is_led = has_term and leads_in(source, begin, end)
                goes_on = has_term and bounds.is_open and end == at[-1]
                is_wanted = has_term or (not matches and step < len(_BREAKS[True]))
                if is_wanted and (goes_on or not fits(begin, end)):
                    finer += _breaks(source, bounds, reach, begin, end, step)
            at = [*finer, at[-1]]
        return at

    def _best_run(self, blocks: _Blocks, room: int, at_start: bool) -> tuple[int, int] | None:
        """Return the bounds of the best run that fits.

        The best run has the highest worth of different terms, then of all occurrences. Of equal runs, one at
        the start of the part wins, else the middle one of the longest.
        """
        bounds, tokens, worth, matches = blocks
        upper_bound = self._documents.counter.upper_bound
        runs: list[tuple[int, int]] = []
        most, stop = (0.0, 0.0), 0
        inside: Counter[int] = Counter()
        terms = 0.0
        for start in range(len(bounds) - 1):
            lead = 0 if at_start and not start else self.above
            stop = max(start, stop)
            while stop + 1 < len(bounds) and upper_bound(lead + tokens[stop + 1] - tokens[start]) <= room:
                for match in matches[stop]:
                    terms += 0.0 if inside[match.term] else match.worth
                    inside[match.term] += 1
                stop += 1
            value = round(terms, 6), round(worth[stop] - worth[start], 6)
            first, last = self.contained or (bounds[start], bounds[stop])
            contains = bounds[start] <= first and last <= bounds[stop]
            if stop > start and contains and value >= most and (value[0] or self.contained or not start):
                if value > most:
                    most, runs = value, []
                runs.append((start, stop))
            for match in matches[start] if stop > start else ():
                inside[match.term] -= 1
                terms -= 0.0 if inside[match.term] else match.worth
        if not runs or not (self.contained or (most[0] if any(matches) else at_start)):
            return None
        if at_start and not runs[0][0]:
            return runs[0]
        longest = max(tokens[stop] - tokens[start] for start, stop in runs)
        runs = [(start, stop) for start, stop in runs if 4 * (tokens[stop] - tokens[start]) >= 3 * longest]
        return runs[len(runs) // 2]


def _offsets(tree: SectionTree, lines: Span) -> tuple[int, int]:
    """Return the offsets of lines in the source."""
    if isinstance(lines, Stretch):
        return lines.begin, lines.end
    return tree.line_starts[lines.start], tree.line_starts[lines.stop]


def _range_of(tree: SectionTree, begin: int, end: int) -> Span:
    """Return the lines of a range of the source, or the range if it has incomplete lines."""
    starts = tree.line_starts
    lines = Span(bisect_right(starts, begin) - 1, bisect_left(starts, end))
    is_whole = starts[lines.start] == begin and starts[lines.stop] == end
    return lines if is_whole else Stretch(lines.start, lines.stop, begin, end)


def _breaks(source: str, bounds: _Bounds, reach: Stretch, begin: int, end: int, step: int) -> list[int]:
    """Return the possible cuts within a block.

    :param step: 0 for the best places, 1 for other places, 2 for gaps between words.
    """
    lines = next((code for code in bounds.code if begin < code[1] and code[0] < end), None)
    first, last = lines or (begin, end)
    first, last = max(first, begin), min(last, end)
    begin, end = max(first, reach.begin), min(last, reach.end)
    if step < len(_BREAKS[True]):
        ends = _BREAKS[lines is not None][step].finditer(source, max(first, begin - 1), end)
        cuts = [gap.start() + gap[0].rfind("\n") + 1 if "\n" in gap[0] else gap.end() for gap in ends]
    else:
        size = (reach.end - reach.begin) // _WINDOWS
        gaps = ((at, _GAP.search(source, at, min(at + size, end))) for at in range(begin, end, size))
        cuts = [gap.end() if gap else at for at, gap in gaps]
    return [at for at in cuts if first < at < last]


def rest_of(part: SectionPart, piece: SectionPart) -> Iterator[SectionPart]:
    """Yield the parts before and after a piece, with tokens estimated by length.

    A line that is only partly in the piece belongs to one of them.
    """
    starts, lines = part.tree.line_starts, piece.lines
    begin, end = _offsets(part.tree, lines)
    first = lines.start + (begin > starts[lines.start])
    last = max(first, lines.stop - (end < starts[lines.stop]))
    spans = [Span(part.lines.start, first), Span(last, part.lines.stop)]
    sizes = [starts[span.stop] - starts[span.start] for span in spans]
    left = max(2, part.size.last - piece.size.last)
    for span, size in zip(spans, sizes, strict=True):
        if size and not _BLANK.match(part.tree.source, starts[span.start], starts[span.stop]):
            tokens = max(1, left * size // sum(sizes))
            yield part.narrowed(span, Size(tokens, tokens))


def windows(
    documents: DocumentSet, part: SectionPart, most: int, *, or_beginning: bool = False
) -> Iterator[SectionPart]:
    """Yield the windows of a part with at most a number of tokens, largest first.

    :param or_beginning: a window that is too small for the terms shows the beginning of a larger one.
    """
    largest = int(log(max(1, most) / PIECE) / log(_FACTOR) + 1e-9) if most >= PIECE else -1
    for level in range(largest, _SMALLEST - 1, -1):
        size = PIECE * _FACTOR**level
        if size <= most and (piece := _window(documents, part, level, or_beginning)) is not None:
            yield piece


def _window(documents: DocumentSet, part: SectionPart, level: int, or_beginning: bool) -> SectionPart | None:
    def work() -> SectionPart | None:
        inner = _window(documents, part, level - 1, or_beginning) if level > 0 else None
        outer = _window(documents, part, level + 1, or_beginning) if level < 0 else part
        if outer is None:
            return None
        room, containing = round(PIECE * _FACTOR**level), inner.lines if inner else None
        return cut(documents, outer, room, or_beginning=or_beginning, containing=containing) or inner

    return documents.once(("window", part, level, or_beginning), work)
