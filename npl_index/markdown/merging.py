"""Merge two edits of a file by section: each section is taken from the side that changed it."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from npl_index.markdown.editing import Parse, line_end_of

Pieces = tuple[bytes, ...]
"""The own texts of all sections of a file, in order; the last one without blank lines at its end."""

_Change = tuple[int, int, Pieces]
"""First and last place of the pieces that are replaced, and the new pieces."""


def merge_sections(base: bytes, ours: bytes, theirs: bytes, parse: Parse) -> bytes | None:
    """Merge two edits of a file.

    :param base: the file before both.
    :param parse: reads a file.
    :returns: ``None`` if both changed one section, or added different ones at one place.
    :raises DocumentError: a file cannot be parsed.
    """
    before = _pieces(base, parse)
    changes = sorted({*_changes(before, _pieces(ours, parse)), *_changes(before, _pieces(theirs, parse))})
    merged: list[bytes] = []
    place, last = 0, (-1, -1)
    for start, stop, new in changes:
        if start < place or (start, stop) == last:
            return None
        merged += [*before[place:start], *new]
        place, last = stop, (start, stop)
    merged += before[place:]
    gap = line_end_of(base) * 2  # after a piece that was the last of its file
    joined = b"".join(piece if piece.endswith((b"\n", b"\r")) else piece + gap for piece in merged)
    result = joined.rstrip() + ours[len(ours.rstrip()) :]
    # A fence or comment that one side left open would swallow the sections of the other.
    return result if _keys(_pieces(result, parse)) == _keys(merged) else None


def _pieces(data: bytes, parse: Parse) -> Pieces:
    starts = {0, *(section.own_bytes.start for section in parse(data).sections[1:])}
    pieces = [data[start:stop] for start, stop in pairwise((*sorted(starts), len(data)))]
    return (*pieces[:-1], pieces[-1].rstrip())


def _changes(before: Pieces, after: Pieces) -> list[_Change]:
    matcher = SequenceMatcher(None, _keys(before), _keys(after), autojunk=False)
    return [
        (start, stop, after[new:end])
        for kind, start, stop, new, end in matcher.get_opcodes()
        if kind != "equal"
    ]


def _keys(pieces: Sequence[bytes]) -> list[bytes]:
    return [piece.rstrip() for piece in pieces]
