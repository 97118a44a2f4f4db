"""Cutting a section that does not fit: the run of its blocks around what was asked for.

What cannot be kept is neither parsed nor counted, and each block that is looked at is counted once, so that a
cut takes time in proportion to what is kept, however long the section.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from npl_index.answer.budget import Part, Size
from npl_index.answer.document_set import DocumentSet
from npl_index.answer.finding import Found, best_place, find_all, safe_start
from npl_index.markdown.blocks import parse_blocks
from npl_index.markdown.sections import SectionTree, Span
from npl_index.markdown.state import Deadline
from npl_index.tokens.counting import count_tokens

_WIDTH = 5
"""Characters of a token, more or less, in a block that is far too long."""

_MARGIN = 256
"""Characters read beside what fits on average, so that a small room, too, sees the end of a block."""

_TRIES = 4
"""Blocks given up, at most, where a run costs more than its blocks one by one."""

_BLANK = re.compile(r"\s*\Z")


class _Blocks(NamedTuple):
    """Consecutive blocks of a part.

    :param bounds: the lines before which a cut may fall, where the first begins and the last ends included.
    :param tokens: of all before each bound.
    :param worth: of all that was found before each bound.
    :param found: what was found, in each block.
    """

    bounds: Sequence[int]
    tokens: Sequence[int]
    worth: Sequence[float]
    found: Sequence[Sequence[Found]]


def cut(documents: DocumentSet, part: Part, room: int) -> tuple[Part, ...] | None:
    """Keep of a part the run of blocks that holds most of what was asked for, within ``room`` tokens.

    What the heading says needs no place in the text: it comes with every run. Where no block with something
    that was asked for fits, lines of a paragraph are kept; where nothing is found, the part's beginning. A
    fence is never cut.

    :returns: what is kept, then what stands before it and behind it; ``None`` if nothing fits.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    tree = documents.tree(part.document)
    body = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
    begin, end = tree.line_starts[body], tree.line_starts[part.lines.stop]
    found = documents.once(
        ("found", part.document, begin, end),
        lambda: find_all(tree.source, begin, end, _wanted(documents, part)),
    )
    reach = _reach(documents, part, room, found)
    pieces = None
    for by_line in (False, True) if found else ():
        pieces = pieces or _cut_within(documents, part, room, reach, found, by_line=by_line)
    # Else nothing is found, or it stands in a block that does not fit.
    return pieces or _cut_within(documents, part, room, _reach(documents, part, room, ()), ())


def _wanted(documents: DocumentSet, part: Part) -> tuple[tuple[str, float], ...]:
    """Return the terms that are asked for and that a section's heading does not say."""
    tree = documents.tree(part.document)
    heading = tree.sections[part.section].heading_lines
    begin, end = tree.line_starts[heading.start], tree.line_starts[heading.stop]
    said = {one.term for one in find_all(tree.source, begin, end, documents.wanted)}
    return tuple(term for number, term in enumerate(documents.wanted) if number not in said)


