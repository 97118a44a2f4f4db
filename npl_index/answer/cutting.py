"""Where a section's text may be cut."""

from __future__ import annotations

from npl_index.markdown.blocks import parse_blocks
from npl_index.markdown.sections import SectionTree, Span


def line_ends(tree: SectionTree, lines: Span, first: int) -> list[int]:
    """List the lines before which a cut falls between blocks, in order.

    Blocks are those of the text and of its lists, quotes and tables, down to list items and table rows; a
    fence is never cut.

    :param lines: of the section.
    :param first: no cut is made before this line or at it, so that more than the heading is kept.
    """
    tokens = parse_blocks(tree.text(lines), nesting=tree.dialect == "npl")
    ends = {lines.start + token.map[1] for token in tokens if token.map}
    return sorted(end for end in ends if first < end < lines.stop)
