"""Windows of a section: pieces around the terms of the question, each inside the next larger one.

So the text for a smaller budget is a part of the text for a larger one. The window of :data:`PIECE` tokens is
the best one of its length. Smaller windows are cut from it; larger ones contain it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

from npl_index.answer.cutting import cut
from npl_index.answer.document_set import DocumentSet, SectionPart

PIECE = 300
"""Tokens of a piece in an answer to a question."""

WHOLE = 600
"""Maximum tokens of a section that is not cut if there is room."""

_STEPS = 3
_SMALLEST = -8
_FACTOR = (WHOLE / PIECE) ** (1 / _STEPS)


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
        room, around = round(PIECE * _FACTOR**level), None if inner is None else inner.lines
        return cut(documents, outer, room, or_beginning=or_beginning, around=around) or inner

    key = ("window", part.place, part.lines, part.chosen, level, or_beginning)
    return documents.once(key, work)
