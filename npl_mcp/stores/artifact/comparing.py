"""Line-by-line comparison of two revisions of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

MAX_LINES = 2_000
"""Maximum lines of each text for a comparison one by one, between the common beginning and end. The work may
be quadratic: a third of a second at this limit. Above it, everything in between counts as changed.
"""

MAX_SHOWN = 3_000
"""Maximum lines of a comparison in an answer."""

MAX_LINE = 2_000
"""Maximum characters of a displayed line; a longer one is data."""

CONTEXT = 3
"""Lines shown before and after a change."""


def cut_line(line: str) -> str:
    """Return a line, or the beginning of a line too long for display."""
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


@dataclass(frozen=True, slots=True)
class Pair:
    """Lines shown side by side.

    :param old: number of a line of the old text, from 1; ``None`` for an added line.
    :param new: number of a line of the new text; ``None`` for a removed line.
    :param before: old line.
    :param after: new line; ``None`` if it is unchanged.
    """

    old: int | None
    new: int | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two texts.

    :param hunks: changes with lines around them.
    :param added: number of lines that only the new text has.
    :param removed: number of lines that only the old text has.
    :param cut: whether the text has more changes than ``hunks``.
    """

    hunks: Sequence[Sequence[Pair]]
    added: int
    removed: int
    cut: bool


def compare(old: str, new: str) -> Comparison:
    """Compare two texts."""
    before, after = old.splitlines(), new.splitlines()
    blocks = _blocks(before, after)
    added = sum(to_end - to for same, _, _, to, to_end in blocks if not same)
    removed = sum(end - begin for same, begin, end, _, _ in blocks if not same)
    hunks: list[list[Pair]] = [[]]
    room = MAX_SHOWN
    for at, (same, begin, end, to, to_end) in enumerate(blocks):
        if not same:
            pairs = list(_changed(before, after, (begin, end), (to, to_end)))
        else:
            head = CONTEXT if at else 0
            tail = CONTEXT if at < len(blocks) - 1 else 0
            pairs = [
                Pair(begin + n + 1, to + n + 1, cut_line(before[begin + n]), None) for n in range(end - begin)
            ]
            if len(pairs) > head + tail:
                hunks[-1] += pairs[:head]
                hunks.append([])
                pairs = pairs[len(pairs) - tail :]
        hunks[-1] += pairs[:room]
        room -= len(pairs)
        if room < 0:
            break
    return Comparison([hunk for hunk in hunks if hunk], added, removed, room < 0)


def kept_lines(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Return the new numbers of the lines common to two texts, by their old numbers; both count from 1."""
    blocks = (block for block in _blocks(old, new) if block[0])
    return {begin + n + 1: to + n + 1 for _, begin, end, to, _ in blocks for n in range(end - begin)}


def _changed(
    before: Sequence[str], after: Sequence[str], old: tuple[int, int], new: tuple[int, int]
) -> Iterator[Pair]:
    """Yield replaced lines next to their replacements."""
    for left, right in zip_longest(range(*old), range(*new)):
        old_line = (None, None) if left is None else (left + 1, cut_line(before[left]))
        new_line = (None, None) if right is None else (right + 1, cut_line(after[right]))
        yield Pair(old_line[0], new_line[0], old_line[1], new_line[1])


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[tuple[bool, int, int, int, int]]:
    """Return the equal and the different ranges of both texts, in order."""
    shortest = min(len(before), len(after))
    start = next((n for n in range(shortest) if before[n] != after[n]), shortest)
    rest = shortest - start
    end = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    blocks = [(True, 0, start, 0, start)]
    if max(len(old), len(new)) > MAX_LINES:
        blocks.append((False, start, start + len(old), start, start + len(new)))
    else:
        # Frequent lines, such as empty ones, are no anchors: they would make the comparison slow.
        codes = SequenceMatcher(None, old, new, autojunk=True).get_opcodes()
        blocks += [(tag == "equal", start + a, start + b, start + c, start + d) for tag, a, b, c, d in codes]
    blocks.append((True, len(before) - end, len(before), len(after) - end, len(after)))
    return [block for block in blocks if block[1] < block[2] or block[3] < block[4]]