def _cut_within(
    documents: DocumentSet,
    part: Part,
    room: int,
    reach: Span,
    found: Sequence[Found],
    *,
    by_line: bool = False,
) -> tuple[Part, ...] | None:
    """Cut a part as :func:`cut` does, with a look at some of its lines only.

    :param found: what a run has to hold some of; where nothing is given, the beginning is kept.
    :param by_line: between the lines of paragraphs, too.
    """
    bounds = documents.once(
        ("bounds", part.document, part.section, part.lines, reach, by_line),
        lambda: _bounds(documents.tree(part.document), part, reach, documents.clock, by_line=by_line),
    )
    blocks = _measured(documents, part, bounds, found, room)
    at_start = bounds[0] == part.lines.start
    # What is cut out of a table gets its head; which blocks are kept is not known yet, and most of them are.
    lead = documents.lead_tokens(part, bounds[(len(bounds) - 1) // 2])
    run = _best_run(documents, blocks, room, at_start, lead)
    for _ in range(_TRIES):
        if run is None:
            break
        lines = Span(bounds[run[0]], bounds[run[1]])
        piece = documents.part((part.document, part.section), chosen=part.chosen, lines=lines)
        if piece.size.cost <= room:
            return (piece, *rest_of(documents, part, piece))
        run = _shorter(blocks, *run)
    return None


def _reach(documents: DocumentSet, part: Part, room: int, found: Sequence[Found]) -> Span:
    """Return the lines that are looked at to cut a part."""
    tree = documents.tree(part.document)
    starts = tree.line_starts
    begin, end = starts[part.lines.start], starts[part.lines.stop]
    width = (
        room * (end - begin) * 5 // (4 * max(1, part.size.last)) + _MARGIN
    )  # a quarter more than fits on average
    at = best_place(found, width, begin, end)
    line = safe_start(tree, part.lines, bisect_right(starts, at) - 1) if at > begin else part.lines.start
    if line is None:
        at, line = begin, part.lines.start
    stop = bisect_left(starts, max(at, starts[line]) + width + _MARGIN)
    return Span(line, min(part.lines.stop, max(stop, line + 1)))


def _bounds(
    tree: SectionTree, part: Part, lines: Span, clock: Deadline, *, by_line: bool = False
) -> list[int]:
    """Return the lines before which a cut falls between blocks, in order.

    Blocks are those of the text and of its lists, quotes and tables, down to list items and table rows; a
    fence is never cut, and more than the heading is kept.

    :param by_line: the lines of a paragraph are blocks.
    """
    first = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
    while first < lines.start and not tree.line(first).strip():
        first += 1
    start = part.lines.start if lines.start <= first else lines.start
    source = tree.source[tree.line_starts[start] : tree.line_starts[lines.stop]]
    tokens = [token for token in parse_blocks(source, npl=tree.dialect == "npl", deadline=clock) if token.map]
    ends = {start + token.map[1] for token in tokens if token.map}
    for token in tokens:
        if by_line and token.type == "paragraph_open" and token.map:
            ends.update(range(start + token.map[0] + 1, start + token.map[1]))
    if tokens and source.startswith("|"):  # rows of a table whose head stands before
        ends.update(range(start + 1, start + (tokens[0].map or (0, 1))[1]))
    bounds = [start, *sorted(end for end in ends if max(first, start) < end < lines.stop)]
    return [*bounds, lines.stop] if lines.stop == part.lines.stop else bounds


def _measured(
    documents: DocumentSet, part: Part, bounds: Sequence[int], found: Sequence[Found], room: int
) -> _Blocks:
    """Count each block once; of one that is far too long only what shows that."""
    tree = documents.tree(part.document)
    source, starts = tree.source, tree.line_starts
    longest = _WIDTH * room + 32 * _MARGIN
    tokens = [0]
    for begin, end in pairwise(starts[bound] for bound in bounds):
        count = count_tokens(source[begin : min(end, begin + longest)], documents.counter, documents.clock)
        if end - begin > longest and count <= room:
            count = count_tokens(source[begin:end], documents.counter, documents.clock)
        tokens.append(count)
    inside: list[list[Found]] = [[] for _ in bounds]
    offsets = [starts[bound] for bound in bounds]
    for one in found:
        block = bisect_right(offsets, one.at)
        if 0 < block < len(bounds):
            inside[block - 1].append(one)
    worth = (sum(one.worth for one in block) for block in inside)
    return _Blocks(bounds, list(accumulate(tokens)), [0.0, *accumulate(worth)], inside)


def _best_run(
    documents: DocumentSet, blocks: _Blocks, room: int, at_start: bool, above: int
) -> tuple[int, int] | None:
    """Return the bounds of the longest run that fits and holds most of what was found.

    That is most of the terms, each counted once, and of equal ones most places. Of equal runs it is the one
    that begins where the part begins, else the one in the middle.

    :param above: tokens of what comes above a run that does not begin with the heading.
    """
    bounds, tokens, worth, found = blocks
    runs: list[tuple[int, int]] = []
    most, stop = (0.0, 0.0), 0
    inside: Counter[int] = Counter()
    terms = 0.0
    for start in range(len(bounds) - 1):
        lead = 0 if at_start and not start else above
        stop = max(start, stop)
        while (
            stop + 1 < len(bounds)
            and documents.counter.upper_bound(lead + tokens[stop + 1] - tokens[start]) <= room
        ):
            for one in found[stop]:
                terms += 0.0 if inside[one.term] else one.worth
                inside[one.term] += 1
            stop += 1
        held = round(terms, 6), round(worth[stop] - worth[start], 6)
        if stop > start and held >= most and (held[0] or not start):
            if held > most:
                most, runs = held, []
            runs.append((start, stop))
        for one in found[start] if stop > start else ():
            inside[one.term] -= 1
            terms -= 0.0 if inside[one.term] else one.worth
    if not runs or (any(found) and not most[0]) or not (most[0] or at_start):
        return None
    return runs[0] if at_start and not runs[0][0] else runs[len(runs) // 2]


def _shorter(blocks: _Blocks, start: int, stop: int) -> tuple[int, int] | None:
    """Return a run without the block at its end that holds less of what was found."""
    if stop - start < 2:
        return None
    first = blocks.worth[start + 1] - blocks.worth[start]
    last = blocks.worth[stop] - blocks.worth[stop - 1]
    return (start, stop - 1) if last <= first else (start + 1, stop)


def rest_of(documents: DocumentSet, part: Part, piece: Part) -> Iterator[Part]:
    """Return what stands before a piece and behind it; its tokens are shared out by length, not counted."""
    tree = documents.tree(part.document)
    starts = tree.line_starts
    spans = [Span(part.lines.start, piece.lines.start), Span(piece.lines.stop, part.lines.stop)]
    sizes = [starts[span.stop] - starts[span.start] for span in spans]
    left = max(2, part.size.last - piece.size.last)
    for span, size in zip(spans, sizes, strict=True):
        if size and not _BLANK.match(tree.source, starts[span.start], starts[span.stop]):
            tokens = max(1, left * size // sum(sizes))
            cost = documents.counter.upper_bound(tokens)
            yield part.shortened(span, Size(tokens, tokens, cost))
