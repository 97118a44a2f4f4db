"""Cutting a section that does not fit to the run of its blocks around the question's terms.

A window is such a piece. It lies inside the next larger window, so the text for a smaller budget is a part
of the text for a larger one. The window of :data:`PIECE` tokens has the most terms for its length. Smaller
windows are cut from it; larger ones contain it. Only pieces are counted, so the time of a cut depends on the
piece, not on the section.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import log2

from npl_index.answer.document_set import DocumentSet, SectionPart, Size, once
from npl_index.answer.finding import Occurrence, best_run, occurrences
from npl_index.answer.frames import Stretch
from npl_index.markdown.sections import SectionTree, Span

PIECE = 300
"""Tokens of a piece in an answer to a question."""

WHOLE = 600
"""Maximum tokens of a section that is not cut if there is room."""

_STEPS, _SMALLEST = 3, -10
"""Sizes of windows from ``PIECE`` to ``WHOLE``, and number of the smallest size."""


def cut(
    documents: DocumentSet, part: SectionPart, room: int, inner: SectionPart | None = None
) -> SectionPart | None:
    """Cut a part to the run of blocks with the most terms of the question, within ``room`` tokens.

    Without a term, or if no run with one fits, the start of the part is kept. A piece of a line has the
    selector of the line, because selectors count whole lines.

    :param inner: a piece that the new one contains.
    :returns: the piece; ``None`` if nothing fits.
    :raises DocumentTimeoutError: the deadline has passed.
    """
    begin, end = _offsets(part)
    found = [match for match in occurrences(documents, part.place) if begin <= match.at < end]
    blocks, core = documents.blocks(part.place), None if inner is None else _offsets(inner)
    for matches in (found, [Occurrence(begin, 0, 0.0)]):
        seeds = [match.at for match in matches]
        width = room * (end - begin) // max(1, part.size.last)
        while run := _run(matches, blocks.bounds(begin, end, seeds, width), width, core):
            piece = part.narrowed(_range_of(part.tree, *run))
            if (spent := documents.counter.upper_bound(max(piece.size))) <= room:
                return piece
            width = min(run[1] - run[0] - 1, width * room // spent)
    return None


def _run(
    matches: Sequence[Occurrence], bounds: list[int], width: int, core: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Return the ends of the run of blocks with the most terms, as long as it may be.

    :param core: ends of the text that it contains instead of the terms.
    """
    if core is None:
        blocks = [bisect_right(bounds, match.at) for match in matches]
        core = best_run(matches, [(bounds[block - 1], bounds[block]) for block in blocks], width)
    if core is None or core[1] - core[0] > width:
        return None
    bounds = sorted({*bounds, *core})
    # The text after a term says more about it than the text before it.
    begin = bounds[bisect_left(bounds, core[0] - (width - core[1] + core[0]) // 3)]
    end = bounds[bisect_right(bounds, begin + width) - 1]
    return bounds[bisect_left(bounds, end - width)], end


def _offsets(part: SectionPart) -> tuple[int, int]:
    """Return the offsets of a part in the source."""
    lines, starts = part.lines, part.tree.line_starts
    return (
        (lines.begin, lines.end) if isinstance(lines, Stretch) else (starts[lines.start], starts[lines.stop])
    )


def _range_of(tree: SectionTree, begin: int, end: int) -> Span:
    """Return the lines of a range of the source, or the range if it has incomplete lines."""
    starts = tree.line_starts
    lines = Span(bisect_right(starts, begin) - 1, bisect_left(starts, end))
    is_whole = starts[lines.start] == begin and starts[lines.stop] == end
    return lines if is_whole else Stretch(lines.start, lines.stop, begin, end)


def rest_of(part: SectionPart, piece: SectionPart) -> Iterator[SectionPart]:
    """Yield the parts before and after a piece, with tokens estimated by length.

    A line that is only partly in the piece belongs to one of them.
    """
    starts, lines = part.tree.line_starts, piece.lines
    begin, end = _offsets(piece)
    first = lines.start + (begin > starts[lines.start])
    last = max(first, lines.stop - (end < starts[lines.stop]))
    spans = [Span(part.lines.start, first), Span(last, part.lines.stop)]
    sizes = [starts[span.stop] - starts[span.start] for span in spans]
    left = max(2, part.size.last - piece.size.last)
    for span, size in zip(spans, sizes, strict=True):
        if part.tree.text(span).strip():
            tokens = max(1, left * size // sum(sizes))
            yield part.narrowed(span, Size(tokens, tokens))


def windows(documents: DocumentSet, part: SectionPart, most: int, least: int = 0) -> Iterator[SectionPart]:
    """Yield the windows of a part with at most a number of tokens, largest first.

    :param least: minimum tokens of a window.
    """
    largest = int(_STEPS * log2(max(1, most) / PIECE))
    for level in range(largest, _SMALLEST - 1, -1):
        if least <= _size(level) <= most and (piece := _window(documents, part, level)) is not None:
            yield piece


def _size(level: int) -> int:
    """Return the tokens of a window: twice as many after ``_STEPS`` levels."""
    return round(PIECE * float(2 ** (level / _STEPS)))


@once
def _window(documents: DocumentSet, part: SectionPart, level: int) -> SectionPart | None:
    inner = _window(documents, part, level - 1) if level > 0 else None
    outer = _window(documents, part, level + 1) if level < 0 else part
    return outer and (cut(documents, outer, _size(level), inner) or inner)
