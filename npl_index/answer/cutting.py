"""Cutting a section that does not fit at an end of one of its blocks."""

from __future__ import annotations

from bisect import bisect_left

from npl_index.answer.budget import Part
from npl_index.answer.document_set import DocumentSet
from npl_index.markdown.blocks import parse_blocks
from npl_index.markdown.sections import SectionTree, Span
from npl_index.markdown.state import Deadline
from npl_index.tokens.counting import count_tokens

_STRIDE = 8_192
"""Characters, at most, after which a part that has to be cut is compared with the room."""


def cut(documents: DocumentSet, part: Part, room: int) -> tuple[Part, Part] | None:
    """Cut a part at the last end of a block that leaves it within ``room`` tokens.

    :raises DocumentTimeoutError: the deadline has passed.
    """
    tree = documents.tree(part.document)
    place = (part.document, part.section)
    first = max(part.lines.start, tree.sections[part.section].heading_lines.stop)
    reach = _reach(documents, tree, part.lines, room)
    ends = _block_ends(tree, Span(part.lines.start, reach), first, documents.clock)
    low, high = 0, len(ends)
    best: Part | None = None
    while low < high:
        middle = (low + high) // 2
        head = documents.part(place, chosen=part.chosen, lines=Span(part.lines.start, ends[middle]))
        if head.cost <= room:
            best, low = head, middle + 1
        else:
            high = middle
    if best is None:
        return None
    followed, last = part.followed - best.followed, part.last - best.followed
    rest = part._replace(
        lines=Span(best.lines.stop, part.lines.stop),
        followed=followed,
        last=last,
        cost=documents.counter.upper_bound(max(followed, last, 0)),
    )
    return best, rest


def _reach(documents: DocumentSet, tree: SectionTree, lines: Span, room: int) -> int:
    """Return a line behind the place where a text has more than ``room`` tokens, or its end.

    What lies behind it cannot be kept, so that it is neither parsed nor counted: a cut takes time in
    proportion to what is kept, however long the section.
    """
    starts = tree.line_starts
    stride = min(_STRIDE, 4 * room + _STRIDE // 32)
    at, stop, tokens = starts[lines.start], starts[lines.stop], 0
    while tokens <= room and at < stop:
        line = starts[min(lines.stop, bisect_left(starts, at + stride))]
        end = line if line <= at + 2 * stride else at + stride  # a long line is not read to its end
        tokens += count_tokens(tree.source[at:end], documents.counter, documents.clock)
        at = end
    return min(lines.stop, bisect_left(starts, at))


def _block_ends(tree: SectionTree, lines: Span, first: int, clock: Deadline) -> list[int]:
    """Return the lines before which a cut falls between blocks, in order.

    Blocks are those of the text and of its lists, quotes and tables, down to list items and table rows; a
    fence is never cut.

    :param lines: of the section.
    :param first: no cut is made before this line or at it, so that more than the heading is kept.
    """
    tokens = parse_blocks(tree.text(lines), npl=tree.dialect == "npl", deadline=clock)
    ends = {lines.start + token.map[1] for token in tokens if token.map}
    return sorted(end for end in ends if first < end < lines.stop)
